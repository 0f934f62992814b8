//! When Prox-SG gives way to Orthant.

use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::{Error, Result};

/// The kind of step that is being taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Proximal steps (and those of RDA and Prox-SVRG): the support may grow.
    Prox,
    /// Orthant steps: the support only shrinks.
    Orthant,
    /// Second-order steps on a face.
    Newton,
}

/// What N_P and N_O count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Whole epochs.
    Epochs,
    /// Steps.
    Iterations,
}

/// The rule that decides between the two steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// N_P Prox-SG, then N_O Orthant, and again; without N_O it stays with Orthant (OBProx-SG+).
    Fixed {
        /// N_P.
        prox: u64,
        /// N_O; nothing stands for ∞.
        orthant: Option<u64>,
        /// What both count.
        unit: Unit,
    },
    /// Orthant while the violation on the zeros is no larger than the one on the support, measured each epoch.
    Adaptive,
    /// Prox-SG until F is at most this, then Orthant for good.
    Objective(f64),
    /// Prox-SG until the score on the validation data is at least this, then Orthant for good.
    Score(f64),
}

impl Switch {
    /// The paper's OBProx-SG: 5 epochs each.
    pub const PAPER: Self = Self::Fixed { prox: 5, orthant: Some(5), unit: Unit::Epochs };
    /// The paper's OBProx-SG+: 15 epochs of Prox-SG, then Orthant.
    pub const PAPER_PLUS: Self = Self::Fixed { prox: 15, orthant: None, unit: Unit::Epochs };

    /// Checks the parameters.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Fixed { prox: 0, orthant: Some(0), .. } => {
                Err(Error::parameter("switch", "N_P and N_O are both 0: there is no step to take"))
            }
            Self::Objective(value) | Self::Score(value) if !value.is_finite() => {
                Err(Error::parameter("switch", format!("{value} is not a finite number")))
            }
            _ => Ok(()),
        }
    }

    /// Whether the figures of each epoch are needed.
    pub fn needs_evaluation(self) -> bool {
        !matches!(self, Self::Fixed { .. })
    }

    /// The phase of a step, by the counts (from 0) and by what the last evaluation said.
    pub fn phase(self, epoch: u64, step: u64, measured: Phase) -> Phase {
        let Self::Fixed { prox, orthant, unit } = self else { return measured };
        let count = if unit == Unit::Epochs { epoch } else { step };
        let in_cycle = orthant.map_or(count, |orthant| count % prox.saturating_add(orthant));
        if in_cycle < prox { Phase::Prox } else { Phase::Orthant }
    }

    /// Whether a step in the Orthant phase will be followed by Orthant steps only, so that zeros can be forgotten.
    pub fn is_final(self, phase: Phase) -> bool {
        phase == Phase::Orthant && !matches!(self, Self::Adaptive | Self::Fixed { orthant: Some(_), .. })
    }

    /// The phase after an evaluation.
    pub fn measure(self, before: Phase, certificate: &Certificate, score: Option<f64>) -> Phase {
        let orthant = match self {
            Self::Fixed { .. } => return before,
            Self::Adaptive => certificate.violation_on_zeros <= certificate.violation_on_support,
            Self::Objective(target) => before == Phase::Orthant || certificate.objective <= target,
            Self::Score(target) => before == Phase::Orthant || score.is_some_and(|score| score >= target),
        };
        if orthant { Phase::Orthant } else { Phase::Prox }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rule() {
        let phase = |switch: Switch, epoch, step| switch.phase(epoch, step, Phase::Prox);
        for k in 0..40 {
            let expected = if k % 10 < 5 { Phase::Prox } else { Phase::Orthant };
            assert_eq!(phase(Switch::PAPER, k, 1000 * k), expected);
            let expected = if k < 15 { Phase::Prox } else { Phase::Orthant };
            assert_eq!(phase(Switch::PAPER_PLUS, k, 1000 * k), expected);
            let steps = Switch::Fixed { prox: 3, orthant: Some(2), unit: Unit::Iterations };
            let expected = if k % 5 < 3 { Phase::Prox } else { Phase::Orthant };
            assert_eq!(phase(steps, 0, k), expected);
        }
        assert!(Switch::PAPER_PLUS.is_final(Phase::Orthant) && !Switch::PAPER.is_final(Phase::Orthant));
        assert!(Switch::Fixed { prox: 0, orthant: Some(0), unit: Unit::Epochs }.check().is_err());
    }
}
