//! Which kind of step OBProx-SG takes, and who decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};

/// The kind of step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Proximal steps: the support may grow.
    #[default]
    Prox,
    /// Orthant steps: the support only shrinks.
    Orthant,
    /// Gradient steps on the support as it is: sparse enough, zeros stay and nothing is shrunk any more.
    Hold,
}

impl Phase {
    /// The word for it, as logs and people have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prox => "prox",
            Self::Orthant => "orthant",
            Self::Hold => "hold",
        }
    }
}

/// A phase that a training loop sets and every parameter's optimizer reads.
#[derive(Clone, Debug, Default)]
pub struct PhaseCell(Arc<AtomicU8>);

impl PhaseCell {
    /// The phase of the next step.
    pub fn get(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Prox,
            1 => Phase::Orthant,
            _ => Phase::Hold,
        }
    }

    /// From the next step on it is this one.
    pub fn set(&self, phase: Phase) {
        let code = match phase {
            Phase::Prox => 0,
            Phase::Orthant => 1,
            Phase::Hold => 2,
        };
        self.0.store(code, Ordering::Relaxed);
    }
}

/// Who decides on the phase.
#[derive(Clone, Debug)]
pub enum Switching {
    /// The count of steps: N_P Prox-SG, then N_O Orthant, and again; without N_O it stays with Orthant.
    Steps {
        /// N_P.
        prox: usize,
        /// N_O; nothing stands for ∞.
        orthant: Option<usize>,
    },
    /// The training loop, which keeps a clone of the cell.
    Told(PhaseCell),
}

impl Switching {
    /// The phase of a step, counted from 0.
    pub fn phase(&self, step: usize) -> Phase {
        match self {
            Self::Told(cell) => cell.get(),
            Self::Steps { prox, orthant } => {
                let in_cycle = orthant.map_or(step, |orthant| step % (prox + orthant).max(1));
                if in_cycle < *prox { Phase::Prox } else { Phase::Orthant }
            }
        }
    }
}
