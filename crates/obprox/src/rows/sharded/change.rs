//! What jobs change that a shard has to catch up with.

use std::ops::Range;

use crate::problem::Point;
use crate::rows::{DualJob, Job};

/// A change of state that a job made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Propose { outputs: Range<usize>, x: Vec<f64>, z: Vec<f64> },
    Begin,
    Move(f64),
    Free(Vec<u32>),
    Replace(Vec<(usize, Vec<f64>)>),
    Correct(Vec<f64>),
}

/// A step that had to be short: from which point, and after which share of it the secants begin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Secant {
    pub at: Point,
    pub outputs: Range<usize>,
    pub x: Vec<f64>,
    pub z: Vec<f64>,
    pub after: f64,
}

impl Change {
    /// What a job changes, beside what it adds up.
    pub fn of(job: &Job) -> Option<Self> {
        Some(match job {
            Job::Propose { outputs, x, z } => Self::Propose { outputs: outputs.clone(), x: x.to_vec(), z: z.to_vec() },
            Job::Dual(DualJob::Begin) => Self::Begin,
            Job::Dual(DualJob::Move(step)) => Self::Move(*step),
            Job::Dual(DualJob::Free(features)) => Self::Free(features.to_vec()),
            Job::Dual(DualJob::FreeReplace(by)) => Self::Replace(by.to_vec()),
            Job::Dual(DualJob::FreeCorrect(delta)) => Self::Correct(delta.to_vec()),
            _ => return None,
        })
    }

    pub fn job(&self) -> Job<'_> {
        match self {
            Self::Propose { outputs, x, z } => Job::Propose { outputs: outputs.clone(), x, z },
            Self::Begin => Job::Dual(DualJob::Begin),
            Self::Move(step) => Job::Dual(DualJob::Move(*step)),
            Self::Free(features) => Job::Dual(DualJob::Free(features)),
            Self::Replace(by) => Job::Dual(DualJob::FreeReplace(by)),
            Self::Correct(delta) => Job::Dual(DualJob::FreeCorrect(delta)),
        }
    }
}
