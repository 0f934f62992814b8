//! `run.jsonl` of a network: the events of `fit`, with accuracy.

use std::path::PathBuf;

use obprox::Control;
use obprox_infer::Architecture;
use obprox_nn::optim::Penalized;
use obprox_nn::train::{EpochRecord, LayerPenalty, Observer, Rule, Start, Trained};
use serde::Serialize;

use super::flags::switch_words;
use crate::failure::Failure;
use crate::watch::JsonLines;

/// What the run does not know of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    pub data: String,
    pub test: Option<String>,
    pub start: Option<String>,
    pub threads: usize,
}

/// The first line: every setting, the network, the images.
#[derive(Serialize)]
struct StartEvent<'a> {
    event: &'static str,
    version: &'static str,
    #[serde(flatten)]
    origin: &'a Origin,
    network: Architecture,
    width: f64,
    parameters: usize,
    images: usize,
    test_images: usize,
    lambda: f64,
    penalize: Penalized,
    layer_lambda: &'a [LayerPenalty],
    solver: &'static str,
    epochs: u64,
    batch: usize,
    step: f64,
    decay: f64,
    decay_every: u64,
    switch: Option<String>,
    np: Option<u64>,
    no: Option<String>,
    target_density: Option<f64>,
    gamma: f64,
    average: bool,
    momentum: f64,
    weight_decay: f64,
    flip: bool,
    pad: usize,
    seed: u64,
    eval_every: u64,
    resumed_epochs: usize,
}

/// A line an epoch, and the last one. Figures that were not computed are null.
#[derive(Serialize)]
struct FiguresEvent<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epochs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    iterations: u64,
    phase: &'a str,
    step_size: f64,
    #[serde(rename = "F")]
    objective: Option<f64>,
    f: Option<f64>,
    l1: f64,
    nnz: usize,
    density: f64,
    gap: Option<f64>,
    kkt: Option<f64>,
    accuracy: Option<f64>,
    train_accuracy: Option<f64>,
    batch_loss: f64,
    seconds: f64,
}

impl<'a> FiguresEvent<'a> {
    fn new(event: &'static str, record: &'a EpochRecord) -> Self {
        Self {
            event,
            status: None,
            epochs: None,
            epoch: None,
            iterations: record.iterations,
            phase: record.phase.name(),
            step_size: record.step_size,
            objective: record.objective,
            f: record.loss,
            l1: record.l1,
            nnz: record.nonzero,
            density: record.density,
            // Networks have no dual, and their distance to optimality is not computed.
            gap: None,
            kkt: None,
            accuracy: record.accuracy,
            train_accuracy: record.train_accuracy,
            batch_loss: record.batch_loss,
            seconds: record.seconds,
        }
    }
}

/// The observer that writes them.
pub struct Log {
    lines: JsonLines,
    origin: Origin,
}

impl Log {
    /// A log to be.
    pub fn new(path: PathBuf, origin: Origin) -> Self {
        Self { lines: JsonLines::new(path), origin }
    }

    /// Tells what went wrong on the way.
    pub fn finish(self) -> Result<(), Failure> {
        self.lines.finish()
    }

    fn write_epoch(&mut self, record: &EpochRecord) {
        self.lines.write(&FiguresEvent { epoch: Some(record.epoch), ..FiguresEvent::new("epoch", record) });
    }
}

impl Observer for Log {
    fn start(&mut self, start: &Start) {
        self.lines.create();
        let settings = start.settings;
        let switch = settings.switches().then_some(settings.switch);
        let counts = switch.and_then(|switch| match switch {
            Rule::Epochs { prox, orthant } | Rule::Iterations { prox, orthant } => Some((prox, orthant)),
            _ => None,
        });
        let architecture = start.net.architecture();
        self.lines.write(&StartEvent {
            event: "start",
            version: env!("CARGO_PKG_VERSION"),
            origin: &self.origin,
            network: architecture,
            width: architecture.width(),
            parameters: start.parameters,
            images: start.images,
            test_images: start.test_images,
            lambda: settings.penalty.lambda,
            penalize: settings.penalty.penalized,
            layer_lambda: &settings.penalty.layers,
            solver: settings.method.name(),
            epochs: settings.epochs,
            batch: settings.batch,
            step: settings.step,
            decay: settings.decay.factor,
            decay_every: settings.decay.every,
            switch: switch.map(switch_words),
            np: counts.map(|(prox, _)| prox),
            no: counts.map(|(_, orthant)| orthant.map_or("inf".into(), |count| count.to_string())),
            target_density: settings.target_density,
            gamma: settings.gamma,
            average: settings.average,
            momentum: settings.momentum,
            weight_decay: settings.weight_decay,
            flip: settings.augment.flip,
            pad: settings.augment.pad,
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

    fn end(&mut self, trained: &Trained) {
        self.lines.write(&FiguresEvent {
            status: Some(trained.status.name()),
            epochs: Some(trained.trace.len() as u64),
            ..FiguresEvent::new("end", &trained.last)
        });
    }
}
