//! Networks with random parameters.

#![allow(dead_code)] // Each test file takes what it needs.

pub mod files;
pub mod graphs;
pub mod naive;

use obprox_infer::{Architecture, Model, Training};

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

/// A network as it might be after training: `density` of the penalised weights are not zero, the classes have names.
pub fn random_model(architecture: Architecture, density: f32, seed: u64) -> Model {
    let (_, weights, training) = Model::random(architecture, density.into(), seed).unwrap().into_parts();
    let labels = (0..architecture.classes()).map(|class| format!("class {class}")).collect();
    Model::new(architecture, weights, Training { labels, ..training }).unwrap()
}

/// Random images as a network takes them.
pub fn random_images(model: &Model, count: usize, [height, width]: [usize; 2], seed: u64) -> Vec<f32> {
    let mut noise = Noise::new(seed);
    (0..count * model.channels() * height * width).map(|_| noise.signed()).collect()
}

/// That scores agree with the slow twin's, relative to the largest of them.
pub fn assert_agrees(model: &Model, scores: &[f32], images: &[f32], size: [usize; 2], what: &str) {
    let image_len = model.channels() * size[0] * size[1];
    let count = images.len() / image_len;
    for (scores, image) in scores.chunks_exact(scores.len() / count).zip(images.chunks_exact(image_len)) {
        let expected = naive::scores(model, image, size);
        let scale = expected.iter().fold(1.0, |scale: f64, score| scale.max(score.abs()));
        assert_eq!(scores.len(), expected.len(), "{what}");
        for (score, expected) in scores.iter().zip(expected) {
            assert!((f64::from(*score) - expected).abs() <= 1e-5 * scale, "{what}: {score} where {expected} is right");
        }
    }
}
