//! f = (1/N)·ℓ(m₁, …, m_N): a loss of all margins together.
//!
//! Rows are told apart by the weights wᵢ that they have, and a row of weight 0 is as good as absent. What a row is handed is
//! its slope and curvature without the weight, as of any other loss: whoever adds up over the rows multiplies by it.

use std::fmt::Debug;

use crate::Result;

/// A loss that couples its rows; made for their targets by [`Loss::coupled`](super::Loss::coupled).
pub trait Coupled: Debug + Send + Sync {
    /// Why nothing can be learnt from rows of these weights, where that is so.
    fn check(&self, weights: Option<&[f64]>) -> Result<()>;
    /// ℓ.
    fn total(&self, margins: &[f64], weights: Option<&[f64]>) -> f64;
    /// The least that ℓ can be, whatever the margins.
    fn least(&self, weights: Option<&[f64]>) -> f64;
    /// ∂ℓ/∂mᵢ over wᵢ, and the same of a diagonal that is a model of ∇²ℓ.
    fn expand(&self, margins: &[f64], weights: Option<&[f64]>, slopes: &mut [f64], curvatures: &mut [f64]);
    /// ℓ* at s·∇ℓ(m), or a little more.
    fn conjugate(&self, scale: f64, margins: &[f64], weights: Option<&[f64]>) -> f64;
    /// Rows that count for a criterion, such as those whose event was seen.
    fn events(&self, weights: Option<&[f64]>) -> usize;
}
