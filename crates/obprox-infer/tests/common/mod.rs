//! Networks with random parameters.

#![allow(dead_code)] // Each test file takes what it needs.

pub mod naive;

use obprox_infer::graph::Role;
use obprox_infer::images::Preprocessing;
use obprox_infer::{Architecture, Model, Tensor, Training, Weights};

/// Deterministic numbers without a dependency.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Uniform in [−1, 1).
    pub fn signed(&mut self) -> f32 {
        2.0 * self.unit() - 1.0
    }
}

/// Parameters of a network as they might be after training: `density` of the penalised weights are not zero.
pub fn random_weights(architecture: Architecture, density: f32, seed: u64) -> Weights {
    let mut noise = Noise::new(seed);
    let parameters = architecture.graph().parameters();
    let weights = parameters.into_iter().map(|parameter| {
        let mut tensor = Tensor::zeros(parameter.shape.clone());
        let fan_in: usize = parameter.shape[1..].iter().product();
        let scale = (3.0 / (fan_in as f32 * density).max(1.0)).sqrt();
        for value in tensor.data_mut() {
            *value = match parameter.role {
                Role::Weight if noise.unit() >= density => 0.0,
                Role::Weight => scale * noise.signed(),
                Role::NormWeight | Role::RunningVar => 0.5 + noise.unit(),
                Role::Bias | Role::NormBias | Role::RunningMean => 0.3 * noise.signed(),
            };
        }
        (parameter.name, tensor)
    });
    weights.collect()
}

pub fn random_model(architecture: Architecture, density: f32, seed: u64) -> Model {
    let training = Training {
        preprocessing: Some(Preprocessing::plain(32, architecture.channels())),
        labels: (0..architecture.classes()).map(|class| format!("class {class}")).collect(),
    };
    Model::new(architecture, random_weights(architecture, density, seed), training).unwrap()
}

/// Random images as a network takes them.
pub fn random_images(architecture: Architecture, count: usize, [height, width]: [usize; 2], seed: u64) -> Vec<f32> {
    let mut noise = Noise::new(seed);
    (0..count * architecture.channels() * height * width).map(|_| noise.signed()).collect()
}

/// That scores agree with the slow twin's, relative to the largest of them.
pub fn assert_agrees(model: &Model, scores: &[f32], images: &[f32], size: [usize; 2], what: &str) {
    let classes = model.architecture().classes();
    let image_len = model.architecture().channels() * size[0] * size[1];
    assert_eq!(scores.len() / classes, images.len() / image_len, "{what}");
    for (scores, image) in scores.chunks_exact(classes).zip(images.chunks_exact(image_len)) {
        let expected = naive::scores(model, image, size);
        let scale = expected.iter().fold(1.0, |scale: f64, score| scale.max(score.abs()));
        for (score, expected) in scores.iter().zip(expected) {
            assert!((f64::from(*score) - expected).abs() <= 1e-5 * scale, "{what}: {score} where {expected} is right");
        }
    }
}
