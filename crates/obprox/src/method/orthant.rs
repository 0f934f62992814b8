//! The Orthant step: projected gradient on the face that the iterate lies in.
//!
//! Problem: min f(x) + λ sign(x_k)·x over the face of x_k, where the penalty is smooth. Step:
//! x ← Proj(x − α(∇f_B(x) + λ sign x)), which keeps a coordinate whose sign the trial point kept and sets the others to
//! zero. A penalised zero stays zero whatever its gradient; an unpenalised coordinate has no face and just steps.
//! A coordinate without gradient in the batch moves to zero by αλ and stops there: the same rest as in Prox-SG, so
//! that any mix of the two kinds of steps is caught up by one running sum.
//! Citation: the paper's Algorithm 3.

use super::prox_sg::Lazy;
use super::{Clock, Rule};
use crate::penalty::Term;

/// The rule of the Orthant step.
#[derive(Clone, Copy, Debug)]
pub struct Orthant;

impl Rule for Orthant {
    type Coord = Lazy;

    #[inline]
    fn value<T: Term>(&self, coord: &Lazy, term: T, now: &Clock) -> f64 {
        coord.value(term, now)
    }

    #[inline]
    fn touch<T: Term>(&self, coord: &mut Lazy, x: f64, gradient: f64, term: T, now: &Clock) {
        *coord = Lazy::after(term.face(x, gradient, now.step_size), now);
    }

    fn place(&self, x: f64, now: &Clock) -> Lazy {
        Lazy::place(x, now)
    }

    fn is_sound(&self, coord: &Lazy, now: &Clock) -> bool {
        coord.is_sound(now)
    }
}
