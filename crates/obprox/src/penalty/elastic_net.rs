//! p(x) = λ|x| + (λ₂/2) x².
//!
//! The quadratic part is taken implicitly in every step, so that a step of any size is stable: a proximal step is
//! S(z, αλ)/(1 + αλ₂), an Orthant step divides its trial point likewise.

use super::Term;
use super::l1::L1;
use super::shrink::{Pace, drift, drift_sum, shrink};

/// The elastic net of a coordinate; λ₂ = 0 is the l1 penalty, to the bit.
#[derive(Clone, Copy, Debug)]
pub struct ElasticNet {
    /// λ.
    pub l1: f64,
    /// λ₂.
    pub l2: f64,
}

impl ElasticNet {
    #[inline]
    fn l1(self) -> L1 {
        L1 { l1: self.l1 }
    }

    /// x/(1 + αλ₂); a division that is spared where it does nothing.
    #[inline]
    fn decayed(self, x: f64, step: f64) -> f64 {
        if self.l2 == 0.0 { x } else { x / (1.0 + step * self.l2) }
    }
}

impl Term for ElasticNet {
    #[inline]
    fn value(self, x: f64) -> f64 {
        self.l1 * x.abs() + 0.5 * self.l2 * x * x
    }

    #[inline]
    fn prox(self, z: f64, step: f64) -> f64 {
        self.decayed(self.l1().prox(z, step), step)
    }

    #[inline]
    fn face(self, x: f64, gradient: f64, step: f64) -> f64 {
        self.decayed(self.l1().face(x, gradient, step), step)
    }

    #[inline]
    fn rest(self, x: f64, elapsed: f64) -> f64 {
        if self.l2 == 0.0 {
            return self.l1().rest(x, elapsed);
        }
        // elapsed = Σ ln(1 + αλ₂): x decays by r = e^(−elapsed) and is pulled to zero by λ(1 − r)/λ₂.
        if elapsed == 0.0 || x == 0.0 {
            return x;
        }
        let decay = (-elapsed).exp();
        shrink(x * decay, -self.l1 * (-elapsed).exp_m1() / self.l2)
    }

    #[inline]
    fn drift(self, x: f64, gradient: f64, step: f64, k: u64) -> f64 {
        drift(x, gradient, self.l1, Pace { step, l2: self.l2 }, k)
    }

    fn drift_sum(self, x: f64, gradient: f64, step: f64, k: u64) -> (f64, f64) {
        drift_sum(x, gradient, self.l1, Pace { step, l2: self.l2 }, k)
    }

    #[inline]
    fn dual_average(self, gradient: f64, beta: f64) -> f64 {
        self.l1().dual_average(gradient, beta + self.l2)
    }

    #[inline]
    fn violation(self, x: f64, gradient: f64) -> f64 {
        self.l1().violation(x, gradient + self.l2 * x)
    }

    fn conjugate(self, dual: f64) -> f64 {
        let beyond = shrink(dual, self.l1);
        if self.l2 == 0.0 { self.l1().conjugate(dual) } else { 0.5 * beyond * beyond / self.l2 }
    }

    fn kink(self) -> f64 {
        self.l1
    }
}
