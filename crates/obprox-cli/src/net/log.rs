//! `run.jsonl` of a network: the lines of `obprox_report`, as those of every other run.

use std::path::PathBuf;

use obprox::Control;
use obprox::switch::Phase;
use obprox_nn::train::{EpochRecord, Observer, Schedule, Start, Trained};
use obprox_report::log::Run;
use obprox_report::log::event::{self, End, Epoch, Event, Figures, Layer, Network, NetworkEnd};

use crate::failure::Failure;
use crate::flags::{no_words, np};
use crate::losses::Losses;
use crate::watch::{JsonLines, command};

/// What the run does not know of itself.
#[derive(Clone, Debug)]
pub struct Origin {
    pub data: String,
    pub test: Option<String>,
    pub start: Option<String>,
    pub threads: usize,
    pub classes: Vec<String>,
}

/// The observer that writes a log, to a file or for a report alone.
pub struct Log {
    lines: JsonLines,
    origin: Origin,
    target: Option<f64>,
}

impl Log {
    /// A log to be.
    pub fn new(path: Option<PathBuf>, origin: Origin) -> Self {
        Self { lines: JsonLines::new(path), origin, target: None }
    }

    /// The runs as a report reads them, and a line that says where the log is, where it is whole.
    pub fn finish(self, losses: &mut Losses) -> Result<(Vec<Run>, Option<String>), Failure> {
        self.lines.finish(losses)
    }

    fn settings(&self, start: &Start) -> event::Start {
        let (settings, origin) = (start.settings, &self.origin);
        let switch = settings.switches().then_some(settings.switch);
        let (schedule, decay, decay_every, warmup) = match settings.schedule {
            Schedule::Steps { factor, every } => ("decay", Some(factor), Some(every), None),
            Schedule::Cosine { warmup } => ("cosine", None, None, Some(warmup)),
        };
        let architecture = start.net.architecture();
        let layers = &settings.penalty.layers;
        event::Start {
            version: env!("CARGO_PKG_VERSION").into(),
            command: command(),
            data: Some(origin.data.clone()),
            test: origin.test.clone(),
            threads: Some(origin.threads as u64),
            loss: Some("cross-entropy".into()),
            lambda: Some(settings.penalty.lambda),
            l2: Some(settings.weight_decay),
            solver: Some(settings.method.name().into()),
            epochs: Some(settings.epochs),
            batch: Some(settings.batch as u64),
            step: Some(settings.step),
            schedule: Some(schedule.into()),
            decay,
            switch: switch.map(|switch| switch.to_string()),
            np: switch.and_then(np),
            no: switch.and_then(no_words),
            gamma: Some(settings.gamma),
            average: Some(settings.average),
            seed: Some(settings.seed),
            eval_every: settings.eval_every,
            resumed_epochs: Some(start.resumed.len() as u64),
            network: Network {
                network: Some(architecture.kind().name().into()),
                width: Some(architecture.width()),
                parameters: Some(start.parameters as u64),
                images: Some(start.images as u64),
                test_images: Some(start.test_images as u64),
                classes: origin.classes.clone(),
                start: origin.start.clone(),
                penalize: serde_json::to_value(settings.penalty.penalized)
                    .ok()
                    .and_then(|word| word.as_str().map(str::to_owned)),
                layer_lambda: (!layers.is_empty()).then(|| serde_json::to_value(layers).unwrap_or_default()),
                decay_every,
                warmup,
                target_density: settings.target.map(|plan| plan.target),
                momentum: Some(settings.momentum),
                flip: Some(settings.augment.flip),
                pad: Some(settings.augment.pad as u64),
            },
            ..event::Start::default()
        }
    }

    fn write_epoch(&mut self, record: &EpochRecord) {
        self.lines.write(&Event::Epoch(Epoch {
            epoch: record.epoch,
            iterations: Some(record.iterations),
            phase: Some(record.phase),
            step_size: Some(record.step_size),
            figures: figures(record),
            lambda: record.lambda,
            batch_loss: Some(record.batch_loss),
            score: record.accuracy,
            train_accuracy: record.train_accuracy,
            seconds: Some(record.seconds),
            ..Epoch::default()
        }));
    }
}

/// Networks have no dual, and their distance to optimality is not computed.
fn figures(record: &EpochRecord) -> Figures {
    Figures {
        objective: record.objective,
        f: record.loss,
        l1: Some(record.l1),
        nnz: Some(record.nonzero as u64),
        density: Some(record.density),
        ..Figures::default()
    }
}

impl Observer for Log {
    fn start(&mut self, start: &Start) {
        self.target = start.settings.target.map(|plan| plan.target);
        let settings = self.settings(start);
        self.lines.write(&Event::Start(Box::new(settings)));
        start.resumed.iter().for_each(|record| self.write_epoch(record));
    }

    fn epoch(&mut self, record: &EpochRecord) -> Control {
        self.write_epoch(record);
        Control::Continue
    }

    fn end(&mut self, trained: &Trained) {
        let last = &trained.last;
        let layer = |layer: &obprox_nn::train::LayerDensity| Layer {
            name: layer.name.clone(),
            size: layer.size as u64,
            nnz: layer.nonzero as u64,
            lambda: Some(layer.lambda),
        };
        let phases = [Phase::Prox, Phase::Orthant, Phase::Hold];
        self.lines.write(&Event::End(Box::new(End {
            status: Some(trained.status.name().into()),
            epochs: Some(trained.trace.len() as u64),
            iterations: Some(last.iterations),
            figures: figures(last),
            seconds: Some(last.seconds),
            score: last.accuracy,
            network: NetworkEnd {
                phase: Some(last.phase),
                train_accuracy: last.train_accuracy,
                layers: trained.sparsity.layers.iter().map(layer).collect(),
                confusion: trained.confusion.clone().unwrap_or_default(),
                phase_seconds: phases.into_iter().zip(trained.seconds).filter(|(_, time)| *time > 0.0).collect(),
                missed: self.target.and_then(|target| super::show::missed(trained, target)),
            },
            ..End::default()
        })));
    }
}
