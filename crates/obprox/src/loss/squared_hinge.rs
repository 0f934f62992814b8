//! ℓ(m; y) = max(0, 1 − ym)², y = ±1.

use super::{ScalarLoss, Task};

/// The squared hinge loss of two classes: the l2-loss support vector machine.
#[derive(Clone, Copy, Debug)]
pub struct SquaredHinge;

/// 1 − ym where it is positive, else 0; a NaN stays one.
fn slack(margin: f64, target: f64) -> f64 {
    let slack = 1.0 - target * margin;
    if slack <= 0.0 { 0.0 } else { slack }
}

impl ScalarLoss for SquaredHinge {
    fn name(&self) -> &str {
        "squared-hinge"
    }

    fn task(&self) -> Task {
        Task::Binary
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        let slack = slack(margin, target);
        slack * slack
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        -2.0 * target * slack(margin, target)
    }

    #[inline]
    fn curvature(&self, margin: f64, target: f64) -> Option<f64> {
        Some(if slack(margin, target) == 0.0 { 0.0 } else { 2.0 })
    }

    fn smoothness(&self) -> Option<f64> {
        Some(2.0)
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        let a = -dual * target;
        Some(if a >= 0.0 { 0.25 * a * a - a } else { f64::INFINITY })
    }
}
