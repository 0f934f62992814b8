//! OBProx-SG and OBProx-SG+: Prox-SG steps predict the support, Orthant steps on the face make it sparse.
//!
//! Problem: min f(x) + λ‖x‖₁. Step k: a Prox-SG step where mod(k, N_P + N_O) < N_P, else an Orthant step; other
//! [switches](crate::switch) decide otherwise. OBProx-SG+ has N_O = ∞.
//! Parameters: N_P, N_O and the step sizes α. Citation: the paper's Algorithms 1 and 4.

use super::prox_sg::{Lazy, ProxSg};
use super::{Clock, Orthant, Rule, Touches};
use crate::penalty::Term;
use crate::switch::Phase;

/// The rule of OBProx-SG: one of two steps, as the phase has it.
#[derive(Clone, Copy, Debug)]
pub struct ObproxSg {
    phase: Phase,
}

impl Default for ObproxSg {
    fn default() -> Self {
        Self { phase: Phase::Prox }
    }
}

impl Rule for ObproxSg {
    type Coord = Lazy;

    #[inline]
    fn value<T: Term>(&self, coord: &Lazy, term: T, now: &Clock) -> f64 {
        coord.value(term, now)
    }

    #[inline]
    fn touch<T: Term>(&self, coord: &mut Lazy, x: f64, gradient: f64, term: T, now: &Clock) {
        match self.phase {
            Phase::Orthant => Orthant.touch(coord, x, gradient, term, now),
            _ => ProxSg.touch(coord, x, gradient, term, now),
        }
    }

    fn place(&self, x: f64, now: &Clock) -> Lazy {
        Lazy::place(x, now)
    }

    fn is_sound(&self, coord: &Lazy, now: &Clock) -> bool {
        coord.is_sound(now)
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    fn touch_all(&self, touches: impl Touches<Lazy>) {
        match self.phase {
            Phase::Orthant => touches.run(Orthant),
            _ => touches.run(ProxSg),
        }
    }
}
