//! The only loop: epochs, steps, evaluation, observers, checkpoints, stopping.

use std::path::PathBuf;
use std::time::Instant;

use burn::optim::{GradientsAccumulator, GradientsParams, ModuleOptimizer};
use burn::tensor::Device;
use obprox::{Control, Method, Result};
use obprox_infer::Weights;
use obprox_infer::images::{Images, Preprocessing};

use super::checkpoint::{self, Saved, State};
use super::evaluate::{cross_entropy, evaluate};
use super::optimizer::optimizer;
use super::{EpochRecord, Observer, Progress, Settings, Sparsity, Start};
use crate::data::{Augment, Batch, Data, Feed};
use crate::net::{NamedParam, Net};
use crate::optim::{Anchor, IterateMean, Phase, PhaseCell};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// After all its epochs.
    MaxEpochs,
    /// An observer said stop.
    Stopped,
    /// A loss or a weight was no longer finite; the weights are the last good ones.
    Diverged,
}

impl Status {
    /// The word for it in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxEpochs => "max_epochs",
            Self::Stopped => "stopped",
            Self::Diverged => "diverged",
        }
    }
}

/// A run that took place.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Weights and running statistics.
    pub weights: Weights,
    /// How sparse they are.
    pub sparsity: Sparsity,
    /// How it ended.
    pub status: Status,
    /// Epoch by epoch.
    pub trace: Vec<EpochRecord>,
    /// The figures of the weights: the last record where the run ended with an epoch. F and accuracy are missing where
    /// it was stopped before they were computed.
    pub last: EpochRecord,
}

/// A network, images and settings: what is needed to train.
pub struct Run<'a> {
    net: Net,
    data: &'a Data,
    preprocessing: &'a Preprocessing,
    settings: Settings,
    device: Device,
    observers: Vec<&'a mut dyn Observer>,
    checkpoint: Option<PathBuf>,
    resume: bool,
}

/// Images in a batch of an evaluation: they need no gradients, so that more of them fit.
const EVALUATED: usize = 256;

impl<'a> Run<'a> {
    /// A run with no one watching; the network is on `device` with autodiff.
    pub fn new(
        net: Net,
        data: &'a Data,
        preprocessing: &'a Preprocessing,
        settings: Settings,
        device: &Device,
    ) -> Self {
        let device = device.clone();
        Self { net, data, preprocessing, settings, device, observers: Vec::new(), checkpoint: None, resume: false }
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

    /// Trains.
    pub fn train(mut self) -> Result<Trained> {
        self.settings.check(self.data.test.is_some())?;
        self.settings.penalty.check(&self.net.params())?;
        let (state, optimizer, phase) = self.open()?;
        let start = Start {
            net: &self.net,
            settings: &self.settings,
            parameters: self.settings.penalty.measure(&self.net.params(), &self.net.weights()?).all.size,
            images: self.data.train.len(),
            test_images: self.data.test.as_ref().map_or(0, |test| test.len()),
            resumed: &state.trace,
        };
        self.observers.iter_mut().for_each(|observer| observer.start(&start));
        let feed = |images, batch, augment| Feed::new(images, self.preprocessing, batch, augment, self.settings.seed);
        let training = Training {
            params: self.net.params(),
            steps: feed(self.data.train.clone(), self.settings.batch, self.settings.augment),
            train: feed(self.data.train.clone(), EVALUATED, Augment::NONE),
            test: self.data.test.clone().map(|test| feed(test, EVALUATED, Augment::NONE)),
            good: self.net.weights()?,
            net: self.net,
            optimizer,
            phase,
            state,
            settings: self.settings,
            device: self.device,
            observers: self.observers,
            checkpoint: self.checkpoint,
        };
        training.run()
    }

    /// The state to start from: a fresh one, or that of the checkpoint.
    fn open(&mut self) -> Result<(State, ModuleOptimizer, PhaseCell)> {
        let fingerprint = fingerprint(&self.net, &self.data.train, self.preprocessing)?;
        let phase = PhaseCell::default();
        let saved = match (&self.checkpoint, self.resume) {
            (Some(directory), true) => Saved::read(directory)?,
            _ => None,
        };
        let Some(mut saved) = saved else {
            let state = State {
                fingerprint,
                settings: self.settings.clone(),
                epoch: 0,
                step: 0,
                iterations: 0,
                loss_sum: 0.0,
                phase: Phase::default(),
                held: false,
                seconds: 0.0,
                trace: Vec::new(),
            };
            let optimizer = optimizer(&self.settings, &self.net.params(), &phase);
            return Ok((state, optimizer, phase));
        };
        saved.check(&fingerprint, &self.settings)?;
        self.net = saved.net(self.net.clone())?;
        // Burn's record keeps the identities of the parameters, which the groups go by.
        let optimizer = saved.optimizer(optimizer(&self.settings, &self.net.params(), &phase))?;
        let state = State { settings: self.settings.clone(), ..saved.state };
        Ok((state, optimizer, phase))
    }
}

/// A run under way.
struct Training<'a> {
    net: Net,
    params: Vec<NamedParam>,
    optimizer: ModuleOptimizer,
    phase: PhaseCell,
    settings: Settings,
    device: Device,
    steps: Feed,
    train: Feed,
    test: Option<Feed>,
    state: State,
    good: Weights,
    observers: Vec<&'a mut dyn Observer>,
    checkpoint: Option<PathBuf>,
}

/// How a part of a run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Whole,
    Stopped,
    NotFinite,
}

impl Training<'_> {
    fn run(mut self) -> Result<Trained> {
        let status = loop {
            if self.state.epoch >= self.settings.epochs {
                break Status::MaxEpochs;
            }
            let recorded = match self.epoch() {
                Ended::Whole => self.record()?,
                ended => Err(ended),
            };
            let record = match recorded {
                Ok(record) => record,
                Err(Ended::Stopped) => {
                    // An epoch of Prox-SVRG hangs on its anchor: it is begun anew when the run is resumed, from the
                    // checkpoint of the epoch before.
                    if self.settings.method != Method::ProxSvrg {
                        self.save()?;
                    }
                    break Status::Stopped;
                }
                Err(_) => break Status::Diverged,
            };
            self.state.epoch = record.epoch;
            self.state.trace.push(record.clone());
            (self.state.step, self.state.loss_sum) = (0, 0.0);
            self.save()?;
            if self.told(|observer| observer.epoch(&record)) == Control::Stop {
                break Status::Stopped;
            }
        };
        self.finish(status)
    }

    // ---- an epoch --------------------------------------------------------------------------------------------

    fn epoch(&mut self) -> Ended {
        if self.settings.method == Method::ProxSvrg { self.anchored_epoch() } else { self.plain_epoch() }
    }

    fn plain_epoch(&mut self) -> Ended {
        let skip = self.state.step as usize;
        for batch in self.steps.epoch(self.state.epoch, skip) {
            let begun = Instant::now();
            let images = batch.len();
            self.hold_zeros();
            let (gradients, loss) = gradients(&self.net, batch, &self.device, 1.0);
            let ended = self.step(gradients, loss, images, begun);
            if ended != Ended::Whole {
                return ended;
            }
        }
        Ended::Whole
    }

    /// An epoch of Prox-SVRG: the full gradient at the anchor, then steps along reduced gradients.
    fn anchored_epoch(&mut self) -> Ended {
        let begun = Instant::now();
        (self.state.step, self.state.loss_sum) = (0, 0.0);
        let (steps, device) = (self.steps.clone(), self.device.clone());
        let epoch = self.state.epoch;
        let mut stopped = false;
        let net = self.net.clone();
        let anchor = Anchor::new(&net, |net| {
            let mut sum = GradientsAccumulator::new();
            let (mut done, all) = (0, steps.images());
            // The very batches of the epoch, so that the mean of their gradients is the full one, augmented as they are.
            for batch in steps.epoch(epoch, 0) {
                let images = batch.len();
                sum.accumulate(net, gradients(net, batch, &device, images as f64 / all as f64).0);
                done += images;
                stopped = self.told(|observer| observer.evaluating(done as f64 / all as f64)) == Control::Stop;
                if stopped {
                    break;
                }
            }
            sum.grads()
        });
        self.state.seconds += begun.elapsed().as_secs_f64();
        if stopped {
            return Ended::Stopped;
        }
        let mut mean = self.settings.average.then(IterateMean::default);
        for batch in steps.epoch(epoch, 0) {
            let begun = Instant::now();
            let images = batch.len();
            let at_anchor = gradients(anchor.module(), batch.clone(), &self.device, 1.0).0;
            let (at_x, loss) = gradients(&self.net, batch, &self.device, 1.0);
            let ended = self.step(anchor.reduce(at_x, at_anchor), loss, images, begun);
            if ended != Ended::Whole {
                return ended;
            }
            if let Some(mean) = &mut mean {
                mean.add(&self.net);
            }
        }
        if let Some(mean) = mean {
            self.net = mean.apply(self.net.clone());
        }
        Ended::Whole
    }

    /// One step along a gradient.
    fn step(&mut self, gradients: GradientsParams, loss: f64, images: usize, begun: Instant) -> Ended {
        if !loss.is_finite() {
            return Ended::NotFinite;
        }
        let phase = self.next_phase();
        self.phase.set(phase);
        self.state.phase = phase;
        let alpha = self.settings.decay.at(self.settings.step, self.state.epoch);
        self.net = self.optimizer.step(alpha, self.net.clone(), gradients);
        self.state.step += 1;
        self.state.iterations += 1;
        self.state.loss_sum += loss * images as f64;
        if let Some(target) = self.settings.target_density.filter(|_| !self.state.held) {
            self.state.held = self.sparsity().is_ok_and(|now| now.penalized.density() <= target);
        }
        self.state.seconds += begun.elapsed().as_secs_f64();
        let progress = Progress {
            epoch: self.state.epoch + 1,
            step: self.state.step,
            steps: self.steps.batches() as u64,
            phase,
            batch_loss: loss,
        };
        match self.told(|observer| observer.step(&progress)) {
            Control::Stop => Ended::Stopped,
            Control::Continue => Ended::Whole,
        }
    }

    /// Tells the network whose zeros the next step will keep: their gradients need not be computed.
    fn hold_zeros(&mut self) {
        let held = self.next_phase() != Phase::Prox;
        let penalty = &self.settings.penalty;
        self.net.hold_zeros(|name| held && penalty.of(name, 4) > 0.0);
    }

    fn next_phase(&self) -> Phase {
        match self.settings.switches() {
            false => Phase::Prox,
            true if self.state.held => Phase::Hold,
            true => self.settings.switch.phase(self.state.epoch, self.state.iterations, &self.state.trace),
        }
    }

    // ---- what is told ----------------------------------------------------------------------------------------

    /// The figures after an epoch, or why there are none.
    fn record(&mut self) -> Result<std::result::Result<EpochRecord, Ended>> {
        let weights = self.net.weights()?;
        if weights.iter().any(|(_, tensor)| tensor.data().iter().any(|value| !value.is_finite())) {
            return Ok(Err(Ended::NotFinite));
        }
        let sparsity = self.settings.penalty.measure(&self.params, &weights);
        let epoch = self.state.epoch + 1;
        let mut record = EpochRecord { epoch, ..self.standing(&sparsity) };
        let due = epoch.is_multiple_of(self.settings.eval_every)
            || epoch == self.settings.epochs
            || (self.settings.switches() && self.settings.switch.needs_evaluation());
        if due {
            let ended = self.score(&mut record, sparsity.term);
            if ended != Ended::Whole {
                return Ok(Err(ended));
            }
        }
        self.good = weights;
        Ok(Ok(record))
    }

    /// Fills in F and accuracy. What is stopped on the way is computed when the run is resumed.
    fn score(&mut self, record: &mut EpochRecord, term: f64) -> Ended {
        let all = self.train.images() + self.test.as_ref().map_or(0, Feed::images);
        let mut done = 0;
        for test in [false, true] {
            let Some(feed) = (if test { self.test.clone() } else { Some(self.train.clone()) }) else { continue };
            let (net, device) = (self.net.clone(), self.device.clone());
            let scored = evaluate(&net, feed.plain(), &device, |images| {
                let share = (done + images) as f64 / all as f64;
                self.told(|observer| observer.evaluating(share)) == Control::Continue
            });
            let Some(scored) = scored else { return Ended::Stopped };
            done += scored.images;
            if test {
                record.accuracy = Some(scored.accuracy);
            } else {
                let objective = scored.loss + term;
                record.loss = Some(scored.loss);
                record.objective = Some(objective);
                record.train_accuracy = Some(scored.accuracy);
                if !objective.is_finite() {
                    return Ended::NotFinite;
                }
            }
        }
        Ended::Whole
    }

    /// The figures that cost nothing.
    fn standing(&self, sparsity: &Sparsity) -> EpochRecord {
        let images = (self.state.step * self.settings.batch as u64).min(self.steps.images() as u64);
        EpochRecord {
            epoch: self.state.epoch,
            iterations: self.state.iterations,
            phase: self.state.phase,
            step_size: self.settings.decay.at(self.settings.step, self.state.epoch),
            batch_loss: self.state.loss_sum / images.max(1) as f64,
            l1: sparsity.l1,
            nonzero: sparsity.penalized.nonzero,
            density: sparsity.penalized.density(),
            seconds: self.state.seconds,
            ..EpochRecord::default()
        }
    }

    fn sparsity(&self) -> Result<Sparsity> {
        Ok(self.settings.penalty.measure(&self.params, &self.net.weights()?))
    }

    fn told(&mut self, mut tell: impl FnMut(&mut dyn Observer) -> Control) -> Control {
        let mut answer = Control::Continue;
        for observer in &mut self.observers {
            if tell(*observer) == Control::Stop {
                answer = Control::Stop;
            }
        }
        answer
    }

    fn save(&self) -> Result<()> {
        match &self.checkpoint {
            Some(directory) => checkpoint::write(directory, &self.state, &self.net, &self.optimizer),
            None => Ok(()),
        }
    }

    fn finish(mut self, status: Status) -> Result<Trained> {
        // A run that was stopped within an epoch keeps what it has; one that diverged what was last good.
        let within = status == Status::Stopped && self.state.step > 0;
        let weights = if within { self.net.weights()? } else { self.good.clone() };
        let sparsity = self.settings.penalty.measure(&self.params, &weights);
        let last = match self.state.trace.last() {
            Some(last) if !within => last.clone(),
            _ => self.standing(&sparsity),
        };
        let trained = Trained { weights, sparsity, status, trace: self.state.trace.clone(), last };
        self.observers.iter_mut().for_each(|observer| observer.end(&trained));
        Ok(trained)
    }
}

/// The gradient of the mean loss of a batch, times `share`; and the mean loss.
fn gradients(net: &Net, batch: Batch, device: &Device, share: f64) -> (GradientsParams, f64) {
    let (images, labels) = batch.tensors(device);
    let loss = cross_entropy(net.forward(images), labels);
    let value = f64::from(loss.clone().into_scalar::<f32>());
    let loss = if share == 1.0 { loss } else { loss.mul_scalar(share) };
    (GradientsParams::from_grads(loss.backward(), net), value)
}

/// What identifies a run's network and images.
fn fingerprint(net: &Net, images: &Images, preprocessing: &Preprocessing) -> Result<String> {
    let mut sum = crc32fast::Hasher::new();
    sum.update(images.pixels());
    for label in images.labels().unwrap_or_default() {
        sum.update(&label.to_le_bytes());
    }
    for value in preprocessing.mean.iter().chain(&preprocessing.std) {
        sum.update(&value.to_le_bytes());
    }
    Ok(format!("{}, {} images {:08x}", net.architecture(), images.len(), sum.finalize()))
}
