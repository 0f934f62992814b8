//! Prox-SVRG: proximal stochastic gradients with variance reduction.
//!
//! Problem: min f(x) + p(x). An epoch: x̃ ← x, g̃ ← ∇f(x̃); then for each batch
//! x ← prox_{αp}(x − α(∇f_B(x) − ∇f_B(x̃) + g̃)). A coordinate without gradient in the batch still moves by g̃, the same
//! way in every step, so k missed steps have the closed form of [`drift`](crate::penalty::shrink::drift).
//! The next anchor, and the result, is the last iterate; [`AveragedSvrg`] takes the mean of the epoch's iterates, as the
//! original analysis does, at the price of the zeros.
//! Parameters: the step sizes α, constant within an epoch. Citation: Xiao and Zhang, A proximal stochastic gradient
//! method with progressive variance reduction, 2014.

use bytemuck::{Pod, Zeroable};

use super::{Clock, Rule};
use crate::penalty::Term;

/// The rule of Prox-SVRG with the last iterate.
#[derive(Clone, Copy, Debug)]
pub struct ProxSvrg;

/// A weight, the step of the epoch it is good for, and the full gradient at the anchor.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Anchored {
    x: f64,
    full_gradient: f64,
    as_of: u64,
}

impl Anchored {
    fn is_sound(&self, now: &Clock) -> bool {
        self.x.is_finite() && self.full_gradient.is_finite() && self.as_of <= now.steps_in_epoch
    }
}

impl Rule for ProxSvrg {
    type Coord = Anchored;
    const ANCHORED: bool = true;

    #[inline]
    fn value<T: Term>(&self, coord: &Anchored, term: T, now: &Clock) -> f64 {
        let missed = now.steps_in_epoch - coord.as_of;
        if missed == 0 { coord.x } else { term.drift(coord.x, coord.full_gradient, now.step_size, missed) }
    }

    #[inline]
    fn touch<T: Term>(&self, coord: &mut Anchored, x: f64, gradient: f64, term: T, now: &Clock) {
        let reduced = gradient + coord.full_gradient;
        coord.x = term.prox(x - now.step_size * reduced, now.step_size);
        coord.as_of = now.steps_in_epoch + 1;
    }

    fn place(&self, x: f64, now: &Clock) -> Anchored {
        Anchored { x, full_gradient: 0.0, as_of: now.steps_in_epoch }
    }

    fn is_sound(&self, coord: &Anchored, now: &Clock) -> bool {
        coord.is_sound(now)
    }

    fn anchor(&self, coord: &mut Anchored, gradient: f64) {
        coord.full_gradient = gradient;
    }

    fn settle<T: Term>(&self, coord: &mut Anchored, term: T, now: &Clock) {
        coord.x = self.value(coord, term, now);
        coord.as_of = 0;
    }
}

/// The rule of Prox-SVRG with the mean of an epoch's iterates.
#[derive(Clone, Copy, Debug)]
pub struct AveragedSvrg;

/// A coordinate of Prox-SVRG and the sum of its iterates in this epoch.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Summed {
    last: Anchored,
    sum: f64,
}

impl Summed {
    /// The sum of the iterates so far, those of missed steps included.
    fn sum<T: Term>(&self, term: T, now: &Clock) -> f64 {
        let missed = now.steps_in_epoch - self.last.as_of;
        self.sum + term.drift_sum(self.last.x, self.last.full_gradient, now.step_size, missed).1
    }
}

impl Rule for AveragedSvrg {
    type Coord = Summed;
    const ANCHORED: bool = true;

    #[inline]
    fn value<T: Term>(&self, coord: &Summed, term: T, now: &Clock) -> f64 {
        ProxSvrg.value(&coord.last, term, now)
    }

    #[inline]
    fn touch<T: Term>(&self, coord: &mut Summed, x: f64, gradient: f64, term: T, now: &Clock) {
        coord.sum = coord.sum(term, now);
        ProxSvrg.touch(&mut coord.last, x, gradient, term, now);
        coord.sum += coord.last.x;
    }

    fn place(&self, x: f64, now: &Clock) -> Summed {
        Summed { last: ProxSvrg.place(x, now), sum: 0.0 }
    }

    fn is_sound(&self, coord: &Summed, now: &Clock) -> bool {
        coord.last.is_sound(now) && coord.sum.is_finite()
    }

    fn anchor(&self, coord: &mut Summed, gradient: f64) {
        ProxSvrg.anchor(&mut coord.last, gradient);
    }

    fn settle<T: Term>(&self, coord: &mut Summed, term: T, now: &Clock) {
        let mean = coord.sum(term, now) / now.steps_in_epoch as f64;
        coord.last = Anchored { x: mean, full_gradient: 0.0, as_of: 0 };
        coord.sum = 0.0;
    }
}
