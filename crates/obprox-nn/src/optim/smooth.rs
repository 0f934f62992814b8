//! Momentum, which changes a gradient before a method sees it, and weight decay, which ends a step. Beyond the paper, off by
//! default.

use burn::config::Config;
use burn::optim::momentum::{Momentum, MomentumConfig, MomentumState};
use burn::optim::{RecordState, StateSink, StateSource, join_path};
use burn::tensor::{Device, Tensor};

/// Configuration of [`Smooth`].
#[derive(Config, Debug)]
pub struct SmoothConfig {
    /// The weight λ₂ of (λ₂/2)‖x‖² over the parameters of two or more dimensions, penalised by λ or not, and over whatever
    /// else λ weighs on. It is taken implicitly: a step ends by a division by 1 + αλ₂, which is stable for any α.
    #[config(default = 0.0)]
    pub weight_decay: f64,
    /// Momentum of the gradient.
    pub momentum: Option<MomentumConfig>,
}

/// The smooth part of a step.
#[derive(Clone, Default)]
pub struct Smooth {
    weight_decay: f64,
    momentum: Option<Momentum>,
}

/// State of [`Smooth`] for one parameter.
#[derive(Clone)]
pub struct SmoothState<const D: usize> {
    momentum: Option<MomentumState<D>>,
}

impl SmoothConfig {
    /// Builds it.
    pub fn build(&self) -> Smooth {
        Smooth { weight_decay: self.weight_decay, momentum: self.momentum.as_ref().map(Momentum::new) }
    }
}

impl Smooth {
    /// The gradient that a method is to step along.
    pub fn transform<const D: usize>(
        &self,
        mut gradient: Tensor<D>,
        state: Option<SmoothState<D>>,
    ) -> (Tensor<D>, SmoothState<D>) {
        let mut kept = state.and_then(|state| state.momentum);
        if let Some(momentum) = &self.momentum {
            let (moved, state) = momentum.transform(gradient, kept);
            (gradient, kept) = (moved, Some(state));
        }
        (gradient, SmoothState { momentum: kept })
    }

    /// The end of a step: x/(1 + αλ₂). Zeros stay zeros.
    pub fn decay<const D: usize>(&self, x: Tensor<D>, step: f64, lambda: f64) -> Tensor<D> {
        let decayed = self.weight_decay > 0.0 && (D >= 2 || lambda > 0.0);
        if decayed { x.div_scalar(1.0 + step * self.weight_decay) } else { x }
    }
}

impl<const D: usize> SmoothState<D> {
    /// Moves it to a device.
    pub fn to_device(mut self, device: &Device) -> Self {
        self.momentum = self.momentum.map(|momentum| momentum.to_device(device));
        self
    }
}

impl<const D: usize> RecordState for SmoothState<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        if let Some(momentum) = &self.momentum {
            momentum.state_flatten(&join_path(prefix, "momentum"), out);
        }
    }

    fn state_unflatten(prefix: &str, from: &mut StateSource, device: &Device) -> Option<Self> {
        let prefix = join_path(prefix, "momentum");
        let momentum = match from.has_under(&prefix) {
            true => Some(MomentumState::state_unflatten(&prefix, from, device)?),
            false => None,
        };
        Some(Self { momentum })
    }
}
