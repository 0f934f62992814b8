//! `auto`: finds the support, then proves the optimum.
//!
//! Problem: min F = f(x, b) + Σ λ_j|x_j| + (λ₂/2)‖x‖₂², for every loss with curvature. A round
//!
//! 1. **selects** a working set: the support and the features that violate their condition most;
//! 2. takes proximal **Newton** steps on it, the model of each solved exactly on its face ([`quadratic`]), with a line
//!    search on F;
//! 3. **certifies**: the full gradient over every column gives the duality gap and the features that must re-enter.
//!
//! It holds what is n long and what is as long as the working set. All that is as long as the data stays with the
//! [rows](crate::rows), which are asked for sums.
//!
//! The first rounds run at a larger λ, a fraction of λ_max that falls to λ: so the working set grows with the support
//! instead of starting with everything that is not yet explained. Few features all make up the working set. If there are
//! many rows of them the first round solves a [`sample`]. Stops at the relative duality gap (or the KKT distance where the
//! loss has no dual).
//!
//! On a path each fit starts where the one before it ended, by a step that knows what a step like it missed there.
//! Citations: the orthant face of the paper; Friedman, Hastie and Tibshirani, Regularization paths for generalized
//! linear models via coordinate descent, 2010; Lee, Sun and Saunders, Proximal Newton-type methods, 2014.

pub(crate) mod blockwise;
mod cached;
mod certify;
mod cholesky;
mod expansion;
pub(crate) mod face;
mod model;
mod newton;
mod plan;
mod products;
pub(crate) mod quadratic;
mod reduce;
mod sample;
mod search;
mod select;
mod smooth;

use std::io::{self, Read, Write};
use std::ops::Range;

use self::cached::CachedHessian;
use self::newton::Stepped;
use self::plan::{Plan, Start};
use self::reduce::Reduced;
use crate::certificate::{Certificate, has_dual};
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::huge::Huge;
use crate::observe::{Control, Progress, Round, Stage};
use crate::penalty::{ElasticNet, Separable};
use crate::problem::{Point, Problem};
use crate::rows::Shards;
use crate::solver::{Ended, Solver, Standing, Support};
use crate::switch::Phase;
use crate::tuning::rounds::{FALL, PROGRESS, STEPS};
use crate::{Error, Result};

/// What the fit at one λ leaves to the next, and how far λ may fall.
pub struct Carry {
    /// No λ to come is smaller.
    pub floor: f64,
    left: Option<Left>,
}

struct Left {
    reduced: Reduced,
    optimum: Optimum,
    /// Where the fit before it ended.
    before: Option<Optimum>,
    rows: Box<dyn Shards>,
    set: Vec<u32>,
    cached: Option<CachedHessian>,
}

/// Where a fit ended: its λ, the optimum found, and the slopes there.
#[derive(Clone)]
struct Optimum {
    lambda: f64,
    point: Point,
    gradient: Huge<f64>,
    /// The slope along the intercept of one output: small there, but not nothing.
    intercept: f64,
}

impl Carry {
    /// Before the first fit.
    pub fn new(floor: f64) -> Self {
        Self { floor, left: None }
    }
}

/// The state between two rounds.
pub(crate) struct Auto<'a> {
    given: &'a Problem,
    reduced: Reduced,
    plan: Plan,
    rows: Box<dyn Shards>,
    point: Point,
    /// ∂f/∂x there; nothing as long as no one looked. Then ∂f/∂b, of the first output.
    gradient: Huge<f64>,
    intercept_slope: f64,
    certificate: Option<Certificate>,
    /// The largest entry of each column, where a proof can do with it.
    largest: Vec<f64>,
    /// The working set: its features, which rise.
    set: Vec<u32>,
    /// The Hessian of the last step.
    cached: Option<CachedHessian>,
    fall: Fall,
    trust: Trust,
    path: OnPath,
    history: History,
    /// The relative gap that will do.
    asked: Option<f64>,
}

/// How far λ has fallen to its value.
struct Fall {
    /// λ is multiplied by this; 1 once it is there.
    stretch: f64,
    /// What the last round was about, and the λ it worked at.
    stage: Stage,
    at_lambda: f64,
}

/// How far the models of Newton steps are trusted.
struct Trust {
    /// Their damping, relative to the curvature.
    damping: f64,
    /// Products are those of a sample of the rows, one out of so many.
    part: usize,
    /// Whether the curvatures of rows were raised to secants, because of a step that was too long.
    lifted: bool,
    /// Whether descent along the columns took longer than a Hessian would.
    slow: bool,
}

/// The fits before and after this one, where it is one of a path.
struct OnPath {
    /// Where the last fits ended, the latest first.
    optima: [Option<Optimum>; 2],
    /// The smallest λ that fits after this one may ask for, where there will be some.
    floor: Option<f64>,
}

/// What rounds have brought.
struct History {
    rounds: u64,
    steps: u64,
    /// Samples of the rows that were worked on.
    samples: u64,
    /// F and the KKT distance of the point.
    objective: f64,
    kkt: f64,
    /// The least KKT distance after any round at the λ asked for, and rounds in a row that brought nothing.
    least_kkt: f64,
    idle: u32,
}

impl<'a> Auto<'a> {
    /// Prepares a run from x = 0, from a given point, or from where the fit before it ended.
    pub fn new(problem: &'a Problem, start: Option<&Point>, carry: Option<Carry>) -> Result<Self> {
        let outputs = problem.outputs();
        if !problem.loss().curvature(&vec![0.0; outputs], problem.targets()[0], &mut vec![0.0; outputs]) {
            let message = format!("auto needs the curvature of the {} loss; choose another", problem.loss().name());
            return Err(Error::parameter("solver", message));
        }
        let floor = carry.as_ref().map(|carry| carry.floor);
        let mut left = match carry.and_then(|carry| carry.left) {
            Some(left) => left,
            None => {
                let reduced = Reduced::new(problem, floor, start);
                let mut point = start.map_or_else(|| Point::zero(&reduced.problem), |start| reduced.shrink(start));
                if let Some(penalty) = problem.regularization().on_blocks() {
                    penalty.project(&mut point.weights);
                }
                let optimum = Optimum { lambda: f64::NAN, point, gradient: Huge::default(), intercept: 0.0 };
                let rows = reduced.problem.rows();
                Left { reduced, optimum, before: None, rows, set: Vec::new(), cached: None }
            }
        };
        left.reduced.set_lambda(problem.lambda())?;
        let Left { reduced, optimum, before, mut rows, set, cached } = left;
        rows.secants(None)?;
        let (point, gradient, intercept_slope) = (optimum.point.clone(), optimum.gradient.clone(), optimum.intercept);
        let optima = [Some(optimum).filter(|optimum| !optimum.gradient.is_empty()), before];
        let plan = Plan::of(&reduced.problem, problem, start, floor, optima[0].is_some());
        let stretch = if plan.falls { f64::INFINITY } else { 1.0 };
        let (objective, kkt, least_kkt) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        Ok(Self {
            given: problem,
            reduced,
            plan,
            rows,
            point,
            gradient,
            intercept_slope,
            certificate: None,
            largest: Vec::new(),
            set,
            cached,
            fall: Fall { stretch, stage: Stage::Polish, at_lambda: problem.lambda() },
            trust: Trust { damping: 1e-10, part: 1, lifted: false, slow: false },
            path: OnPath { optima, floor },
            history: History { rounds: 0, steps: 0, samples: 0, objective, kkt, least_kkt, idle: 0 },
            asked: None,
        })
    }

    /// Says which relative gap will do: steps end where it is in sight.
    pub fn aiming_at(mut self, tolerance: f64) -> Self {
        self.asked = Some(tolerance);
        self
    }

    /// The gap that was asked for, where it can be foreseen: for one output whose coordinates are penalised one by one.
    fn goal(&self) -> Option<f64> {
        let is_foreseen = self.problem().outputs() == 1 && self.problem().regularization().blocks.is_none();
        self.asked.filter(|_| is_foreseen && has_dual(self.problem()))
    }

    /// The problem that is worked on.
    fn problem(&self) -> &Problem {
        &self.reduced.problem
    }

    /// The penalty of a feature in this round.
    fn term(&self, feature: usize) -> ElasticNet {
        let term = self.problem().regularization().term(feature);
        ElasticNet { l1: term.l1 * self.fall.stretch, ..term }
    }

    /// Where the run has to begin, it begins: from smoother losses where that pays. What came of it is the round.
    fn begin(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Result<Option<Ended>> {
        let mut stop = false;
        let tell: &mut dyn FnMut(Progress) -> Control = &mut |progress| {
            let said = tell(progress);
            stop |= said == Control::Stop;
            said
        };
        let began = matches!(self.plan.start, Start::Smoother) && self.start_from_smoother_losses(tell)?;
        self.measure()?;
        if began && stop {
            return Ok(Some(Ended::Interrupted));
        }
        if began {
            self.history.rounds += 1;
            return Ok(Some(Ended::Epoch));
        }
        Ok(None)
    }

    /// The outputs that are stepped on together.
    fn blocks(&self) -> Vec<Range<usize>> {
        let outputs = self.problem().outputs();
        let size = (self.set.len() + usize::from(self.problem().has_intercept())) * outputs;
        // A block may have coordinates of all outputs.
        if outputs == 1 || size <= self.plan.jointly || self.problem().regularization().blocks.is_some() {
            return std::iter::once(0..outputs).collect();
        }
        (0..outputs).map(|output| output..output + 1).collect()
    }

    /// Newton steps on the working set; false where someone said stop before they were all taken.
    fn polish(&mut self, enough: f64, steps: usize, tell: &mut dyn FnMut(Progress) -> Control) -> Result<bool> {
        let (epoch, stage) = (self.history.rounds, Some(self.fall.stage));
        let mut stops = |step: usize| {
            let (step, steps) = (step as u64, steps as u64);
            tell(Progress { epoch, step, steps, phase: Phase::Newton, stage }) == Control::Stop
        };
        match &self.blocks()[..] {
            [outputs] => Ok(self.newton(outputs.clone(), steps, enough, &mut stops)? != Stepped::Stopped),
            blocks => {
                for sweep in 1..=steps {
                    let mut moved = false;
                    for outputs in blocks {
                        moved |= self.newton(outputs.clone(), 1, enough, &mut |_| false)? == Stepped::Moved;
                    }
                    if !moved {
                        break;
                    }
                    if stops(sweep) {
                        return Ok(sweep == steps);
                    }
                }
                Ok(true)
            }
        }
    }
}

impl Solver for Auto<'_> {
    fn epoch(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Result<Ended> {
        while let Some(level) = self.next_sample() {
            if let Some(ended) = self.round_on_sample(level, tell)? {
                return Ok(ended);
            }
        }
        if self.gradient.is_empty() && self.history.rounds > 0 {
            // A run that is resumed: this is what the round before it saw last.
            self.rows.place(&self.point)?;
            self.gradient = self.rows.gradient()?.weights;
        } else if self.gradient.is_empty() {
            if let Some(ended) = self.begin(tell)? {
                return Ok(ended);
            }
        } else if self.history.kkt == f64::INFINITY {
            // Margins and gradient are at hand, from the λ before.
            self.history.kkt = self.violation();
        }
        self.history.rounds += 1;
        let before = (self.history.objective, self.history.kkt);
        let was_stretched = self.fall.stretch > 1.0;
        if was_stretched {
            self.fall.stretch = (self.fall.stretch.min(self.steepness()) / FALL).max(1.0);
        }
        self.fall.stage = if self.fall.stretch > 1.0 { Stage::Identify } else { Stage::Polish };
        self.fall.at_lambda = self.fall.stretch * self.problem().lambda();
        let is_new = self.renew_set()?;
        // While λ falls a rough answer will do; at its value each round wins a digit or more, and all that are asked for
        // where no other feature has a say.
        let enough = match self.asked {
            _ if self.fall.stretch > 1.0 => 0.1 * self.fall.at_lambda,
            Some(asked) if self.plan.along_columns && !is_new => {
                (0.25 * asked * self.fall.at_lambda).min(0.1 * before.1)
            }
            _ => 0.1 * before.1,
        };
        let done = self.polish(enough, if self.fall.stretch > 1.0 { 3 } else { STEPS }, tell)?;
        self.measure()?;
        if !done {
            return Ok(Ended::Interrupted);
        }
        let Some(after) = self.certificate.as_ref().filter(|after| after.objective.is_finite()) else {
            return Ok(Ended::NotFinite);
        };
        let least = PROGRESS * after.gap.unwrap_or(0.0).min(after.objective.abs());
        let better = self.history.objective < before.0 - least || self.history.kkt < 0.9 * self.history.least_kkt;
        self.history.least_kkt =
            if was_stretched { f64::INFINITY } else { self.history.least_kkt.min(self.history.kkt) };
        self.history.idle = if better || was_stretched { 0 } else { self.history.idle + 1 };
        Ok(if self.history.idle >= 4 { Ended::Stalled } else { Ended::Epoch })
    }

    fn point(&self) -> Point {
        self.support().expand(self.given)
    }

    fn support(&self) -> Support {
        let as_given = |(at, weight): (u32, f64)| (self.reduced.index(at as usize) as u32, weight);
        let weights = self.point.nonzeros().into_iter().map(as_given).collect();
        Support { weights, intercept: self.point.intercept.clone() }
    }

    fn batch_rows(&self) -> usize {
        self.problem().n_rows()
    }

    fn certificate(&self) -> Option<Certificate> {
        self.certificate.clone()
    }

    fn standing(&self) -> Standing {
        let round = Round {
            stage: self.fall.stage,
            at_lambda: self.fall.at_lambda,
            columns: self.problem().n_features(),
            working_set: self.set.len(),
        };
        Standing { iterations: self.history.steps, phase: Phase::Newton, step_size: 1.0, round: Some(round) }
    }

    fn measured(&mut self, _certificate: &Certificate, _score: Option<f64>) {}

    fn leave(self: Box<Self>) -> Option<Carry> {
        let Self { reduced, rows, point, gradient, intercept_slope, path, set, cached, .. } = *self;
        let optimum = Optimum { lambda: reduced.problem.lambda(), point, gradient, intercept: intercept_slope };
        let [before, _] = path.optima;
        path.floor.map(|floor| Carry { floor, left: Some(Left { reduced, optimum, before, rows, set, cached }) })
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_array(
            out,
            &[self.fall.stretch, self.trust.damping, self.history.objective, self.history.kkt, self.history.least_kkt],
        )?;
        write_array(
            out,
            &[
                self.history.rounds,
                self.history.steps,
                self.history.samples,
                u64::from(self.history.idle),
                u64::from(self.trust.lifted),
                u64::from(self.trust.slow),
            ],
        )?;
        write_array(out, &self.point.weights)?;
        write_array(out, &self.point.intercept)?;
        // What rows see at a point they see again, to the same bits; a gradient of margins that were shifted is another one.
        write_array(out, if self.plan.sees_all { &[] } else { &self.gradient[..] })?;
        write_array(out, &self.set)?;
        self.rows.save(out)?;
        cached::save(self.cached.as_ref(), out)
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        let (mut reals, mut counts) = ([0.0; 5], [0u64; 6]);
        read_exactly(input, &mut reals)?;
        read_exactly(input, &mut counts)?;
        let corrupt = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        // No run comes to a number of rounds or steps that could not be counted on from.
        if counts.iter().any(|&count| count > u64::from(u32::MAX / 2)) {
            return Err(corrupt("counts that are none"));
        }
        [self.fall.stretch, self.trust.damping, self.history.objective, self.history.kkt, self.history.least_kkt] =
            reals;
        [self.history.rounds, self.history.steps, self.history.samples] = [counts[0], counts[1], counts[2]];
        self.history.idle = counts[3] as u32;
        self.trust.lifted = counts[4] != 0;
        self.trust.slow = counts[5] != 0;
        read_exactly(input, &mut self.point.weights)?;
        read_exactly(input, &mut self.point.intercept)?;
        self.gradient = read_array(input, self.point.weights.len())?.into();
        let saved = if self.plan.sees_all { 0 } else { self.point.weights.len() };
        if self.gradient.len() != saved || !self.point.is_finite() {
            return Err(corrupt("a point that is none"));
        }
        self.set = read_array(input, self.problem().n_features())?;
        let in_range = self.set.last().is_none_or(|&last| (last as usize) < self.problem().n_features());
        if !(self.set.is_sorted_by(|a, b| a < b) && in_range) {
            return Err(corrupt("a working set that is none"));
        }
        self.rows.select(&self.set).map_err(io::Error::other)?;
        self.rows.load(input)?;
        let width = self.set.len() + usize::from(self.problem().has_intercept());
        self.cached = cached::load(width, self.problem().outputs(), input)?;
        Ok(())
    }
}
