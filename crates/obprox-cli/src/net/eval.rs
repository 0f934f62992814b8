//! `obprox net eval`: how well and how sparse a network is.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use obprox_infer::images::Images;
use obprox_infer::{Model, Training};
use obprox_nn::data::{Augment, Feed};
use obprox_nn::train::{Score, evaluate};
use obprox_nn::{Net, device};
use serde::Serialize;

use super::flags::PenaltyFlags;
use super::images::{ImageFlags, images};
use super::show::{figures, layers};
use crate::failure::Failure;
use crate::flags::{count, not_negative};
use crate::show::{self, bold, pairs, percent};
use crate::watch;

/// Measure a network: F with normalisations in evaluation mode, accuracy, density layer by layer
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Eval {
    /// A network as safetensors, of obprox or of PyTorch, or compressed
    net: PathBuf,

    /// Images, as for obprox net train
    data: PathBuf,

    /// Images to score on, where they are not found in DATA
    #[arg(long, value_name = "DIR")]
    test: Option<PathBuf>,

    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,

    /// Threads [default: one a core]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Measure on so many of the training images, drawn at random but always the same ones
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true, help_heading = "The images")]
    limit: Option<u64>,

    #[command(flatten)]
    images: ImageFlags,

    #[command(flatten)]
    penalty: PenaltyFlags,

    /// The weight λ₂ of (λ₂/2)‖x‖² in F
    #[arg(long, value_name = "LAMBDA2", default_value = "0", value_parser = not_negative, allow_negative_numbers = true)]
    weight_decay: f64,
}

const EXAMPLES: &str = "\
Examples:
  obprox net eval net.safetensors fashion-mnist/
  obprox net eval net.safetensors cifar10/ --lambda 1e-3 --json
  obprox net eval from-pytorch.safetensors cifar10/ --normalize imagenet";

#[derive(Serialize)]
struct Report {
    network: String,
    data: String,
    lambda: f64,
    #[serde(rename = "F")]
    objective: f64,
    f: f64,
    l1: f64,
    nnz: usize,
    density: f64,
    density_all: f64,
    train_accuracy: f64,
    accuracy: Option<f64>,
    test_loss: Option<f64>,
    confusion: Option<Vec<Vec<u64>>>,
    layers: Vec<Layer>,
}

#[derive(Serialize)]
struct Layer {
    name: String,
    size: usize,
    nnz: usize,
    lambda: f64,
}

impl Eval {
    pub fn run(self) -> Result<(), Failure> {
        crate::threads::start(self.threads)?;
        let (design, weights, training) = Model::read(&self.net)?.into_parts();
        let architecture = design.architecture().map_err(Failure::about(&self.net.display().to_string()))?;
        let preprocessing = self.images.of_file(&self.net, training.preprocessing, architecture.channels())?;
        let data = images(&self.data, self.test.as_ref(), &preprocessing, self.limit, self.json)?;
        if architecture.classes() != data.classes.len() {
            let message = format!("{}: is for other images: {architecture}", self.net.display());
            return Err(Failure::input(message));
        }
        let net = Net::new(architecture, &weights, &device())?;
        let penalty = self.penalty.penalty();
        penalty.check(&net.params())?;
        let sparsity = penalty.measure(&net.params(), &weights);
        let model = Model::new(architecture, weights, Training::default())?;
        let score = |images: &Arc<Images>| -> Result<Score, Failure> {
            let _waiting = watch::waiting(format!("predicting {} images", images.len()), self.json);
            let feed = Feed::new(images.clone(), &preprocessing, BATCH, Augment::NONE, 0);
            let scored = evaluate(&model, &preprocessing, feed.plain(), |_| true)?;
            Ok(scored.expect("nothing tells it to stop"))
        };
        let (train, test) = (score(&data.train)?, data.test.as_ref().map(score).transpose()?);
        let objective = train.loss + sparsity.term + 0.5 * self.weight_decay * sparsity.squares;
        if self.json {
            let report = Report {
                network: self.net.display().to_string(),
                data: self.data.display().to_string(),
                lambda: penalty.lambda,
                objective,
                f: train.loss,
                l1: sparsity.l1,
                nnz: sparsity.penalized.nonzero,
                density: sparsity.penalized.density(),
                density_all: sparsity.all.density(),
                train_accuracy: train.accuracy,
                accuracy: test.as_ref().map(|test| test.accuracy),
                test_loss: test.as_ref().map(|test| test.loss),
                confusion: test.map(|test| test.confusion),
                layers: sparsity
                    .layers
                    .iter()
                    .map(|layer| Layer {
                        name: layer.name.clone(),
                        size: layer.size,
                        nnz: layer.nonzero,
                        lambda: layer.lambda,
                    })
                    .collect(),
            };
            let text = serde_json::to_string_pretty(&report).expect("a report is plain data");
            return show::print(&(text + "\n"));
        }
        let accuracy = test.map(|test| test.accuracy);
        let mut rows = figures(Some(objective), Some(train.loss), accuracy, &sparsity, penalty.lambda);
        rows.push(("training accuracy", percent(train.accuracy)));
        let title = bold(&format!("{} on {}", self.net.display(), self.data.display()));
        show::print(&format!("{title}\n{architecture}\n\n{}\n{}", pairs(rows), layers(&sparsity)))
    }
}

/// Images that are predicted at a time.
const BATCH: usize = 256;
