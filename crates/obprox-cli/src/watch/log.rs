//! `run.jsonl`: one JSON object a line, each written as soon as it is known.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use obprox::metrics::Metrics;
use obprox::schedule::Schedule;
use obprox::{Certificate, Control, EpochRecord, Error, Fit, Observer, Problem, Settings, Start};
use serde::Serialize;

use crate::failure::Failure;
use crate::flags::{no_words, np, schedule_words, switch_words};

/// What the run does not know of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    pub data: String,
    pub test: Option<String>,
    pub weights: Option<String>,
    pub feature_weights: Option<String>,
    pub threads: usize,
}

/// The first line: every setting, the data's shape, λ.
#[derive(Serialize)]
struct StartEvent<'a> {
    event: &'static str,
    version: &'static str,
    #[serde(flatten)]
    origin: &'a Origin,
    rows: usize,
    n_features: usize,
    nnz: usize,
    storage: &'static str,
    labels: &'a [f64],
    loss: &'a str,
    loss_parameter: Option<f64>,
    lambda: f64,
    lambda_max: f64,
    lambda_ratio: f64,
    l2: f64,
    intercept: bool,
    standardize: bool,
    solver: &'static str,
    epochs: u64,
    batch: usize,
    step: f64,
    schedule: &'static str,
    decay: Option<f64>,
    switch: Option<String>,
    np: Option<u64>,
    no: Option<String>,
    gamma: f64,
    average: bool,
    tol: f64,
    seed: u64,
    eval_every: u64,
    resumed_epochs: usize,
}

/// A line an epoch. Figures that were not computed are null.
#[derive(Serialize)]
struct EpochEvent {
    event: &'static str,
    epoch: u64,
    iterations: u64,
    phase: obprox::switch::Phase,
    step_size: f64,
    #[serde(flatten)]
    round: Option<obprox::Round>,
    #[serde(flatten)]
    figures: Figures,
    score: Option<f64>,
    seconds: f64,
}

/// The last line.
#[derive(Serialize)]
struct EndEvent<'a> {
    event: &'static str,
    status: &'static str,
    epochs: u64,
    iterations: u64,
    #[serde(flatten)]
    figures: Figures,
    seconds: f64,
    score: Option<f64>,
    test: Option<&'a Metrics>,
}

#[derive(Default, Serialize)]
struct Figures {
    #[serde(rename = "F")]
    objective: Option<f64>,
    f: Option<f64>,
    l1: Option<f64>,
    nnz: Option<usize>,
    density: Option<f64>,
    gap: Option<f64>,
    relative_gap: Option<f64>,
    kkt: Option<f64>,
    gradient_mapping: Option<f64>,
}

impl From<&Certificate> for Figures {
    fn from(certificate: &Certificate) -> Self {
        Self {
            objective: Some(certificate.objective),
            f: Some(certificate.loss),
            l1: Some(certificate.l1),
            nnz: Some(certificate.nnz),
            density: Some(certificate.density),
            gap: certificate.gap,
            relative_gap: certificate.relative_gap(),
            kkt: Some(certificate.kkt),
            gradient_mapping: Some(certificate.gradient_mapping),
        }
    }
}

/// The observer that writes them. The file is made when the run starts, so a run that is refused leaves none.
pub struct Log {
    path: PathBuf,
    origin: Origin,
    file: Option<File>,
    failure: Option<io::Error>,
}

impl Log {
    /// A log to be.
    pub fn new(path: PathBuf, origin: Origin) -> Self {
        Self { path, origin, file: None, failure: None }
    }

    /// Writes a run that has taken place, as if it had been watched.
    pub fn replay(&mut self, problem: &Problem, settings: &Settings, fit: &Fit) {
        let batch_rows = problem.n_rows();
        self.start(&Start { problem, settings, batch_rows, step_size: 1.0, resumed: &[] });
        fit.trace.iter().for_each(|record| self.write_epoch(record));
    }

    /// Writes the last line; what went wrong on the way is told here.
    pub fn finish(mut self, fit: &Fit, test: Option<&Metrics>) -> Result<(), Failure> {
        self.write(&EndEvent {
            event: "end",
            status: fit.status.name(),
            epochs: fit.epochs,
            iterations: fit.iterations,
            figures: Figures::from(&fit.certificate),
            seconds: fit.seconds,
            score: test.map(Metrics::score),
            test,
        });
        match self.failure {
            Some(error) => Err(Error::writing(&self.path)(error).into()),
            None => Ok(()),
        }
    }

    /// A full disk must not end the training; it is told at the end. serde_json writes what is not finite as null.
    fn write(&mut self, event: &impl Serialize) {
        let Some(file) = &mut self.file else { return };
        let mut line = serde_json::to_vec(event).expect("events are plain data");
        line.push(b'\n');
        if let Err(error) = file.write_all(&line) {
            self.failure.get_or_insert(error);
            self.file = None;
        }
    }

    fn write_epoch(&mut self, record: &EpochRecord) {
        self.write(&EpochEvent {
            event: "epoch",
            epoch: record.epoch,
            iterations: record.iterations,
            phase: record.phase,
            step_size: record.step_size,
            round: record.round,
            figures: record.certificate.as_ref().map(Figures::from).unwrap_or_default(),
            score: record.score,
            seconds: record.seconds,
        });
    }
}

impl Observer for Log {
    fn start(&mut self, start: &Start) {
        match File::create(&self.path) {
            Ok(file) => self.file = Some(file),
            Err(error) => self.failure = Some(error),
        }
        let (problem, settings, origin) = (start.problem, start.settings, self.origin.clone());
        self.write(&StartEvent {
            event: "start",
            version: env!("CARGO_PKG_VERSION"),
            origin: &origin,
            rows: problem.n_rows(),
            n_features: problem.n_features(),
            nnz: problem.matrix().nnz(),
            storage: problem.matrix().storage(),
            labels: problem.labels(),
            loss: problem.loss().name(),
            loss_parameter: problem.loss().parameter(),
            lambda: problem.lambda(),
            lambda_max: problem.lambda_max(),
            lambda_ratio: problem.lambda() / problem.lambda_max(),
            l2: problem.regularization().l2,
            intercept: problem.has_intercept(),
            standardize: problem.scaling().is_some(),
            solver: settings.method.name(),
            epochs: settings.epochs,
            batch: start.batch_rows,
            step: start.step_size,
            schedule: schedule_words(settings.schedule),
            decay: if let Schedule::Decay(factor) = settings.schedule { Some(factor) } else { None },
            switch: settings.switch.map(switch_words),
            np: settings.switch.and_then(np),
            no: settings.switch.and_then(no_words),
            gamma: settings.gamma,
            average: settings.average,
            tol: settings.tolerance,
            seed: settings.seed,
            eval_every: settings.eval_every,
            resumed_epochs: start.resumed.len(),
        });
        start.resumed.iter().for_each(|record| self.write_epoch(record));
    }

    fn epoch(&mut self, record: &EpochRecord) -> Control {
        self.write_epoch(record);
        Control::Continue
    }
}
