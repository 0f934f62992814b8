//! ℓ(m; y) = ½ r² for |r| ≤ δ, else δ|r| − ½ δ², with r = m − y.

use super::{ScalarLoss, Task};

/// Huber's loss: squared near the target, linear beyond δ, so that an outlier pulls with bounded force.
#[derive(Clone, Copy, Debug)]
pub struct Huber {
    /// Where the loss turns from quadratic to linear; positive.
    pub delta: f64,
}

impl Huber {
    /// The δ that keeps 95 % efficiency on Gaussian noise of unit variance.
    pub const DEFAULT_DELTA: f64 = 1.345;
}

impl ScalarLoss for Huber {
    fn name(&self) -> &str {
        "huber"
    }

    fn task(&self) -> Task {
        Task::Regression
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        let r = (margin - target).abs();
        if r <= self.delta { 0.5 * r * r } else { self.delta * (r - 0.5 * self.delta) }
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        let r = margin - target;
        if r.abs() > self.delta { self.delta.copysign(r) } else { r }
    }

    #[inline]
    fn curvature(&self, margin: f64, target: f64) -> Option<f64> {
        Some(if (margin - target).abs() > self.delta { 0.0 } else { 1.0 })
    }

    #[inline]
    fn upper_curvature(&self, margin: f64, target: f64) -> Option<f64> {
        // ℓ′/r, as in iteratively reweighted least squares.
        Some(self.delta / (margin - target).abs().max(self.delta))
    }

    fn smoothness(&self) -> Option<f64> {
        Some(1.0)
    }

    fn slope_range(&self, _target: f64) -> Option<(f64, f64)> {
        Some((-self.delta, self.delta))
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        Some(if dual.abs() <= self.delta { 0.5 * dual * dual + dual * target } else { f64::INFINITY })
    }

    fn parameter(&self) -> Option<f64> {
        Some(self.delta)
    }
}
