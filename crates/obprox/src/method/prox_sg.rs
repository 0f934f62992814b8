//! Prox-SG: the proximal stochastic gradient method.
//!
//! Problem: min f(x) + p(x). Step: x ← prox_{αp}(x − α ∇f_B(x)); for p = λ‖·‖₁ that is S(x − α ∇f_B(x), αλ).
//! A coordinate without gradient in the batch only shrinks, so k missed steps are S(x, λ Σα).
//! Parameters: the step sizes α. Citation: Duchi and Singer, Efficient online and batch learning using forward
//! backward splitting, 2009; the paper's Algorithm 2.

use bytemuck::{Pod, Zeroable};

use super::{Clock, Rule};
use crate::penalty::Term;

/// The rule of Prox-SG.
#[derive(Clone, Copy, Debug)]
pub struct ProxSg;

/// A weight and the time it is good for: what Prox-SG and the Orthant step keep for each coordinate.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Lazy {
    x: f64,
    as_of: f64,
}

impl Lazy {
    /// The weight as of now.
    #[inline]
    pub fn value<T: Term>(&self, term: T, now: &Clock) -> f64 {
        term.rest(self.x, now.elapsed - self.as_of)
    }

    /// The weight x after the step under way.
    #[inline]
    pub fn after(x: f64, now: &Clock) -> Self {
        Self { x, as_of: now.elapsed + now.tick }
    }

    /// The weight x as of now.
    pub fn place(x: f64, now: &Clock) -> Self {
        Self { x, as_of: now.elapsed }
    }

    /// Whether it can be, at this time.
    pub fn is_sound(&self, now: &Clock) -> bool {
        self.x.is_finite() && self.as_of <= now.elapsed
    }
}

impl Rule for ProxSg {
    type Coord = Lazy;

    #[inline]
    fn value<T: Term>(&self, coord: &Lazy, term: T, now: &Clock) -> f64 {
        coord.value(term, now)
    }

    #[inline]
    fn touch<T: Term>(&self, coord: &mut Lazy, x: f64, gradient: f64, term: T, now: &Clock) {
        *coord = Lazy::after(term.prox(x - now.step_size * gradient, now.step_size), now);
    }

    fn place(&self, x: f64, now: &Clock) -> Lazy {
        Lazy::place(x, now)
    }

    fn is_sound(&self, coord: &Lazy, now: &Clock) -> bool {
        coord.is_sound(now)
    }
}
