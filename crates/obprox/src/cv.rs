//! Cross-validation: which λ predicts best.
//!
//! The rows are dealt into k folds, the rows of each class by themselves. For each fold a path is gone on the other rows
//! (the held-out ones weigh 0, so all folds share the one matrix) and each λ is scored on the held-out rows by the mean
//! of the problem's own loss, weighted as in the objective. With m_i the mean over the folds at λ_i and s_i its standard
//! error (deviation of the k scores / √k), two λ are chosen: the best, argmin m_i, and by the rule of one standard error
//! the largest with m_i ≤ m_best + s_best.
//! Citation: Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2009, 7.10.

use rayon::prelude::*;

use crate::fit::{Fit, Run, Settings, Status};
use crate::loss::Task;
use crate::metrics;
use crate::observe::{Control, EpochRecord, Observer, Progress};
use crate::path::{Lambdas, walk};
use crate::problem::{Lambda, Point, Problem};
use crate::sampler;
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
    /// Accuracy or R² on the held-out rows; nothing where R² does not exist.
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
    /// The fold of each row.
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
        Run::new(&problem, settings.clone()).fit()
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

/// Hears of every step of every fold, from several threads at once, and may ask to stop.
pub type Watch<'a> = &'a (dyn Fn(&FoldProgress) -> Control + Sync);

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
    watch: Option<Watch<'a>>,
}

impl<'a> CrossValidation<'a> {
    /// Five folds, the default path, the default solver; λ of the problem is of no account.
    pub fn new(problem: &'a Problem) -> Self {
        Self { problem, settings: Settings::default(), lambdas: Lambdas::default(), folds: 5, seed: 0, watch: None }
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

    /// Sets who watches.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Goes the paths, folds in parallel; the bits do not depend on the number of threads.
    pub fn run(self) -> Result<Validated> {
        let lambdas = self.lambdas.values(self.problem)?;
        let fold = deal(self.problem, self.folds, self.seed)?;
        let paths: Vec<(Vec<Score>, bool)> =
            (0..self.folds).into_par_iter().map(|number| self.path(&lambdas, &fold, number)).collect::<Result<_>>()?;
        let reached = paths.iter().map(|(scores, _)| scores.len()).min().unwrap_or(0);
        let scores: Vec<Scores> = (0..reached)
            .map(|at| Scores::new(lambdas[at], paths.iter().map(|(scores, _)| scores[at]).collect()))
            .collect();
        let (best, one_se) = choose(&scores.iter().map(|score| (score.mean, score.error)).collect::<Vec<_>>());
        Ok(Validated { scores, best, one_se, fold, stopped: paths.iter().any(|(_, stopped)| *stopped) })
    }

    fn path(&self, lambdas: &[f64], fold: &[u32], number: usize) -> Result<(Vec<Score>, bool)> {
        let held: Vec<u32> = (0..fold.len() as u32).filter(|&row| fold[row as usize] as usize == number).collect();
        let rest = self.problem.holding_out(&held)?;
        let mut scores = Vec::with_capacity(lambdas.len());
        let progress = FoldProgress { fold: number, done: 0, lambdas: lambdas.len() };
        let mut teller = self.watch.map(|watch| Teller { watch, progress });
        let observer = teller.as_mut().map(|teller| teller as &mut dyn Observer);
        let stopped = walk(&rest, &self.settings, lambdas, observer, &mut |_, fit| {
            let (loss, score) = held_out_score(self.problem, &held, &fit.point);
            scores.push(Score { loss, score, nnz: fit.certificate.nnz, status: fit.status });
            Ok(())
        })?;
        Ok((scores, stopped))
    }
}

impl Scores {
    fn new(lambda: f64, folds: Vec<Score>) -> Self {
        let count = folds.len() as f64;
        let mean = folds.iter().map(|fold| fold.loss).sum::<f64>() / count;
        let squares: f64 = folds.iter().map(|fold| (fold.loss - mean) * (fold.loss - mean)).sum();
        let score = folds.iter().map(|fold| fold.score).sum::<Option<f64>>().map(|sum| sum / count);
        Self { lambda, mean, error: (squares / (count - 1.0) / count).sqrt(), score, folds }
    }
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

/// The fold of each row; refuses what cannot be dealt.
fn deal(problem: &Problem, folds: usize, seed: u64) -> Result<Vec<u32>> {
    let counts = |row: usize| problem.row_weight(row) > 0.0;
    let rows = (0..problem.n_rows()).filter(|&row| counts(row)).count();
    if folds < 2 || folds > rows {
        let message = format!("{folds} folds of {rows} rows: there must be at least 2, and a row in each");
        return Err(Error::parameter("folds", message));
    }
    let class = |row: usize| match problem.loss().task() {
        Task::Binary => usize::from(problem.targets()[row] > 0.0),
        Task::Classes => problem.targets()[row] as usize,
        Task::Regression | Task::Counts => 0,
    };
    // With one row of a class, the fold that holds it out has none to learn from.
    let mut sizes = vec![0; problem.labels().len().max(1)];
    (0..problem.n_rows()).filter(|&row| counts(row)).for_each(|row| sizes[class(row)] += 1);
    if let (Some(class), false) = (sizes.iter().position(|&size| size == 1), problem.labels().is_empty()) {
        let label = problem.labels()[class];
        return Err(Error::Data(format!("the label {label} is on one row: cross-validation needs two of each class")));
    }
    Ok(sampler::deal(problem.n_rows(), folds, seed, class, counts))
}

/// The weighted mean loss, and accuracy or R², of a point on some rows.
fn held_out_score(problem: &Problem, rows: &[u32], point: &Point) -> (f64, Option<f64>) {
    let (outputs, loss) = (problem.outputs(), problem.loss());
    let (mut sum, mut total, mut right) = (0.0, 0.0, 0usize);
    let (mut predicted, mut truth) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    let mut margins = vec![0.0; outputs];
    for &row in rows {
        let row = row as usize;
        let (weight, target) = (problem.row_weight(row), problem.targets()[row]);
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
        right += usize::from(match loss.task() {
            Task::Binary => (margins[0] > 0.0) == (target > 0.0),
            Task::Classes => crate::model::best(&margins) as f64 == target,
            Task::Regression | Task::Counts => false,
        });
        predicted.push(if loss.task() == Task::Counts { margins[0].exp() } else { margins[0] });
        truth.push(target);
    }
    let score = match loss.task() {
        Task::Binary | Task::Classes => Some(right as f64 / truth.len() as f64),
        Task::Regression | Task::Counts => match metrics::regression(&predicted, &truth, None) {
            metrics::Metrics::Regression { r2, .. } => r2,
            metrics::Metrics::Classification { .. } => None,
        },
    };
    (sum / total, score)
}

/// Turns the runs of a fold into what the watcher hears.
struct Teller<'a> {
    watch: Watch<'a>,
    progress: FoldProgress,
}

impl Observer for Teller<'_> {
    fn step(&mut self, _: &Progress) -> Control {
        (self.watch)(&self.progress)
    }

    fn epoch(&mut self, _: &EpochRecord) -> Control {
        (self.watch)(&self.progress)
    }

    fn end(&mut self, _: &Fit) {
        self.progress.done += 1;
        (self.watch)(&self.progress);
    }
}
