//! The methods as Burn optimizers, one short file each: config, algorithm, state.
//!
//! Problem: min f(x) + λ‖x‖₁ over the parameters of a module. Each method implements Burn's
//! [`Optimizer`](burn::optim::Optimizer), so it works in any training code that takes one:
//!
//! ```
//! use burn::nn::LinearConfig;
//! use burn::optim::GradientsParams;
//! use burn::tensor::{Device, Tensor};
//! use obprox_nn::optim::ProxSgConfig;
//!
//! let device = Device::flex().autodiff();
//! let mut layer = LinearConfig::new(4, 2).init(&device);
//! let mut optimizer = ProxSgConfig::new(1e-2).init();
//! let loss = layer.forward(Tensor::<2>::ones([8, 4], &device)).sum();
//! let gradients = GradientsParams::from_grads(loss.backward(), &layer);
//! layer = optimizer.step(0.1, layer, gradients);
//! ```
//!
//! λ weighs on every parameter of two or more dimensions; biases and the parameters of a normalisation have one, and
//! are left free unless [`Penalized::All`] is asked for. A layer with a λ of its own, or none, is a parameter group:
//! `optimizer.with_group(ParamGroup::from_path("fc.weight"), ProxSgConfig::new(0.0).build(), None)`.

mod control;
mod density;
mod groups;
mod obprox_sg;
mod operators;
mod params;
mod phase;
mod prox_sg;
mod prox_svrg;
mod rda;
mod smooth;

use serde::{Deserialize, Serialize};

pub use control::{Controlled, DensityControl};
pub use density::{Begun, Plan, Trial, size, thresholds};
pub use groups::{GroupControl, Rows};
pub use obprox::switch::Phase;
pub use obprox_sg::{ObproxSg, ObproxSgConfig, ObproxSgState};
pub use operators::{dual_average, face, hold, prox, shrink};
pub use phase::{PhaseCell, Switching};
pub use prox_sg::{ProxSg, ProxSgConfig};
pub use prox_svrg::{Anchor, IterateMean, ProxSvrg, ProxSvrgConfig};
pub use rda::{Centre, Rda, RdaConfig, RdaState};
pub use smooth::{Smooth, SmoothConfig, SmoothState};

/// Which parameters λ weighs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Penalized {
    /// Those of two or more dimensions: the weights of convolutions and of linear layers.
    #[default]
    Weights,
    /// Every parameter, biases and normalisations included.
    All,
}

impl Penalized {
    /// λ for a parameter of `rank` dimensions.
    pub fn lambda(self, lambda: f64, rank: usize) -> f64 {
        if self == Self::All || rank >= 2 { lambda } else { 0.0 }
    }
}
