//! Sparse networks as small files and fast predictions.
//!
//! A [`Model`] is a network ([`Architecture`]) with its parameters ([`Weights`], under PyTorch's names) and what its
//! images look like. It comes from a safetensors file, is written as a compressed sparse file, and predicts by kernels
//! that skip zeros. Nothing here trains and nothing here needs Burn.

pub mod architecture;
mod channels;
mod compressed;
pub mod engine;
mod fused;
pub mod graph;
pub mod images;
mod interchange;
mod liveness;
mod model;
mod random;
mod weights;

pub use architecture::{Architecture, Kind};
pub use channels::Channels;
pub use compressed::Sizes;
pub use engine::Engine;
pub use graph::Graph;
pub use model::{Model, Training};
pub use random::Pattern;
pub use weights::{Tensor, Weights};
