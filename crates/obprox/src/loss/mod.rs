//! Losses of one row: value, gradient, curvature, smoothness and conjugate, one file each.
//!
//! A loss sees the row's margins m = x·d + b (one, or one a class) and its target. Most losses have one margin: they
//! implement [`ScalarLoss`] and become a [`Loss`] by that.

mod coupled;
mod cox;
mod gamma;
mod huber;
mod logistic;
mod multi_squared;
mod negative_binomial;
mod offset;
mod poisson;
mod softmax;
mod squared;
mod squared_hinge;
mod tweedie;

use std::fmt::Debug;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use coupled::Coupled;
pub use cox::{Cox, Ties};
pub use gamma::Gamma;
pub use huber::Huber;
pub use logistic::Logistic;
pub use multi_squared::MultiSquared;
pub use negative_binomial::NegativeBinomial;
pub(crate) use offset::Offset;
pub use poisson::Poisson;
pub use softmax::Softmax;
pub use squared::Squared;
pub use squared_hinge::SquaredHinge;
pub use tweedie::Tweedie;

/// What the targets of a loss are, and so how labels are turned into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Two classes; targets are −1 for the smaller label and +1 for the larger.
    Binary,
    /// Several classes; targets are 0, 1, … in the order of the labels.
    Classes,
    /// Any finite number.
    Regression,
    /// Numbers that are not negative, with mean e^m.
    Counts,
    /// Times to an event, negative where the row is censored; margins are logarithms of relative hazards.
    Survival,
}

/// A convex, differentiable loss with one margin.
///
/// Only the first four methods are needed to train; the others unlock `--step auto`, second-order solvers and the
/// duality gap.
pub trait ScalarLoss: Debug + Send + Sync {
    /// The name in model files and logs.
    fn name(&self) -> &str;
    /// What the targets are.
    fn task(&self) -> Task;
    /// ℓ(m; y).
    fn value(&self, margin: f64, target: f64) -> f64;
    /// ℓ′(m; y), with respect to the margin.
    fn derivative(&self, margin: f64, target: f64) -> f64;
    /// ℓ″(m; y), where it exists.
    fn curvature(&self, _margin: f64, _target: f64) -> Option<f64> {
        None
    }
    /// The curvature of a parabola that touches ℓ at m and is nowhere below it, where there is one.
    fn upper_curvature(&self, _margin: f64, _target: f64) -> Option<f64> {
        self.smoothness()
    }
    /// The supremum of ℓ″ over all margins, where it is finite.
    fn smoothness(&self) -> Option<f64> {
        None
    }
    /// ℓ*(u; y) = sup over m of u·m − ℓ(m; y): infinite outside its domain, nothing where it is not known.
    fn conjugate(&self, _dual: f64, _target: f64) -> Option<f64> {
        None
    }
    /// The least and the greatest ℓ′ over all margins, where they are finite.
    fn slope_range(&self, _target: f64) -> Option<(f64, f64)> {
        None
    }
    /// A loss that has curvature within this distance of the target and comes near to ℓ beyond it; nothing where ℓ itself
    /// has.
    fn smoother(&self, _width: f64) -> Option<Arc<dyn Loss>> {
        None
    }
    /// The parameter the name alone does not tell.
    fn parameter(&self) -> Option<f64> {
        None
    }
    /// Why a target is none for this loss, beyond what the task says.
    fn refuses(&self, _target: f64) -> Option<&'static str> {
        None
    }
    /// The width of a loss that is a [smoother](Self::smoother) one of its name.
    fn width(&self) -> Option<f64> {
        None
    }

    /// ℓ′ of many rows.
    fn derivatives(&self, margins: &[f64], targets: &[f64], derivatives: &mut [f64]) {
        for ((derivative, &margin), &target) in derivatives.iter_mut().zip(margins).zip(targets) {
            *derivative = self.derivative(margin, target);
        }
    }

    /// ℓ′ and ℓ″ of many rows; false where there is no ℓ″.
    fn expand(&self, margins: &[f64], targets: &[f64], slopes: &mut [f64], curvatures: &mut [f64]) -> bool {
        let out = slopes.iter_mut().zip(curvatures);
        for (((slope, curvature), &margin), &target) in out.zip(margins).zip(targets) {
            let Some(second) = self.curvature(margin, target) else { return false };
            (*slope, *curvature) = (self.derivative(margin, target), second);
        }
        true
    }

    /// Σ ℓ over many rows.
    fn total(&self, margins: &[f64], targets: &[f64]) -> f64 {
        margins.iter().zip(targets).map(|(&margin, &target)| self.value(margin, target)).sum()
    }

    /// Σ ℓ*(s·u; y) over many rows; nothing where it is not known.
    fn total_conjugate(&self, scale: f64, duals: &[f64], targets: &[f64]) -> Option<f64> {
        duals.iter().zip(targets).map(|(&dual, &target)| self.conjugate(scale * dual, target)).sum()
    }
}

/// A loss with `outputs()` margins a row.
pub trait Loss: Debug + Send + Sync {
    /// The name in model files and logs.
    fn name(&self) -> &str;
    /// What the targets are.
    fn task(&self) -> Task;
    /// Margins a row: 1, or the number of classes.
    fn outputs(&self) -> usize;
    /// ℓ(m; y).
    fn value(&self, margins: &[f64], target: f64) -> f64;
    /// ∇ℓ(m; y), with respect to the margins.
    fn gradient(&self, margins: &[f64], target: f64, gradient: &mut [f64]);
    /// The diagonal of ∇²ℓ(m; y); false where the loss has no curvature to give.
    fn curvature(&self, margins: &[f64], target: f64, curvature: &mut [f64]) -> bool;
    /// The curvatures of a parabola that touches ℓ at m and is nowhere below it, where ℓ″ would step too far; false
    /// where there is none to give.
    fn upper_curvature(&self, _margins: &[f64], _target: f64, _curvature: &mut [f64]) -> bool {
        false
    }
    /// The whole ∇²ℓ(m; y), row after row; false where the loss gives no more than the diagonal.
    fn hessian(&self, _margins: &[f64], _target: f64, _hessian: &mut [f64]) -> bool {
        false
    }
    /// A bound on the largest eigenvalue of ∇²ℓ over all margins, where there is one.
    fn smoothness(&self) -> Option<f64>;
    /// Bounds of every entry of ∇ℓ over all margins, where there are some.
    fn slope_range(&self, _target: f64) -> Option<(f64, f64)> {
        None
    }
    /// ℓ*(u; y): infinite outside its domain, nothing where it is not known.
    fn conjugate(&self, dual: &[f64], target: f64) -> Option<f64>;
    /// A loss that has curvature within this distance of the target and comes near to ℓ beyond it; nothing where ℓ itself
    /// has.
    fn smoother(&self, _width: f64) -> Option<Arc<dyn Loss>> {
        None
    }
    /// The parameter the name alone does not tell.
    fn parameter(&self) -> Option<f64> {
        None
    }
    /// Why a target is none for this loss, beyond what the task says.
    fn refuses(&self, _target: f64) -> Option<&'static str> {
        None
    }
    /// The label or number that a target stands for: the target itself, unless the loss keeps those of its rows.
    fn truth(&self, target: f64) -> f64 {
        target
    }
    /// What is added to the margins of a row, where the loss keeps that of its rows.
    fn offset(&self, _target: f64) -> Option<&[f64]> {
        None
    }
    /// The width of a loss that is a [smoother](Self::smoother) one of its name.
    fn width(&self) -> Option<f64> {
        None
    }
    /// The loss of rows with these targets, where it is one of all their margins together.
    fn coupled(&self, _targets: &[f64]) -> Option<Arc<dyn Coupled>> {
        None
    }

    /// The gradients of many rows; margins and gradients lie row after row. One call through the trait object for a
    /// whole batch, so that the inner loop is compiled for the loss at hand.
    fn gradients(&self, margins: &[f64], targets: &[f64], gradients: &mut [f64]) {
        let width = self.outputs();
        for (row, &target) in targets.iter().enumerate() {
            let span = row * width..(row + 1) * width;
            self.gradient(&margins[span.clone()], target, &mut gradients[span]);
        }
    }

    /// The gradients and the diagonals of ∇²ℓ of many rows; false where the loss has no curvature to give.
    fn expand(&self, margins: &[f64], targets: &[f64], gradients: &mut [f64], curvatures: &mut [f64]) -> bool {
        let width = self.outputs();
        self.gradients(margins, targets, gradients);
        targets.iter().enumerate().all(|(row, &target)| {
            let span = row * width..(row + 1) * width;
            self.curvature(&margins[span.clone()], target, &mut curvatures[span])
        })
    }

    /// Σ ℓ over many rows.
    fn total(&self, margins: &[f64], targets: &[f64]) -> f64 {
        let rows = margins.chunks_exact(self.outputs()).zip(targets);
        rows.map(|(margins, &target)| self.value(margins, target)).sum()
    }

    /// Σ ℓ*(s·u; y) over many rows; nothing where it is not known.
    fn total_conjugate(&self, scale: f64, duals: &[f64], targets: &[f64]) -> Option<f64> {
        let mut scaled = vec![0.0; self.outputs()];
        let of = |(duals, &target): (&[f64], &f64)| {
            scaled.iter_mut().zip(duals).for_each(|(scaled, dual)| *scaled = scale * dual);
            self.conjugate(&scaled, target)
        };
        duals.chunks_exact(self.outputs()).zip(targets).map(of).sum()
    }
}

impl<L: ScalarLoss> Loss for L {
    fn name(&self) -> &str {
        ScalarLoss::name(self)
    }

    fn task(&self) -> Task {
        ScalarLoss::task(self)
    }

    fn outputs(&self) -> usize {
        1
    }

    fn value(&self, margins: &[f64], target: f64) -> f64 {
        ScalarLoss::value(self, margins[0], target)
    }

    fn gradient(&self, margins: &[f64], target: f64, gradient: &mut [f64]) {
        gradient[0] = self.derivative(margins[0], target);
    }

    fn curvature(&self, margins: &[f64], target: f64, curvature: &mut [f64]) -> bool {
        ScalarLoss::curvature(self, margins[0], target).map(|second| curvature[0] = second).is_some()
    }

    fn upper_curvature(&self, margins: &[f64], target: f64, curvature: &mut [f64]) -> bool {
        ScalarLoss::upper_curvature(self, margins[0], target).map(|upper| curvature[0] = upper).is_some()
    }

    fn smoothness(&self) -> Option<f64> {
        ScalarLoss::smoothness(self)
    }

    fn conjugate(&self, dual: &[f64], target: f64) -> Option<f64> {
        ScalarLoss::conjugate(self, dual[0], target)
    }

    fn smoother(&self, width: f64) -> Option<Arc<dyn Loss>> {
        ScalarLoss::smoother(self, width)
    }

    fn parameter(&self) -> Option<f64> {
        ScalarLoss::parameter(self)
    }

    fn width(&self) -> Option<f64> {
        ScalarLoss::width(self)
    }

    fn slope_range(&self, target: f64) -> Option<(f64, f64)> {
        ScalarLoss::slope_range(self, target)
    }

    fn refuses(&self, target: f64) -> Option<&'static str> {
        ScalarLoss::refuses(self, target)
    }

    fn gradients(&self, margins: &[f64], targets: &[f64], gradients: &mut [f64]) {
        self.derivatives(margins, targets, gradients);
    }

    fn expand(&self, margins: &[f64], targets: &[f64], gradients: &mut [f64], curvatures: &mut [f64]) -> bool {
        ScalarLoss::expand(self, margins, targets, gradients, curvatures)
    }

    fn total(&self, margins: &[f64], targets: &[f64]) -> f64 {
        ScalarLoss::total(self, margins, targets)
    }

    fn total_conjugate(&self, scale: f64, duals: &[f64], targets: &[f64]) -> Option<f64> {
        ScalarLoss::total_conjugate(self, scale, duals, targets)
    }
}

/// The probability of each class, row after row, of the margins of rows: one a row for two classes (logistic), else one a
/// class (softmax).
pub fn class_probabilities(margins: &[f64], outputs: usize) -> Vec<f64> {
    if outputs == 1 {
        // Both from the margin itself: 1 − p would lose the digits of a small one.
        return margins.iter().flat_map(|&m| [1.0 / (1.0 + m.exp()), 1.0 / (1.0 + (-m).exp())]).collect();
    }
    let mut all = vec![0.0; margins.len()];
    let rows = all.par_chunks_exact_mut(outputs).zip(margins.par_chunks_exact(outputs));
    rows.for_each(|(probabilities, margins)| softmax::probabilities(margins, probabilities));
    all
}

/// The losses that have a name: what a flag, a model file or a Python argument can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// [`Logistic`].
    Logistic,
    /// [`Squared`].
    Squared,
    /// [`SquaredHinge`].
    SquaredHinge,
    /// [`Huber`] with its parameter δ.
    Huber(f64),
    /// [`Poisson`].
    Poisson,
    /// [`Gamma`].
    Gamma,
    /// [`Tweedie`] with its power p.
    Tweedie(f64),
    /// [`NegativeBinomial`] with its θ.
    NegativeBinomial(f64),
    /// [`Softmax`].
    Softmax,
    /// [`Cox`] with what it does about ties.
    Cox(Ties),
}

impl LossKind {
    /// The loss itself; `classes` is used by [`Softmax`] alone.
    pub fn build(self, classes: usize) -> Arc<dyn Loss> {
        match self {
            Self::Logistic => Arc::new(Logistic),
            Self::Squared => Arc::new(Squared),
            Self::SquaredHinge => Arc::new(SquaredHinge),
            Self::Huber(delta) => Arc::new(Huber { delta }),
            Self::Poisson => Arc::new(Poisson),
            Self::Gamma => Arc::new(Gamma),
            Self::Tweedie(power) => Arc::new(Tweedie { power }),
            Self::NegativeBinomial(theta) => Arc::new(NegativeBinomial { theta }),
            Self::Softmax => Arc::new(Softmax { classes }),
            Self::Cox(ties) => Arc::new(Cox { ties }),
        }
    }

    /// The loss of a name and a parameter, which is that of the loss where it is not given; nothing where there is none.
    pub fn from_name(name: &str, parameter: Option<f64>) -> Option<Self> {
        Some(match name {
            "logistic" => Self::Logistic,
            "squared" => Self::Squared,
            "squared-hinge" => Self::SquaredHinge,
            "huber" => Self::Huber(parameter.unwrap_or(Huber::DEFAULT_DELTA)),
            "poisson" => Self::Poisson,
            "gamma" => Self::Gamma,
            "tweedie" if parameter.is_none_or(Tweedie::is_power) => {
                Self::Tweedie(parameter.unwrap_or(Tweedie::DEFAULT_POWER))
            }
            "negative-binomial" if parameter.is_none_or(|theta| theta.is_finite() && theta > 0.0) => {
                Self::NegativeBinomial(parameter.unwrap_or(NegativeBinomial::DEFAULT_THETA))
            }
            "softmax" => Self::Softmax,
            "cox" => Self::Cox(Ties::Efron),
            "cox-breslow" => Self::Cox(Ties::Breslow),
            _ => return None,
        })
    }
}
