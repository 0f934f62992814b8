//! min over (x, b): (1/N) Σ loss(yᵢ, x·dᵢ + b) + λ‖x‖₁ + (λ₂/2)‖x‖₂²

pub mod data;
mod error;
pub mod output;

pub use error::{Error, Result};
