//! OBProx-SG and OBProx-SG+: Prox-SG steps predict the support, Orthant steps on the face make it sparse.
//!
//! Problem: min f(x) + λ‖x‖₁. Step k: a Prox-SG step where mod(k, N_P + N_O) < N_P, else an Orthant step,
//! x ← Proj(x − α(∇f_B(x) + λ sign x)), which zeroes what would leave the orthant of x. OBProx-SG+ has N_O = ∞.
//! Parameters: λ, N_P, N_O and the step sizes α. Citation: the paper's Algorithms 1, 3 and 4.

use burn::config::Config;
use burn::optim::{LearningRate, ModuleOptimizer, Optimizer, RecordState, StateSink, StateSource};
use burn::tensor::{Device, Tensor};

use super::{Penalized, Phase, PhaseCell, Smooth, SmoothConfig, SmoothState, Switching, face, hold, prox};

/// Configuration of [`ObproxSg`].
#[derive(Config, Debug)]
pub struct ObproxSgConfig {
    /// λ.
    pub lambda: f64,
    /// N_P, in steps.
    pub prox_steps: usize,
    /// N_O, in steps; without it ∞, which is OBProx-SG+.
    pub orthant_steps: Option<usize>,
    /// What λ weighs on.
    #[config(default = "Penalized::Weights")]
    pub penalized: Penalized,
    /// Momentum and weight decay.
    #[config(default = "SmoothConfig::new()")]
    pub smooth: SmoothConfig,
}

/// The optimizer.
#[derive(Clone)]
pub struct ObproxSg {
    lambda: f64,
    penalized: Penalized,
    switching: Switching,
    smooth: Smooth,
}

/// State of [`ObproxSg`] for one parameter.
#[derive(Clone)]
pub struct ObproxSgState<const D: usize> {
    steps: usize,
    smooth: SmoothState<D>,
}

impl ObproxSgConfig {
    /// The bare optimizer, for one parameter group.
    pub fn build(&self) -> ObproxSg {
        let switching = Switching::steps(self.prox_steps, self.orthant_steps);
        ObproxSg { lambda: self.lambda, penalized: self.penalized, switching, smooth: self.smooth.build() }
    }

    /// The same with a phase that the training loop sets; N_P and N_O are not used.
    pub fn build_told(&self, phase: PhaseCell) -> ObproxSg {
        ObproxSg { switching: Switching::Told(phase), ..self.build() }
    }

    /// The optimizer of a whole module.
    pub fn init(&self) -> ModuleOptimizer {
        self.build().into()
    }
}

impl Optimizer for ObproxSg {
    type State<const D: usize> = ObproxSgState<D>;

    fn step<const D: usize>(
        &self,
        step: LearningRate,
        x: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let steps = state.as_ref().map_or(0, |state| state.steps);
        let (gradient, smooth) = self.smooth.transform(gradient, state.map(|state| state.smooth));
        let lambda = self.penalized.lambda(self.lambda, D);
        let x = match self.switching.phase(steps) {
            _ if self.switching.is_trial() => prox(x, gradient, step, 0.0),
            Phase::Orthant => face(x, gradient, step, lambda),
            Phase::Hold if lambda > 0.0 => hold(x, gradient, step),
            Phase::Prox | Phase::Hold | Phase::Newton => prox(x, gradient, step, lambda),
        };
        let x = self.smooth.decay(x, step, lambda);
        (x, Some(ObproxSgState { steps: steps + 1, smooth }))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        ObproxSgState { steps: state.steps, smooth: state.smooth.to_device(device) }
    }
}

impl<const D: usize> RecordState for ObproxSgState<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        out.push_scalar(prefix, "steps", self.steps.into());
        self.smooth.state_flatten(prefix, out);
    }

    fn state_unflatten(prefix: &str, from: &mut StateSource, device: &Device) -> Option<Self> {
        let steps = usize::try_from(from.take_scalar(prefix, "steps")?).ok()?;
        Some(Self { steps, smooth: SmoothState::state_unflatten(prefix, from, device)? })
    }
}
