//! When Prox-SG gives way to Orthant.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::{Error, Result};

/// The kind of step that is being taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Proximal steps (and those of RDA and Prox-SVRG): the support may grow.
    #[default]
    Prox,
    /// Orthant steps: the support only shrinks.
    Orthant,
    /// Gradient steps on the support as it is: sparse enough, zeros stay and nothing is shrunk any more.
    Hold,
    /// Second-order steps on a face.
    Newton,
}

impl Phase {
    /// The word for it, as logs and people have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prox => "prox",
            Self::Orthant => "orthant",
            Self::Hold => "hold",
            Self::Newton => "newton",
        }
    }
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
    /// Prox-SG until it brings nothing more, then Orthant for good: until the score (F where there is none) has been no
    /// better for this many evaluations in a row. Of networks only.
    Stalled(u64),
}

impl Switch {
    /// The paper's OBProx-SG: 5 epochs each.
    pub const PAPER: Self = Self::Fixed { prox: 5, orthant: Some(5), unit: Unit::Epochs };
    /// The paper's OBProx-SG+: 15 epochs of Prox-SG, then Orthant.
    pub const PAPER_PLUS: Self = Self::Fixed { prox: 15, orthant: None, unit: Unit::Epochs };

    /// Checks the parameters, for a linear problem.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Stalled(_) => Err(Error::parameter("switch", "only the training of a network can wait for a stall")),
            _ => self.check_numbers(),
        }
    }

    /// Checks the parameters, for a network; `test` says whether there are images to score on.
    pub fn check_for_network(self, test: bool) -> Result<()> {
        let wrong = |message| Err(Error::parameter("switch", message));
        match self {
            Self::Adaptive => wrong("a network has no distance to optimality to go by: count epochs, or measure"),
            Self::Score(_) if !test => wrong("a switch on the score needs test images to score on"),
            Self::Stalled(0) => wrong("it counts evaluations, at least 1"),
            _ => self.check_numbers(),
        }
    }

    fn check_numbers(self) -> Result<()> {
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
            Self::Fixed { .. } | Self::Stalled(_) => return before,
            Self::Adaptive => certificate.violation_on_zeros <= certificate.violation_on_support,
            Self::Objective(target) => before == Phase::Orthant || certificate.objective <= target,
            Self::Score(target) => before == Phase::Orthant || score.is_some_and(|score| score >= target),
        };
        if orthant { Phase::Orthant } else { Phase::Prox }
    }

    /// The phase that the evaluations so far decide on, each (F, score) as far as it was computed. Once Orthant, always
    /// Orthant.
    pub fn measured(self, evaluations: impl IntoIterator<Item = (Option<f64>, Option<f64>)>) -> Phase {
        let mut evaluations = evaluations.into_iter();
        let orthant = match self {
            Self::Fixed { .. } | Self::Adaptive => false,
            Self::Objective(target) => evaluations.any(|(objective, _)| objective.is_some_and(|value| value <= target)),
            Self::Score(target) => evaluations.any(|(_, score)| score.is_some_and(|value| value >= target)),
            Self::Stalled(patience) => has_stalled(evaluations, patience),
        };
        if orthant { Phase::Orthant } else { Phase::Prox }
    }
}

/// In the words of [`Words`].
impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Fixed { unit: Unit::Epochs, .. } => f.write_str("epochs"),
            Self::Fixed { unit: Unit::Iterations, .. } => f.write_str("iterations"),
            Self::Adaptive => f.write_str("adaptive"),
            Self::Objective(value) => write!(f, "objective:{value}"),
            Self::Score(value) => write!(f, "score:{value}"),
            Self::Stalled(count) => write!(f, "stalled:{count}"),
        }
    }
}

/// What words say of a switch: what N_P and N_O count, or what is measured instead.
///
/// `epochs`, `iterations`, `adaptive`, `objective:VALUE`, `score:VALUE`, `stalled:N`: the same for the command, for
/// networks and from Python.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Words {
    /// N_P and N_O count these.
    Counted(Unit),
    /// The whole rule.
    Measured(Switch),
}

impl Words {
    /// The rules that a linear problem has.
    pub fn of_problem(text: &str) -> std::result::Result<Self, String> {
        match Self::parse(text)? {
            Some(words) if !matches!(words, Self::Measured(Switch::Stalled(_))) => Ok(words),
            _ => Err("must be epochs, iterations, adaptive, objective:VALUE or score:VALUE".into()),
        }
    }

    /// The rules that a network has.
    pub fn of_network(text: &str) -> std::result::Result<Self, String> {
        match Self::parse(text)? {
            Some(words) if words != Self::Measured(Switch::Adaptive) => Ok(words),
            _ => Err("must be epochs, iterations, objective:VALUE, score:VALUE or stalled:N".into()),
        }
    }

    /// Any rule; nothing where the words name none.
    fn parse(text: &str) -> std::result::Result<Option<Self>, String> {
        let target = |value: &str| match value.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err("what is to be reached must be a finite number"),
        };
        let count = |value: &str| match value.parse() {
            Ok(0) => Err("must be at least 1"),
            Ok(count) => Ok(count),
            Err(_) => Err("must be a whole number, at least 1"),
        };
        Ok(Some(match text.split_once(':').unwrap_or((text, "")) {
            ("epochs", "") => Self::Counted(Unit::Epochs),
            ("iterations", "") => Self::Counted(Unit::Iterations),
            ("adaptive", "") => Self::Measured(Switch::Adaptive),
            ("objective", value) => Self::Measured(Switch::Objective(target(value)?)),
            ("score", value) => Self::Measured(Switch::Score(target(value)?)),
            ("stalled", value) => Self::Measured(Switch::Stalled(count(value)?)),
            _ => return Ok(None),
        }))
    }
}

/// Whether the figure was ever no better than the best before for `patience` evaluations in a row. Once it was, it was.
fn has_stalled(evaluations: impl Iterator<Item = (Option<f64>, Option<f64>)>, patience: u64) -> bool {
    let (mut best, mut since) = (f64::NEG_INFINITY, 0);
    for value in evaluations.filter_map(|(objective, score)| score.or(objective.map(|value| -value))) {
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

    #[test]
    fn measured_rules_switch_once_and_for_good() {
        let phase = |rule: Switch, scores: &[f64]| rule.measured(scores.iter().map(|&score| (None, Some(score))));
        assert_eq!(phase(Switch::Score(0.8), &[0.5, 0.7]), Phase::Prox);
        assert_eq!(phase(Switch::Score(0.8), &[0.5, 0.81, 0.6]), Phase::Orthant);
        assert_eq!(phase(Switch::Stalled(2), &[0.5, 0.4, 0.6, 0.6]), Phase::Prox);
        assert_eq!(phase(Switch::Stalled(2), &[0.5, 0.4, 0.5]), Phase::Orthant);
        assert_eq!(phase(Switch::Stalled(2), &[0.5, 0.4, 0.5, 0.9]), Phase::Orthant);
        assert_eq!(Switch::Objective(1.6).measured([(Some(1.5), None)]), Phase::Orthant);
        assert_eq!(Switch::Objective(1.4).measured([(Some(1.5), None)]), Phase::Prox);
    }

    #[test]
    fn words_are_read_and_given_back() {
        for text in ["epochs", "iterations", "adaptive", "objective:0.25", "score:0.9", "stalled:3"] {
            let switch = match Words::parse(text).unwrap().unwrap() {
                Words::Counted(unit) => Switch::Fixed { prox: 1, orthant: None, unit },
                Words::Measured(switch) => switch,
            };
            assert_eq!(switch.to_string(), text);
        }
        let wrong = ["", "score", "score:", "score:nan", "epochs:3", "fixed", "stalled:3", "stalled:0"];
        assert!(wrong.iter().all(|text| Words::of_problem(text).is_err()));
        assert!(Words::of_problem("adaptive").is_ok() && Words::of_network("adaptive").is_err());
        assert!(Words::of_network("stalled:3").is_ok() && Words::of_network("stalled:0").is_err());
    }

    #[test]
    fn a_rule_is_refused_where_it_means_nothing() {
        assert!(Switch::Stalled(3).check().is_err() && Switch::Stalled(3).check_for_network(false).is_ok());
        assert!(Switch::Adaptive.check().is_ok() && Switch::Adaptive.check_for_network(true).is_err());
        assert!(
            Switch::Score(0.8).check_for_network(false).is_err() && Switch::Stalled(0).check_for_network(true).is_err()
        );
    }
}
