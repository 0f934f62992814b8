//! Loss and accuracy, with normalisations in evaluation mode.

use burn::module::Module;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor};

use crate::data::Loader;
use crate::net::Net;

/// How well a network does on images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The mean cross-entropy.
    pub loss: f64,
    /// The share of images whose class is predicted.
    pub accuracy: f64,
    /// Images.
    pub images: usize,
}

/// Scores a network; `watch` hears of each batch how many images are done, and ends it by `false`.
pub fn evaluate(net: &Net, batches: Loader, device: &Device, mut watch: impl FnMut(usize) -> bool) -> Option<Score> {
    let net = net.valid();
    let device = device.clone().inner();
    let (mut loss, mut right, mut images) = (0.0, 0u64, 0);
    for batch in batches {
        let count = batch.len();
        let (inputs, labels) = batch.tensors(&device);
        let scores = net.forward(inputs);
        let predicted = scores.clone().argmax(1).reshape([count]);
        right += predicted.equal(labels.clone()).int().sum().into_scalar::<i64>() as u64;
        loss += f64::from(cross_entropy(scores, labels).into_scalar::<f32>()) * count as f64;
        images += count;
        if !watch(images) {
            return None;
        }
    }
    Some(Score { loss: loss / images as f64, accuracy: right as f64 / images as f64, images })
}

/// The mean of −log softmax(scores)[label].
pub(super) fn cross_entropy(scores: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    let [count] = labels.dims();
    log_softmax(scores, 1).gather(1, labels.reshape([count, 1])).mean().neg()
}
