//! The only loop: epochs, evaluation, observers, checkpoints, stopping.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::auto::{Auto, Carry};
use crate::certificate::{Certificate, certify};
use crate::checkpoint::{self, Header};
use crate::data::{Dataset, ShardedData};
use crate::engine::{Stepper, engine};
use crate::method::Rule;
use crate::model::{Labelled, Model};
use crate::observe::{Control, EpochRecord, Observer, Start};
use crate::output::lock_directory;
use crate::problem::{Point, Problem};
use crate::settings::{Method, Settings};
use crate::solver::{Ended, Solver, Support};
use crate::stochastic::{Stochastic, stepper};
use crate::switch::Switch;
use crate::{Error, Result};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tolerance was reached.
    Converged,
    /// The epochs were used up.
    MaxEpochs,
    /// The objective was no longer finite; the result is the last good point.
    Diverged,
    /// An observer asked to stop.
    Stopped,
    /// Several rounds brought nothing more: rounding, or a problem without a minimum, stands in the way.
    Stalled,
    /// The epochs were used up before a network was as sparse as was asked for.
    Missed,
}

impl Status {
    /// The name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxEpochs => "max_epochs",
            Self::Diverged => "diverged",
            Self::Stopped => "stopped",
            Self::Stalled => "stalled",
            Self::Missed => "missed",
        }
    }
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Fit {
    /// x and b, in the units of the (standardised) problem.
    pub point: Point,
    /// How the run ended.
    pub status: Status,
    /// The figures of the point.
    pub certificate: Certificate,
    /// One record an epoch.
    pub trace: Vec<EpochRecord>,
    /// Epochs completed.
    pub epochs: u64,
    /// Those of them that a checkpoint had when the run was resumed.
    pub resumed_epochs: u64,
    /// Steps taken.
    pub iterations: u64,
    /// Training time, without evaluation.
    pub seconds: f64,
    /// The model, in original units.
    pub model: Model,
}

/// A run to be: a problem, settings, and who watches.
pub struct Run<'a> {
    problem: &'a Problem,
    settings: Settings,
    observers: Vec<&'a mut dyn Observer>,
    checkpoint: Option<PathBuf>,
    resume: bool,
    validation: Option<Labelled<'a>>,
    start: Option<&'a Point>,
    carry: Option<&'a mut Option<Carry>>,
    own: Option<Own<'a>>,
    before: (u64, u64),
}

/// A point and its figures.
type Known = (Support, Certificate);

/// A method from outside this crate.
enum Own<'a> {
    Rule(Box<dyn Stepper + 'a>),
    Solver(Box<dyn Solver + 'a>),
}

impl<'a> Run<'a> {
    /// A run with no one watching.
    pub fn new(problem: &'a Problem, settings: Settings) -> Self {
        Self {
            problem,
            settings,
            observers: Vec::new(),
            checkpoint: None,
            resume: false,
            validation: None,
            start: None,
            carry: None,
            own: None,
            before: (0, 0),
        }
    }

    /// Steps by a rule of one's own instead of the settings' method; logs call it by this name. A rule that has two kinds
    /// of steps changes between them by a switch.
    pub fn rule(mut self, name: &str, rule: impl Rule + 'a, switch: Option<Switch>) -> Self {
        self.settings.method = Method::Own { name: name.into(), switch };
        self.own = Some(Own::Rule(engine(self.problem, rule)));
        self
    }

    /// Runs a solver of one's own instead of the settings' method; logs call it by this name. What the settings say of
    /// batches and steps is passed over, and so is a point to start from.
    pub fn solver(mut self, name: &str, solver: impl Solver + 'a) -> Self {
        self.settings.method = Method::Own { name: name.into(), switch: None };
        self.own = Some(Own::Solver(Box::new(solver)));
        self
    }

    /// Adds an observer.
    pub fn observe(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observers.push(observer);
        self
    }

    /// Saves the state in a directory after every epoch and when stopped; `resume` goes on from the one that is there.
    pub fn checkpoint(mut self, directory: impl Into<PathBuf>, resume: bool) -> Self {
        self.checkpoint = Some(directory.into());
        self.resume = resume;
        self
    }

    /// Scores each evaluated epoch on this data.
    pub fn validate(mut self, data: &'a Dataset) -> Self {
        self.validation = Some(Labelled::Memory(data));
        self
    }

    /// The same on rows that are read shard by shard.
    pub fn validate_shards(mut self, data: &'a Arc<ShardedData>) -> Self {
        self.validation = Some(Labelled::Shards(data));
        self
    }

    /// Starts from a point instead of zero. (RDA is centred at zero and always starts there.)
    pub fn start(mut self, point: &'a Point) -> Self {
        self.start = Some(point);
        self
    }

    /// Goes on after so many epochs and steps on other rows, which led to the point it starts from: step sizes, kinds of
    /// steps and orders of rows are those that come next. For the methods whose state is their point, so not for RDA.
    pub fn after(mut self, epochs: u64, steps: u64) -> Self {
        self.before = (epochs, steps);
        self
    }

    /// Takes up what the fit at another λ left, and leaves as much to the next. The data must be the same.
    pub(crate) fn carry(mut self, carry: &'a mut Option<Carry>) -> Self {
        self.carry = Some(carry);
        self
    }

    /// Runs.
    pub fn fit(mut self) -> Result<Fit> {
        self.settings.check(self.validation.is_some())?;
        let problem = self.problem;
        if let Some(start) = self.start {
            check_start(problem, start)?;
        }
        let begun = Instant::now();
        let mut solver = self.prepare()?;
        // What a solver prepares before the first epoch is training too.
        let prepared = begun.elapsed().as_secs_f64();
        // Two runs that write into one directory would each go on from the other's state.
        let _lock = self.checkpoint.as_deref().map(lock_directory).transpose()?;
        let mut state = self.open_checkpoint(solver.as_mut())?;
        state.seconds += prepared;
        let resumed_epochs = state.epoch;
        // What a run that diverges before its first evaluation falls back on, where it does not begin at zero.
        let began_elsewhere = self.start.is_some() || solver.standing().iterations > 0;
        let origin = began_elsewhere.then(|| solver.point());

        let start = Start {
            problem,
            settings: &self.settings,
            batch_rows: solver.batch_rows(),
            step_size: solver.standing().step_size,
            resumed: &state.trace,
        };
        self.observers.iter_mut().for_each(|observer| observer.start(&start));

        let (status, last_good) = self.run_epochs(solver.as_mut(), &mut state)?;
        let (point, certificate) = self.outcome(solver.as_ref(), &state, status, last_good, origin)?;
        let fit = Fit {
            model: Model::new(problem, &point, &certificate),
            point,
            status,
            certificate,
            epochs: state.epoch,
            resumed_epochs,
            iterations: solver.standing().iterations,
            seconds: state.seconds,
            trace: state.trace,
        };
        if let Some(carry) = self.carry {
            *carry = if status == Status::Diverged { None } else { solver.leave() };
        }
        self.observers.iter_mut().for_each(|observer| observer.end(&fit));
        Ok(fit)
    }

    /// The loop: how it ended, and the last point whose figures are known.
    fn run_epochs(&mut self, solver: &mut dyn Solver, state: &mut Header) -> Result<(Status, Option<Known>)> {
        let mut last_good = None;
        let status = loop {
            if let Some((ended, certificate)) = self.ended_before(state) {
                last_good = Some((solver.support(), certificate));
                break ended;
            }
            if state.epoch >= self.settings.epochs {
                break Status::MaxEpochs;
            }
            let begun = Instant::now();
            let mut stop = false;
            let ended = solver.epoch(&mut |progress| {
                for observer in &mut self.observers {
                    stop |= observer.step(&progress) == Control::Stop;
                }
                if stop { Control::Stop } else { Control::Continue }
            })?;
            state.seconds += begun.elapsed().as_secs_f64();
            match ended {
                Ended::NotFinite => break Status::Diverged,
                Ended::Stopped => {
                    self.save(solver, state)?;
                    break Status::Stopped;
                }
                Ended::Interrupted => break Status::Stopped,
                Ended::Epoch | Ended::Stalled => state.epoch += 1,
            }

            // ---- evaluation ----------------------------------------------------------------------------------
            let Some((record, known)) = self.evaluate(solver, state, stop)? else { break Status::Diverged };
            let converged = known.as_ref().is_some_and(|(_, figures)| figures.within(self.settings.tolerance));
            last_good = known.or(last_good);

            // ---- what is told and kept -----------------------------------------------------------------------
            for observer in &mut self.observers {
                stop |= observer.epoch(&record) == Control::Stop;
            }
            state.trace.push(record);
            state.stalled = matches!(ended, Ended::Stalled);
            self.save(solver, state)?;
            match (converged, state.stalled, stop) {
                (true, ..) => break Status::Converged,
                (_, true, _) => break Status::Stalled,
                (.., true) => break Status::Stopped,
                _ => {}
            }
        };
        Ok((status, last_good))
    }

    /// The record of an epoch, with its figures where they are due; nothing where they are not finite.
    fn evaluate(
        &self,
        solver: &mut dyn Solver,
        state: &Header,
        stop: bool,
    ) -> Result<Option<(EpochRecord, Option<Known>)>> {
        let (epoch, settings) = (state.epoch, &self.settings);
        let standing = solver.standing();
        let mut record = EpochRecord {
            epoch,
            iterations: standing.iterations,
            phase: standing.phase,
            step_size: standing.step_size,
            round: standing.round,
            certificate: None,
            score: None,
            seconds: state.seconds,
        };
        let always = settings.method.switch().is_some_and(Switch::needs_evaluation);
        if !(always || stop || epoch.is_multiple_of(settings.eval_every) || epoch == settings.epochs) {
            return Ok(Some((record, None)));
        }
        let certificate = solver.certificate().map_or_else(|| certify(self.problem, &solver.point()), Ok)?;
        let support = solver.support();
        if !(certificate.objective.is_finite() && support.is_finite()) {
            return Ok(None);
        }
        record.score = match self.validation {
            Some(data) => Some(data.measure(&Model::new(self.problem, &solver.point(), &certificate))?.score()),
            None => None,
        };
        solver.measured(&certificate, record.score);
        record.certificate = Some(certificate.clone());
        Ok(Some((record, Some((support, certificate)))))
    }

    /// The point that a run hands out, and its figures; `origin` is where it began, if not at zero.
    fn outcome(
        &self,
        solver: &dyn Solver,
        state: &Header,
        status: Status,
        last_good: Option<Known>,
        origin: Option<Point>,
    ) -> Result<(Point, Certificate)> {
        let problem = self.problem;
        let evaluated = state.trace.last().is_some_and(|record| record.certificate.is_some());
        // A round of `auto` that is broken off may have gone up on its way down.
        let is_cut = status == Status::Stopped && matches!(self.settings.method, Method::Auto);
        let before = last_good.clone().filter(|_| is_cut);
        let (point, figures) = match (status, last_good) {
            (Status::Diverged, Some((support, figures))) => (support.expand(problem), Some(figures)),
            (Status::Diverged, None) => (origin.unwrap_or_else(|| Point::zero(problem)), None),
            (Status::Converged | Status::MaxEpochs | Status::Stalled, Some((support, figures))) if evaluated => {
                (support.expand(problem), Some(figures))
            }
            // A round that was broken off ends with a look at where it is.
            (Status::Stopped, _) if is_cut => (solver.point(), solver.certificate()),
            _ => (solver.point(), None),
        };
        let centred = |point: Point| point.settled(problem);
        let point = centred(point);
        let figures = figures.map_or_else(|| certify(problem, &point), Ok)?;
        match before.filter(|(_, before)| before.objective < figures.objective) {
            Some((support, figures)) => Ok((centred(support.expand(problem)), figures)),
            None => Ok((point, figures)),
        }
    }

    /// The solver, before its first epoch.
    fn prepare(&mut self) -> Result<Box<dyn Solver + 'a>> {
        let is_fresh = self.checkpoint.is_none() && !matches!(self.settings.method, Method::Auto | Method::Rda { .. });
        if self.before != (0, 0) && !is_fresh {
            let message = "its state is more than a point: no run goes on from one on other rows";
            return Err(Error::parameter("method", format!("{}: {message}", self.settings.method.name())));
        }
        let stochastic =
            |engine, run: &Self| Stochastic::new(run.problem, &run.settings, engine, run.start, run.before);
        Ok(match (self.own.take(), &self.settings.method) {
            (Some(Own::Solver(solver)), _) => solver,
            (own, method) if self.problem.remote().is_some() && (own.is_some() || *method != Method::Auto) => {
                let message = format!("{} needs the rows in memory, and these are on other machines", method.name());
                return Err(Error::parameter("method", message));
            }
            (own, method) if self.problem.coupled().is_some() && (own.is_some() || *method != Method::Auto) => {
                let (method, loss) = (method.name(), self.problem.loss().name());
                let message = format!("{method} takes rows one by one, and the {loss} loss compares all: use auto");
                return Err(Error::parameter("method", message));
            }
            (Some(Own::Rule(_)), method) if self.problem.regularization().blocks.is_some() => {
                let penalty = self.problem.regularization().name().unwrap_or_default();
                let message =
                    format!("{}: a rule is for single coordinates, the {penalty} penalty is not", method.name());
                return Err(Error::parameter("method", message));
            }
            (Some(Own::Rule(engine)), _) => Box::new(stochastic(engine, self)?),
            (None, Method::Auto) => {
                let carry = self.carry.as_mut().and_then(|carry| carry.take());
                Box::new(Auto::new(self.problem, self.start, carry)?.aiming_at(self.settings.tolerance))
            }
            (None, method) => Box::new(stochastic(stepper(self.problem, method)?, self)?),
        })
    }

    /// The state to begin with: fresh, or that of the checkpoint.
    fn open_checkpoint(&self, solver: &mut dyn Solver) -> Result<Header> {
        let fresh = |fingerprint| Header {
            fingerprint,
            settings: self.settings.clone(),
            trace: Vec::new(),
            seconds: 0.0,
            epoch: 0,
            stalled: false,
        };
        let Some(directory) = &self.checkpoint else { return Ok(fresh(String::new())) };
        let fingerprint = checkpoint::fingerprint(self.problem);
        if !self.resume {
            return Ok(fresh(fingerprint));
        }
        let Some(reader) = checkpoint::Reader::open(directory)? else { return Ok(fresh(fingerprint)) };
        let differs = |what: &str| {
            let message = format!("the checkpoint is of {what}: give the same, or another directory");
            Err(Error::file(checkpoint::file_in(directory).display().to_string(), message))
        };
        if reader.header.fingerprint != fingerprint {
            return differs(&format!("another problem ({}; this one is {fingerprint})", reader.header.fingerprint));
        }
        if !self.settings.continues(&reader.header.settings) {
            return differs("a run with other settings");
        }
        let header = reader.finish(|input| solver.load(input))?;
        Ok(Header { settings: self.settings.clone(), ..header })
    }

    /// How the run of a checkpoint ended by itself, where it did: then there is nothing to go on with.
    fn ended_before(&self, state: &Header) -> Option<(Status, Certificate)> {
        let certificate = state.trace.last()?.certificate.clone()?;
        let converged = certificate.within(self.settings.tolerance);
        let status = if converged { Status::Converged } else { Status::Stalled };
        (converged || state.stalled).then_some((status, certificate))
    }

    fn save(&mut self, solver: &dyn Solver, state: &Header) -> Result<()> {
        let Some(directory) = &self.checkpoint else { return Ok(()) };
        let saved = checkpoint::write(directory, state, |out| solver.save(out));
        saved.or_else(|error| {
            let tell = |observer: &mut &mut dyn Observer| observer.unsaved(&error);
            // All of them are told.
            let answers: Vec<Control> = self.observers.iter_mut().map(tell).collect();
            if answers.contains(&Control::Continue) { Ok(()) } else { Err(error) }
        })
    }
}

fn check_start(problem: &Problem, start: &Point) -> Result<()> {
    let (weights, expected) = (start.weights.len(), problem.n_features() * problem.outputs());
    let (intercepts, outputs) = (start.intercept.len(), problem.outputs());
    if (weights, intercepts) != (expected, outputs) {
        let found = format!("{weights} weights and {intercepts} intercepts");
        return Err(Error::parameter("start", format!("{found} where the problem has {expected} and {outputs}")));
    }
    match start.is_finite() {
        true => Ok(()),
        false => Err(Error::parameter("start", "every weight must be a finite number")),
    }
}

impl Problem {
    /// Solves the problem with the defaults.
    pub fn fit(&self) -> Result<Fit> {
        Run::new(self, Settings::default()).fit()
    }
}
