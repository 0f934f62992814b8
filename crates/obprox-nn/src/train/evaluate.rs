//! Loss and accuracy, with normalisations in evaluation mode, by the engine that serves networks.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor};
use obprox::Result;
use obprox_infer::Model;
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::images::Preprocessing;

use crate::data::{Batch, Loader};

/// How well a network does on images.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The mean cross-entropy.
    pub loss: f64,
    /// The share of images whose class is predicted.
    pub accuracy: f64,
    /// Images.
    pub images: usize,
    /// Images by class (a row each) and by the class that is predicted for them.
    pub confusion: Vec<Vec<u64>>,
}

/// Scores a network; `watch` hears of each batch how many images are done, and ends it by `false`.
pub fn evaluate(
    model: &Model,
    preprocessing: &Preprocessing,
    batches: Loader,
    mut watch: impl FnMut(usize) -> bool,
) -> Result<Option<Score>> {
    let engine = Engine::new(model, Kernels::Auto, [preprocessing.height, preprocessing.width])?;
    let classes = model.classes();
    let (mut loss, mut images) = (0.0, 0);
    let mut confusion = vec![vec![0; classes]; classes];
    for batch in batches {
        let scores = engine.run(batch.values())?;
        loss += tally(&batch, &scores, &mut confusion);
        images += batch.len();
        if !watch(images) {
            return Ok(None);
        }
    }
    let right: u64 = (0..classes).map(|class| confusion[class][class]).sum();
    let count = images.max(1) as f64;
    Ok(Some(Score { loss: loss / count, accuracy: right as f64 / count, images, confusion }))
}

/// Counts predictions; the sum of −log softmax(scores)[label].
fn tally(batch: &Batch, scores: &[f32], confusion: &mut [Vec<u64>]) -> f64 {
    let mut loss = 0.0;
    for (scores, &label) in scores.chunks_exact(confusion.len()).zip(batch.labels()) {
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = scores.iter().map(|score| f64::from(score - most).exp()).sum();
        let label = label as usize;
        loss += sum.ln() - f64::from(scores[label] - most);
        let predicted = scores.iter().position(|score| *score == most).unwrap_or(0);
        confusion[label][predicted] += 1;
    }
    loss
}

/// The mean of −log softmax(scores)[label].
pub(super) fn cross_entropy(scores: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    let [count] = labels.dims();
    log_softmax(scores, 1).gather(1, labels.reshape([count, 1])).mean().neg()
}
