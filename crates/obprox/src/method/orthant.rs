//! The Orthant step: projected gradient on the face that the iterate lies in.
//!
//! Problem: min f(x) + λ sign(x_k)·x over the face of x_k, where the penalty is smooth. Step:
//! x ← Proj(x − α(∇f_B(x) + λ sign x)), which keeps a coordinate whose sign the trial point kept and sets the others to
//! zero. A penalised zero stays zero whatever its gradient; an unpenalised coordinate has no face and just steps.
//! A coordinate without gradient in the batch moves to zero by αλ and stops there: the same rest as in Prox-SG, so
//! that any mix of the two kinds of steps is caught up by one running sum.
//! Citation: the paper's Algorithm 3.

use super::Clock;
use super::prox_sg::Lazy;
use crate::penalty::Term;

/// The Orthant step of a coordinate that the batch has a gradient for.
#[inline]
pub fn orthant_step<T: Term>(coord: &mut Lazy, gradient: f64, term: T, now: &Clock) {
    coord.step(term, now, |x| term.face(x, gradient, now.step_size));
}
