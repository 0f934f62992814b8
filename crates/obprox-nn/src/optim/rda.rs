//! RDA: regularised dual averaging.
//!
//! Problem: min f(x) + λ‖x‖₁. After t gradients of sum G: x = argmin G·x/t + λ‖x‖₁ + (γ/(2√t))‖x − c‖², which is
//! S(c − G/(γ√t), λ√t/γ). The centre c is where training began: a network at zero has no gradient to leave it by. Step
//! sizes have no part in it.
//! Parameters: λ, γ > 0. Citation: Xiao, Dual averaging methods for regularized stochastic learning and online
//! optimization, 2010.

use burn::config::Config;
use burn::optim::{LearningRate, ModuleOptimizer, Optimizer, RecordState, StateSink, StateSource};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{Penalized, dual_average};

/// What the strongly convex part pulls to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centre {
    /// The weights that training began with.
    #[default]
    Start,
    /// Zero, as for convex problems.
    Zero,
}

/// Configuration of [`Rda`].
#[derive(Config, Debug)]
pub struct RdaConfig {
    /// λ.
    pub lambda: f64,
    /// γ.
    pub gamma: f64,
    /// What λ weighs on.
    #[config(default = "Penalized::Weights")]
    pub penalized: Penalized,
    /// What the strongly convex part pulls to.
    #[config(default = "Centre::Start")]
    pub centre: Centre,
}

/// The optimizer.
#[derive(Clone)]
pub struct Rda {
    lambda: f64,
    gamma: f64,
    penalized: Penalized,
    centre: Centre,
}

/// State of [`Rda`] for one parameter.
#[derive(Clone)]
pub struct RdaState<const D: usize> {
    count: usize,
    sum: Tensor<D>,
    centre: Option<Tensor<D>>,
}

impl RdaConfig {
    /// The bare optimizer, for one parameter group.
    pub fn build(&self) -> Rda {
        Rda { lambda: self.lambda, gamma: self.gamma, penalized: self.penalized, centre: self.centre }
    }

    /// The optimizer of a whole module.
    pub fn init(&self) -> ModuleOptimizer {
        self.build().into()
    }
}

impl Optimizer for Rda {
    type State<const D: usize> = RdaState<D>;

    fn step<const D: usize>(
        &self,
        _step: LearningRate,
        x: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let state = match state {
            Some(state) => RdaState { count: state.count + 1, sum: state.sum + gradient, ..state },
            None => RdaState { count: 1, sum: gradient, centre: (self.centre == Centre::Start).then_some(x) },
        };
        let lambda = self.penalized.lambda(self.lambda, D);
        let x = dual_average(state.sum.clone(), state.centre.clone(), state.count, self.gamma, lambda);
        (x, Some(state))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        let centre = state.centre.map(|centre| centre.to_device(device));
        RdaState { count: state.count, sum: state.sum.to_device(device), centre }
    }
}

impl<const D: usize> RecordState for RdaState<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        out.push_scalar(prefix, "count", self.count.into());
        out.push_tensor(prefix, "sum", self.sum.to_data());
        if let Some(centre) = &self.centre {
            out.push_tensor(prefix, "centre", centre.to_data());
        }
    }

    fn state_unflatten(prefix: &str, from: &mut StateSource, device: &Device) -> Option<Self> {
        Some(Self {
            count: usize::try_from(from.take_scalar(prefix, "count")?).ok()?,
            sum: Tensor::from_data(from.take_tensor(prefix, "sum")?, device),
            centre: from.take_tensor(prefix, "centre").map(|centre| Tensor::from_data(centre, device)),
        })
    }
}
