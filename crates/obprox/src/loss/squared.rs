//! ℓ(m; y) = ½ (m − y)².

use super::{ScalarLoss, Task};

/// The squared loss, with its half: (1/N) Σ ½ (m − y)² + λ‖x‖₁ is the Lasso as scikit-learn states it.
#[derive(Clone, Copy, Debug)]
pub struct Squared;

impl ScalarLoss for Squared {
    fn name(&self) -> &str {
        "squared"
    }

    fn task(&self) -> Task {
        Task::Regression
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        0.5 * (margin - target) * (margin - target)
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        margin - target
    }

    #[inline]
    fn curvature(&self, _margin: f64, _target: f64) -> Option<f64> {
        Some(1.0)
    }

    fn smoothness(&self) -> Option<f64> {
        Some(1.0)
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        Some(0.5 * dual * dual + dual * target)
    }
}
