//! The methods, one file each: a method is a rule for one coordinate.
//!
//! A [`Rule`] says what happens to a coordinate that the batch has a gradient for, and what the coordinate is worth
//! after any number of steps without one. The engine runs every rule over the nonzeros of a batch.

mod obprox_sg;
mod orthant;
mod prox_sg;
mod prox_svrg;
mod rda;

use bytemuck::Pod;

use crate::penalty::Term;
use crate::switch::Phase;

pub use obprox_sg::ObproxSg;
pub use orthant::Orthant;
pub use prox_sg::{Lazy, ProxSg};
pub use prox_svrg::{AveragedSvrg, ProxSvrg};
pub use rda::Rda;

/// The time as a coordinate needs to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// α of the step under way.
    pub step_size: f64,
    /// Steps before this one, over the whole run.
    pub steps: u64,
    /// Steps before this one, in this epoch.
    pub steps_in_epoch: u64,
    /// The penalty's own time, Σ [`tick`](crate::penalty::Separable::tick) over the steps before this one.
    pub elapsed: f64,
    /// The tick of the step under way.
    pub tick: f64,
}

impl Clock {
    /// The time after the step under way.
    pub fn advance(&mut self) {
        self.steps += 1;
        self.steps_in_epoch += 1;
        self.elapsed += self.tick;
    }
}

/// A method: the rule for one coordinate.
pub trait Rule: Copy + Send + Sync {
    /// What the method keeps for each coordinate. All bits zero is the coordinate at zero at the start of a run.
    type Coord: Pod + Send + Sync;

    /// Whether the method measures gradients against an anchor: then the engine computes the full gradient at the
    /// start of each epoch and hands the batch gradient less the anchor's to [`touch`](Rule::touch).
    const ANCHORED: bool = false;

    /// The weight as of now, steps without a gradient included.
    fn value<T: Term>(&self, coord: &Self::Coord, term: T, now: &Clock) -> f64;

    /// The step under way, for a coordinate that the batch has a gradient for; x is its [`value`](Rule::value).
    fn touch<T: Term>(&self, coord: &mut Self::Coord, x: f64, gradient: f64, term: T, now: &Clock);

    /// The coordinate at x, at the given time: where a run starts from a given point.
    fn place(&self, x: f64, now: &Clock) -> Self::Coord;

    /// Whether a coordinate that was read from a file can be one at this time. Sums of the file tell of accidents alone.
    fn is_sound(&self, coord: &Self::Coord, now: &Clock) -> bool;

    /// A new epoch with this full gradient at the anchor; `now` is its first moment.
    fn anchor(&self, _coord: &mut Self::Coord, _gradient: f64) {}

    /// The end of an epoch; `now` is the moment after its last step.
    fn settle<T: Term>(&self, _coord: &mut Self::Coord, _term: T, _now: &Clock) {}

    /// Which kind of step comes next.
    fn enter(&mut self, _phase: Phase) {}

    /// Runs the touches of a batch. A rule of several kinds of steps runs them with the rule of the kind at hand, so
    /// that the choice is made once a batch and not once a coordinate.
    #[inline]
    fn touch_all(&self, touches: impl Touches<Self::Coord>) {
        touches.run(*self);
    }
}

/// The touches of a batch, for a rule yet to be named.
pub trait Touches<C> {
    /// Touches every coordinate of the batch.
    fn run<R: Rule<Coord = C>>(self, rule: R);
}
