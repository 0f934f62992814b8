//! The step size α as a pure function of the epoch and the step.

use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::rows::full;
use crate::{Error, Result};

/// How α moves from its first value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Multiplied by a factor after every epoch, as in the paper.
    Decay(f64),
    /// Never changed.
    Constant,
    /// α₀/k in the k-th step.
    OverK,
    /// α₀/√k in the k-th step.
    OverSqrtK,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::Decay(0.995)
    }
}

impl Schedule {
    /// α in a step: `epoch` and `step` count from 0 over the whole run.
    pub fn at(self, first: f64, epoch: u64, step: u64) -> f64 {
        match self {
            Self::Decay(factor) => first * factor.powf(epoch as f64),
            Self::Constant => first,
            Self::OverK => first / (step as f64 + 1.0),
            Self::OverSqrtK => first / (step as f64 + 1.0).sqrt(),
        }
    }
}

/// How the first α is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum StepSize {
    /// 1/𝓛 with the expected smoothness 𝓛 of a batch: see [`auto`].
    Auto,
    /// The number itself.
    Value(f64),
}

impl Default for StepSize {
    fn default() -> Self {
        Self::Value(1.0)
    }
}

impl StepSize {
    /// The number for a problem and a batch size.
    pub fn resolve(self, problem: &Problem, batch: usize) -> Result<f64> {
        match self {
            Self::Value(value) if value.is_finite() && value > 0.0 => Ok(value),
            Self::Value(value) => Err(Error::parameter("step", format!("{value} must be a positive finite number"))),
            Self::Auto => auto(problem, batch),
        }
    }
}

/// α = 1/𝓛, where 𝓛 = (N(b − 1)·L + (N − b)·L_max) / (b(N − 1)) is the expected smoothness of a batch of b rows drawn
/// without replacement (Gower et al., SGD: general analysis and improved rates, 2019).
///
/// L is the smoothness of f, the loss's constant times the largest eigenvalue of (1/N) Σ wᵢ dᵢdᵢᵀ (by power iteration);
/// L_max that of the worst row. b = N gives 1/L, b = 1 gives 1/L_max.
pub fn auto(problem: &Problem, batch: usize) -> Result<f64> {
    let Some(constant) = problem.loss().smoothness() else {
        let message = format!("the {} loss has no bound on its curvature: give a number", problem.loss().name());
        return Err(Error::parameter("step", message));
    };
    let (whole, worst) = full::smoothness(problem)?;
    let (n, b) = (problem.n_rows() as f64, batch as f64);
    let expected =
        if problem.n_rows() == 1 { worst } else { (n * (b - 1.0) * whole + (n - b) * worst) / (b * (n - 1.0)) };
    let smoothness = constant * expected + problem.regularization().l2;
    Ok(if smoothness > 0.0 { 1.0 / smoothness } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_their_formulas() {
        assert_eq!(Schedule::Decay(0.5).at(1.0, 3, 99), 0.125);
        assert_eq!(Schedule::Constant.at(0.3, 3, 99), 0.3);
        assert_eq!(Schedule::OverK.at(2.0, 0, 0), 2.0);
        assert_eq!(Schedule::OverK.at(2.0, 0, 3), 0.5);
        assert_eq!(Schedule::OverSqrtK.at(2.0, 0, 3), 1.0);
    }
}
