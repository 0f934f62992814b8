//! A run: what it needs, what it starts from, what is left of it.

use std::collections::HashMap;
use std::path::PathBuf;

use burn::module::ParamId;
use burn::optim::ModuleOptimizer;
use burn::tensor::Device;
use obprox::{Error, Result, Status};
use obprox_infer::images::{Data, Images, Preprocessing};
use obprox_infer::{Group, Model, Weights};

use super::checkpoint::{Saved, State};
use super::optimizer::optimizer;
use super::training::Training;
use super::{Count, EpochRecord, Observer, Settings, Sparsity, Start};
use crate::data::{Augment, Feed};
use crate::net::Net;
use crate::optim::{DensityControl, GroupControl, Phase, PhaseCell, Rows};

/// A run that took place.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Weights and running statistics.
    pub weights: Weights,
    /// How sparse they are.
    pub sparsity: Sparsity,
    /// Groups of channels that are zero, and all, where a share of them was asked for.
    pub groups: Option<Count>,
    /// How it ended: after all epochs (`MaxEpochs`), all epochs and not as sparse as was asked for (`Missed`), because an
    /// observer said so (`Stopped`), or with a loss or a weight that was no longer finite (`Diverged`, the weights being
    /// the last good ones).
    pub status: Status,
    /// Epoch by epoch.
    pub trace: Vec<EpochRecord>,
    /// The figures of the weights: the last record where the run ended with an epoch. F and accuracy are missing where
    /// it was stopped before they were computed.
    pub last: EpochRecord,
    /// Test images by class and by the class that is predicted for them, where the last weights were scored.
    pub confusion: Option<Vec<Vec<u64>>>,
    /// Training time in Prox-SG steps, in Orthant steps and with zeros held.
    pub seconds: [f64; 3],
}

impl Trained {
    /// The density that was asked for and not reached.
    pub fn missed(&self, settings: &Settings) -> Option<f64> {
        settings.target.map(|plan| plan.target).filter(|target| self.sparsity.penalized.density() > *target)
    }
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
        self.check_images()?;
        let (state, optimizer, phase) = self.open()?;
        let control = self.control()?;
        let groups = self.groups()?;
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
            confusion: None,
            architecture: self.net.architecture(),
            preprocessing: self.preprocessing.clone(),
            net: self.net,
            optimizer,
            control,
            groups,
            phase,
            state,
            settings: self.settings,
            device: self.device,
            observers: self.observers,
            checkpoint: self.checkpoint,
        };
        training.run()
    }

    /// One class has nothing to tell apart: any network scores 100 % on it.
    fn check_images(&self) -> Result<()> {
        let labels = self.data.train.labels().unwrap_or_default();
        match labels.iter().any(|label| label != &labels[0]) {
            true => Ok(()),
            false => Err(Error::Data("the training images are all of one class: there is nothing to learn".into())),
        }
    }

    /// Steps of the whole run.
    fn steps(&self) -> u64 {
        self.data.train.len().div_ceil(self.settings.batch) as u64 * self.settings.epochs
    }

    /// What makes the share of channels zero that was asked for.
    fn groups(&self) -> Result<Option<GroupControl>> {
        let Some(share) = self.settings.target_groups else { return Ok(None) };
        let model = Model::new(self.net.architecture(), self.net.weights()?, obprox_infer::Training::default())?;
        let ids: HashMap<String, ParamId> = self.net.params().into_iter().map(|param| (param.name, param.id)).collect();
        let of_group = |group: Group| group.into_iter().map(|(name, row)| (ids[&name], row)).collect();
        let groups: Vec<Rows> = model.channel_groups()?.into_iter().map(of_group).collect();
        GroupControl::new(share, self.steps(), &self.net, &groups).map(Some)
    }

    /// What keeps the network to the density that was asked for.
    fn control(&self) -> Result<Option<DensityControl>> {
        let Some(plan) = self.settings.target else { return Ok(None) };
        let steps = self.steps();
        let params = self.net.params();
        let lambdas = params.iter().map(|param| (param.id, self.settings.penalty.of(&param.name, param.rank)));
        let sparsity = self.settings.penalty.measure(&params, &self.net.weights()?);
        if let Some(dead) = sparsity.dead_layers().first() {
            let message = format!("{dead} is all zeros from the start: no step brings it back to life");
            return Err(Error::parameter("target-density", message));
        }
        DensityControl::new(plan, steps, &self.net, lambdas).map(Some)
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
                begun: None,
                held: false,
                lambda: None,
                seconds: [0.0; 3],
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
