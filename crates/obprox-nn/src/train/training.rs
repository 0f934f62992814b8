//! The only loop: epochs, steps, evaluation, observers, checkpoints, stopping.

use std::path::PathBuf;
use std::time::Instant;

use burn::optim::{GradientsAccumulator, GradientsParams, ModuleOptimizer};
use burn::tensor::Device;
use obprox::{Control, MethodKind, Result, Status};
use obprox_infer::images::Preprocessing;
use obprox_infer::{Architecture, Model, Weights};

use super::checkpoint::{self, State};
use super::evaluate::{cross_entropy, evaluate};
use super::{Count, EpochRecord, Observer, Place, Progress, Settings, Sparsity, Trained};
use crate::data::{Batch, Feed};
use crate::net::{NamedParam, Net};
use crate::optim::{Anchor, Begun, DensityControl, GroupControl, IterateMean, Phase, PhaseCell};

/// A run under way.
pub(super) struct Training<'a> {
    pub net: Net,
    pub architecture: Architecture,
    pub preprocessing: Preprocessing,
    pub params: Vec<NamedParam>,
    pub optimizer: ModuleOptimizer,
    pub control: Option<DensityControl>,
    pub groups: Option<GroupControl>,
    pub phase: PhaseCell,
    pub settings: Settings,
    pub device: Device,
    pub steps: Feed,
    pub train: Feed,
    pub test: Option<Feed>,
    pub state: State,
    pub good: Weights,
    pub confusion: Option<Vec<Vec<u64>>>,
    pub observers: Vec<&'a mut dyn Observer>,
    pub checkpoint: Option<PathBuf>,
}

/// What a step on an image costs, in predictions of one.
const PASSES: f64 = 3.0;
/// The share of a run that may go into accuracies on the way, in the same unit.
const SHARE: f64 = 0.06;

/// How a part of a run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Whole,
    Stopped,
    NotFinite,
}

impl Training<'_> {
    pub fn run(mut self) -> Result<Trained> {
        let status = loop {
            if self.state.epoch >= self.settings.epochs {
                break self.after_all_epochs()?;
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
                    if self.settings.method != MethodKind::ProxSvrg {
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
        if self.settings.method == MethodKind::ProxSvrg { self.anchored_epoch() } else { self.plain_epoch() }
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
        self.count_time(Phase::Prox, begun);
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
        let alpha = self.alpha();
        let before = self.groups.is_some().then(|| self.net.clone());
        match self.descent(phase) {
            Some(descent) => self.controlled_step(alpha, gradients, phase, descent),
            None => {
                self.net = self.optimizer.step(alpha, self.net.clone(), gradients);
                self.state.lambda = self.state.held.then_some(0.0);
            }
        }
        self.state.step += 1;
        self.state.iterations += 1;
        if let (Some(groups), Some(before)) = (&self.groups, before) {
            self.net = groups.project(&before, self.net.clone(), self.state.iterations);
        }
        self.state.loss_sum += loss * images as f64;
        self.count_time(phase, begun);
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

    /// A step whose λ is the least that keeps to the planned density.
    fn controlled_step(&mut self, alpha: f64, gradients: GradientsParams, phase: Phase, descent: Begun) {
        let Some(control) = &self.control else { return };
        self.phase.set_trial();
        let before = self.net.clone();
        let trial = self.optimizer.step(alpha, self.net.clone(), gradients);
        let (net, controlled) = control.project(&before, trial, phase, descent, self.state.iterations + 1);
        self.net = net;
        self.state.held = controlled.reached;
        self.state.lambda = Some(controlled.threshold / alpha);
    }

    /// Where the descent to the density that was asked for began; nothing before it, and once it is over.
    fn descent(&mut self, phase: Phase) -> Option<Begun> {
        let control = self.control.as_ref().filter(|_| !self.state.held)?;
        if self.state.begun.is_none() && phase == Phase::Orthant {
            let (nonzero, size) = control.count(&self.net);
            let density = nonzero as f64 / size.max(1) as f64;
            self.state.begun = Some(Begun { step: self.state.iterations, density });
        }
        self.state.begun
    }

    /// Tells the network whose zeros the next step will keep: their gradients need not be computed.
    fn hold_zeros(&mut self) {
        let held = self.next_phase() != Phase::Prox;
        let penalty = &self.settings.penalty;
        self.net.hold_zeros(|name| held && penalty.of(name, 4) > 0.0);
    }

    fn next_phase(&self) -> Phase {
        if !self.settings.switches() {
            return Phase::Prox;
        }
        if self.state.held {
            return Phase::Hold;
        }
        let late = self.control.as_ref().is_some_and(|control| control.has_to_begin(self.state.iterations));
        if self.state.begun.is_none() && late {
            return Phase::Orthant;
        }
        let evaluations = self.state.trace.iter().map(|record| (record.objective, record.accuracy));
        let switch = self.settings.switch;
        switch.phase(self.state.epoch, self.state.iterations, switch.measured(evaluations))
    }

    fn alpha(&self) -> f64 {
        let (step, epochs) = (self.state.iterations, self.settings.epochs);
        self.settings
            .schedule
            .at(self.settings.step, Place { step, steps_per_epoch: self.steps.batches() as u64, epochs })
    }

    fn count_time(&mut self, phase: Phase, begun: Instant) {
        let place = match phase {
            Phase::Prox | Phase::Newton => 0,
            Phase::Orthant => 1,
            Phase::Hold => 2,
        };
        self.state.seconds[place] += begun.elapsed().as_secs_f64();
    }

    /// Whether all that was asked for is there.
    fn after_all_epochs(&self) -> Result<Status> {
        let density = self.sparsity()?.penalized.density();
        let missed = self.settings.target.is_some_and(|plan| density > plan.target);
        Ok(if missed { Status::Missed } else { Status::MaxEpochs })
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
        let ended = self.score(&mut record, &sparsity, &weights)?;
        if ended != Ended::Whole {
            return Ok(Err(ended));
        }
        self.good = weights;
        Ok(Ok(record))
    }

    /// What is computed after an epoch: F, and the accuracy on the test images.
    fn due(&self, epoch: u64) -> (bool, bool) {
        if epoch == self.settings.epochs {
            return (true, true);
        }
        let switch = self.settings.switch;
        if self.settings.switches() && switch.needs_evaluation() {
            let scored = self.test.is_some() && !matches!(switch, obprox::switch::Switch::Objective(_));
            return (!scored, scored);
        }
        match self.settings.eval_every {
            Some(every) => (epoch.is_multiple_of(every), epoch.is_multiple_of(every)),
            None => (false, epoch.is_multiple_of(self.seldom())),
        }
    }

    /// Epochs from one look at the test images to the next, so that all looks take a small part of the run.
    fn seldom(&self) -> u64 {
        let Some(test) = &self.test else { return u64::MAX };
        let training = self.train.images() as f64 * PASSES;
        ((test.images() as f64 / (SHARE * training)).ceil() as u64).max(1)
    }

    /// Fills in F and accuracy as far as they are due. What is stopped on the way is computed when the run is resumed.
    fn score(&mut self, record: &mut EpochRecord, sparsity: &Sparsity, weights: &Weights) -> Result<Ended> {
        let (train, test) = self.due(record.epoch);
        let feeds = [(train, Some(self.train.clone())), (test, self.test.clone())];
        let due: Vec<Option<Feed>> = feeds.into_iter().map(|(due, feed)| feed.filter(|_| due)).collect();
        let all: usize = due.iter().flatten().map(Feed::images).sum();
        if all == 0 {
            return Ok(Ended::Whole);
        }
        let model = Model::new(self.architecture, weights.clone(), obprox_infer::Training::default())?;
        let preprocessing = self.preprocessing.clone();
        let mut done = 0;
        for (place, feed) in due.into_iter().enumerate() {
            let Some(feed) = feed else { continue };
            let scored = evaluate(&model, &preprocessing, feed.plain(), |images| {
                let share = (done + images) as f64 / all as f64;
                self.told(|observer| observer.evaluating(share)) == Control::Continue
            })?;
            let Some(scored) = scored else { return Ok(Ended::Stopped) };
            done += scored.images;
            if place == 1 {
                record.accuracy = Some(scored.accuracy);
                self.confusion = Some(scored.confusion);
            } else {
                let objective = scored.loss + sparsity.term + 0.5 * self.settings.weight_decay * sparsity.squares;
                record.loss = Some(scored.loss);
                record.objective = Some(objective);
                record.train_accuracy = Some(scored.accuracy);
                if !objective.is_finite() {
                    return Ok(Ended::NotFinite);
                }
            }
        }
        Ok(Ended::Whole)
    }

    /// The figures that cost nothing.
    fn standing(&self, sparsity: &Sparsity) -> EpochRecord {
        let images = (self.state.step * self.settings.batch as u64).min(self.steps.images() as u64);
        let place = Place {
            step: self.state.iterations.saturating_sub(1),
            steps_per_epoch: self.steps.batches() as u64,
            epochs: self.settings.epochs,
        };
        EpochRecord {
            epoch: self.state.epoch,
            iterations: self.state.iterations,
            phase: self.state.phase,
            step_size: self.settings.schedule.at(self.settings.step, place),
            lambda: self.state.lambda,
            batch_loss: self.state.loss_sum / images.max(1) as f64,
            l1: sparsity.l1,
            nonzero: sparsity.penalized.nonzero,
            density: sparsity.penalized.density(),
            seconds: self.state.seconds.iter().sum(),
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

    fn save(&mut self) -> Result<()> {
        let Some(directory) = &self.checkpoint else { return Ok(()) };
        checkpoint::write(directory, &self.state, &self.net, &self.optimizer).or_else(|error| {
            // All of them are told.
            let answers: Vec<Control> = self.observers.iter_mut().map(|observer| observer.unsaved(&error)).collect();
            if answers.contains(&Control::Continue) { Ok(()) } else { Err(error) }
        })
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
        let (trace, seconds) = (self.state.trace.clone(), self.state.seconds);
        let confusion = self.confusion.take().filter(|_| last.accuracy.is_some());
        let groups = self.groups.as_ref().filter(|_| status != Status::Diverged).map(|groups| groups.count(&self.net));
        let groups = groups.map(|(zero, size)| Count { nonzero: size - zero, size });
        let trained = Trained { weights, sparsity, groups, status, trace, last, confusion, seconds };
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
