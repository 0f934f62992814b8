//! Labels and weights of the rows: a file's own numbers in, what a loss wants out.

use std::ops::Range;
use std::sync::Arc;

use crate::data::Buffer;
use crate::loss::{Loss, Task};
use crate::problem::Terms;
use crate::{Error, Result};

/// Targets of the rows as the loss wants them, and how much each row counts.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    /// ±1, class numbers or values.
    pub values: Buffer<f64>,
    /// The labels behind them, in increasing order; none for regression.
    pub labels: Arc<[f64]>,
    /// The weights of the rows, of mean 1; none where all are equal.
    pub weights: Option<Buffer<f64>>,
    /// The sum of the weights as they were given.
    pub total_weight: f64,
}

impl Targets {
    /// Encodes labels for a loss and weighs the rows as the terms have it.
    pub fn new(raw: Buffer<f64>, loss: &dyn Loss, terms: &Terms) -> Result<Self> {
        let all = 0..raw.len();
        Self::of_shards(raw, std::slice::from_ref(&all), loss, terms)
    }

    /// The same of rows in shards, whose weights are added up shard by shard.
    pub fn of_shards(raw: Buffer<f64>, shards: &[Range<usize>], loss: &dyn Loss, terms: &Terms) -> Result<Self> {
        let labels = match &terms.labels {
            Some(known) => labels_among(&raw, known, loss)?,
            None => labels(&raw, loss)?,
        };
        let (weights, total_weight) = row_weights(terms, &raw, &labels, shards)?;
        let weights = weights.map(Into::into);
        Ok(Self { values: encode(raw, &labels, loss.task()), labels: labels.into(), weights, total_weight })
    }

    /// Those of a shard on another machine, whose labels are among these and whose weights are those that it has.
    pub fn of_remote_shard(raw: Buffer<f64>, weights: Option<Vec<f64>>, labels: &[f64], loss: &dyn Loss) -> Self {
        let (values, weights) = (encode(raw, labels, loss.task()), weights.map(Into::into));
        Self { values, labels: labels.into(), weights, total_weight: 0.0 }
    }

    /// Those of rows on other machines, of which one is known.
    pub fn remote(first: f64, labels: Vec<f64>, total_weight: f64, loss: &dyn Loss) -> Self {
        let values = encode(vec![first].into(), &labels, loss.task());
        Self { values, labels: labels.into(), weights: None, total_weight }
    }

    /// The weight of a row.
    #[inline]
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// The same with rows that weigh nothing; the weights of the rest are brought to mean 1 again.
    pub fn holding_out(&self, rows: &[u32]) -> Result<Self> {
        let mut weights: Vec<f64> = (0..self.values.len()).map(|row| self.weight(row)).collect();
        for &row in rows {
            weights[row as usize] = 0.0;
        }
        let scale = weights.len() as f64 / left(&weights)?;
        weights.iter_mut().for_each(|weight| *weight *= scale);
        Ok(Self { weights: Some(weights.into()), total_weight: self.total_weight / scale, ..self.clone() })
    }

    /// Those of a shard: rows one after the other, whose weights stay what they are among all.
    pub fn of_shard(&self, rows: Range<usize>) -> Self {
        let window = |values: &Buffer<f64>| values.window(rows.clone());
        Self { values: window(&self.values), weights: self.weights.as_ref().map(window), ..self.clone() }
    }

    /// Those of some rows alone, of mean weight 1 again.
    pub fn of_rows(&self, rows: &[u32]) -> Result<Self> {
        let of = |values: &[f64]| rows.iter().map(|&row| values[row as usize]).collect::<Vec<f64>>();
        let mut weights = self.weights.as_deref().map(of);
        let mut total_weight = rows.len() as f64;
        if let Some(weights) = &mut weights {
            total_weight = left(weights)?;
            weights.iter_mut().for_each(|weight| *weight *= rows.len() as f64 / total_weight);
        }
        let weights = weights.map(Into::into);
        Ok(Self { values: of(&self.values).into(), labels: Arc::clone(&self.labels), weights, total_weight })
    }
}

/// The sum of the weights of rows that are left.
fn left(weights: &[f64]) -> Result<f64> {
    match weights.iter().sum::<f64>() {
        total if total > 0.0 => Ok(total),
        _ => Err(Error::Data("no row is left to learn from".into())),
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

/// Sizes whose squares, and sums of as many as there can be, are numbers of full precision.
const SQUARES: std::ops::Range<f64> = 1e-145..1e145;

/// The labels in order, none for regression; what is wrong with targets of a loss is said here.
fn labels(raw: &[f64], loss: &dyn Loss) -> Result<Vec<f64>> {
    if let Some(row) = raw.iter().position(|target| !target.is_finite()) {
        return Err(Error::Data(format!("row {}: the target {} is not a finite number", row + 1, raw[row])));
    }
    let name = loss.name();
    check_size(loss.task(), raw.iter().fold(0.0f64, |most, target| most.max(target.abs())))?;
    for (row, &target) in raw.iter().enumerate() {
        if let Some(why) = loss.refuses(target) {
            return Err(Error::Data(format!("row {}: the target is {target}; {why}", row + 1)));
        }
    }
    match loss.task() {
        Task::Regression | Task::Survival => Ok(Vec::new()),
        Task::Counts => match raw.iter().position(|&target| target < 0.0) {
            Some(row) => Err(Error::Data(format!(
                "row {}: the target {} is negative; the {name} loss is for counts",
                row + 1,
                raw[row]
            ))),
            None => Ok(Vec::new()),
        },
        Task::Binary => check_labels(distinct(raw), loss),
        Task::Classes => {
            let labels = distinct(raw);
            if labels.len() >= MANY && labels.len() > raw.len() / 2 {
                return Err(Error::Data(format!(
                    "{} distinct labels in {} rows ({}) are no classes; use squared or huber for real targets",
                    labels.len(),
                    raw.len(),
                    some(&labels)
                )));
            }
            check_labels(labels, loss)
        }
    }
}

/// These labels, where they are those of all rows.
fn labels_among(raw: &[f64], known: &[f64], loss: &dyn Loss) -> Result<Vec<f64>> {
    if !known.is_sorted_by(|a, b| a < b) {
        return Err(Error::parameter("labels", "they must rise"));
    }
    match raw.iter().position(|label| !known.contains(label)) {
        Some(row) => {
            let message = format!("the label {} is none of {}", raw[row], some(known));
            Err(Error::Data(format!("row {}: {message}", row + 1)))
        }
        None => check_labels(known.to_vec(), loss),
    }
}

/// Whether numbers are of a size that can be computed with.
pub(crate) fn check_size(task: Task, largest: f64) -> Result<()> {
    let are_numbers = matches!(task, Task::Regression | Task::Counts);
    if are_numbers && largest > 0.0 && !SQUARES.contains(&largest) {
        let message = "their squares leave the range of numbers; scale them to about 1";
        return Err(Error::Data(format!("the largest of the targets is {largest:e}: {message}")));
    }
    Ok(())
}

/// Whether labels are as many as a loss of classes wants.
pub(crate) fn check_labels(labels: Vec<f64>, loss: &dyn Loss) -> Result<Vec<f64>> {
    let (name, count) = (loss.name(), labels.len());
    match loss.task() {
        Task::Regression | Task::Counts | Task::Survival => Ok(labels),
        _ if count < 2 => Err(one_class(&labels)),
        Task::Binary if count > 2 => Err(Error::Data(format!(
            "the {name} loss is for two classes, but there are {count} distinct labels ({}); \
             use softmax for several classes, or squared for real targets",
            some(&labels)
        ))),
        Task::Classes if count != loss.outputs() => Err(Error::Data(format!(
            "the {name} loss was made for {} classes, but there are {count} distinct labels",
            loss.outputs()
        ))),
        _ => Ok(labels),
    }
}

/// Labels → targets of the loss; those that are targets already stay where they are.
fn encode(raw: Buffer<f64>, labels: &[f64], task: Task) -> Buffer<f64> {
    match task {
        Task::Regression | Task::Counts | Task::Survival => raw,
        Task::Binary if labels == [-1.0, 1.0] => raw,
        Task::Binary => {
            raw.iter().map(|&label| if label == labels[0] { -1.0 } else { 1.0 }).collect::<Vec<f64>>().into()
        }
        Task::Classes if labels.iter().enumerate().all(|(class, &label)| class as f64 == label) => raw,
        Task::Classes => raw.iter().map(|&label| class_of(label, labels) as f64).collect::<Vec<f64>>().into(),
    }
}

/// The number of a label's class, or that of the next one where there is none of it.
fn class_of(label: f64, labels: &[f64]) -> usize {
    labels.partition_point(|&known| known < label)
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

pub(crate) fn check_weights(name: &'static str, weights: Option<&[f64]>, expected: usize, of: &str) -> Result<()> {
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
fn row_weights(terms: &Terms, raw: &[f64], labels: &[f64], shards: &[Range<usize>]) -> Result<(Option<Vec<f64>>, f64)> {
    check_weights("row weights", terms.row_weights.as_deref(), raw.len(), "rows")?;
    if terms.row_weights.is_none() && terms.class_weights.is_none() {
        return Ok((None, raw.len() as f64));
    }
    let mut weights = terms.row_weights.clone().unwrap_or_else(|| vec![1.0; raw.len()]);
    let class = |label: f64| class_of(label, labels);
    if let Some(classes) = &terms.class_weights {
        let mut sums = vec![0.0; labels.len()];
        for rows in shards {
            let mut own = vec![0.0; labels.len()];
            rows.clone().filter(|_| !labels.is_empty()).for_each(|row| own[class(raw[row])] += weights[row]);
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        let of_class = weights_of_classes(classes, labels, &sums, sums.iter().sum())?;
        for (weight, &label) in weights.iter_mut().zip(raw) {
            *weight *= of_class[class(label)];
        }
    }
    let total: f64 = shards.iter().map(|rows| weights[rows.clone()].iter().sum::<f64>()).sum();
    let scale = scale(raw.len() as f64, total)?;
    // A class without weight would have its intercept at minus infinity.
    let mut counts = vec![labels.is_empty() || terms.labels.is_some(); labels.len()];
    for (&label, _) in raw.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0) {
        counts.get_mut(class(label)).into_iter().for_each(|counts| *counts = true);
    }
    check_classes(labels, counts.iter().position(|counts| !counts))?;
    weights.iter_mut().for_each(|weight| *weight *= scale);
    Ok((weights.iter().any(|&weight| weight != 1.0).then_some(weights), total))
}

/// What brings weights of this sum to mean 1.
pub(crate) fn scale(n_rows: f64, total: f64) -> Result<f64> {
    if total <= 0.0 {
        return Err(Error::parameter("row weights", "every weight is zero; some row must count"));
    }
    if !total.is_finite() {
        return Err(Error::parameter("row weights", format!("their sum is {total}; make them smaller")));
    }
    let scale = n_rows / total;
    if !scale.is_finite() {
        let message = format!("their sum is {total:e}, out of the range of numbers; make them larger");
        return Err(Error::parameter("row weights", message));
    }
    Ok(scale)
}

/// Refuses a class whose rows weigh nothing.
pub(crate) fn check_classes(labels: &[f64], without: Option<usize>) -> Result<()> {
    let Some(without) = without else { return Ok(()) };
    let message = format!("every row of the class {} has weight 0; each class must count", labels[without]);
    Err(Error::parameter("row weights", message))
}

/// The weight of each class, whose rows' own weights have these sums.
pub(crate) fn weights_of_classes(classes: &ClassWeights, labels: &[f64], sums: &[f64], total: f64) -> Result<Vec<f64>> {
    if labels.is_empty() {
        return Err(Error::parameter("class weights", "this loss has no classes"));
    }
    let class = |label: f64| class_of(label, labels);
    let mut of_class = vec![1.0; labels.len()];
    match classes {
        ClassWeights::Balanced => {
            for (weight, sum) in of_class.iter_mut().zip(sums).filter(|(_, sum)| **sum > 0.0) {
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
    use crate::loss::LossKind;

    #[test]
    fn distinct_values_are_found_whether_few_or_many() {
        assert_eq!(distinct(&[3.0, -1.0, 3.0, 3.0, -1.0, 0.0]), [-1.0, 0.0, 3.0]);
        let many: Vec<f64> = (0..3000).map(|at| f64::from(at * 7 % 2000)).collect();
        assert_eq!(distinct(&many), (0..2000).map(f64::from).collect::<Vec<_>>());
    }

    #[test]
    fn targets_that_are_encoded_already_are_not_copied() {
        let raws = [vec![-1.0, 1.0, 1.0], vec![0.5, -2.0, 7.0], vec![2.0, 0.0, 1.0], vec![3.0, 5.0, 3.0]];
        let kinds = [LossKind::Logistic, LossKind::Squared, LossKind::Softmax, LossKind::Logistic];
        for ((raw, kind), stays) in raws.into_iter().zip(kinds).zip([true, true, true, false]) {
            let (raw, loss) = (Buffer::from(raw), kind.build(3));
            let targets = Targets::new(raw.clone(), loss.as_ref(), &Terms::default()).unwrap();
            assert_eq!(targets.values.as_ptr() == raw.as_ptr(), stays, "{kind:?}");
            assert_eq!(targets.values[..] == raw[..], stays, "{kind:?}");
        }
    }

    #[test]
    fn weights_of_the_rows_that_are_left_have_mean_1() {
        let terms = Terms { row_weights: Some(vec![1.0, 2.0, 3.0, 2.0]), ..Terms::default() };
        let raw = vec![-1.0, 1.0, 1.0, -1.0].into();
        let targets = Targets::new(raw, LossKind::Logistic.build(2).as_ref(), &terms).unwrap();
        assert_eq!((targets.weight(0), targets.total_weight), (0.5, 8.0));
        let rest = targets.holding_out(&[2]).unwrap();
        assert_eq!(rest.weights.as_deref(), Some(&[0.8, 1.6, 0.0, 1.6][..]));
        assert_eq!(rest.total_weight, 5.0);
        let some = targets.of_rows(&[1, 3]).unwrap();
        assert_eq!((&some.values[..], some.weights.as_deref()), (&[1.0, -1.0][..], Some(&[1.0, 1.0][..])));
        assert!(targets.holding_out(&[0, 1, 2, 3]).is_err());
    }
}
