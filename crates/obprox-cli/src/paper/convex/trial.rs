//! The paper's five methods and the certified optimum on one data set, kept run by run: what a file of results has is
//! not run again.

use std::path::Path;

use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::{Certificate, Error, Fit, Method, MethodKind, Problem, Settings, Status};
use serde::{Deserialize, Serialize};

use super::sets::{Found, Share};
use super::store::Store;
use crate::failure::Failure;
use crate::paper::attempt::attempt;
use crate::paper::experiments::Recipe;

/// Everything that was found out about a data set: a file of its own.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    pub name: String,
    /// The size of the data's file: what tells that it is still the same.
    pub bytes: u64,
    /// The rows of the file.
    pub whole: usize,
    /// The share of them that was used, where not all were.
    pub share: Option<String>,
    pub rows: usize,
    pub columns: usize,
    pub nonzeros: usize,
    pub lambda: f64,
    pub lambda_max: f64,
    pub epochs: u64,
    pub step: f64,
    pub decay: f64,
    /// Rows in a batch, where they are not the paper's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// `auto`.
    pub optimum: Option<Outcome>,
    /// RDA at each γ that was tried.
    pub tuning: Vec<Outcome>,
    /// The five methods, seed by seed.
    pub runs: Vec<Outcome>,
}

/// A run's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub method: MethodKind,
    pub seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    pub status: Status,
    #[serde(rename = "F")]
    pub objective: f64,
    #[serde(rename = "f")]
    pub loss: f64,
    /// The paper's: the intercept is counted.
    pub density: f64,
    pub nonzeros: usize,
    pub relative_gap: Option<f64>,
    pub seconds: f64,
    /// The training time of each epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epoch_seconds: Vec<f64>,
    /// What each epoch came to, of the first seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<Epoch>,
}

/// The end of an epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Epoch {
    pub epoch: u64,
    #[serde(rename = "F")]
    pub objective: f64,
    pub density: f64,
}

impl Record {
    /// A record with nothing in it yet.
    pub fn fresh(found: &Found, problem: &Problem, whole: usize, share: Option<&Share>, recipe: &Recipe) -> Self {
        Self {
            name: found.name.clone(),
            bytes: found.bytes(),
            whole,
            share: share.map(|share| share.words.clone()),
            rows: problem.n_rows(),
            columns: problem.n_features(),
            nonzeros: problem.matrix().nnz(),
            lambda: problem.lambda(),
            lambda_max: problem.lambda_max(),
            epochs: recipe.epochs,
            step: recipe.step,
            decay: recipe.decay,
            batch: recipe.batch,
            optimum: None,
            tuning: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Reads a file of results.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read(path).map_err(Error::reading(path))?;
        let bad = |error| Failure::input(format!("{}: is no file of results ({error}): delete it", path.display()));
        serde_json::from_slice(&text).map_err(bad)
    }

    /// Whether the results are of this file, this share of it and these settings.
    pub fn is_of(&self, found: &Found, share: Option<&Share>, recipe: &Recipe) -> bool {
        let same_data = self.bytes == found.bytes() && self.share.as_deref() == share.map(|share| &share.words[..]);
        let settings = (recipe.epochs, recipe.step, recipe.decay, recipe.batch);
        same_data && (self.epochs, self.step, self.decay, self.batch) == settings
    }

    /// γ that brought RDA to the least F, of those that did not diverge.
    pub fn best_gamma(&self) -> Option<f64> {
        let good = self.tuning.iter().filter(|run| run.status != Status::Diverged);
        good.min_by(|left, right| left.objective.total_cmp(&right.objective)).and_then(|run| run.gamma)
    }

    /// The runs of a method.
    pub fn of(&self, method: MethodKind) -> impl Iterator<Item = &Outcome> {
        self.runs.iter().filter(move |run| run.method == method)
    }

    /// The mean of a figure over a method's runs; not a number where there are none.
    pub fn mean(&self, method: MethodKind, figure: impl Fn(&Outcome) -> f64) -> f64 {
        self.of(method).map(figure).sum::<f64>() / self.of(method).count() as f64
    }

    /// The training time of a method on a machine that does nothing else, as far as it can be told: an epoch does the
    /// same work whatever the seed, so each counts as long as it took where it was disturbed least.
    pub fn seconds(&self, method: MethodKind) -> f64 {
        let runs = || self.of(method).filter(|run| run.status != Status::Diverged);
        let epochs = runs().map(|run| run.epoch_seconds.len()).min().unwrap_or(0);
        let least = |epoch: usize| runs().map(|run| run.epoch_seconds[epoch]).fold(f64::INFINITY, f64::min);
        match epochs {
            0 => f64::NAN,
            _ => (0..epochs).map(least).sum(),
        }
    }

    /// That of the slowest of the five.
    pub fn slowest(&self) -> f64 {
        MethodKind::PAPER.map(|method| self.seconds(method)).into_iter().fold(0.0, f64::max)
    }

    /// (F − F*)/F* on average.
    pub fn distance(&self, method: MethodKind) -> Option<f64> {
        let best = self.optimum.as_ref()?.objective;
        Some((self.mean(method, |run| run.objective) - best) / best)
    }

    /// Whether nothing is left to run.
    pub fn is_done(&self, recipe: &Recipe) -> bool {
        let tuned = recipe.gammas.iter().all(|gamma| self.tuning.iter().any(|run| run.gamma == Some(*gamma)));
        self.optimum.is_some()
            && tuned
            && MethodKind::PAPER.iter().all(|&method| self.of(method).count() as u64 >= recipe.seeds)
    }
}

/// Runs what a record lacks and keeps it after every run; false where Ctrl-C came first.
pub fn complete(
    record: &mut Record,
    store: &Store,
    problem: &Problem,
    recipe: &Recipe,
    quiet: bool,
) -> Result<bool, Failure> {
    let name = |what: &str| format!("{} {what:<14}", record_name(&record.name));
    if record.optimum.is_none() {
        let settings = Settings { tolerance: recipe.tolerance, ..Settings::default() };
        let Some(fit) = attempt(problem, settings, name("auto"), quiet)? else { return Ok(false) };
        record.optimum = Some(Outcome::new(MethodKind::Auto, 0, None, &fit));
        store.keep_record(record)?;
    }
    for &gamma in &recipe.gammas {
        if record.tuning.iter().any(|run| run.gamma == Some(gamma)) {
            continue;
        }
        let settings = Settings { eval_every: recipe.epochs, ..settings(Method::Rda { gamma }, recipe) };
        let what = format!("rda γ = {gamma}");
        let Some(fit) = attempt(problem, settings, name(&what), quiet)? else { return Ok(false) };
        record.tuning.push(Outcome {
            trace: Vec::new(),
            epoch_seconds: Vec::new(),
            ..Outcome::new(MethodKind::Rda, 0, Some(gamma), &fit)
        });
        store.keep_record(record)?;
    }
    let gamma = record.best_gamma().unwrap_or(recipe.gammas[0]);
    // Runs of an earlier, coarser tuning are no longer the paper's RDA.
    record.runs.retain(|run| run.gamma.is_none_or(|used| used == gamma));
    for seed in 0..recipe.seeds {
        // All methods of a seed one after the other, so that a machine that slows down slows all of them.
        for method in MethodKind::PAPER {
            if record.of(method).any(|run| run.seed == seed) {
                continue;
            }
            let eval_every = if seed == 0 { 1 } else { recipe.epochs };
            let what = format!("{} {}/{}", method.name(), seed + 1, recipe.seeds);
            let tuned = if method == MethodKind::Rda { Method::Rda { gamma } } else { method.into() };
            let settings = Settings { seed, eval_every, ..settings(tuned, recipe) };
            let Some(fit) = attempt(problem, settings, name(&what), quiet)? else { return Ok(false) };
            let used = (method == MethodKind::Rda).then_some(gamma);
            record.runs.push(Outcome::new(method, seed, used, &fit));
            store.keep_record(record)?;
        }
    }
    Ok(true)
}

/// Names in the progress bar stay in their column.
fn record_name(name: &str) -> String {
    format!("{:<12}", name.chars().take(12).collect::<String>())
}

/// As written in the paper; a method is not stopped for having converged.
fn settings(method: Method, recipe: &Recipe) -> Settings {
    Settings {
        epochs: recipe.epochs,
        batch: recipe.batch.map_or(Batch::Paper, Batch::Rows),
        step: StepSize::Value(recipe.step),
        schedule: Schedule::Decay(recipe.decay),
        tolerance: 0.0,
        ..Settings::with_method(method)
    }
}

impl Outcome {
    fn new(method: MethodKind, seed: u64, gamma: Option<f64>, fit: &Fit) -> Self {
        let Certificate { objective, loss, density, nnz, .. } = fit.certificate;
        let epochs = fit.trace.iter().filter_map(|record| record.certificate.as_ref().map(|figures| (record, figures)));
        let trace = epochs
            .map(|(record, figures)| Epoch {
                epoch: record.epoch,
                objective: figures.objective,
                density: figures.density,
            })
            .collect();
        let times = [0.0].into_iter().chain(fit.trace.iter().map(|record| record.seconds));
        let epoch_seconds = times.zip(&fit.trace).map(|(before, record)| record.seconds - before).collect();
        Self {
            method,
            seed,
            gamma,
            status: fit.status,
            objective,
            loss,
            density,
            nonzeros: nnz,
            relative_gap: fit.certificate.relative_gap(),
            seconds: fit.seconds,
            epoch_seconds,
            trace: if seed == 0 { trace } else { Vec::new() },
        }
    }
}
