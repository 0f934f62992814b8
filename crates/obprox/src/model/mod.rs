//! Weights and how to predict with them; saved as JSON, exactly.

mod file;
mod liblinear;

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::data::{Dataset, Matrix, Recipe, ShardedData};
use crate::loss::{LossKind, Task, class_probabilities};
use crate::metrics::{self, Deviance, Explained, Metrics};
use crate::problem::{Point, Problem};
use crate::rows::pass;
use crate::{Error, Result};

/// So many weights are held in a row without a question; more only where they are no more than so many times the
/// nonzeros that are multiplied.
const FEW: usize = 1 << 20;
const FAR: usize = 64;

/// The nonzero weights of one output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// b.
    pub intercept: f64,
    /// Features whose weight is not zero, in increasing order, counted from 0.
    pub indices: Vec<u32>,
    /// Their weights.
    pub values: Vec<f64>,
}

/// A linear model, in the units of the data it was trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The loss's name.
    pub loss: String,
    /// The loss's parameter, where it has one.
    pub loss_parameter: Option<f64>,
    /// What it predicts.
    pub task: Task,
    /// Features it was trained on.
    pub n_features: usize,
    /// Labels in increasing order; empty for regression.
    pub labels: Vec<f64>,
    /// What the labels are called, where they have names: as many as labels, or none.
    pub label_names: Vec<String>,
    /// One block, or one a class.
    pub blocks: Vec<Block>,
    /// λ.
    pub lambda: f64,
    /// λ₂.
    pub l2: f64,
    /// What the penalty is called, where it is not λ‖x‖₁.
    pub penalty: Option<String>,
    /// Names of the features that any block uses, where the data had names: (feature, name).
    pub names: Vec<(u32, String)>,
    /// How the features it uses are made of a table's columns, where it was trained on a table.
    pub table: Option<Recipe>,
    /// Whether it was learnt beside offsets, which predictions then need too.
    pub offset: bool,
    /// The figures of the fit.
    pub certificate: Option<Certificate>,
}

impl Model {
    /// The model of a point of a problem.
    pub fn new(problem: &Problem, point: &Point, certificate: &Certificate) -> Self {
        let outputs = problem.outputs();
        let mut point = point.clone();
        if let Some(scaling) = problem.scaling() {
            scaling.to_original(&mut point.weights, outputs, &mut point.intercept);
            // Means of columns are not told from an intercept, which such a loss does not see.
            point = if problem.coupled().is_some() { point.settled(problem) } else { point };
        }
        let mut blocks: Vec<Block> =
            point.intercept.iter().map(|&intercept| Block { intercept, ..Block::default() }).collect();
        let mut used = Vec::new();
        for (feature, weights) in point.weights.chunks_exact(outputs).enumerate() {
            for (block, &weight) in blocks.iter_mut().zip(weights) {
                if weight != 0.0 {
                    block.indices.push(feature as u32);
                    block.values.push(weight);
                }
            }
            if weights.iter().any(|&weight| weight != 0.0) {
                used.push(feature as u32);
            }
        }
        let name = |all: &[String], feature: u32| (feature, all[feature as usize].clone());
        let names = problem.names().map(|all| used.iter().map(|&feature| name(all, feature)).collect());
        Self {
            loss: problem.loss().name().to_owned(),
            loss_parameter: problem.loss().parameter(),
            task: problem.loss().task(),
            n_features: problem.n_features(),
            labels: problem.labels().to_vec(),
            label_names: problem.recipe().map_or(Vec::new(), |recipe| recipe.classes().to_vec()),
            blocks,
            lambda: problem.lambda(),
            l2: problem.regularization().l2,
            penalty: problem.regularization().name().map(str::to_owned),
            names: names.unwrap_or_default(),
            table: problem.recipe().map(|recipe| recipe.used(&used)),
            offset: problem.has_offset(),
            certificate: Some(certificate.clone()),
        }
    }

    /// Weights that are not zero, over all blocks.
    pub fn nnz(&self) -> usize {
        self.blocks.iter().map(|block| block.indices.len()).sum()
    }

    /// What a label is called: its name, or the number.
    pub fn label_name(&self, label: f64) -> String {
        let at = self.labels.iter().position(|&known| known == label);
        at.and_then(|at| self.label_names.get(at)).cloned().unwrap_or_else(|| label.to_string())
    }

    /// The name of a feature, where it has one.
    pub fn name(&self, feature: u32) -> Option<&str> {
        let at = self.names.binary_search_by_key(&feature, |(feature, _)| *feature).ok()?;
        Some(&self.names[at].1)
    }

    /// The margins of each row, one a block. Columns the model does not know count for nothing.
    pub fn margins(&self, matrix: &Matrix) -> Vec<f64> {
        let outputs = self.blocks.len();
        // As long as the model uses or the data has, whichever the loop below needs.
        let used =
            self.blocks.iter().filter_map(|block| block.indices.last()).max().map_or(0, |&last| last as usize + 1);
        let all_known = matrix.n_cols() <= self.n_features;
        let len = if all_known { used.max(matrix.n_cols()) } else { used };
        // One far index in a test file, or a model that says it knows 2³² features, must not cost gigabytes.
        if len > FEW && len > FAR * (self.nnz() + matrix.nnz()) {
            return self.margins_by_lookup(matrix);
        }
        let mut point = Point { weights: vec![0.0; len * outputs], intercept: self.intercepts() };
        for (output, block) in self.blocks.iter().enumerate() {
            for (&feature, &value) in block.indices.iter().zip(&block.values) {
                point.weights[feature as usize * outputs + output] = value;
            }
        }
        if all_known {
            return pass::margins(matrix, &point);
        }
        self.add_up(matrix, |column| point.weights.get(column * outputs..(column + 1) * outputs))
    }

    /// The same, in the memory of the nonzeros.
    fn margins_by_lookup(&self, matrix: &Matrix) -> Vec<f64> {
        let outputs = self.blocks.len();
        let mut features: Vec<u32> = self.blocks.iter().flat_map(|block| block.indices.iter().copied()).collect();
        features.sort_unstable();
        features.dedup();
        let place = |feature: u32| features.binary_search(&feature).ok();
        let mut weights = vec![0.0; features.len() * outputs];
        for (output, block) in self.blocks.iter().enumerate() {
            for (&feature, &value) in block.indices.iter().zip(&block.values) {
                if let Some(at) = place(feature) {
                    weights[at * outputs + output] = value;
                }
            }
        }
        self.add_up(matrix, |column| place(column as u32).map(|at| &weights[at * outputs..(at + 1) * outputs]))
    }

    /// Margins with the weights that `of` gives for a column, where there are any.
    fn add_up<'a>(&self, matrix: &Matrix, of: impl Fn(usize) -> Option<&'a [f64]> + Sync) -> Vec<f64> {
        let (outputs, intercepts) = (self.blocks.len(), self.intercepts());
        let mut margins = vec![0.0; matrix.n_rows() * outputs];
        margins.par_chunks_exact_mut(outputs.max(1)).enumerate().for_each(|(row, margins)| {
            margins.copy_from_slice(&intercepts);
            matrix.for_each(row, |column, value| {
                if let Some(weights) = of(column) {
                    margins.iter_mut().zip(weights).for_each(|(margin, weight)| *margin += value * weight);
                }
            });
        });
        margins
    }

    fn intercepts(&self) -> Vec<f64> {
        self.blocks.iter().map(|block| block.intercept).collect()
    }

    /// The label, value or expected count of each row.
    pub fn predict(&self, matrix: &Matrix) -> Vec<f64> {
        self.decide(&self.margins(matrix))
    }

    /// The same of rows that have offsets, K numbers a row.
    pub fn predict_with(&self, matrix: &Matrix, offset: Option<&[f64]>) -> Result<Vec<f64>> {
        Ok(self.decide(&self.margins_with(matrix, offset)?))
    }

    /// The margins of each row with their offsets. A model that was learnt beside offsets has to be given them.
    pub fn margins_with(&self, matrix: &Matrix, offset: Option<&[f64]>) -> Result<Vec<f64>> {
        let mut margins = self.margins(matrix);
        match offset {
            None if self.offset => {
                return Err(Error::parameter(
                    "offset",
                    "the model was learnt beside offsets: give those of these rows",
                ));
            }
            Some(_) if !self.offset => {
                return Err(Error::parameter("offset", "the model was learnt without offsets and has no use for them"));
            }
            Some(offset) if offset.len() != margins.len() => {
                let message = format!("{} numbers where {} are needed, one a row", offset.len(), margins.len());
                return Err(Error::parameter("offset", message));
            }
            _ => margins.iter_mut().zip(offset.unwrap_or_default()).for_each(|(margin, offset)| *margin += offset),
        }
        Ok(margins)
    }

    fn decide(&self, margins: &[f64]) -> Vec<f64> {
        match self.task {
            Task::Regression | Task::Survival => margins.to_vec(),
            Task::Counts => margins.iter().map(|margin| margin.exp()).collect(),
            Task::Binary => margins.iter().map(|&margin| self.labels[usize::from(margin > 0.0)]).collect(),
            Task::Classes => margins.chunks_exact(self.blocks.len()).map(|row| self.labels[best(row)]).collect(),
        }
    }

    /// The probability of each label, in their order; only where the loss is a likelihood of classes.
    pub fn probabilities(&self, matrix: &Matrix) -> Result<Vec<f64>> {
        self.probabilities_with(matrix, None)
    }

    /// The same of rows that have offsets, K numbers a row.
    pub fn probabilities_with(&self, matrix: &Matrix, offset: Option<&[f64]>) -> Result<Vec<f64>> {
        self.check_probabilities()?;
        Ok(class_probabilities(&self.margins_with(matrix, offset)?, self.blocks.len()))
    }

    /// Refuses where the loss is no likelihood of classes, and so has no probabilities.
    pub fn check_probabilities(&self) -> Result<()> {
        match self.loss.as_str() {
            "logistic" | "softmax" => Ok(()),
            loss => Err(Error::Data(format!("a model of the {loss} loss has no probabilities"))),
        }
    }

    /// The targets that the loss of this model wants for labels; an unknown label is an error.
    fn targets(&self, labels: &[f64]) -> Result<Vec<f64>> {
        let class = |(row, label): (usize, &f64)| match self.labels.iter().position(|known| known == label) {
            Some(class) => Ok(class as f64),
            None => Err(Error::Data(format!(
                "row {}: the model knows no label {label}; it knows {}",
                row + 1,
                self.labels.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")
            ))),
        };
        match self.task {
            Task::Regression | Task::Counts | Task::Survival => Ok(labels.to_vec()),
            Task::Classes => labels.iter().enumerate().map(class).collect(),
            Task::Binary => labels.iter().enumerate().map(|row| class(row).map(|class| 2.0 * class - 1.0)).collect(),
        }
    }

    /// How well the model does on labelled data.
    pub fn evaluate(&self, data: &Dataset) -> Result<Metrics> {
        self.evaluate_with(data, None)
    }

    /// The same of rows that have offsets, K numbers a row.
    pub fn evaluate_with(&self, data: &Dataset, offset: Option<&[f64]>) -> Result<Metrics> {
        self.judge(&self.margins_with(&data.matrix, offset)?, &data.targets)
    }

    /// The same on rows that are read shard by shard.
    pub fn evaluate_shards(&self, data: &Arc<ShardedData>) -> Result<Metrics> {
        let mut margins = Vec::with_capacity(data.n_rows() * self.blocks.len());
        for shard in data.read(None, (0..data.n_shards()).collect()) {
            margins.extend(self.margins_with(&shard?.1, None)?);
        }
        self.judge(&margins, &data.targets()?)
    }

    /// The same of rows with these [margins](Self::margins_with) and labels: those of pieces of the data, one after the other.
    pub fn judge(&self, margins: &[f64], labels: &[f64]) -> Result<Metrics> {
        let targets = self.targets(labels)?;
        let kind = LossKind::from_name(&self.loss, self.loss_parameter);
        if self.task == Task::Survival {
            return self.judge_times(kind, margins, &targets);
        }
        let loss = kind.map(|kind| {
            let (loss, width) = (kind.build(self.blocks.len()), self.blocks.len());
            let sum =
                pass::sum_rows(targets.len(), |row| loss.value(&margins[row * width..(row + 1) * width], targets[row]));
            sum / targets.len() as f64
        });
        let name = (self.loss.as_str(), self.loss_parameter);
        let deviance = Deviance::of_targets(name, self.blocks.len(), &targets, |_| 1.0, true);
        // The constant beside offsets is not known here.
        let deviance = deviance.filter(|_| !self.offset);
        let explained = Explained { loss, deviance: deviance.zip(loss).map(|(of, loss)| of.explained(loss)) };
        let predicted = self.decide(margins);
        Ok(match self.task {
            Task::Regression | Task::Counts | Task::Survival => metrics::regression(&predicted, labels, explained),
            Task::Binary | Task::Classes => {
                let scores = (self.task == Task::Binary).then_some(margins);
                let scores = (scores, self.loss == "logistic");
                metrics::classification(&predicted, labels, &self.labels, scores, explained)
            }
        })
    }

    /// The same of times: what these rows, compared with each other alone, say of the margins.
    fn judge_times(&self, kind: Option<LossKind>, margins: &[f64], times: &[f64]) -> Result<Metrics> {
        let loss = kind.map(|kind| kind.build(1));
        if let Some(row) = times.iter().position(|&time| !time.is_finite() || time == 0.0) {
            let message = "is no time: give one that is not 0, negative where the row is censored";
            return Err(Error::Data(format!("row {}: {} {message}", row + 1, times[row])));
        }
        let coupled = loss.and_then(|loss| loss.coupled(times)).filter(|coupled| coupled.events(None) > 0);
        let mean = |total: f64| total / times.len() as f64;
        let loss = coupled.as_ref().map(|coupled| mean(coupled.total(margins, None)));
        let deviance = coupled.and_then(|coupled| {
            let null = mean(coupled.total(&vec![0.0; times.len()], None));
            Deviance::between(null, mean(coupled.least(None)))
        });
        // The constant beside offsets is not known here.
        let deviance = deviance.filter(|_| !self.offset).zip(loss).map(|(of, loss)| of.explained(loss));
        Ok(metrics::survival(margins, times, Explained { loss, deviance }))
    }

    /// One number to choose by, larger is better: accuracy, concordance, or R².
    pub fn score(&self, data: &Dataset) -> Result<f64> {
        Ok(self.evaluate(data)?.score())
    }
}

/// Labelled rows to measure models on, wherever they are.
#[derive(Clone, Copy)]
pub(crate) enum Labelled<'a> {
    Memory(&'a Dataset),
    Shards(&'a Arc<ShardedData>),
}

impl Labelled<'_> {
    /// How well a model does on them.
    pub fn measure(self, model: &Model) -> Result<Metrics> {
        match self {
            Self::Memory(data) => model.evaluate(data),
            Self::Shards(data) => model.evaluate_shards(data),
        }
    }
}

/// The largest margin's place; the first among equals.
pub(crate) fn best(margins: &[f64]) -> usize {
    (1..margins.len()).fold(0, |best, at| if margins[at] > margins[best] { at } else { best })
}
