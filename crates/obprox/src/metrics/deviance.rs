//! The share of the deviance that a model explains: 1 − (f − best)/(null − best), where `null` is the mean loss of the best
//! constant prediction and `best` that of predictions that meet every target. 0 is no better than a constant, 1 is
//! perfect; of the squared loss it is R². Only where the loss is a likelihood: logistic, softmax, squared, Poisson, gamma,
//! Tweedie, negative binomial, and Cox, where the constant is no difference between rows.

use crate::Problem;
use crate::loss::LossKind;

/// The two losses that a model lies between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviance {
    null: f64,
    best: f64,
}

impl Deviance {
    /// Of the training data, its weights and whether there is an intercept included; nothing where the loss has none.
    pub fn of(problem: &Problem) -> Option<Self> {
        if let Some(coupled) = problem.coupled() {
            let least = coupled.least(problem.row_weights()) / problem.total_rows() as f64;
            return Self::between(problem.null_loss(), least);
        }
        let weight = |row: usize| problem.row_weight(row);
        let (loss, name) = (problem.loss(), (problem.loss().name(), problem.loss().parameter()));
        if !problem.has_offset() {
            return Self::of_targets(name, problem.outputs(), problem.targets(), weight, problem.has_intercept());
        }
        // Margins that meet every target are met with offsets too; the constant is beside them.
        let targets: Vec<f64> = problem.targets().iter().map(|&target| loss.truth(target)).collect();
        let known = Self::of_targets(name, problem.outputs(), &targets, weight, problem.has_intercept())?;
        Self::between(problem.null_loss(), known.best)
    }

    /// Of these two losses; nothing where there is nothing to explain.
    pub(crate) fn between(null: f64, best: f64) -> Option<Self> {
        (null > best).then_some(Self { null, best })
    }

    /// Of targets as a loss wants them.
    pub(crate) fn of_targets(
        (loss, parameter): (&str, Option<f64>),
        outputs: usize,
        targets: &[f64],
        weight: impl Fn(usize) -> f64,
        intercept: bool,
    ) -> Option<Self> {
        if targets.is_empty() || (loss != "softmax" && outputs != 1) {
            return None;
        }
        let total: f64 = (0..targets.len()).map(&weight).sum();
        let mean = |of: &dyn Fn(f64) -> f64| {
            targets.iter().enumerate().map(|(row, &target)| weight(row) * of(target)).sum::<f64>() / total
        };
        // −x ln x, continued to 0.
        let entropy = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
        let is = |class: f64| move |target: f64| f64::from(u8::from(target == class));
        let (null, best) = match (loss, intercept) {
            ("logistic", true) => (entropy(mean(&is(1.0))) + entropy(mean(&is(-1.0))), 0.0),
            ("logistic", false) => (2f64.ln(), 0.0),
            ("softmax", true) => ((0..outputs).map(|class| entropy(mean(&is(class as f64)))).sum(), 0.0),
            ("softmax", false) => ((outputs as f64).ln(), 0.0),
            ("squared", _) => {
                let centre = if intercept { mean(&|target| target) } else { 0.0 };
                (0.5 * mean(&|target| (target - centre) * (target - centre)), 0.0)
            }
            ("poisson", _) => {
                let rate = if intercept { mean(&|target| target) } else { 1.0 };
                let null = if intercept { rate + entropy(rate) } else { 1.0 };
                (null, mean(&|target| target + entropy(target)))
            }
            ("gamma" | "tweedie" | "negative-binomial", _) => {
                // Where a target is met the margin is its logarithm; that of 0 is as good as far below.
                let loss = LossKind::from_name(loss, parameter)?.build(1);
                let at = |target: f64, rate: f64| loss.value(&[rate.max(1e-300).ln()], target);
                let rate = if intercept { mean(&|target| target) } else { 1.0 };
                (mean(&|target| at(target, rate)), mean(&|target| at(target, target)))
            }
            _ => return None,
        };
        Self::between(null, best)
    }

    /// The share that a mean loss explains; below 0 where it is worse than a constant's.
    pub fn explained(&self, loss: f64) -> f64 {
        1.0 - (loss - self.best) / (self.null - self.best)
    }
}
