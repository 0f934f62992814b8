//! The lines of a run log. The command writes these very types and the report reads them, so the two cannot disagree.
//!
//! Every field may be missing or null: a figure that was not computed, a log of an older or a newer version, a number
//! that was not finite. What a reader does not know it passes over.

use obprox::switch::Phase;
use obprox::{Certificate, EpochRecord};
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The first line of a run.
    Start(Box<Start>),
    /// The folds of a cross-validation, before the run on all rows.
    Folds(Folds),
    /// One line an epoch.
    Epoch(Epoch),
    /// One line a λ of a path.
    Lambda(Step),
    /// The weights along a path.
    Curves(Curves),
    /// The last line of a run.
    End(Box<End>),
    /// Of a newer version.
    #[serde(other)]
    Unknown,
}

/// Every setting, the data's shape, λ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    /// Of the program that wrote it.
    pub version: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// The data, as the user named it.
    pub data: Option<String>,
    /// The data that models are scored on.
    pub test: Option<String>,
    /// The file with the rows' weights.
    pub weights: Option<String>,
    /// The file with the features' weights in the penalty.
    pub feature_weights: Option<String>,
    /// Threads.
    pub threads: Option<u64>,
    /// N.
    pub rows: Option<u64>,
    /// n.
    pub n_features: Option<u64>,
    /// Nonzeros of the data.
    pub nnz: Option<u64>,
    /// How the data is held.
    pub storage: Option<String>,
    /// The labels, in increasing order; none for regression.
    pub labels: Vec<f64>,
    /// The loss.
    pub loss: Option<String>,
    /// Its parameter, where it has one.
    pub loss_parameter: Option<f64>,
    /// λ; nothing where a path goes through many.
    pub lambda: Option<f64>,
    /// The smallest λ at which x = 0 is optimal.
    pub lambda_max: Option<f64>,
    /// λ / λ_max.
    pub lambda_ratio: Option<f64>,
    /// λ₂.
    #[serde(alias = "weight_decay")]
    pub l2: Option<f64>,
    /// What the penalty is called, where it is not λ‖x‖₁, and the files that it is made of.
    pub penalty: Option<String>,
    /// Whether there is an intercept.
    pub intercept: Option<bool>,
    /// Whether columns were scaled.
    pub standardize: Option<bool>,
    /// The method.
    pub solver: Option<String>,
    /// At most this many epochs.
    pub epochs: Option<u64>,
    /// Rows in a batch.
    pub batch: Option<u64>,
    /// The first step size.
    pub step: Option<f64>,
    /// How it moves.
    pub schedule: Option<String>,
    /// What it is multiplied by after an epoch.
    pub decay: Option<f64>,
    /// What decides between Prox-SG and Orthant.
    pub switch: Option<String>,
    /// N_P.
    pub np: Option<u64>,
    /// N_O, or inf.
    pub no: Option<String>,
    /// γ of RDA.
    pub gamma: Option<f64>,
    /// Whether Prox-SVRG averages.
    pub average: Option<bool>,
    /// The tolerance.
    pub tol: Option<f64>,
    /// The seed.
    pub seed: Option<u64>,
    /// How often F is computed.
    pub eval_every: Option<u64>,
    /// Epochs of an earlier run that this one continues.
    pub resumed_epochs: Option<u64>,
    /// What is told of a network and of nothing else.
    #[serde(flatten)]
    pub network: Network,
}

/// The part of a start that only networks have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// The family of the network.
    #[serde(deserialize_with = "kind", skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Its channels, relative to the full network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
    /// Parameters that gradients train.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    /// Images that are trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<u64>,
    /// Images that are scored on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_images: Option<u64>,
    /// Names of the classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The file that the first weights came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// What λ weighs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalize: Option<String>,
    /// Layers with a λ of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_lambda: Option<serde_json::Value>,
    /// Epochs from one change of the step size to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay_every: Option<u64>,
    /// Epochs over which the step size rises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<f64>,
    /// The density that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_density: Option<f64>,
    /// Momentum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// Whether images are mirrored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flip: Option<bool>,
    /// By how many pixels images are shifted at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad: Option<u64>,
}

/// The first logs of networks described the whole architecture where later ones have its name.
fn kind<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    let text = |value: &serde_json::Value| value.as_str().or(value["kind"].as_str()).map(str::to_owned);
    Ok(value.as_ref().and_then(text))
}

/// What is known about a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// F.
    #[serde(rename = "F")]
    pub objective: Option<f64>,
    /// f, the mean loss.
    pub f: Option<f64>,
    /// ‖x‖₁.
    pub l1: Option<f64>,
    /// Weights that are not zero.
    pub nnz: Option<u64>,
    /// Nonzeros among all weights, intercept included.
    pub density: Option<f64>,
    /// F − D ≥ F − F*.
    pub gap: Option<f64>,
    /// The gap against |F|.
    pub relative_gap: Option<f64>,
    /// The largest distance of 0 from ∂F.
    pub kkt: Option<f64>,
    /// ‖x − prox(x − ∇f(x))‖₂.
    pub gradient_mapping: Option<f64>,
}

impl From<&Certificate> for Figures {
    fn from(certificate: &Certificate) -> Self {
        Self {
            objective: Some(certificate.objective),
            f: Some(certificate.loss),
            l1: Some(certificate.l1),
            nnz: Some(certificate.nnz as u64),
            density: Some(certificate.density),
            gap: certificate.gap,
            relative_gap: certificate.relative_gap(),
            kkt: Some(certificate.kkt),
            gradient_mapping: Some(certificate.gradient_mapping),
        }
    }
}

/// An epoch, or a round of `auto`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Epoch {
    /// Counted from 1.
    pub epoch: u64,
    /// Steps since the start.
    pub iterations: Option<u64>,
    /// The kind of its last step.
    pub phase: Option<Phase>,
    /// α of its last step.
    pub step_size: Option<f64>,
    /// What the round was, in `auto`.
    #[serde(flatten)]
    pub round: Option<obprox::Round>,
    /// The point at its end.
    #[serde(flatten)]
    pub figures: Figures,
    /// λ of its last step, where λ follows a density that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// The mean loss of its batches as they were trained on, of a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_loss: Option<f64>,
    /// Accuracy or R² on the test data.
    #[serde(alias = "accuracy")]
    pub score: Option<f64>,
    /// Accuracy on the training images, of a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_accuracy: Option<f64>,
    /// Training time since the start, without evaluation.
    pub seconds: Option<f64>,
}

impl From<&EpochRecord> for Epoch {
    fn from(record: &EpochRecord) -> Self {
        Self {
            epoch: record.epoch,
            iterations: Some(record.iterations),
            phase: Some(record.phase),
            step_size: Some(record.step_size),
            round: record.round,
            figures: record.certificate.as_ref().map(Figures::from).unwrap_or_default(),
            score: record.score,
            seconds: Some(record.seconds),
            ..Self::default()
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// converged, max_epochs, diverged, stopped, stalled or missed.
    pub status: Option<String>,
    /// Epochs completed.
    pub epochs: Option<u64>,
    /// Steps taken.
    pub iterations: Option<u64>,
    /// The point.
    #[serde(flatten)]
    pub figures: Figures,
    /// Training time, without evaluation.
    pub seconds: Option<f64>,
    /// Accuracy or R² on the test data.
    #[serde(alias = "accuracy")]
    pub score: Option<f64>,
    /// The share of the deviance of the training data that is explained, where the loss has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviance_explained: Option<f64>,
    /// All that was measured on the test data.
    pub test: Option<serde_json::Value>,
    /// The largest weights, the largest first.
    pub largest_weights: Vec<Weight>,
    /// What is told of a network and of nothing else.
    #[serde(flatten)]
    pub network: NetworkEnd,
}

/// The part of an end that only networks have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkEnd {
    /// The kind of the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Accuracy on the training images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_accuracy: Option<f64>,
    /// Layer by layer, in the order of computing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// Test images by class, and by the class that is predicted for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<u64>>,
    /// Training time by the kind of steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phase_seconds: Vec<(Phase, f64)>,
    /// Why the run did not reach what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
}

/// A layer of a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Layer {
    /// Its name, as PyTorch has it.
    pub name: String,
    /// Its weights.
    pub size: u64,
    /// Those that are not zero.
    pub nnz: u64,
    /// Its λ.
    pub lambda: Option<f64>,
}

/// The weight of a feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    /// The feature, counted from 0 as in a model file.
    pub feature: u64,
    /// Its name, where the data has names.
    #[serde(default)]
    pub name: Option<String>,
    /// The class, where there are several.
    #[serde(default)]
    pub label: Option<f64>,
    /// The weight, in the units of the data.
    pub value: Option<f64>,
}

/// One λ of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// λ.
    pub lambda: Option<f64>,
    /// λ / λ_max.
    pub lambda_ratio: Option<f64>,
    /// How its run ended.
    pub status: Option<String>,
    /// Its point.
    #[serde(flatten)]
    pub figures: Figures,
    /// Epochs of its run.
    pub epochs: Option<u64>,
    /// Training time of its run.
    pub seconds: Option<f64>,
    /// Accuracy or R² on the test data.
    pub score: Option<f64>,
    /// The mean loss on the test data.
    pub test_loss: Option<f64>,
    /// The share of the deviance of the training data that is explained, where the loss has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviance_explained: Option<f64>,
}

/// The weights along a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Curves {
    /// The λ of every value.
    pub lambdas: Vec<Option<f64>>,
    /// The curves with the largest weights, the largest first.
    pub curves: Vec<Curve>,
    /// How many weights are not zero somewhere, drawn or not.
    pub of: u64,
}

/// The weight of one feature (for one class) at every λ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The feature, counted from 0.
    pub feature: u64,
    /// Its name, where the data has names.
    #[serde(default)]
    pub name: Option<String>,
    /// The class, where there are several.
    #[serde(default)]
    pub label: Option<f64>,
    /// One a λ.
    pub values: Vec<Option<f64>>,
}

/// What the folds of a cross-validation said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Folds {
    /// How many.
    pub folds: u64,
    /// Which λ the run on all rows has: best or 1se.
    pub rule: Option<String>,
    /// The λ of the best mean loss.
    pub best: Option<f64>,
    /// The largest λ within one standard error of it.
    pub one_se: Option<f64>,
    /// One a λ.
    pub scores: Vec<Score>,
}

/// What the folds said of a λ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Score {
    /// λ.
    pub lambda: Option<f64>,
    /// The mean of the folds' losses on the rows they held out.
    pub mean: Option<f64>,
    /// Its standard error.
    pub error: Option<f64>,
    /// The mean of accuracy or R².
    pub score: Option<f64>,
    /// The mean number of weights that are not zero.
    pub nnz: Option<f64>,
}
