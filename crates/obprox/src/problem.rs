//! The problem: data, loss and penalty.
//!
//! min over (x, b): F = (1/N) Σ wᵢ·loss(yᵢ, x·dᵢ + b) + λ Σ_j w_j|x_j| + (λ₂/2)‖x‖₂², the rows' weights wᵢ scaled to
//! mean 1, b never penalised.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::{Buffer, Dataset, Matrix, Recipe, Scaling, standardise};
use crate::loss::{Loss, Task};
use crate::memory;
use crate::penalty::{Penalty, Regularization};
use crate::rows::at_zero::AtZero;
use crate::rows::{Memory, Shards, stays_in_rows};
use crate::{Error, Result};

/// What a fit takes for a weight, at the least: the weight, its slope and bound, and what the solver keeps of it.
const BYTES_A_WEIGHT: u128 = 48;

/// How λ is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Lambda {
    /// 1/N, the paper's choice.
    OverN,
    /// A fraction of λ_max, the smallest λ at which x = 0 is optimal.
    OfMax(f64),
    /// The number itself.
    Value(f64),
}

/// What a problem adds to its data and loss.
#[derive(Clone, Debug)]
pub struct Terms {
    /// λ.
    pub lambda: Lambda,
    /// λ₂, the weight of ½‖x‖₂².
    pub l2: f64,
    /// A weight of λ for each feature; 0 leaves it unpenalised.
    pub feature_weights: Option<Vec<f64>>,
    /// A weight for each row; scaled to mean 1.
    pub row_weights: Option<Vec<f64>>,
    /// A weight for the rows of each class.
    pub class_weights: Option<ClassWeights>,
    /// Whether there is an intercept b.
    pub intercept: bool,
    /// Whether columns are scaled to unit deviation first; weights are reported in the original units.
    pub standardize: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lambda: Lambda::OverN,
            l2: 0.0,
            feature_weights: None,
            row_weights: None,
            class_weights: None,
            intercept: true,
            standardize: false,
        }
    }
}

/// Weights of the classes.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassWeights {
    /// Every class counts the same in all: N / (classes · rows of the class), rows counting as much as their weights.
    Balanced,
    /// (label, weight) pairs; labels not named have weight 1.
    Given(Vec<(f64, f64)>),
}

/// Data, loss and penalty; cheap to clone, since the data is shared.
#[derive(Clone, Debug)]
pub struct Problem {
    matrix: Arc<Matrix>,
    targets: Arc<[f64]>,
    labels: Arc<[f64]>,
    names: Option<Arc<[String]>>,
    recipe: Option<Arc<Recipe>>,
    row_weights: Option<Arc<[f64]>>,
    total_weight: f64,
    loss: Arc<dyn Loss>,
    regularization: Regularization,
    intercept: bool,
    scaling: Option<Arc<Scaling>>,
    lambda_max: f64,
    least_scale: f64,
    /// For each feature the most its slope can be at any point, where that is known.
    steepest: Option<Buffer<f32>>,
    /// ∂f/∂x at x = 0 with b at its optimum, where it is worth keeping.
    slopes_at_zero: Option<Buffer<f64>>,
    /// The features that are worked on, one after the other, where they were taken out of the rows.
    columns: Option<Arc<Matrix>>,
    /// Features that were left out because their weights are 0 at the optimum; the density still counts them.
    left_out: usize,
}

impl Problem {
    /// States a problem. Everything about it is checked here, once.
    pub fn new(data: Dataset, loss: Arc<dyn Loss>, terms: &Terms) -> Result<Self> {
        let (n_rows, n_cols) = (data.matrix.n_rows(), data.matrix.n_cols());
        if n_rows == 0 {
            return Err(Error::Data("there are no rows to learn from".into()));
        }
        if n_rows >= u32::MAX as usize {
            return Err(Error::Data(format!("{n_rows} rows: at most {} are supported", u32::MAX - 1)));
        }
        if n_cols.checked_mul(loss.outputs()).is_none_or(|size| size >= u32::MAX as usize) {
            return Err(Error::Data(format!("{n_cols} columns × {} outputs are too many", loss.outputs())));
        }
        // A single stray index can ask for more memory than there is; say so instead of falling over it later.
        let bytes = BYTES_A_WEIGHT * n_cols as u128 * loss.outputs() as u128;
        memory::check(bytes, || format!("{n_cols} columns (is an index in the data wrong?)"))?;
        let weights = terms.feature_weights.as_deref();
        check_weights("feature weights", weights, n_cols, "features")?;
        if let Some(at) = weights.unwrap_or_default().iter().position(|weight| weight.is_subnormal()) {
            let message = "is too small to divide by; give 0 to leave the feature free, or more";
            return Err(Error::parameter("feature weights", format!("number {} {message}", at + 1)));
        }
        if let Some(recipe) = data.recipe.as_ref().filter(|recipe| !recipe.classes().is_empty())
            && matches!(loss.task(), Task::Regression | Task::Counts)
        {
            let label = recipe.label().unwrap_or_default();
            let message = format!("label column `{label}`: has words, but the {} loss is for numbers", loss.name());
            return Err(Error::Data(message));
        }
        let (targets, labels) = encode(&data.targets, loss.as_ref())?;
        let (row_weights, total_weight) = row_weights(terms, &data.targets, &labels)?;
        let (matrix, scaling) = if terms.standardize {
            let (matrix, scaling) = standardise(&data.matrix, terms.intercept);
            (matrix, Some(Arc::new(scaling)))
        } else {
            (data.matrix.filled(), None)
        };
        let mut problem = Self {
            matrix: Arc::new(matrix),
            targets: targets.into(),
            labels: labels.into(),
            names: data.names.map(Into::into),
            recipe: data.recipe,
            row_weights: row_weights.map(Into::into),
            total_weight,
            loss,
            regularization: Regularization { l1: 0.0, l2: 0.0, weights: weights.map(Into::into) },
            intercept: terms.intercept,
            scaling,
            lambda_max: 0.0,
            least_scale: 0.0,
            steepest: None,
            slopes_at_zero: None,
            columns: None,
            left_out: 0,
        };
        problem.look_at_zero();
        problem.with_lambda(terms.lambda)?.with_l2(terms.l2)
    }

    /// What x = 0 tells of the problem.
    fn look_at_zero(&mut self) {
        let AtZero { lambda_max, least_scale, steepest, slopes } = AtZero::of(self);
        (self.lambda_max, self.least_scale) = (lambda_max, least_scale);
        (self.steepest, self.slopes_at_zero) = (steepest, slopes);
    }

    /// For each feature the largest |∂f/∂x_j| there can be at any point, where that is known and features are many.
    pub(crate) fn steepest(&self) -> Option<&[f32]> {
        self.steepest.as_deref()
    }

    /// ∂f/∂x at x = 0 with b at its optimum, where it was kept.
    pub(crate) fn slopes_at_zero(&self) -> Option<&[f64]> {
        self.slopes_at_zero.as_deref()
    }

    /// The same problem at another λ; the data is shared.
    pub fn with_lambda(mut self, lambda: Lambda) -> Result<Self> {
        let value = match lambda {
            Lambda::OverN => 1.0 / self.n_rows() as f64,
            Lambda::OfMax(fraction) => fraction * self.lambda_max,
            Lambda::Value(value) => value,
        };
        if !(value.is_finite() && value >= 0.0) {
            return Err(Error::parameter("lambda", format!("{value} must be a finite number, not negative")));
        }
        self.regularization.l1 = value;
        Ok(self)
    }

    /// The same problem at another λ₂; the data is shared.
    pub fn with_l2(mut self, l2: f64) -> Result<Self> {
        if !(l2.is_finite() && l2 >= 0.0) {
            return Err(Error::parameter("l2", format!("{l2} must be a finite number, not negative")));
        }
        self.regularization.l2 = l2;
        Ok(self)
    }

    /// The same problem learnt from the other rows; the data is shared. The held-out rows weigh nothing and the weights
    /// of the rest are brought to mean 1 again, so f is the mean over the rest and λ keeps its meaning; λ_max is that
    /// of the rest. Columns that were standardised keep the scale they have on all rows.
    pub fn holding_out(&self, rows: &[u32]) -> Result<Self> {
        let mut weights: Vec<f64> = (0..self.n_rows()).map(|row| self.row_weight(row)).collect();
        for &row in rows {
            weights[row as usize] = 0.0;
        }
        let total: f64 = weights.iter().sum();
        if total <= 0.0 {
            return Err(Error::Data("no row is left to learn from".into()));
        }
        let scale = self.n_rows() as f64 / total;
        weights.iter_mut().for_each(|weight| *weight *= scale);
        let total_weight = self.total_weight / scale;
        let mut rest = Self { row_weights: Some(weights.into()), total_weight, ..self.clone() };
        rest.look_at_zero();
        Ok(rest)
    }

    /// The same problem on some of its rows alone, which are copied: f is their mean, and λ keeps its meaning.
    pub(crate) fn on_rows(&self, rows: &[u32]) -> Result<Self> {
        let of = |values: &[f64]| rows.iter().map(|&row| values[row as usize]).collect::<Vec<f64>>();
        let mut row_weights = self.row_weights.as_deref().map(of);
        let mut total_weight = rows.len() as f64;
        if let Some(weights) = &mut row_weights {
            let total: f64 = weights.iter().sum();
            if total <= 0.0 {
                return Err(Error::Data("no row is left to learn from".into()));
            }
            weights.iter_mut().for_each(|weight| *weight *= rows.len() as f64 / total);
            total_weight = total;
        }
        let mut part = Self {
            matrix: Arc::new(self.matrix.keep_rows(rows)),
            targets: of(&self.targets).into(),
            row_weights: row_weights.map(Into::into),
            total_weight,
            columns: None,
            ..self.clone()
        };
        part.look_at_zero();
        Ok(part)
    }

    /// The same problem feature by feature: on these features alone, which rise and are numbered anew, or on all. It has
    /// the same optimum where the others are 0 there. Names, scaling and rows stay with the whole problem.
    pub(crate) fn by_columns(&self, features: Option<&[u32]>) -> Self {
        let columns = Some(Arc::new(self.matrix.transposed(features)));
        match features {
            Some(features) => Self { columns, ..self.without_others(features) },
            None => Self { columns, ..self.clone() },
        }
    }

    /// The same problem on these features alone, which rise and are numbered anew; the others are left out of the rows. It
    /// has the same optimum where they are 0 there. Names and scaling stay with the whole problem.
    pub(crate) fn on_features(&self, features: &[u32]) -> Self {
        Self { matrix: Arc::new(self.matrix.keep_columns(features)), ..self.without_others(features) }
    }

    fn without_others(&self, features: &[u32]) -> Self {
        let left_out = self.n_features() - features.len();
        let of = |slopes: &[f64]| features.iter().map(|&at| slopes[at as usize]).collect::<Vec<f64>>().into();
        let slopes = self.slopes_at_zero().map(of);
        let regularization = self.regularization.keep(features);
        Self { left_out, regularization, steepest: None, slopes_at_zero: slopes, ..self.clone() }
    }

    /// The same problem with another loss for the same targets; λ keeps its value.
    pub(crate) fn with_loss(&self, loss: Arc<dyn Loss>) -> Self {
        let mut problem = Self { loss, ..self.clone() };
        problem.look_at_zero();
        problem
    }

    /// The rows, for whoever has jobs for them.
    pub(crate) fn rows(&self) -> Box<dyn Shards> {
        Box::new(Memory::new(Arc::new(self.clone()), stays_in_rows(self)))
    }

    /// The features one after the other, where they were taken out of the rows.
    pub(crate) fn columns(&self) -> Option<&Matrix> {
        self.columns.as_deref()
    }

    /// Weights and intercepts, those of features that were left out included.
    pub(crate) fn n_coordinates(&self) -> usize {
        (self.n_features() + self.left_out + usize::from(self.intercept)) * self.outputs()
    }

    /// The rows.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Targets as the loss wants them: ±1, class numbers or values.
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }

    /// The labels behind the targets, in increasing order; empty for regression.
    pub fn labels(&self) -> &[f64] {
        &self.labels
    }

    /// Names of the features, where the data has them.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// How the features were made of a table's columns, where the data is one.
    pub fn recipe(&self) -> Option<&Recipe> {
        self.recipe.as_deref()
    }

    /// The weight of a row; 1 on average.
    #[inline]
    pub fn row_weight(&self, row: usize) -> f64 {
        self.row_weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// The weights of the rows, where they are not all 1.
    pub fn row_weights(&self) -> Option<&[f64]> {
        self.row_weights.as_deref()
    }

    /// The sum of the rows' weights as they were given: N where there are none. 1/(C·this) is the λ of a C that weighs
    /// the sum of the losses instead of the mean.
    pub fn total_weight(&self) -> f64 {
        self.total_weight
    }

    /// The loss.
    pub fn loss(&self) -> &dyn Loss {
        self.loss.as_ref()
    }

    /// The penalty.
    pub fn regularization(&self) -> &Regularization {
        &self.regularization
    }

    /// λ.
    pub fn lambda(&self) -> f64 {
        self.regularization.l1
    }

    /// The smallest λ at which x = 0 is optimal, the intercept being at its own optimum.
    pub fn lambda_max(&self) -> f64 {
        self.lambda_max
    }

    /// The least that a duality gap is measured against: see [`crate::certificate`].
    pub(crate) fn least_scale(&self) -> f64 {
        self.least_scale
    }

    /// How far margins may be expected to lie from those at x = 0: the deviation of real targets, about 1 for classes. A
    /// loss that grows only linearly lets them lie further away.
    pub(crate) fn margin_unit(&self) -> f64 {
        let at_zero = 1e3 * self.least_scale;
        let linear = match self.loss.slope_range(self.targets[0]) {
            Some((low, high)) => at_zero / low.abs().max(high.abs()),
            None => 0.0,
        };
        (2.0 * at_zero).sqrt().max(linear)
    }

    /// Whether there is an intercept.
    pub fn has_intercept(&self) -> bool {
        self.intercept
    }

    /// N.
    pub fn n_rows(&self) -> usize {
        self.matrix.n_rows()
    }

    /// n.
    pub fn n_features(&self) -> usize {
        self.columns.as_ref().map_or(self.matrix.n_cols(), |columns| columns.n_rows())
    }

    /// Margins a row: 1, or the number of classes.
    pub fn outputs(&self) -> usize {
        self.loss.outputs()
    }

    /// How the columns were scaled, where they were.
    pub fn scaling(&self) -> Option<&Scaling> {
        self.scaling.as_deref()
    }
}

/// Weights x (feature j, output k at j·K + k) and intercepts b of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// x.
    pub weights: Vec<f64>,
    /// b, one an output; zeros where the problem has no intercept.
    pub intercept: Vec<f64>,
}

impl Point {
    /// x = 0, b = 0.
    pub fn zero(problem: &Problem) -> Self {
        let outputs = problem.outputs();
        Self { weights: vec![0.0; problem.n_features() * outputs], intercept: vec![0.0; outputs] }
    }

    /// The weights that are not zero, by their place.
    pub(crate) fn nonzeros(&self) -> Vec<(u32, f64)> {
        let nonzero = self.weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
        nonzero.map(|(at, &weight)| (at as u32, weight)).collect()
    }

    /// Of several intercepts a softmax sees only the differences: of all that are the same to it, those with mean 0.
    pub(crate) fn centre_intercepts(&mut self) {
        if self.intercept.len() > 1 {
            let mean = self.intercept.iter().sum::<f64>() / self.intercept.len() as f64;
            self.intercept.iter_mut().for_each(|value| *value -= mean);
        }
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.weights.iter().chain(&self.intercept).all(|value| value.is_finite())
    }
}

/// Sizes whose squares, and sums of as many as there can be, are numbers of full precision.
const SQUARES: std::ops::Range<f64> = 1e-145..1e145;

/// Labels → targets of the loss, and the labels in order.
fn encode(raw: &[f64], loss: &dyn Loss) -> Result<(Vec<f64>, Vec<f64>)> {
    if let Some(row) = raw.iter().position(|target| !target.is_finite()) {
        return Err(Error::Data(format!("row {}: the target {} is not a finite number", row + 1, raw[row])));
    }
    let name = loss.name();
    let largest = raw.iter().fold(0.0f64, |most, target| most.max(target.abs()));
    let are_numbers = matches!(loss.task(), Task::Regression | Task::Counts);
    if are_numbers && largest > 0.0 && !SQUARES.contains(&largest) {
        let message = "their squares leave the range of numbers; scale them to about 1";
        return Err(Error::Data(format!("the largest of the targets is {largest:e}: {message}")));
    }
    match loss.task() {
        Task::Regression => Ok((raw.to_vec(), Vec::new())),
        Task::Counts => match raw.iter().position(|&target| target < 0.0) {
            Some(row) => Err(Error::Data(format!(
                "row {}: the target {} is negative; the {name} loss is for counts",
                row + 1,
                raw[row]
            ))),
            None => Ok((raw.to_vec(), Vec::new())),
        },
        Task::Binary => {
            let labels = distinct(raw);
            match labels[..] {
                [_] => Err(one_class(&labels)),
                [low, _] => Ok((raw.iter().map(|&label| if label == low { -1.0 } else { 1.0 }).collect(), labels)),
                _ => Err(Error::Data(format!(
                    "the {name} loss is for two classes, but there are {} distinct labels ({}); \
                     use softmax for several classes, or squared for real targets",
                    labels.len(),
                    some(&labels)
                ))),
            }
        }
        Task::Classes => {
            let labels = distinct(raw);
            if labels.len() < 2 {
                return Err(one_class(&labels));
            }
            if labels.len() >= MANY && labels.len() > raw.len() / 2 {
                return Err(Error::Data(format!(
                    "{} distinct labels in {} rows ({}) are no classes; use squared or huber for real targets",
                    labels.len(),
                    raw.len(),
                    some(&labels)
                )));
            }
            if labels.len() != loss.outputs() {
                return Err(Error::Data(format!(
                    "the {name} loss was made for {} classes, but there are {} distinct labels",
                    loss.outputs(),
                    labels.len()
                )));
            }
            let class = |label: &f64| labels.partition_point(|known| known < label) as f64;
            Ok((raw.iter().map(class).collect(), labels))
        }
    }
}

fn one_class(labels: &[f64]) -> Error {
    Error::Data(format!("every row has the label {}: two classes are needed to learn from", some(labels)))
}

/// More distinct values than this are sorted, not looked up; so many labels are classes only if rows share them.
const MANY: usize = 1000;

/// The distinct values, in increasing order.
pub fn distinct(values: &[f64]) -> Vec<f64> {
    let mut distinct: Vec<f64> = Vec::new();
    let mut last = f64::NAN;
    for &value in values {
        // Runs of equal labels are common, and a label seen before is the rule: look, do not sort all.
        if value != last {
            last = value;
            // Real targets that were taken for labels: inserting each would be quadratic.
            if distinct.len() == MANY {
                let mut all = values.to_vec();
                all.sort_unstable_by(f64::total_cmp);
                all.dedup();
                return all;
            }
            let at = distinct.partition_point(|&known| known < value);
            if distinct.get(at) != Some(&value) {
                distinct.insert(at, value);
            }
        }
    }
    distinct
}

fn some(labels: &[f64]) -> String {
    let mut words: Vec<String> = labels.iter().take(4).map(f64::to_string).collect();
    if labels.len() > 4 {
        words.push("…".into());
    }
    words.join(", ")
}

fn check_weights(name: &'static str, weights: Option<&[f64]>, expected: usize, of: &str) -> Result<()> {
    let Some(weights) = weights else { return Ok(()) };
    if weights.len() != expected {
        return Err(Error::parameter(name, format!("{} weights for {expected} {of}", weights.len())));
    }
    match weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        Some(at) => {
            let message = format!("number {} is {}; weights are finite and not negative", at + 1, weights[at]);
            Err(Error::parameter(name, message))
        }
        None => Ok(()),
    }
}

/// The rows' weights times their classes', scaled to mean 1 (nothing where all are equal), and the sum they had.
fn row_weights(terms: &Terms, raw: &[f64], labels: &[f64]) -> Result<(Option<Vec<f64>>, f64)> {
    check_weights("row weights", terms.row_weights.as_deref(), raw.len(), "rows")?;
    if terms.row_weights.is_none() && terms.class_weights.is_none() {
        return Ok((None, raw.len() as f64));
    }
    let mut weights = terms.row_weights.clone().unwrap_or_else(|| vec![1.0; raw.len()]);
    let class = |label: f64| labels.partition_point(|&known| known < label);
    if let Some(classes) = &terms.class_weights {
        let of_class = class_weights(classes, &weights, raw, labels)?;
        for (weight, &label) in weights.iter_mut().zip(raw) {
            *weight *= of_class[class(label)];
        }
    }
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return Err(Error::parameter("row weights", "every weight is zero; some row must count"));
    }
    if !total.is_finite() {
        return Err(Error::parameter("row weights", format!("their sum is {total}; make them smaller")));
    }
    // A class without weight would have its intercept at minus infinity.
    let mut counts = vec![labels.is_empty(); labels.len()];
    for (&label, _) in raw.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0) {
        counts.get_mut(class(label)).into_iter().for_each(|counts| *counts = true);
    }
    if let Some(without) = counts.iter().position(|counts| !counts) {
        let message = format!("every row of the class {} has weight 0; each class must count", labels[without]);
        return Err(Error::parameter("row weights", message));
    }
    let scale = raw.len() as f64 / total;
    if !scale.is_finite() {
        let message = format!("their sum is {total:e}, out of the range of numbers; make them larger");
        return Err(Error::parameter("row weights", message));
    }
    weights.iter_mut().for_each(|weight| *weight *= scale);
    Ok((weights.iter().any(|&weight| weight != 1.0).then_some(weights), total))
}

/// The weight of each class.
fn class_weights(classes: &ClassWeights, row_weights: &[f64], raw: &[f64], labels: &[f64]) -> Result<Vec<f64>> {
    if labels.is_empty() {
        return Err(Error::parameter("class weights", "this loss has no classes"));
    }
    let class = |label: f64| labels.partition_point(|&known| known < label);
    let mut of_class = vec![1.0; labels.len()];
    match classes {
        ClassWeights::Balanced => {
            let mut sums = vec![0.0; labels.len()];
            raw.iter().zip(row_weights).for_each(|(&label, weight)| sums[class(label)] += weight);
            let total: f64 = row_weights.iter().sum();
            for (weight, sum) in of_class.iter_mut().zip(sums).filter(|(_, sum)| *sum > 0.0) {
                *weight = total / (labels.len() as f64 * sum);
            }
        }
        ClassWeights::Given(pairs) => {
            for &(label, weight) in pairs {
                if !(weight.is_finite() && weight >= 0.0) {
                    let message = format!("{weight} for class {label}; weights are finite and not negative");
                    return Err(Error::parameter("class weights", message));
                }
                if labels.get(class(label)) != Some(&label) {
                    let message = format!("there is no class {label}; the classes are {}", some(labels));
                    return Err(Error::parameter("class weights", message));
                }
                of_class[class(label)] = weight;
            }
        }
    }
    Ok(of_class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_values_are_found_whether_few_or_many() {
        assert_eq!(distinct(&[3.0, -1.0, 3.0, 3.0, -1.0, 0.0]), [-1.0, 0.0, 3.0]);
        let many: Vec<f64> = (0..3000).map(|at| f64::from(at * 7 % 2000)).collect();
        assert_eq!(distinct(&many), (0..2000).map(f64::from).collect::<Vec<_>>());
    }
}
