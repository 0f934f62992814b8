//! Which kind of step OBProx-SG takes, and who decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use obprox::switch::{Phase, Switch, Unit};

/// The kind of step that a training loop sets and every parameter's optimizer takes.
#[derive(Clone, Debug, Default)]
pub struct PhaseCell(Arc<AtomicU8>);

/// The step without its λ: whoever asks for it takes λ into account for all parameters together.
const TRIAL: u8 = 1 << 7;

impl PhaseCell {
    /// The phase of the next step.
    pub fn get(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) & !TRIAL {
            0 => Phase::Prox,
            1 => Phase::Orthant,
            _ => Phase::Hold,
        }
    }

    /// From the next step on it is this one; a network has no Newton steps, and takes those of Prox-SG.
    pub fn set(&self, phase: Phase) {
        let code = match phase {
            Phase::Prox | Phase::Newton => 0,
            Phase::Orthant => 1,
            Phase::Hold => 2,
        };
        self.0.store(code, Ordering::Relaxed);
    }

    /// Whether the next step is taken without its λ.
    pub fn is_trial(&self) -> bool {
        self.0.load(Ordering::Relaxed) & TRIAL != 0
    }

    /// The next steps are taken without their λ, as plain gradient steps, until a phase is set again.
    pub fn set_trial(&self) {
        self.0.fetch_or(TRIAL, Ordering::Relaxed);
    }
}

/// Who decides on the phase.
#[derive(Clone, Debug)]
pub enum Switching {
    /// The rule of the library, by the count of steps.
    Counted(Switch),
    /// The training loop, which keeps a clone of the cell.
    Told(PhaseCell),
}

impl Switching {
    /// N_P Prox-SG steps, then N_O Orthant steps, and again; without N_O it stays with Orthant.
    pub fn steps(prox: usize, orthant: Option<usize>) -> Self {
        let orthant = orthant.map(|steps| steps as u64);
        Self::Counted(Switch::Fixed { prox: prox as u64, orthant, unit: Unit::Iterations })
    }

    /// Whether λ is left to whoever told the phase.
    pub fn is_trial(&self) -> bool {
        matches!(self, Self::Told(cell) if cell.is_trial())
    }

    /// The phase of a step, counted from 0.
    pub fn phase(&self, step: usize) -> Phase {
        match self {
            Self::Told(cell) => cell.get(),
            Self::Counted(switch) => switch.phase(0, step as u64, Phase::Prox),
        }
    }
}
