//! Many λ on one problem, each solved from the one before; and the λ that leaves a given number of features.
//!
//! Problem: min F at λ₁ > λ₂ > … > λ_m, the data shared. The point of λ_i is where the run at λ_{i+1} starts, which is
//! never far from there; each λ is certified by itself, so a path at λ is as good as a fit at λ.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::auto::Carry;
use crate::certificate::Certificate;
use crate::checkpoint::fingerprint;
use crate::data::{Dataset, ShardedData};
use crate::fit::{Fit, Run, Status};
use crate::kept::{Done, Kept, PART};
use crate::metrics::Metrics;
use crate::model::{Block, Labelled, Model};
use crate::observe::{Control, EpochRecord, Observer, Progress, Start};
use crate::problem::{Lambda, Point, Problem};
use crate::relax::{self, Relaxed};
use crate::settings::Settings;
use crate::{Error, Result};

/// Which λ a path goes through.
#[derive(Clone, Debug, PartialEq)]
pub enum Lambdas {
    /// From λ_max down to `ratio`·λ_max, evenly spaced on a logarithmic scale.
    Spaced {
        /// How many.
        count: usize,
        /// The last as a share of λ_max; nothing means 10⁻², or 10⁻³ where there are at least as many rows as features.
        ratio: Option<f64>,
    },
    /// These, from the largest to the smallest, each once.
    Given(Vec<Lambda>),
    /// These pairs of λ and λ₂, in the order given.
    Pairs(Vec<(f64, f64)>),
}

impl Default for Lambdas {
    fn default() -> Self {
        Self::Spaced { count: 100, ratio: None }
    }
}

impl Lambdas {
    /// The λ for a problem, from the largest to the smallest.
    pub fn values(&self, problem: &Problem) -> Result<Vec<f64>> {
        Ok(self.pairs(problem)?.into_iter().map(|(lambda, _)| lambda).collect())
    }

    /// λ and λ₂ for a problem, in the order of the path.
    pub(crate) fn pairs(&self, problem: &Problem) -> Result<Vec<(f64, f64)>> {
        let mut values = match self {
            Self::Pairs(pairs) if pairs.is_empty() => {
                return Err(Error::parameter("lambdas", "there must be at least one"));
            }
            Self::Pairs(pairs) => return Ok(pairs.clone()),
            Self::Spaced { count: 0, .. } => return Err(Error::parameter("lambdas", "there must be at least one")),
            Self::Spaced { count, ratio } => {
                let (max, default) = (problem.lambda_max(), default_ratio(problem));
                let ratio = ratio.unwrap_or(default);
                if !(ratio > 0.0 && ratio < 1.0) {
                    return Err(Error::parameter("ratio", format!("{ratio} must lie between 0 and 1")));
                }
                if max == 0.0 {
                    return Err(Error::Data("λ_max is 0, x = 0 is optimal at every λ: there is no path".into()));
                }
                // A hair above λ_max, or rounding lets a weight of 1e-17 in.
                let max = max * (1.0 + 1e-12);
                let last = (count - 1).max(1) as f64;
                (0..*count).map(|at| max * ratio.powf(at as f64 / last)).collect()
            }
            Self::Given(given) if given.is_empty() => {
                return Err(Error::parameter("lambdas", "there must be at least one"));
            }
            Self::Given(given) => {
                let value = |&lambda| problem.clone().with_lambda(lambda).map(|problem| problem.lambda());
                given.iter().map(value).collect::<Result<Vec<f64>>>()?
            }
        };
        values.sort_by(|a, b| b.total_cmp(a));
        values.dedup();
        Ok(values.into_iter().map(|lambda| (lambda, problem.regularization().l2)).collect())
    }
}

/// With more features than rows a small λ explains everything, and is of no use.
fn default_ratio(problem: &Problem) -> f64 {
    if problem.n_rows() < problem.n_features() { 1e-2 } else { 1e-3 }
}

/// One λ of a path.
#[derive(Clone, Debug)]
pub struct Step {
    /// λ.
    pub lambda: f64,
    /// How its run ended.
    pub status: Status,
    /// The figures of its point.
    pub certificate: Certificate,
    /// Epochs of its run.
    pub epochs: u64,
    /// Training time of its run.
    pub seconds: f64,
    /// The model, in original units.
    pub model: Model,
    /// How well it does on the validation data, where there is some.
    pub test: Option<Metrics>,
    /// The refit without penalty on its features, where that was asked for.
    pub relaxed: Option<Refit>,
}

/// A refit without penalty on the features of a λ.
#[derive(Clone, Debug)]
pub struct Refit {
    /// How its run ended.
    pub status: Status,
    /// The figures of f on these features.
    pub certificate: Certificate,
    /// The model, in original units.
    pub model: Model,
    /// How well it does on the validation data, where there is some.
    pub test: Option<Metrics>,
}

/// A path that was gone.
#[derive(Clone, Debug)]
pub struct Steps {
    /// From the largest λ down.
    pub steps: Vec<Step>,
    /// Whether an observer asked to stop: the λ under way and those after it are missing.
    pub stopped: bool,
}

impl Steps {
    /// The weights at a λ between two of the path, on the straight line between theirs: near the optimum there, and
    /// certified by nothing. A λ beyond the path is refused.
    pub fn blocks_at(&self, lambda: f64) -> Result<Vec<Block>> {
        let above = self.steps.iter().rposition(|step| step.lambda >= lambda);
        let below = self.steps.iter().position(|step| step.lambda <= lambda);
        let (Some(above), Some(below)) = (above, below) else {
            let ends = self.steps.first().zip(self.steps.last());
            let ends = ends.map_or("has no λ".into(), |(a, b)| format!("goes from {} to {}", a.lambda, b.lambda));
            return Err(Error::parameter("lambda", format!("{lambda}: the path {ends}")));
        };
        let (above, below) = (&self.steps[above], &self.steps[below]);
        let apart = above.lambda - below.lambda;
        let share = if apart > 0.0 { (above.lambda - lambda) / apart } else { 0.0 };
        let pairs = above.model.blocks.iter().zip(&below.model.blocks);
        Ok(pairs.map(|(from, to)| between(from, to, share)).collect())
    }
}

/// The block that is so far on the way from one to another.
fn between(from: &Block, to: &Block, share: f64) -> Block {
    let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
    for (block, share) in [(from, 1.0 - share), (to, share)] {
        for (&feature, &value) in block.indices.iter().zip(&block.values) {
            *weights.entry(feature).or_default() += share * value;
        }
    }
    weights.retain(|_, weight| *weight != 0.0);
    let intercept = (1.0 - share) * from.intercept + share * to.intercept;
    Block { intercept, indices: weights.keys().copied().collect(), values: weights.into_values().collect() }
}

/// A path to be: a problem, settings, and who watches.
///
/// ```
/// # use obprox::{Lambdas, Path, Problem, Terms, data::{Dataset, Matrix}, loss::LossKind};
/// # let matrix = Matrix::from_dense(4, 2, &[1.0, 0.5, -1.0, 0.3, 2.0, -0.2, -1.5, 0.1]);
/// # let data = Dataset::new(matrix, vec![1.0, -1.0, 1.5, -2.0]);
/// let problem = Problem::new(data, LossKind::Squared.build(1), &Terms::default())?;
/// for step in Path::new(&problem).lambdas(Lambdas::Spaced { count: 10, ratio: None }).run()?.steps {
///     println!("{} {}", step.lambda, step.certificate.nnz);
/// }
/// # Ok::<(), obprox::Error>(())
/// ```
pub struct Path<'a> {
    problem: &'a Problem,
    settings: Settings,
    lambdas: Lambdas,
    validation: Option<Labelled<'a>>,
    observer: Option<&'a mut dyn Observer>,
    checkpoint: Option<(PathBuf, bool)>,
    relaxed: bool,
}

impl<'a> Path<'a> {
    /// The default path by the default solver; λ of the problem is of no account.
    pub fn new(problem: &'a Problem) -> Self {
        Self {
            problem,
            settings: Settings::default(),
            lambdas: Lambdas::default(),
            validation: None,
            observer: None,
            checkpoint: None,
            relaxed: false,
        }
    }

    /// Refits the features of each λ without penalty, too.
    pub fn relaxed(mut self, relaxed: bool) -> Self {
        self.relaxed = relaxed;
        self
    }

    /// How each λ is solved.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Which λ.
    pub fn lambdas(mut self, lambdas: Lambdas) -> Self {
        self.lambdas = lambdas;
        self
    }

    /// Measures each model on this data.
    pub fn validate(mut self, data: &'a Dataset) -> Self {
        self.validation = Some(Labelled::Memory(data));
        self
    }

    /// The same on rows that are read shard by shard.
    pub fn validate_shards(mut self, data: &'a Arc<ShardedData>) -> Self {
        self.validation = Some(Labelled::Shards(data));
        self
    }

    /// Sets the observer. It hears of every run, one after another: `start` knows its λ, `end` its result.
    pub fn observe(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Keeps the λ that are done in a directory, ten at a time; with `resume`, goes on from what is kept there, to the
    /// same bits as a path with checkpoints that was not broken off.
    pub fn checkpoint(mut self, directory: impl Into<PathBuf>, resume: bool) -> Self {
        self.checkpoint = Some((directory.into(), resume));
        self
    }

    /// Goes the path.
    pub fn run(self) -> Result<Steps> {
        let pairs = self.lambdas.pairs(self.problem)?;
        if self.relaxed {
            relax::check(self.problem)?;
        }
        let key = || work_of("path", self.problem, &self.settings, &pairs);
        let kept = self.checkpoint.as_ref().map(|(at, resume)| Kept::open(at, *resume, &key())).transpose()?;
        let kept = kept.as_ref().map(|kept| (kept, "path"));
        let validation = self.validation;
        let measure = |model: &Model| validation.map(|data| data.measure(model)).transpose();
        let mut steps = Vec::with_capacity(pairs.len());
        let mut before: Option<Relaxed> = None;
        let stopped = walk(self.problem, &self.settings, &pairs, kept, self.observer, &mut |problem, fit| {
            if self.relaxed {
                before = Some(Relaxed::after(before.take(), problem, fit, &self.settings)?);
            }
            let refit = |relaxed: &Relaxed| {
                let Fit { status, certificate, model, .. } = relaxed.fit().clone();
                Ok(Refit { status, certificate, test: measure(&model)?, model })
            };
            steps.push(Step {
                lambda: problem.lambda(),
                status: fit.status,
                certificate: fit.certificate.clone(),
                epochs: fit.epochs,
                seconds: fit.seconds,
                model: fit.model.clone(),
                test: measure(&fit.model)?,
                relaxed: before.as_ref().map(refit).transpose()?,
            });
            Ok(())
        })?;
        Ok(Steps { steps, stopped })
    }
}

/// Solves at each pair of λ and λ₂ in turn, from the point of the one before, and hands over each result; whether it was stopped before
/// the last.
pub(crate) fn walk(
    problem: &Problem,
    settings: &Settings,
    pairs: &[(f64, f64)],
    kept: Option<(&Kept, &str)>,
    observer: Option<&mut dyn Observer>,
    visit: &mut dyn FnMut(&Problem, &Fit) -> Result<()>,
) -> Result<bool> {
    let mut listener = Listener { observer, stop: false };
    let mut point: Option<Point> = None;
    // The solver carries over what it has where λ alone moves.
    let floor = pairs.iter().map(|&(lambda, _)| lambda).fold(f64::INFINITY, f64::min);
    let same_l2 = pairs.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let part = if kept.is_some() { PART } else { pairs.len().max(1) };
    for (number, pairs) in pairs.chunks(part).enumerate() {
        let found = kept.and_then(|(kept, name)| kept.part(name, number, problem)).filter(|f| f.len() == pairs.len());
        let (mut found, mut done) = (found.map(Vec::into_iter), Vec::new());
        // Shards are read anew for each λ, so there is the point alone to carry.
        let mut carry = (same_l2 && !problem.in_shards()).then(|| Carry::new(floor));
        for &(lambda, l2) in pairs {
            if listener.stop {
                return Ok(true);
            }
            let problem = problem.clone().with_lambda(Lambda::Value(lambda))?.with_l2(l2)?;
            let fit = match found.as_mut().and_then(Iterator::next) {
                Some(done) => listener.heard(done.fit(&problem)),
                None => solve(&problem, settings, point.as_ref(), &mut carry, &mut listener)?,
            };
            if fit.status == Status::Stopped {
                return Ok(true);
            }
            visit(&problem, &fit)?;
            if kept.is_some() && found.is_none() {
                done.push(Done::of(&fit));
            }
            point = Some(fit.point);
        }
        if let (Some((kept, name)), None) = (kept, found) {
            kept.keep(name, number, &done).or_else(|error| listener.forgo(error))?;
        }
    }
    Ok(false)
}

/// All that the result of some work depends on.
pub(crate) fn work_of(name: &str, problem: &Problem, settings: &Settings, rest: &impl Serialize) -> String {
    let words = |value: serde_json::Result<String>| value.unwrap_or_default();
    let (settings, rest) = (words(serde_json::to_string(settings)), words(serde_json::to_string(rest)));
    format!("{name}\n{}\n{settings}\n{rest}\n", fingerprint(problem))
}

fn solve(
    problem: &Problem,
    settings: &Settings,
    start: Option<&Point>,
    carry: &mut Option<Carry>,
    listener: &mut Listener,
) -> Result<Fit> {
    let mut run = Run::new(problem, settings.clone()).observe(listener).carry(carry);
    if let Some(start) = start {
        run = run.start(start);
    }
    run.fit()
}

/// Remembers that the observer asked to stop: a run that converges in the same epoch is not stopped, the path is.
struct Listener<'a> {
    observer: Option<&'a mut dyn Observer>,
    stop: bool,
}

impl Listener<'_> {
    /// A fit that was kept: its end is told.
    fn heard(&mut self, fit: Fit) -> Fit {
        self.end(&fit);
        fit
    }

    /// Goes on without what could not be kept, where the observer says so.
    fn forgo(&mut self, error: Error) -> Result<()> {
        match self.unsaved(&error) {
            Control::Continue => Ok(()),
            Control::Stop => Err(error),
        }
    }

    fn ask(&mut self, of: impl FnOnce(&mut dyn Observer) -> Control) -> Control {
        if let Some(observer) = &mut self.observer {
            self.stop |= of(&mut **observer) == Control::Stop;
        }
        if self.stop { Control::Stop } else { Control::Continue }
    }
}

impl Observer for Listener<'_> {
    fn start(&mut self, start: &Start) {
        if let Some(observer) = &mut self.observer {
            observer.start(start);
        }
    }

    fn step(&mut self, progress: &Progress) -> Control {
        self.ask(|observer| observer.step(progress))
    }

    fn epoch(&mut self, record: &EpochRecord) -> Control {
        self.ask(|observer| observer.epoch(record))
    }

    fn unsaved(&mut self, error: &Error) -> Control {
        self.observer.as_mut().map_or(Control::Stop, |observer| observer.unsaved(error))
    }

    fn end(&mut self, fit: &Fit) {
        if let Some(observer) = &mut self.observer {
            observer.end(fit);
        }
    }
}

/// The search for a number of features ends here, as a share of λ_max.
pub const SMALLEST: f64 = 1e-4;
/// How λ falls while the search looks for a bracket.
const FALL: f64 = 0.7;
/// The search ends when its bracket is narrower than this, relatively.
const NARROW: f64 = 1e-3;

/// What the search for a number of features found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The smallest λ that was tried and left at most as many features as were asked for.
    pub lambda: f64,
    /// The features its model uses.
    pub features: usize,
    /// The fit at that λ.
    pub fit: Fit,
    /// How many λ were tried.
    pub tried: usize,
}

/// Searches the model with at most `most` features: λ falls from λ_max until more are used (or [`SMALLEST`]·λ_max is
/// reached), then the bracket is halved on a logarithmic scale until it is narrow: of all models with so few features the
/// one at the smallest λ is shrunk the least. Every fit starts from the sparsest side of the bracket.
///
/// How many features are used does not fall with λ alone (a feature may leave as λ falls), so no search can promise the
/// smallest λ of all; this one returns the smallest it tried, and tries the same each time. A feature counts once,
/// whatever the number of classes it is used for. Where an observer stops the search, the fit's status is
/// [`Status::Stopped`] and the model is the best so far.
pub fn at_most(
    problem: &Problem,
    most: usize,
    settings: &Settings,
    observer: Option<&mut dyn Observer>,
) -> Result<Found> {
    search(problem, most, settings, observer, None)
}

/// The same, with every fit kept in a directory; with `resume`, those that are kept there are not done again.
pub fn at_most_kept(
    problem: &Problem,
    most: usize,
    settings: &Settings,
    observer: Option<&mut dyn Observer>,
    (directory, resume): (&std::path::Path, bool),
) -> Result<Found> {
    let kept = Kept::open(directory, resume, &work_of("nnz", problem, settings, &most))?;
    search(problem, most, settings, observer, Some(&kept))
}

fn search(
    problem: &Problem,
    most: usize,
    settings: &Settings,
    observer: Option<&mut dyn Observer>,
    kept: Option<&Kept>,
) -> Result<Found> {
    let max = problem.lambda_max();
    let mut listener = Listener { observer, stop: false };
    let mut tried = 0;
    let mut try_at = |lambda: f64, start: Option<&Point>| -> Result<(Found, bool)> {
        let problem = problem.clone().with_lambda(Lambda::Value(lambda))?;
        let found = kept.and_then(|kept| kept.part("nnz", tried, &problem)).and_then(|part| part.into_iter().next());
        let again = found.is_none();
        let fit = match found {
            Some(done) => listener.heard(done.fit(&problem)),
            None => solve(&problem, settings, start, &mut None, &mut listener)?,
        };
        if let (Some(kept), true, true) = (kept, again, fit.status != Status::Stopped) {
            kept.keep("nnz", tried, &[Done::of(&fit)]).or_else(|error| listener.forgo(error))?;
        }
        tried += 1;
        Ok((Found { lambda, features: features(&fit.model), fit, tried }, listener.stop))
    };

    // ---- λ_max, or above it: rounding lets a feature in at λ_max itself, and so does what unpenalised ones explain ----
    let (mut best, mut stop) = try_at(max, None)?;
    for above in [1.0 + 1e-9, 2.0, 16.0, 1024.0, 1e6] {
        if best.features <= most || stop {
            break;
        }
        (best, stop) = try_at(max * above, None)?;
    }
    if best.features > most && !stop {
        let message =
            format!("{most} cannot be reached: {} features are used at any λ, since theirs is 0", best.features);
        return Err(Error::parameter("nnz", message));
    }

    // ---- down until there are too many, then halving the bracket -----------------------------------------------------
    let mut below: Option<f64> = None;
    while !stop && most > 0 {
        let next = match below {
            None if best.lambda <= SMALLEST * max => break,
            None => (best.lambda * FALL).max(SMALLEST * max),
            Some(below) if best.lambda <= below * (1.0 + NARROW) => break,
            Some(below) => (best.lambda * below).sqrt(),
        };
        let tried;
        (tried, stop) = try_at(next, Some(&best.fit.point))?;
        match (tried.fit.status, tried.features > most) {
            (Status::Stopped, _) => {}
            (_, true) => below = Some(tried.lambda),
            (_, false) => best = tried,
        }
    }
    best.tried = tried;
    if stop {
        best.fit.status = Status::Stopped;
    }
    Ok(best)
}

/// The features that any block of a model uses.
fn features(model: &Model) -> usize {
    match &model.blocks[..] {
        [block] => block.indices.len(),
        blocks => {
            let mut all: Vec<u32> = blocks.iter().flat_map(|block| block.indices.iter().copied()).collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        }
    }
}
