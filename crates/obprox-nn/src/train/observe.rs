//! What a run tells, and how it is told to stop.

use obprox::{Control, Error};
use serde::{Deserialize, Serialize};

use super::{Settings, Trained};
use crate::net::Net;
use crate::optim::Phase;

/// One epoch of a run. Figures that were not computed are missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Steps since the start of the run.
    pub iterations: u64,
    /// The kind of its last step.
    pub phase: Phase,
    /// α of its last step.
    pub step_size: f64,
    /// λ of its last step, where a density is held and λ with it; 0 once zeros are held.
    pub lambda: Option<f64>,
    /// The mean loss of its batches, as they were trained on.
    pub batch_loss: f64,
    /// F = f + Σ λ_j ‖x_j‖₁, with normalisations in evaluation mode.
    pub objective: Option<f64>,
    /// f, the mean cross-entropy over the training images as they are.
    pub loss: Option<f64>,
    /// ‖x‖₁ of what is penalised.
    pub l1: f64,
    /// Nonzeros of what is penalised.
    pub nonzero: usize,
    /// Their share.
    pub density: f64,
    /// The share of training images whose class is predicted.
    pub train_accuracy: Option<f64>,
    /// The share of test images whose class is predicted.
    pub accuracy: Option<f64>,
    /// Training time since the start of the run, without evaluation.
    pub seconds: f64,
}

/// How far the epoch under way has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Steps of it that are done.
    pub step: u64,
    /// Steps it has.
    pub steps: u64,
    /// The kind of steps.
    pub phase: Phase,
    /// The loss of the last batch.
    pub batch_loss: f64,
}

/// What is known before the first step.
pub struct Start<'a> {
    /// The network.
    pub net: &'a Net,
    /// The settings of the run.
    pub settings: &'a Settings,
    /// Parameters that gradients train.
    pub parameters: usize,
    /// Images that are trained on.
    pub images: usize,
    /// Images that are scored on.
    pub test_images: usize,
    /// The epochs of an earlier run that this one continues.
    pub resumed: &'a [EpochRecord],
}

/// Someone who watches a run. All methods have a default, so an observer says only what it cares for.
pub trait Observer {
    /// Before the first step.
    fn start(&mut self, _start: &Start) {}
    /// After each step.
    fn step(&mut self, _progress: &Progress) -> Control {
        Control::Continue
    }
    /// While F and accuracy are computed: the share that is done.
    fn evaluating(&mut self, _done: f64) -> Control {
        Control::Continue
    }
    /// After each epoch.
    fn epoch(&mut self, _record: &EpochRecord) -> Control {
        Control::Continue
    }
    /// The state could not be saved. A run goes on without as soon as one observer says so; it ends with this error
    /// otherwise, since nobody would know that it cannot be resumed.
    fn unsaved(&mut self, _error: &Error) -> Control {
        Control::Stop
    }
    /// After the run, whatever its status.
    fn end(&mut self, _trained: &Trained) {}
}
