//! Networks that were never trained, for measurements and tests.

use obprox::Result;

use crate::architecture::Architecture;
use crate::graph::{Parameter, Role};
use crate::images::Preprocessing;
use crate::model::{Model, Training};
use crate::weights::{Tensor, Weights};

impl Model {
    /// A network of random parameters. Of the weights of convolutions about `density` are not zero, in random places,
    /// scaled so that values neither vanish nor explode on their way. Depthwise convolutions and the last layer have
    /// few weights and are dense: holes in them would make whole channels die, and the rest look faster than it is.
    pub fn random(architecture: Architecture, density: f64, seed: u64) -> Result<Self> {
        let mut noise = Noise(seed);
        let weights: Weights = architecture
            .graph()
            .parameters()
            .into_iter()
            .map(|parameter| {
                let read: usize = parameter.shape[1..].iter().product();
                let density = if is_masked(&parameter) { density } else { 1.0 };
                let scale = (3.0 / (read as f64 * density).max(1.0)).sqrt();
                let mut tensor = Tensor::zeros(parameter.shape);
                for value in tensor.data_mut() {
                    *value = match parameter.role {
                        Role::Weight if noise.unit() >= density => 0.0,
                        Role::Weight => scale * noise.signed(),
                        Role::NormWeight | Role::RunningVar => 0.5 + noise.unit(),
                        Role::Bias | Role::NormBias | Role::RunningMean => 0.3 * noise.signed(),
                    } as f32;
                }
                (parameter.name, tensor)
            })
            .collect();
        let preprocessing = Some(Preprocessing::plain(32, architecture.channels()));
        Self::new(architecture, weights, Training { preprocessing, labels: Vec::new() })
    }
}

/// Weights of convolutions that read more than one channel.
fn is_masked(parameter: &Parameter) -> bool {
    parameter.role == Role::Weight && matches!(parameter.shape[..], [_, inputs, _, _] if inputs > 1)
}

/// SplitMix64.
struct Noise(u64);

impl Noise {
    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [−1, 1).
    fn signed(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }
}
