//! What a run tells, and how it is told to stop.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::certificate::Certificate;
use crate::fit::Fit;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::switch::Phase;

/// An observer's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// End the run after this step, keeping what it has.
    Stop,
}

/// What a round of `auto` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// λ is still falling to its value, or a sample stands for all rows: the support is being found.
    Identify,
    /// At λ itself: the optimum is being proved.
    Polish,
}

impl Stage {
    /// The name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identify => "identify",
            Self::Polish => "polish",
        }
    }
}

/// A round of `auto`, beyond its figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// What it was about.
    pub stage: Stage,
    /// The λ it worked at.
    pub at_lambda: f64,
    /// Features that were not left out from the start.
    pub columns: usize,
    /// Features it stepped on.
    pub working_set: usize,
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
    /// The stage, in `auto`.
    pub stage: Option<Stage>,
}

/// One epoch of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Steps since the start of the run.
    pub iterations: u64,
    /// The kind of its last step.
    pub phase: Phase,
    /// α of its last step.
    pub step_size: f64,
    /// What the round was, in `auto`.
    #[serde(default)]
    pub round: Option<Round>,
    /// The figures at its end, where they were computed.
    pub certificate: Option<Certificate>,
    /// The score on the validation data, where there is some.
    pub score: Option<f64>,
    /// Training time since the start of the run, without evaluation.
    pub seconds: f64,
}

/// What is known before the first step.
#[derive(Debug)]
pub struct Start<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The settings of the run.
    pub settings: &'a Settings,
    /// Rows in a batch.
    pub batch_rows: usize,
    /// The first step size.
    pub step_size: f64,
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
    fn end(&mut self, _fit: &Fit) {}
}
