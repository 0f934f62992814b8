//! ℓ(m; y) = e^m − ym, y ≥ 0: the negative log-likelihood of counts with mean e^m, less its constant ln y!.

use super::logistic::entropy;
use super::{ScalarLoss, Task};

/// The Poisson loss of counts. Its curvature e^m has no bound, so there is no `--step auto` for it.
#[derive(Clone, Copy, Debug)]
pub struct Poisson;

impl ScalarLoss for Poisson {
    fn name(&self) -> &str {
        "poisson"
    }

    fn task(&self) -> Task {
        Task::Counts
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        margin.exp() - target * margin
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        margin.exp() - target
    }

    #[inline]
    fn curvature(&self, margin: f64, _target: f64) -> Option<f64> {
        Some(margin.exp())
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        // Scaling the dual point by s ≤ 1 can leave u + y a rounding error below zero where it is zero.
        let mean = dual + target;
        let rounding = -4.0 * f64::EPSILON * (dual.abs() + target);
        Some(if mean >= rounding { entropy(mean.max(0.0)) - mean } else { f64::INFINITY })
    }
}
