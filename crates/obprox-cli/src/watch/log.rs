//! `run.jsonl`: one JSON object a line, each written as soon as it is known. The lines are those of `obprox_report`,
//! which reads them; a report of a run under way is made from the very same text.

use std::path::{Path, PathBuf};

use obprox::metrics::{Deviance, Metrics};
use obprox::path::{Step, Steps};
use obprox::schedule::Schedule;
use obprox::{Control, EpochRecord, Fit, Method, Model, Observer, Problem, Settings, Start};
use obprox_report::log::Run;
use obprox_report::log::event::{self, Curve, Curves, End, Epoch, Event, Figures, Folds, Weight};

use super::lines::JsonLines;
use crate::failure::Failure;
use crate::flags::{ProblemFlags, no_words, np, schedule_words};
use crate::input::shown;
use crate::losses::Losses;

/// So many of the largest weights are worth a place in a log.
const WEIGHTS: usize = 50;
/// So many curves of a path.
const CURVES: usize = 200;

/// What the run does not know of itself.
#[derive(Clone, Debug)]
pub struct Origin {
    pub data: String,
    pub test: Option<String>,
    pub weights: Option<String>,
    pub feature_weights: Option<String>,
    pub penalty: Option<String>,
    pub threads: usize,
}

impl Origin {
    /// The files of a run as the user named them.
    pub fn new(data: &Path, test: Option<&Path>, problem: &ProblemFlags, threads: usize) -> Self {
        Self {
            data: shown(data),
            test: test.map(shown),
            weights: problem.weights.as_deref().map(shown),
            feature_weights: problem.feature_weights.as_deref().map(shown),
            penalty: problem.penalty.words(),
            threads,
        }
    }
}

/// The observer that writes a log, to a file or for a report alone; of one run, or of several one after the other.
pub struct Log {
    lines: JsonLines,
    origin: Origin,
    folds: Option<Folds>,
    /// What the loss of the run under way is measured by.
    deviance: Option<Deviance>,
}

impl Log {
    /// A log to be.
    pub fn new(path: Option<PathBuf>, origin: Origin) -> Self {
        Self { lines: JsonLines::new(path), origin, folds: None, deviance: None }
    }

    /// With the folds that chose λ, right after the start.
    pub fn with_folds(mut self, folds: Folds) -> Self {
        self.folds = Some(folds);
        self
    }

    /// Writes a run that has taken place, as if it had been watched.
    pub fn replay(&mut self, problem: &Problem, settings: &Settings, fit: &Fit) {
        let batch_rows = problem.n_rows();
        self.start(&Start { problem, settings, batch_rows, step_size: 1.0, resumed: &[] });
        fit.trace.iter().for_each(|record| self.lines.write(&Event::Epoch(Epoch::from(record))));
    }

    /// Writes the last line of a run.
    pub fn end(&mut self, fit: &Fit, test: Option<&Metrics>) {
        self.lines.write(&Event::End(Box::new(End {
            status: Some(fit.status.name().into()),
            epochs: Some(fit.epochs),
            iterations: Some(fit.iterations),
            figures: Figures::from(&fit.certificate),
            seconds: Some(fit.seconds),
            score: test.map(Metrics::score),
            deviance_explained: self.deviance.map(|deviance| deviance.explained(fit.certificate.loss)),
            test: test.map(|test| serde_json::to_value(test).expect("metrics are plain data")),
            largest_weights: largest_weights(&fit.model),
            ..End::default()
        })));
    }

    /// Writes a whole path.
    pub fn path(&mut self, problem: &Problem, settings: &Settings, steps: &Steps) {
        let batch_rows = problem.n_rows();
        let start = self.settings(&Start { problem, settings, batch_rows, step_size: 1.0, resumed: &[] });
        self.lines.write(&Event::Start(Box::new(event::Start { lambda: None, lambda_ratio: None, ..start })));
        let deviance = Deviance::of(problem);
        for step in &steps.steps {
            self.lines.write(&Event::Lambda(event::Step {
                deviance_explained: deviance.map(|deviance| deviance.explained(step.certificate.loss)),
                lambda: Some(step.lambda),
                lambda_ratio: Some(step.lambda / problem.lambda_max()),
                status: Some(step.status.name().into()),
                figures: Figures::from(&step.certificate),
                epochs: Some(step.epochs),
                seconds: Some(step.seconds),
                score: step.test.as_ref().map(Metrics::score),
                test_loss: step.test.as_ref().and_then(Metrics::loss),
            }));
        }
        self.lines.write(&Event::Curves(curves(&steps.steps)));
        let all_converged = steps.steps.iter().all(|step| step.status == obprox::Status::Converged);
        let status = match (steps.stopped, all_converged) {
            (true, _) => "stopped",
            (false, true) => "converged",
            (false, false) => "max_epochs",
        };
        let seconds = steps.steps.iter().map(|step| step.seconds).sum();
        self.lines.write(&Event::End(Box::new(End {
            status: Some(status.into()),
            seconds: Some(seconds),
            ..End::default()
        })));
    }

    /// The runs as a report reads them, and a line that says where the log is, where it is whole.
    pub fn finish(self, losses: &mut Losses) -> Result<(Vec<Run>, Option<String>), Failure> {
        self.lines.finish(losses)
    }

    /// The runs so far.
    pub fn so_far(&self) -> Result<Vec<Run>, Failure> {
        self.lines.so_far()
    }

    fn settings(&self, start: &Start) -> event::Start {
        let (problem, settings, origin) = (start.problem, start.settings, &self.origin);
        event::Start {
            version: env!("CARGO_PKG_VERSION").into(),
            command: command(),
            data: Some(origin.data.clone()),
            test: origin.test.clone(),
            weights: origin.weights.clone(),
            feature_weights: origin.feature_weights.clone(),
            threads: Some(origin.threads as u64),
            rows: Some(problem.n_rows() as u64),
            n_features: Some(problem.n_features() as u64),
            nnz: Some(problem.nnz() as u64),
            storage: Some(if problem.in_shards() { "shards" } else { problem.matrix().storage() }.into()),
            labels: problem.labels().to_vec(),
            loss: Some(problem.loss().name().into()),
            loss_parameter: problem.loss().parameter(),
            lambda: Some(problem.lambda()),
            lambda_max: Some(problem.lambda_max()),
            lambda_ratio: Some(problem.lambda() / problem.lambda_max()),
            l2: Some(problem.regularization().l2),
            penalty: origin.penalty.clone(),
            intercept: Some(problem.has_intercept()),
            standardize: Some(problem.scaling().is_some()),
            solver: Some(settings.method.name().into()),
            epochs: Some(settings.epochs),
            batch: Some(start.batch_rows as u64),
            step: Some(start.step_size),
            schedule: Some(schedule_words(settings.schedule).into()),
            decay: if let Schedule::Decay(factor) = settings.schedule { Some(factor) } else { None },
            switch: settings.method.switch().map(|switch| switch.to_string()),
            np: settings.method.switch().and_then(np),
            no: settings.method.switch().and_then(no_words),
            gamma: if let Method::Rda { gamma } = settings.method { Some(gamma) } else { None },
            average: if let Method::ProxSvrg { average } = settings.method { Some(average) } else { None },
            tol: Some(settings.tolerance),
            seed: Some(settings.seed),
            eval_every: Some(settings.eval_every),
            resumed_epochs: Some(start.resumed.len() as u64),
            ..event::Start::default()
        }
    }
}

impl Observer for Log {
    fn start(&mut self, start: &Start) {
        self.deviance = Deviance::of(start.problem);
        let settings = self.settings(start);
        self.lines.write(&Event::Start(Box::new(settings)));
        if let Some(folds) = self.folds.take() {
            self.lines.write(&Event::Folds(folds));
        }
        start.resumed.iter().for_each(|record| self.lines.write(&Event::Epoch(Epoch::from(record))));
    }

    fn epoch(&mut self, record: &EpochRecord) -> Control {
        self.lines.write(&Event::Epoch(Epoch::from(record)));
        Control::Continue
    }
}

/// What was typed; where the program lies is of no account.
pub fn command() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("obprox".to_owned()).chain(words).collect()
}

/// The class of a block, where there are several.
fn label(model: &Model, output: usize) -> Option<f64> {
    if model.blocks.len() > 1 { model.labels.get(output).copied() } else { None }
}

fn largest_weights(model: &Model) -> Vec<Weight> {
    let mut weights: Vec<Weight> = Vec::with_capacity(model.nnz());
    for (output, block) in model.blocks.iter().enumerate() {
        weights.extend(block.indices.iter().zip(&block.values).map(|(&feature, &value)| Weight {
            feature: feature.into(),
            name: None,
            label: label(model, output),
            value: Some(value),
        }));
    }
    let size = |weight: &Weight| weight.value.unwrap_or(0.0).abs();
    weights.sort_by(|a, b| size(b).total_cmp(&size(a)));
    weights.truncate(WEIGHTS);
    weights.iter_mut().for_each(|weight| weight.name = model.name(weight.feature as u32).map(str::to_owned));
    weights
}

/// The curves with the largest weights, largest first.
fn curves(steps: &[Step]) -> Curves {
    let mut all: std::collections::BTreeMap<(usize, u32), Vec<f64>> = Default::default();
    for (at, step) in steps.iter().enumerate() {
        for (output, block) in step.model.blocks.iter().enumerate() {
            for (&feature, &value) in block.indices.iter().zip(&block.values) {
                all.entry((output, feature)).or_insert_with(|| vec![0.0; steps.len()])[at] = value;
            }
        }
    }
    let of = all.len() as u64;
    let size = |values: &[f64]| values.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let mut all: Vec<((usize, u32), Vec<f64>)> = all.into_iter().collect();
    all.sort_by(|a, b| size(&b.1).total_cmp(&size(&a.1)));
    all.truncate(CURVES);
    let curve = |((output, feature), values): ((usize, u32), Vec<f64>)| Curve {
        feature: feature.into(),
        name: steps.iter().rev().find_map(|step| step.model.name(feature)).map(str::to_owned),
        label: steps.first().and_then(|step| label(&step.model, output)),
        values: values.into_iter().map(Some).collect(),
    };
    Curves {
        lambdas: steps.iter().map(|step| Some(step.lambda)).collect(),
        curves: all.into_iter().map(curve).collect(),
        of,
    }
}
