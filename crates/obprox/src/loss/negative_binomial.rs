//! ℓ(m; y) = (y + θ)·ln(θ + e^m) − ym, y ≥ 0: the negative log-likelihood of counts with mean e^m and variance
//! e^m + e^(2m)/θ, less its constant. Counts that vary more than Poisson's; θ is given, not estimated.

use super::logistic::entropy;
use super::{ScalarLoss, Task};

/// The negative binomial loss of counts. Its curvature grows with the target, so there is no `--step auto` for it.
#[derive(Clone, Copy, Debug)]
pub struct NegativeBinomial {
    /// θ, the size: the smaller, the more counts of one mean vary.
    pub theta: f64,
}

impl NegativeBinomial {
    /// θ where none is given.
    pub const DEFAULT_THETA: f64 = 1.0;

    /// e^m/(θ + e^m), the share of the mean, and the rest of it.
    fn shares(&self, margin: f64) -> (f64, f64) {
        let odds = margin - self.theta.ln();
        (1.0 / (1.0 + (-odds).exp()), 1.0 / (1.0 + odds.exp()))
    }
}

impl ScalarLoss for NegativeBinomial {
    fn name(&self) -> &str {
        "negative-binomial"
    }

    fn task(&self) -> Task {
        Task::Counts
    }

    fn parameter(&self) -> Option<f64> {
        Some(self.theta)
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        // ln(θ + e^m) without overflow.
        let (log, margins) = (self.theta.ln(), margin);
        let most = log.max(margins);
        let sum = most + (-(log - margins).abs()).exp().ln_1p();
        (target + self.theta) * sum - target * margin
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        let (share, rest) = self.shares(margin);
        self.theta * share - target * rest
    }

    #[inline]
    fn curvature(&self, margin: f64, target: f64) -> Option<f64> {
        let (share, rest) = self.shares(margin);
        Some((target + self.theta) * share * rest)
    }

    fn slope_range(&self, target: f64) -> Option<(f64, f64)> {
        Some((-target, self.theta))
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        // u = (y + θ)q − y, where q is the share of the mean.
        let total = target + self.theta;
        let (share, rest) = ((dual + target) / total, (self.theta - dual) / total);
        let rounding = -4.0 * f64::EPSILON * (1.0 + dual.abs() / total);
        Some(if share >= rounding && rest >= rounding {
            let (share, rest) = (share.max(0.0), rest.max(0.0));
            total * (entropy(share) + entropy(rest) - rest * self.theta.ln())
        } else {
            f64::INFINITY
        })
    }
}
