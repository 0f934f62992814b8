//! What the one loop asks of a solver.

use std::io::{self, Read, Write};

use crate::Result;
use crate::auto::Carry;
use crate::certificate::Certificate;
use crate::observe::{Control, Progress, Round};
use crate::problem::{Point, Problem};
use crate::switch::Phase;

/// How a stretch of a solver's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a whole epoch.
    Epoch,
    /// In the middle of one, because it was told to.
    Stopped,
    /// The same, at a point that is worth handing out but cannot be gone on from to the same bits: the checkpoint of the
    /// last whole epoch stands.
    Interrupted,
    /// A number was no longer finite.
    NotFinite,
    /// With a whole epoch, the last of several that brought nothing.
    Stalled,
}

/// Where a solver stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Steps taken.
    pub iterations: u64,
    /// The kind of the last one.
    pub phase: Phase,
    /// Its size α.
    pub step_size: f64,
    /// What there is to tell of the round, where epochs are rounds.
    pub round: Option<Round>,
}

/// What the loop asks of a solver: one epoch after the other, and the weights in between. Evaluation, observers,
/// checkpoints and stopping are the loop's; a solver from outside this crate runs in it by
/// [`Run::solver`](crate::Run::solver).
pub trait Solver {
    /// Runs to the end of the epoch under way.
    fn epoch(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Result<Ended>;
    /// The weights as they are now.
    fn point(&self) -> Point;
    /// Those that are not zero, and the intercepts.
    fn support(&self) -> Support {
        let point = self.point();
        Support { weights: point.nonzeros(), intercept: point.intercept }
    }
    /// Rows in a batch; all of them where there are no batches.
    fn batch_rows(&self) -> usize;
    /// The certificate of the weights, where the solver has it at hand.
    fn certificate(&self) -> Option<Certificate> {
        None
    }
    /// Where it stands.
    fn standing(&self) -> Standing;
    /// What it leaves to a fit at the next λ.
    #[doc(hidden)]
    fn leave(self: Box<Self>) -> Option<Carry> {
        None
    }
    /// Hears of an evaluation.
    fn measured(&mut self, _certificate: &Certificate, _score: Option<f64>) {}
    /// Writes its whole state, so that a resumed run takes the same steps.
    fn save(&self, out: &mut dyn Write) -> io::Result<()>;
    /// Reads it back.
    fn load(&mut self, input: &mut dyn Read) -> io::Result<()>;
}

/// A point in the space of its nonzeros.
#[derive(Clone, Debug)]
pub struct Support {
    /// (place, weight), places rising.
    pub weights: Vec<(u32, f64)>,
    /// b, one an output.
    pub intercept: Vec<f64>,
}

impl Support {
    pub(crate) fn is_finite(&self) -> bool {
        self.weights.iter().map(|(_, weight)| weight).chain(&self.intercept).all(|value| value.is_finite())
    }

    /// The point of a problem.
    pub(crate) fn expand(self, problem: &Problem) -> Point {
        let mut point = Point { intercept: self.intercept, ..Point::zero(problem) };
        self.weights.iter().for_each(|&(at, weight)| point.weights[at as usize] = weight);
        point
    }
}
