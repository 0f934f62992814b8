//! Momentum and weight decay: what is done to a gradient before a method sees it. Beyond the paper, off by default.

use burn::config::Config;
use burn::optim::RecordState;
use burn::optim::decay::{WeightDecay, WeightDecayConfig};
use burn::optim::momentum::{Momentum, MomentumConfig, MomentumState};
use burn::tensor::{Device, Tensor};

/// Configuration of [`Smooth`].
#[derive(Config, Debug)]
pub struct SmoothConfig {
    /// The weight λ₂ of (λ₂/2)‖x‖², added to the gradient.
    pub weight_decay: Option<WeightDecayConfig>,
    /// Momentum of the gradient.
    pub momentum: Option<MomentumConfig>,
}

/// The smooth part of a step.
#[derive(Clone, Default)]
pub struct Smooth {
    weight_decay: Option<WeightDecay>,
    momentum: Option<Momentum>,
}

/// State of [`Smooth`] for one parameter.
#[derive(RecordState, Clone)]
pub struct SmoothState<const D: usize> {
    momentum: Option<MomentumState<D>>,
}

impl SmoothConfig {
    /// Builds it.
    pub fn build(&self) -> Smooth {
        Smooth {
            weight_decay: self.weight_decay.as_ref().map(WeightDecay::new),
            momentum: self.momentum.as_ref().map(Momentum::new),
        }
    }
}

impl Smooth {
    /// The gradient that a method is to step along.
    pub fn transform<const D: usize>(
        &self,
        x: &Tensor<D>,
        mut gradient: Tensor<D>,
        state: Option<SmoothState<D>>,
    ) -> (Tensor<D>, SmoothState<D>) {
        let mut kept = state.and_then(|state| state.momentum);
        if let Some(decay) = &self.weight_decay {
            gradient = decay.transform(gradient, x.clone());
        }
        if let Some(momentum) = &self.momentum {
            let (moved, state) = momentum.transform(gradient, kept);
            (gradient, kept) = (moved, Some(state));
        }
        (gradient, SmoothState { momentum: kept })
    }
}

impl<const D: usize> SmoothState<D> {
    /// Moves it to a device.
    pub fn to_device(mut self, device: &Device) -> Self {
        self.momentum = self.momentum.map(|momentum| momentum.to_device(device));
        self
    }
}
