//! Sparse networks as small files and fast predictions.
//!
//! A [`Model`] is a network with its parameters ([`Weights`]) and what its images look like. The network is one that is
//! known by name ([`Architecture`]), or any other, told node by node ([`Network`]). It comes from a file, is written as a
//! compressed sparse one, and predicts by kernels that skip zeros. Nothing here trains and nothing here needs Burn.

mod activation;
pub mod architecture;
mod channels;
mod compressed;
mod cut;
pub mod engine;
mod fused;
pub mod graph;
mod groups;
pub mod images;
mod interchange;
mod liveness;
mod model;
pub mod network;
mod onnx;
mod random;
mod rounding;
mod safetensors;
mod weights;

pub use architecture::{Architecture, Kind};
pub use channels::Channels;
pub use compressed::DenseSizes;
pub use engine::Engine;
pub use fused::ConvShape;
pub use graph::Graph;
pub use groups::Group;
pub use model::{Design, Model, Training};
pub use network::Network;
pub use random::Pattern;
pub use rounding::Values;
pub use weights::{Tensor, Weights};
