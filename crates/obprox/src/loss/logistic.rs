//! ℓ(m; y) = ln(1 + e^(−ym)), y = ±1.

use super::{ScalarLoss, Task};

/// The logistic loss of two classes.
#[derive(Clone, Copy, Debug)]
pub struct Logistic;

/// u ln u, continued by 0 at 0.
pub(super) fn entropy(u: f64) -> f64 {
    if u == 0.0 { 0.0 } else { u * u.ln() }
}

impl ScalarLoss for Logistic {
    fn name(&self) -> &str {
        "logistic"
    }

    fn task(&self) -> Task {
        Task::Binary
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        // Written so that neither end overflows: the exponential only ever sees a negative number.
        let z = target * margin;
        (-z.abs()).exp().ln_1p() + if z < 0.0 { -z } else { 0.0 }
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        -target / (1.0 + (target * margin).exp())
    }

    #[inline]
    fn curvature(&self, margin: f64, _target: f64) -> Option<f64> {
        let e = (-margin.abs()).exp();
        Some(e / ((1.0 + e) * (1.0 + e)))
    }

    fn smoothness(&self) -> Option<f64> {
        Some(0.25)
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        let a = -dual * target;
        Some(if (0.0..=1.0).contains(&a) { entropy(a) + entropy(1.0 - a) } else { f64::INFINITY })
    }
}
