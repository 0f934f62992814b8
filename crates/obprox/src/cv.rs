//! Cross-validation: which λ predicts best.
//!
//! The rows are dealt into k folds, the rows of each class by themselves, or split as the caller says. For each fold a
//! path is gone on the other rows (the held-out ones weigh 0, so all folds share the one matrix) and each λ is scored on
//! the held-out rows by the mean of the problem's own loss, weighted as in the objective or as the caller says. With m_i the mean over the folds at λ_i and s_i its standard
//! error (deviation of the k scores / √k), two λ are chosen: the best, argmin m_i, and by the rule of one standard error
//! the largest with m_i ≤ m_best + s_best.
//!
//! A refit without penalty on the features of a λ can be tried too, and what lies between (`relax.rs`): then λ and the blend
//! are chosen together, the blend by the best mean there is with it.
//!
//! Where rows are compared with each other, as by a partial likelihood, what a fold says is the loss of all rows less that of
//! the others, for each of its events (Verweij and Van Houwelingen, 1993): its few events are compared with all.
//! Citation: Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2009, 7.10.

use std::path::PathBuf;

use rayon::prelude::*;

use crate::fit::{Fit, Run, Status};
use crate::kept::Kept;
use crate::loss::{Coupled, Task};
use crate::metrics::concordance;
use crate::observe::{Control, EpochRecord, Observer, Progress};
use crate::path::{Lambdas, walk, work_of};
use crate::problem::{Lambda, Point, Problem};
use crate::relax::{self, Relaxed};
use crate::rows::pass;
use crate::sampler;
use crate::settings::Settings;
use crate::{Error, Result};

/// How λ is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// The best mean score.
    #[default]
    Best,
    /// The largest λ whose mean score is within one standard error of the best.
    OneSe,
}

/// One fold's score at one λ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The mean loss on the held-out rows: log-loss for logistic and softmax, ½(m − y)² for squared.
    pub loss: f64,
    /// Accuracy, R² or concordance on the held-out rows, weighted like the loss; nothing where there is none.
    pub score: Option<f64>,
    /// Weights that are not zero.
    pub nnz: usize,
    /// How the run on the other rows ended.
    pub status: Status,
}

/// What the folds say of one λ.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// λ.
    pub lambda: f64,
    /// The mean of the folds' losses.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// The mean of accuracy or R², where every fold has it.
    pub score: Option<f64>,
    /// One a fold.
    pub folds: Vec<Score>,
}

/// The outcome of a cross-validation.
#[derive(Clone, Debug)]
pub struct Validated {
    /// From the largest λ down. Where it was stopped: those that every fold had come to.
    pub scores: Vec<Scores>,
    /// The place of the λ with the best mean.
    pub best: usize,
    /// The place of the largest λ within one standard error of it.
    pub one_se: usize,
    /// γ of the blend that was chosen: 1 where nothing but the penalised fits was tried. The scores above are its.
    pub share: f64,
    /// Each γ that was tried, with its scores.
    pub blends: Vec<(f64, Vec<Scores>)>,
    /// The fold of each row; empty where the rows were not dealt but split by the caller.
    pub fold: Vec<u32>,
    /// Whether an observer asked to stop.
    pub stopped: bool,
}

impl Validated {
    /// What was chosen by a rule.
    pub fn chosen(&self, rule: Rule) -> &Scores {
        &self.scores[match rule {
            Rule::Best => self.best,
            Rule::OneSe => self.one_se,
        }]
    }

    /// Fits all rows at the λ chosen by a rule.
    pub fn refit(&self, problem: &Problem, settings: &Settings, rule: Rule) -> Result<Fit> {
        let problem = problem.clone().with_lambda(Lambda::Value(self.chosen(rule).lambda))?;
        let fit = Run::new(&problem, settings.clone()).fit()?;
        self.blended(&problem, fit, settings)
    }

    /// The blend that was chosen of a fit and its refit.
    pub fn blended(&self, problem: &Problem, fit: Fit, settings: &Settings) -> Result<Fit> {
        if self.share == 1.0 || fit.status == Status::Stopped {
            return Ok(fit);
        }
        Relaxed::new(problem, &fit, settings)?.blend(self.share)
    }
}

/// How far a fold has come.
#[derive(Clone, Copy, Debug)]
pub struct FoldProgress {
    /// The fold, counted from 0.
    pub fold: usize,
    /// λ it has done.
    pub done: usize,
    /// λ there are.
    pub lambdas: usize,
}

/// One split of the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Split {
    /// Rows to learn from.
    pub train: Vec<u32>,
    /// Rows to score on.
    pub test: Vec<u32>,
}

/// Is handed the fold, the place of λ and the result of every fit, from several threads at once.
pub type Visit<'a> = &'a (dyn Fn(usize, usize, &Fit) + Sync);

/// Hears of every step of every fold, from several threads at once, and may ask to stop.
pub type Watch<'a> = &'a (dyn Fn(&FoldProgress) -> Control + Sync);

/// Is told, from several threads at once, that what a fold has done could not be kept; whether to go on without.
pub type Unsaved<'a> = &'a (dyn Fn(&Error) -> Control + Sync);

/// A cross-validation to be.
///
/// ```
/// # use obprox::{CrossValidation, Settings, Problem, Terms, cv::Rule, data::{Dataset, Matrix}, loss::LossKind};
/// # let rows: Vec<f64> = (0..40).map(|at| (f64::from(at) * 0.7).sin()).collect();
/// # let targets = rows.chunks(2).map(|row| 2.0 * row[0] + 0.1 * row[1]).collect();
/// # let data = Dataset::new(Matrix::from_dense(20, 2, &rows), targets);
/// let problem = Problem::new(data, LossKind::Squared.build(1), &Terms::default())?;
/// let validated = CrossValidation::new(&problem).folds(5).run()?;
/// let fit = validated.refit(&problem, &Settings::default(), Rule::OneSe)?;
/// # assert!(fit.certificate.nnz > 0);
/// # Ok::<(), obprox::Error>(())
/// ```
pub struct CrossValidation<'a> {
    problem: &'a Problem,
    settings: Settings,
    lambdas: Lambdas,
    folds: usize,
    seed: u64,
    splits: Option<Vec<Split>>,
    score_weights: Option<Vec<f64>>,
    over_total: bool,
    watch: Option<Watch<'a>>,
    unsaved: Option<Unsaved<'a>>,
    visit: Option<Visit<'a>>,
    checkpoint: Option<(PathBuf, bool)>,
    shares: Vec<f64>,
}

/// The γ that are tried where refits are asked for.
pub const SHARES: [f64; 5] = [1.0, 0.75, 0.5, 0.25, 0.0];

impl<'a> CrossValidation<'a> {
    /// Five folds, the default path, the default solver; λ of the problem is of no account.
    pub fn new(problem: &'a Problem) -> Self {
        Self {
            problem,
            settings: Settings::default(),
            lambdas: Lambdas::default(),
            folds: 5,
            seed: 0,
            splits: None,
            score_weights: None,
            over_total: false,
            watch: None,
            unsaved: None,
            visit: None,
            checkpoint: None,
            shares: vec![1.0],
        }
    }

    /// Tries blends γ·penalised + (1 − γ)·refit of each fit and its refit without penalty on the same features.
    pub fn relaxed(mut self, shares: &[f64]) -> Self {
        self.shares = shares.to_vec();
        self
    }

    /// How each λ is solved.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Which λ; shares of λ_max are those of all rows.
    pub fn lambdas(mut self, lambdas: Lambdas) -> Self {
        self.lambdas = lambdas;
        self
    }

    /// How many folds.
    pub fn folds(mut self, folds: usize) -> Self {
        self.folds = folds;
        self
    }

    /// The seed that decides the folds.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Splits the rows like this, instead of dealing them into folds.
    pub fn splits(mut self, splits: Vec<Split>) -> Self {
        self.splits = Some(splits);
        self
    }

    /// How much each row counts in the scores, instead of as much as in the objective.
    pub fn score_weights(mut self, weights: Vec<f64>) -> Self {
        self.score_weights = Some(weights);
        self
    }

    /// λ and λ₂ are those of all rows, and a fold's are larger as its rows weigh less: so 1/C = λ·(total weight) is the
    /// same in every fold.
    pub fn over_total(mut self) -> Self {
        self.over_total = true;
        self
    }

    /// Sets who watches.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Sets who is told that a part could not be kept, and says whether to go on without; else that is an error.
    pub fn unsaved(mut self, unsaved: Unsaved<'a>) -> Self {
        self.unsaved = Some(unsaved);
        self
    }

    /// Sets who is handed every fit.
    pub fn visit(mut self, visit: Visit<'a>) -> Self {
        self.visit = Some(visit);
        self
    }

    /// Keeps what each fold has done in a directory, ten λ at a time; with `resume`, goes on from what is kept there, to the
    /// same bits as a validation with checkpoints that was not broken off.
    pub fn checkpoint(mut self, directory: impl Into<PathBuf>, resume: bool) -> Self {
        self.checkpoint = Some((directory.into(), resume));
        self
    }

    /// Goes the paths, folds in parallel; the bits do not depend on the number of threads.
    pub fn run(mut self) -> Result<Validated> {
        let pairs = self.lambdas.pairs(self.problem)?;
        self.check_shares()?;
        let (fold, splits) = match self.splits.take() {
            Some(splits) => (Vec::new(), splits),
            None => {
                let fold = deal(self.problem, self.folds, self.seed)?;
                let splits = (0..self.folds).map(|number| split_at(&fold, number as u32)).collect();
                (fold, splits)
            }
        };
        self.check(&splits)?;
        let kept = match &self.checkpoint {
            Some((directory, resume)) => {
                let rest = (&pairs, sum_of(&splits, self.score_weights.as_deref()), self.over_total);
                Some(Kept::open(directory, *resume, &work_of("folds", self.problem, &self.settings, &rest))?)
            }
            None => None,
        };
        let paths: Vec<(Vec<Vec<Score>>, bool)> = splits
            .par_iter()
            .enumerate()
            .map(|(number, split)| self.path(&pairs, number, split, kept.as_ref()))
            .collect::<Result<_>>()?;
        let reached = paths.iter().map(|(scores, _)| scores.len()).min().unwrap_or(0);
        let scores_of = |blend: usize| -> Vec<Scores> {
            let of = |at: usize| paths.iter().map(|(scores, _)| scores[at][blend]).collect();
            (0..reached).map(|at| Scores::new(pairs[at].0, of(at))).collect()
        };
        let blends: Vec<(f64, Vec<Scores>)> =
            self.shares.iter().enumerate().map(|(blend, &share)| (share, scores_of(blend))).collect();
        let chosen =
            |scores: &[Scores]| choose(&scores.iter().map(|score| (score.mean, score.error)).collect::<Vec<_>>());
        let least = |(_, scores): &(f64, Vec<Scores>)| scores.get(chosen(scores).0).map_or(f64::NAN, |best| best.mean);
        let better = |best: usize, at: usize| if least(&blends[at]) < least(&blends[best]) { at } else { best };
        let (share, scores) = blends[(1..blends.len()).fold(0, better)].clone();
        let (best, one_se) = chosen(&scores);
        let stopped = paths.iter().any(|(_, stopped)| *stopped);
        Ok(Validated { scores, best, one_se, share, blends, fold, stopped })
    }

    /// Refuses blends that are none, or of fits that cannot be refitted.
    fn check_shares(&self) -> Result<()> {
        if self.shares.is_empty() || self.shares.iter().any(|share| !(0.0..=1.0).contains(share)) {
            return Err(Error::parameter("relax", "each share must lie between 0 and 1, and there must be one"));
        }
        match self.shares[..] == [1.0] {
            true => Ok(()),
            false => relax::check(self.problem),
        }
    }

    /// Refuses splits that cannot be learnt from or scored on, and weights that do not fit.
    fn check(&self, splits: &[Split]) -> Result<()> {
        let n_rows = self.problem.n_rows();
        if splits.is_empty() {
            return Err(Error::parameter("splits", "there must be at least one"));
        }
        if let Some(weights) = &self.score_weights
            && (weights.len() != n_rows || weights.iter().any(|weight| !(weight.is_finite() && *weight >= 0.0)))
        {
            let message = format!("give a finite number, not negative, for each of the {n_rows} rows");
            return Err(Error::parameter("score weights", message));
        }
        for (number, split) in splits.iter().enumerate() {
            let wrong = |message: &str| Err(Error::parameter("splits", format!("split {}: {message}", number + 1)));
            if split.train.iter().chain(&split.test).any(|&row| row as usize >= n_rows) {
                return wrong(&format!("a row is not below {n_rows}"));
            }
            let mut named = vec![false; n_rows];
            if split.train.iter().any(|&row| std::mem::replace(&mut named[row as usize], true)) {
                return wrong("a row to learn from is named twice; give it twice the weight instead");
            }
            if !split.test.iter().any(|&row| self.score_weight(row as usize) > 0.0) {
                return wrong("no row to score on");
            }
            let scored = |row: &u32| self.score_weight(*row as usize) > 0.0 && class(self.problem, *row as usize) == 1;
            if self.problem.coupled().is_some() && !split.test.iter().any(scored) {
                return wrong("no event to score on");
            }
            let mut learnt = vec![false; self.problem.labels().len()];
            for &row in split.train.iter().filter(|row| self.problem.row_weight(**row as usize) > 0.0) {
                learnt.get_mut(class(self.problem, row as usize)).into_iter().for_each(|learnt| *learnt = true);
            }
            if let Some(class) = learnt.iter().position(|learnt| !learnt) {
                return wrong(&format!("no row to learn the label {} from", self.problem.labels()[class]));
            }
        }
        Ok(())
    }

    /// How much a row counts in the scores.
    fn score_weight(&self, row: usize) -> f64 {
        self.score_weights.as_ref().map_or_else(|| self.problem.row_weight(row), |weights| weights[row])
    }

    fn path(
        &self,
        pairs: &[(f64, f64)],
        number: usize,
        split: &Split,
        kept: Option<&Kept>,
    ) -> Result<(Vec<Vec<Score>>, bool)> {
        let mut held = vec![true; self.problem.n_rows()];
        split.train.iter().for_each(|&row| held[row as usize] = false);
        let held: Vec<u32> = (0..held.len() as u32).filter(|&row| held[row as usize]).collect();
        let rest = self.problem.holding_out(&held)?;
        let stretch = if self.over_total { self.problem.total_weight() / rest.total_weight() } else { 1.0 };
        let pairs: Vec<(f64, f64)> = pairs.iter().map(|(lambda, l2)| (lambda * stretch, l2 * stretch)).collect();
        let mut scores = Vec::with_capacity(pairs.len());
        let progress = FoldProgress { fold: number, done: 0, lambdas: pairs.len() };
        let mut teller = Teller { watch: self.watch, unsaved: self.unsaved, progress };
        let name = format!("fold-{number}");
        let kept = kept.map(|kept| (kept, &name[..]));
        let mut before: Option<Relaxed> = None;
        let stopped = walk(&rest, &self.settings, &pairs, kept, Some(&mut teller), &mut |problem, fit| {
            if let Some(visit) = self.visit {
                visit(number, scores.len(), fit);
            }
            if self.shares.iter().any(|&share| share < 1.0) {
                before = Some(Relaxed::after(before.take(), problem, fit, &self.settings)?);
            }
            let blended = |&share: &f64| {
                let point = before.as_ref().filter(|_| share < 1.0).map(|relaxed| relaxed.at(share));
                let (loss, score) = self.score(&split.test, point.as_ref().unwrap_or(&fit.point));
                Score { loss, score, nnz: fit.certificate.nnz, status: fit.status }
            };
            scores.push(self.shares.iter().map(blended).collect());
            Ok(())
        })?;
        Ok((scores, stopped))
    }

    /// The weighted mean loss, and accuracy or R², of a point on some rows.
    fn score(&self, rows: &[u32], point: &Point) -> (f64, Option<f64>) {
        if let Some(coupled) = self.problem.coupled() {
            return self.score_together(coupled, rows, point);
        }
        let (problem, outputs, loss) = (self.problem, self.problem.outputs(), self.problem.loss());
        let (mut sum, mut total, mut right) = (0.0, 0.0, 0.0);
        // Weight, truth and prediction of each row, for R².
        let mut predicted = Vec::with_capacity(rows.len());
        let mut margins = vec![0.0; outputs];
        for &row in rows {
            let row = row as usize;
            let (weight, target) = (self.score_weight(row), problem.targets()[row]);
            if weight == 0.0 {
                continue;
            }
            margins.copy_from_slice(&point.intercept);
            problem.matrix().for_each(row, |column, value| {
                let weights = &point.weights[column * outputs..(column + 1) * outputs];
                margins.iter_mut().zip(weights).for_each(|(margin, weight)| *margin += value * weight);
            });
            sum += weight * loss.value(&margins, target);
            total += weight;
            let offset = loss.offset(target).unwrap_or_default();
            margins.iter_mut().zip(offset).for_each(|(margin, offset)| *margin += offset);
            let target = loss.truth(target);
            match loss.task() {
                Task::Binary if (margins[0] > 0.0) == (target > 0.0) => right += weight,
                Task::Classes if crate::model::best(&margins) as f64 == target => right += weight,
                Task::Binary | Task::Classes => {}
                Task::Regression | Task::Survival => predicted.push((weight, target, margins[0])),
                Task::Counts => predicted.push((weight, target, margins[0].exp())),
            }
        }
        let score = match loss.task() {
            Task::Binary | Task::Classes => Some(right / total),
            Task::Regression | Task::Counts | Task::Survival => r2(&predicted),
        };
        (sum / total, score)
    }

    /// The same of a loss that compares the rows: of all less of the others, an event; and the concordance among these.
    fn score_together(&self, coupled: &dyn Coupled, rows: &[u32], point: &Point) -> (f64, Option<f64>) {
        let problem = self.problem;
        let margins = pass::margins(problem.matrix(), point);
        let mut others: Vec<f64> = (0..problem.n_rows()).map(|row| problem.row_weight(row)).collect();
        let (mut all, mut own) = (others.clone(), vec![0.0; others.len()]);
        for row in rows.iter().map(|&row| row as usize) {
            own[row] = self.score_weight(row);
            (all[row], others[row]) = (own[row], 0.0);
        }
        let times: Vec<f64> = problem.targets().iter().map(|&target| problem.loss().truth(target)).collect();
        let events: f64 = own.iter().zip(&times).filter(|(_, time)| **time > 0.0).map(|(weight, _)| weight).sum();
        let loss = (coupled.total(&margins, Some(&all)) - coupled.total(&margins, Some(&others))) / events;
        let offset = |row: usize| problem.loss().offset(problem.targets()[row]).map_or(0.0, |offset| offset[0]);
        let scores: Vec<f64> = margins.iter().enumerate().map(|(row, margin)| margin + offset(row)).collect();
        (loss, concordance(&scores, &times, |row| own[row]))
    }
}

impl Scores {
    fn new(lambda: f64, folds: Vec<Score>) -> Self {
        let (mean, error) = mean_and_error(&folds.iter().map(|fold| fold.loss).collect::<Vec<_>>());
        let score = folds.iter().map(|fold| fold.score).sum::<Option<f64>>().map(|sum| sum / folds.len() as f64);
        Self { lambda, mean, error, score, folds }
    }
}

/// The mean of the folds' scores and its standard error: deviation / √k, or 0 of a single fold.
pub fn mean_and_error(scores: &[f64]) -> (f64, f64) {
    let count = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / count;
    let squares: f64 = scores.iter().map(|score| (score - mean) * (score - mean)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

/// The place of the smallest mean and that of the largest λ within one standard error of it, of (mean, error) pairs from
/// the largest λ down. Among equals the larger λ wins.
pub fn choose(scores: &[(f64, f64)]) -> (usize, usize) {
    let smaller =
        |best: usize, at: usize| if scores[at].0 < scores[best].0 || scores[best].0.is_nan() { at } else { best };
    let best = (1..scores.len()).fold(0, smaller);
    let one_se = (0..best).find(|&at| scores[at].0 <= scores[best].0 + scores[best].1).unwrap_or(best);
    (best, one_se)
}

/// The number of a row's class, or whether its event was seen; 0 where there are none.
fn class(problem: &Problem, row: usize) -> usize {
    let truth = problem.loss().truth(problem.targets()[row]);
    match problem.loss().task() {
        Task::Binary => usize::from(truth > 0.0),
        Task::Classes => truth as usize,
        Task::Survival => usize::from(truth > 0.0),
        Task::Regression | Task::Counts => 0,
    }
}

/// What tells splits and weights from others.
fn sum_of(splits: &[Split], weights: Option<&[f64]>) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for rows in splits.iter().flat_map(|split| [&split.train, &split.test]) {
        sum.update(&(rows.len() as u64).to_le_bytes());
        sum.update(bytemuck::cast_slice(rows));
    }
    sum.update(bytemuck::cast_slice(weights.unwrap_or_default()));
    sum.finalize()
}

/// The split that holds out one fold.
fn split_at(fold: &[u32], number: u32) -> Split {
    let (test, train) = (0..fold.len() as u32).partition(|&row| fold[row as usize] == number);
    Split { train, test }
}

/// The fold of each row; refuses what cannot be dealt.
fn deal(problem: &Problem, folds: usize, seed: u64) -> Result<Vec<u32>> {
    let counts = |row: usize| problem.row_weight(row) > 0.0;
    let rows = (0..problem.n_rows()).filter(|&row| counts(row)).count();
    if folds < 2 || folds > rows {
        let message = format!("{folds} folds of {rows} rows: there must be at least 2, and a row in each");
        return Err(Error::parameter("folds", message));
    }
    let class = |row: usize| class(problem, row);
    // With one row of a class, the fold that holds it out has none to learn from.
    let mut sizes = vec![0; problem.labels().len().max(2)];
    (0..problem.n_rows()).filter(|&row| counts(row)).for_each(|row| sizes[class(row)] += 1);
    if problem.coupled().is_some() && sizes[1] < folds {
        let message = format!("{folds} folds of {} events: there must be one in each", sizes[1]);
        return Err(Error::parameter("folds", message));
    }
    if let (Some(class), false) = (sizes.iter().position(|&size| size == 1), problem.labels().is_empty()) {
        let label = problem.labels()[class];
        return Err(Error::Data(format!("the label {label} is on one row: cross-validation needs two of each class")));
    }
    Ok(sampler::deal(problem.n_rows(), folds, seed, class, counts))
}

/// 1 − Σw(y − ŷ)²/Σw(y − ȳ)² of (weight, y, ŷ); nothing where y is constant.
fn r2(predicted: &[(f64, f64, f64)]) -> Option<f64> {
    let total: f64 = predicted.iter().map(|(weight, ..)| weight).sum();
    let mean = predicted.iter().map(|(weight, y, _)| weight * y).sum::<f64>() / total;
    let residual: f64 = predicted.iter().map(|(weight, y, guess)| weight * (y - guess) * (y - guess)).sum();
    let spread: f64 = predicted.iter().map(|(weight, y, _)| weight * (y - mean) * (y - mean)).sum();
    (spread > 0.0).then(|| 1.0 - residual / spread)
}

/// Turns the runs of a fold into what the watcher hears.
struct Teller<'a> {
    watch: Option<Watch<'a>>,
    unsaved: Option<Unsaved<'a>>,
    progress: FoldProgress,
}

impl Teller<'_> {
    fn tell(&self) -> Control {
        self.watch.map_or(Control::Continue, |watch| watch(&self.progress))
    }
}

impl Observer for Teller<'_> {
    fn step(&mut self, _: &Progress) -> Control {
        self.tell()
    }

    fn epoch(&mut self, _: &EpochRecord) -> Control {
        self.tell()
    }

    fn unsaved(&mut self, error: &Error) -> Control {
        self.unsaved.map_or(Control::Stop, |unsaved| unsaved(error))
    }

    fn end(&mut self, _: &Fit) {
        self.progress.done += 1;
        self.tell();
    }
}
