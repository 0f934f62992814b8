//! p(x) = λ|x|.

use super::Term;
use super::shrink::{Pace, drift, drift_sum, on_face, shrink};

/// The l1 penalty of a coordinate.
#[derive(Clone, Copy, Debug)]
pub struct L1 {
    /// λ.
    pub l1: f64,
}

impl Term for L1 {
    #[inline]
    fn value(self, x: f64) -> f64 {
        self.l1 * x.abs()
    }

    #[inline]
    fn prox(self, z: f64, step: f64) -> f64 {
        shrink(z, step * self.l1)
    }

    #[inline]
    fn face(self, x: f64, gradient: f64, step: f64) -> f64 {
        if self.l1 == 0.0 { x - step * gradient } else { on_face(x - step * (gradient + self.l1.copysign(x)), x) }
    }

    #[inline]
    fn rest(self, x: f64, elapsed: f64) -> f64 {
        shrink(x, self.l1 * elapsed)
    }

    #[inline]
    fn drift(self, x: f64, gradient: f64, step: f64, k: u64) -> f64 {
        drift(x, gradient, self.l1, Pace { step, l2: 0.0 }, k)
    }

    fn drift_sum(self, x: f64, gradient: f64, step: f64, k: u64) -> (f64, f64) {
        drift_sum(x, gradient, self.l1, Pace { step, l2: 0.0 }, k)
    }

    #[inline]
    fn dual_average(self, gradient: f64, beta: f64) -> f64 {
        // S is odd; the minus stands inside, so that a zero is 0 and not −0.
        shrink(-gradient, self.l1) / beta
    }

    #[inline]
    fn violation(self, x: f64, gradient: f64) -> f64 {
        if x == 0.0 { shrink(gradient, self.l1).abs() } else { (gradient + self.l1.copysign(x)).abs() }
    }

    fn conjugate(self, dual: f64) -> f64 {
        if dual.abs() <= self.l1 { 0.0 } else { f64::INFINITY }
    }

    fn kink(self) -> f64 {
        self.l1
    }
}
