//! ℓ(m; y) = ½ r² for |r| ≤ δ, else δ|r| − ½ δ², with r = m − y.

use std::sync::Arc;

use super::{Loss, ScalarLoss, Task};

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

    fn smoother(&self, width: f64) -> Option<Arc<dyn Loss>> {
        (width > self.delta).then(|| Arc::new(Wide { slope: self.delta, width }) as Arc<dyn Loss>)
    }

    fn parameter(&self) -> Option<f64> {
        Some(self.delta)
    }
}

/// Huber's loss of another width, δ′, with the slopes of δ beyond it: (δ/δ′) times that of δ′.
#[derive(Clone, Copy, Debug)]
struct Wide {
    slope: f64,
    width: f64,
}

impl Wide {
    fn share(&self) -> f64 {
        self.slope / self.width
    }

    fn huber(&self) -> Huber {
        Huber { delta: self.width }
    }
}

impl ScalarLoss for Wide {
    fn name(&self) -> &str {
        "huber"
    }

    fn task(&self) -> Task {
        Task::Regression
    }

    fn value(&self, margin: f64, target: f64) -> f64 {
        self.share() * ScalarLoss::value(&self.huber(), margin, target)
    }

    fn derivative(&self, margin: f64, target: f64) -> f64 {
        self.share() * self.huber().derivative(margin, target)
    }

    fn curvature(&self, margin: f64, target: f64) -> Option<f64> {
        ScalarLoss::curvature(&self.huber(), margin, target).map(|second| self.share() * second)
    }

    fn smoothness(&self) -> Option<f64> {
        Some(self.share())
    }

    fn slope_range(&self, _target: f64) -> Option<(f64, f64)> {
        Some((-self.slope, self.slope))
    }

    fn parameter(&self) -> Option<f64> {
        Some(self.slope)
    }

    fn width(&self) -> Option<f64> {
        Some(self.width)
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        // Of a multiple: (sℓ)*(u) = s·ℓ*(u/s). Rounding must not push a slope of δ out of the domain.
        let inner = (dual / self.share()).clamp(-self.width, self.width);
        let inside = dual.abs() <= self.slope * (1.0 + 1e-12);
        if !inside {
            return Some(f64::INFINITY);
        }
        ScalarLoss::conjugate(&self.huber(), inner, target).map(|value| self.share() * value)
    }
}
