//! RDA: regularised dual averaging.
//!
//! Problem: min f(x) + p(x). After t gradients with mean ḡ: x = argmin ḡ·x + p(x) + (γ/(2√t))·x², which for
//! p = λ‖·‖₁ is −(√t/γ)·S(ḡ, λ); x = 0 before the first. There is nothing to catch up: a coordinate keeps the sum of
//! its gradients, and the weight is read off it.
//! Parameters: γ > 0. Citation: Xiao, Dual averaging methods for regularized stochastic learning and online
//! optimization, 2010.

use bytemuck::{Pod, Zeroable};

use super::{Clock, Rule};
use crate::penalty::Term;

/// The rule of RDA.
#[derive(Clone, Copy, Debug)]
pub struct Rda {
    /// γ, the weight of the strongly convex part.
    pub gamma: f64,
}

/// The sum of a coordinate's gradients.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct GradientSum {
    sum: f64,
}

impl Rule for Rda {
    type Coord = GradientSum;

    #[inline]
    fn value<T: Term>(&self, coord: &GradientSum, term: T, now: &Clock) -> f64 {
        // A coordinate without gradient so far is at zero; t = 0 is such a case, and has no mean.
        if coord.sum == 0.0 {
            return 0.0;
        }
        let t = now.steps as f64;
        term.dual_average(coord.sum / t, self.gamma / t.sqrt())
    }

    #[inline]
    fn touch<T: Term>(&self, coord: &mut GradientSum, _x: f64, gradient: f64, _term: T, _now: &Clock) {
        coord.sum += gradient;
    }

    fn place(&self, _x: f64, _now: &Clock) -> GradientSum {
        // Dual averaging has its centre at zero: a run starts there.
        GradientSum::default()
    }

    fn is_sound(&self, coord: &GradientSum, _: &Clock) -> bool {
        coord.sum.is_finite()
    }
}
