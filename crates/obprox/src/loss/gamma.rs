//! ℓ(m; y) = y·e^(−m) + m, y > 0: the negative log-likelihood of positive numbers with mean e^m whose deviation is in
//! proportion to it (the gamma distribution with a log link), over its shape and less its constant.

use super::{ScalarLoss, Task};

/// The gamma loss of positive numbers. Its curvature y·e^(−m) has no bound, so there is no `--step auto` for it.
#[derive(Clone, Copy, Debug)]
pub struct Gamma;

impl ScalarLoss for Gamma {
    fn name(&self) -> &str {
        "gamma"
    }

    fn task(&self) -> Task {
        Task::Counts
    }

    fn refuses(&self, target: f64) -> Option<&'static str> {
        (target <= 0.0).then_some("the gamma loss is for positive numbers")
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        target * (-margin).exp() + margin
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        1.0 - target * (-margin).exp()
    }

    #[inline]
    fn curvature(&self, margin: f64, target: f64) -> Option<f64> {
        Some(target * (-margin).exp())
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        // With c = 1 − u ≥ 0 the supremum is at e^(−m) = c/y. Scaling u can leave c a rounding error below zero.
        let rest = 1.0 - dual;
        let rounding = -4.0 * f64::EPSILON * (1.0 + dual.abs());
        Some(match rest {
            rest if rest > 0.0 => rest * (rest / target).ln() - rest,
            rest if rest >= rounding => 0.0,
            _ => f64::INFINITY,
        })
    }
}
