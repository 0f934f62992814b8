//! Prox-SG: the proximal stochastic gradient method.
//!
//! Problem: min f(x) + λ‖x‖₁. Step: x ← S(x − α ∇f_B(x), αλ). Parameters: λ, and the step sizes α.
//! Citation: Duchi and Singer, Efficient online and batch learning using forward backward splitting, 2009; the paper's
//! Algorithm 2.

use burn::config::Config;
use burn::optim::{LearningRate, ModuleOptimizer, Optimizer};
use burn::tensor::{Device, Tensor};

use super::{Penalized, Smooth, SmoothConfig, SmoothState, prox};

/// Configuration of [`ProxSg`].
#[derive(Config, Debug)]
pub struct ProxSgConfig {
    /// λ.
    pub lambda: f64,
    /// What λ weighs on.
    #[config(default = "Penalized::Weights")]
    pub penalized: Penalized,
    /// Momentum and weight decay.
    #[config(default = "SmoothConfig::new()")]
    pub smooth: SmoothConfig,
}

/// The optimizer.
#[derive(Clone)]
pub struct ProxSg {
    lambda: f64,
    penalized: Penalized,
    smooth: Smooth,
}

impl ProxSgConfig {
    /// The bare optimizer, for one parameter group.
    pub fn build(&self) -> ProxSg {
        ProxSg { lambda: self.lambda, penalized: self.penalized, smooth: self.smooth.build() }
    }

    /// The optimizer of a whole module.
    pub fn init(&self) -> ModuleOptimizer {
        self.build().into()
    }
}

impl Optimizer for ProxSg {
    type State<const D: usize> = SmoothState<D>;

    fn step<const D: usize>(
        &self,
        step: LearningRate,
        x: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let (gradient, state) = self.smooth.transform(gradient, state);
        let lambda = self.penalized.lambda(self.lambda, D);
        (self.smooth.decay(prox(x, gradient, step, lambda), step, lambda), Some(state))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        state.to_device(device)
    }
}
