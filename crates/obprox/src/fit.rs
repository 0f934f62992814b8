//! The only loop: epochs, evaluation, observers, checkpoints, stopping.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::auto::{Auto, Carry};
use crate::certificate::{Certificate, certify};
use crate::checkpoint::{self, Header};
use crate::data::Dataset;
use crate::model::Model;
use crate::observe::{Control, EpochRecord, Observer, Progress, Round, Start};
use crate::output::lock_directory;
use crate::problem::{Point, Problem};
use crate::sampler::Batch;
use crate::schedule::{Schedule, StepSize};
use crate::stochastic::Stochastic;
use crate::switch::{Phase, Switch};
use crate::{Error, Result};

/// The methods by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Finds the support, then proves the optimum.
    Auto,
    /// OBProx-SG: Prox-SG and Orthant steps in turn.
    #[serde(rename = "obproxsg")]
    ObproxSg,
    /// OBProx-SG+: Prox-SG steps, then Orthant steps for good.
    #[serde(rename = "obproxsg-plus")]
    ObproxSgPlus,
    /// The proximal stochastic gradient method.
    ProxSg,
    /// Regularised dual averaging.
    Rda,
    /// Proximal stochastic gradients with variance reduction.
    ProxSvrg,
}

impl Method {
    /// All of them: the paper's five in the order of its tables, then `auto`.
    pub const ALL: [Self; 6] =
        [Self::ProxSg, Self::Rda, Self::ProxSvrg, Self::ObproxSg, Self::ObproxSgPlus, Self::Auto];

    /// The paper's five, in the order of its tables.
    pub const PAPER: [Self; 5] = [Self::ProxSg, Self::Rda, Self::ProxSvrg, Self::ObproxSg, Self::ObproxSgPlus];

    /// The name on the command line and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::ObproxSg => "obproxsg",
            Self::ObproxSgPlus => "obproxsg-plus",
            Self::ProxSg => "prox-sg",
            Self::Rda => "rda",
            Self::ProxSvrg => "prox-svrg",
        }
    }
}

/// How a problem is solved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// At most this many epochs.
    pub epochs: u64,
    /// Rows in a batch.
    pub batch: Batch,
    /// The first step size α₀.
    pub step: StepSize,
    /// How α moves.
    pub schedule: Schedule,
    /// When Prox-SG gives way to Orthant; nothing means the paper's choice for the method.
    pub switch: Option<Switch>,
    /// γ of RDA.
    pub gamma: f64,
    /// Whether Prox-SVRG takes the mean of an epoch's iterates instead of the last.
    pub average: bool,
    /// Stops at this relative duality gap, or KKT distance where the loss has no dual.
    pub tolerance: f64,
    /// The seed of the batches.
    pub seed: u64,
    /// Evaluates F and the certificates every so many epochs; at the end always.
    pub eval_every: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            epochs: 200,
            batch: Batch::Paper,
            step: StepSize::default(),
            schedule: Schedule::default(),
            switch: None,
            gamma: 0.1,
            average: false,
            tolerance: 1e-6,
            seed: 0,
            eval_every: 1,
        }
    }
}

impl Settings {
    /// The defaults with another method.
    pub fn with_method(method: Method) -> Self {
        // The paper trains for 30 epochs; a round of `auto` is no epoch, and it stops by itself.
        Self { method, epochs: if method == Method::Auto { 200 } else { 30 }, ..Self::default() }
    }

    fn check(&self, validation: bool) -> Result<()> {
        let positive = |name, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(Error::parameter(name, format!("{value} must be a positive finite number"))),
        };
        positive("gamma", self.gamma)?;
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            let message = format!("{} must be a finite number, not negative", self.tolerance);
            return Err(Error::parameter("tol", message));
        }
        if let Schedule::Decay(factor) = self.schedule
            && !(factor > 0.0 && factor <= 1.0)
        {
            return Err(Error::parameter("decay", format!("{factor} must lie above 0 and be at most 1")));
        }
        if self.eval_every == 0 {
            return Err(Error::parameter("eval-every", "it counts epochs, at least 1"));
        }
        if let Some(switch) = self.switch {
            if !matches!(self.method, Method::ObproxSg | Method::ObproxSgPlus) {
                let message = format!("{} has no Orthant steps to switch to", self.method.name());
                return Err(Error::parameter("switch", message));
            }
            switch.check()?;
            if matches!(switch, Switch::Score(_)) && !validation {
                return Err(Error::parameter("switch", "a switch on the score needs test data to score on"));
            }
        }
        Ok(())
    }

    /// Whether a run with these settings may go on from a checkpoint of a run with `other`.
    fn continues(&self, other: &Self) -> bool {
        let free = |settings: &Self| Self { epochs: 0, tolerance: 0.0, eval_every: 1, ..settings.clone() };
        free(self) == free(other)
    }
}

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

/// How a stretch of a solver's work ended.
pub(crate) enum Ended {
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
pub(crate) struct Standing {
    pub iterations: u64,
    pub phase: Phase,
    pub step_size: f64,
    pub round: Option<Round>,
}

/// What the loop asks of a solver.
pub(crate) trait Solver {
    /// Runs to the end of the epoch under way.
    fn epoch(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Result<Ended>;
    /// The weights as they are now.
    fn point(&self) -> Point;
    /// Those that are not zero, and the intercepts.
    fn support(&self) -> Support {
        let point = self.point();
        Support { weights: point.nonzeros(), intercept: point.intercept }
    }
    /// Rows in a batch.
    fn batch_rows(&self) -> usize;
    /// The certificate of the weights, where the solver has it at hand.
    fn certificate(&self) -> Option<Certificate> {
        None
    }
    /// Where it stands.
    fn standing(&self) -> Standing;
    /// What it leaves to a fit at the next λ.
    fn leave(self: Box<Self>) -> Option<Carry> {
        None
    }
    /// Hears of an evaluation.
    fn measured(&mut self, certificate: &Certificate, score: Option<f64>);
    /// Writes its whole state.
    fn save(&self, out: &mut dyn Write) -> io::Result<()>;
    /// Reads it back.
    fn load(&mut self, input: &mut dyn Read) -> io::Result<()>;
}

/// A point in the space of its nonzeros.
pub(crate) struct Support {
    /// (place, weight), places rising.
    pub weights: Vec<(u32, f64)>,
    pub intercept: Vec<f64>,
}

impl Support {
    fn is_finite(&self) -> bool {
        self.weights.iter().map(|(_, weight)| weight).chain(&self.intercept).all(|value| value.is_finite())
    }

    /// The point of a problem.
    pub fn expand(self, problem: &Problem) -> Point {
        let mut point = Point { intercept: self.intercept, ..Point::zero(problem) };
        self.weights.iter().for_each(|&(at, weight)| point.weights[at as usize] = weight);
        point
    }
}

/// A run to be: a problem, settings, and who watches.
pub struct Run<'a> {
    problem: &'a Problem,
    settings: Settings,
    observers: Vec<&'a mut dyn Observer>,
    checkpoint: Option<PathBuf>,
    resume: bool,
    validation: Option<&'a Dataset>,
    start: Option<&'a Point>,
    carry: Option<&'a mut Option<Carry>>,
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
        }
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
        self.validation = Some(data);
        self
    }

    /// Starts from a point instead of zero. (RDA is centred at zero and always starts there.)
    pub fn start(mut self, point: &'a Point) -> Self {
        self.start = Some(point);
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
        let mut solver: Box<dyn Solver + '_> = match self.settings.method {
            Method::Auto => {
                let carry = self.carry.as_mut().and_then(|carry| carry.take());
                Box::new(Auto::new(problem, self.start, carry)?.aiming_at(self.settings.tolerance))
            }
            _ => Box::new(Stochastic::new(problem, &self.settings, self.start)?),
        };
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

        // ---- epochs ------------------------------------------------------------------------------------------
        let mut last_good: Option<(Support, Certificate)> = None;
        let status = loop {
            if let Some((ended, certificate)) = self.ended_before(&state) {
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
                    self.save(solver.as_ref(), &state)?;
                    break Status::Stopped;
                }
                Ended::Interrupted => break Status::Stopped,
                Ended::Epoch | Ended::Stalled => state.epoch += 1,
            }

            // ---- evaluation ----------------------------------------------------------------------------------
            let always = self.settings.switch.is_some_and(Switch::needs_evaluation);
            let due =
                always || stop || state.epoch % self.settings.eval_every == 0 || state.epoch == self.settings.epochs;
            let standing = solver.standing();
            let mut record = EpochRecord {
                epoch: state.epoch,
                iterations: standing.iterations,
                phase: standing.phase,
                step_size: standing.step_size,
                round: standing.round,
                certificate: None,
                score: None,
                seconds: state.seconds,
            };
            let mut converged = false;
            if due {
                let certificate = solver.certificate().map_or_else(|| certify(problem, &solver.point()), Ok)?;
                let support = solver.support();
                if !(certificate.objective.is_finite() && support.is_finite()) {
                    break Status::Diverged;
                }
                record.score = match self.validation {
                    Some(data) => Some(Model::new(problem, &solver.point(), &certificate).score(data)?),
                    None => None,
                };
                converged = certificate.within(self.settings.tolerance);
                solver.measured(&certificate, record.score);
                record.certificate = Some(certificate.clone());
                last_good = Some((support, certificate));
            }

            // ---- what is told and kept -----------------------------------------------------------------------
            for observer in &mut self.observers {
                stop |= observer.epoch(&record) == Control::Stop;
            }
            state.trace.push(record);
            state.stalled = matches!(ended, Ended::Stalled);
            self.save(solver.as_ref(), &state)?;
            if converged {
                break Status::Converged;
            }
            if state.stalled {
                break Status::Stalled;
            }
            if stop {
                break Status::Stopped;
            }
        };

        // ---- the result --------------------------------------------------------------------------------------
        let evaluated = state.trace.last().is_some_and(|record| record.certificate.is_some());
        let centred = |mut point: Point| {
            point.centre_intercepts();
            point
        };
        let (point, certificate) = match (status, last_good) {
            (Status::Diverged, Some((support, certificate))) => (centred(support.expand(problem)), certificate),
            (Status::Diverged, None) => {
                let point = centred(origin.unwrap_or_else(|| Point::zero(problem)));
                let certificate = certify(problem, &point)?;
                (point, certificate)
            }
            (Status::Converged | Status::MaxEpochs | Status::Stalled, Some((support, certificate))) if evaluated => {
                (centred(support.expand(problem)), certificate)
            }
            _ => {
                let point = centred(solver.point());
                let certificate = certify(problem, &point)?;
                (point, certificate)
            }
        };
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

    fn save(&self, solver: &dyn Solver, state: &Header) -> Result<()> {
        match &self.checkpoint {
            Some(directory) => checkpoint::write(directory, state, |out| solver.save(out)),
            None => Ok(()),
        }
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
