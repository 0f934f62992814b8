//! When Prox-SG gives way to Orthant.

use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

use super::EpochRecord;
use crate::optim::Phase;

/// The rule that decides between the two steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// N_P epochs of Prox-SG, then N_O of Orthant, and again; without N_O it stays with Orthant (OBProx-SG+).
    Epochs {
        /// N_P.
        prox: u64,
        /// N_O; nothing stands for ∞.
        orthant: Option<u64>,
    },
    /// The same, counted in steps.
    Iterations {
        /// N_P.
        prox: u64,
        /// N_O; nothing stands for ∞.
        orthant: Option<u64>,
    },
    /// Prox-SG until F is at most this, then Orthant for good.
    Objective(f64),
    /// Prox-SG until the accuracy on the test images is at least this, then Orthant for good.
    Score(f64),
    /// Prox-SG until it brings nothing more, then Orthant for good: until the accuracy on the test images (F where
    /// there are none) has been no better for this many evaluations in a row.
    Stalled(u64),
}

impl Rule {
    /// The paper's OBProx-SG: 5 epochs each.
    pub const PAPER: Self = Self::Epochs { prox: 5, orthant: Some(5) };
    /// The paper's OBProx-SG+ on networks: 100 epochs of Prox-SG, then Orthant.
    pub const PAPER_PLUS: Self = Self::Epochs { prox: 100, orthant: None };

    /// Checks the parameters.
    pub fn check(self, test: bool) -> Result<()> {
        let wrong = |message: String| Err(Error::parameter("switch", message));
        match self {
            Self::Epochs { prox: 0, orthant: Some(0) } | Self::Iterations { prox: 0, orthant: Some(0) } => {
                wrong("N_P and N_O are both 0: there is no step to take".into())
            }
            Self::Objective(value) | Self::Score(value) if !value.is_finite() => {
                wrong(format!("{value} is not a finite number"))
            }
            Self::Score(_) if !test => wrong("a switch on the score needs test images to score on".into()),
            Self::Stalled(0) => wrong("it counts evaluations, at least 1".into()),
            _ => Ok(()),
        }
    }

    /// Whether it looks at the figures of each epoch.
    pub fn needs_evaluation(self) -> bool {
        matches!(self, Self::Objective(_) | Self::Score(_) | Self::Stalled(_))
    }

    /// The phase of a step: `epoch` and `step` count from 0 over the whole run, `trace` has the epochs before.
    pub fn phase(self, epoch: u64, step: u64, trace: &[EpochRecord]) -> Phase {
        let orthant = match self {
            Self::Epochs { prox, orthant } => in_orthant(epoch, prox, orthant),
            Self::Iterations { prox, orthant } => in_orthant(step, prox, orthant),
            Self::Objective(target) => trace.iter().any(|record| record.objective.is_some_and(|value| value <= target)),
            Self::Score(target) => trace.iter().any(|record| record.accuracy.is_some_and(|value| value >= target)),
            Self::Stalled(patience) => has_stalled(trace, patience),
        };
        if orthant { Phase::Orthant } else { Phase::Prox }
    }
}

fn in_orthant(count: u64, prox: u64, orthant: Option<u64>) -> bool {
    orthant.map_or(count, |orthant| count % prox.saturating_add(orthant).max(1)) >= prox
}

/// Whether the figure was ever no better than the best before for `patience` evaluations in a row. Once it was, it was.
fn has_stalled(trace: &[EpochRecord], patience: u64) -> bool {
    let figure = |record: &EpochRecord| record.accuracy.or(record.objective.map(|value| -value));
    let (mut best, mut since) = (f64::NEG_INFINITY, 0);
    for value in trace.iter().filter_map(figure) {
        if value > best {
            (best, since) = (value, 0);
        } else {
            since += 1;
            if since >= patience {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(accuracies: &[f64]) -> Vec<EpochRecord> {
        let record = |&accuracy: &f64| EpochRecord { accuracy: Some(accuracy), ..EpochRecord::default() };
        accuracies.iter().map(record).collect()
    }

    #[test]
    fn counted_rules_are_the_papers() {
        for k in 0..40 {
            let expected = if k % 10 < 5 { Phase::Prox } else { Phase::Orthant };
            assert_eq!(Rule::PAPER.phase(k, 100 * k, &[]), expected);
            assert_eq!(Rule::Iterations { prox: 5, orthant: Some(5) }.phase(0, k, &[]), expected);
            let expected = if k < 7 { Phase::Prox } else { Phase::Orthant };
            assert_eq!(Rule::Epochs { prox: 7, orthant: None }.phase(k, 0, &[]), expected);
        }
        assert!(Rule::Epochs { prox: 0, orthant: Some(0) }.check(true).is_err());
    }

    #[test]
    fn measured_rules_switch_once_and_for_good() {
        let phase = |rule: Rule, accuracies: &[f64]| rule.phase(9, 99, &trace(accuracies));
        assert_eq!(phase(Rule::Score(0.8), &[0.5, 0.7]), Phase::Prox);
        assert_eq!(phase(Rule::Score(0.8), &[0.5, 0.81, 0.6]), Phase::Orthant);
        assert!(Rule::Score(0.8).check(false).is_err());
        assert_eq!(phase(Rule::Stalled(2), &[0.5, 0.4, 0.6, 0.6]), Phase::Prox);
        assert_eq!(phase(Rule::Stalled(2), &[0.5, 0.4, 0.5]), Phase::Orthant);
        assert_eq!(phase(Rule::Stalled(2), &[0.5, 0.4, 0.5, 0.9]), Phase::Orthant);
        let record = EpochRecord { objective: Some(1.5), ..EpochRecord::default() };
        assert_eq!(Rule::Objective(1.6).phase(0, 0, std::slice::from_ref(&record)), Phase::Orthant);
        assert_eq!(Rule::Objective(1.4).phase(0, 0, &[record]), Phase::Prox);
    }
}
