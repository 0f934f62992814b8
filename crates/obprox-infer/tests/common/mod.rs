//! Networks with random parameters.

#![allow(dead_code)] // Each test file takes what it needs.

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
