//! The weights that training begins with: a function of the architecture and the seed.

use obprox_infer::graph::Role;
use obprox_infer::{Architecture, Tensor, Weights};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// PyTorch's defaults: weights and biases uniform within ±1/√(inputs of an output), normalisations the identity.
pub fn initial_weights(architecture: Architecture, seed: u64) -> obprox::Result<Weights> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    let mut weights = Weights::new();
    let mut fan_in = 1;
    for parameter in architecture.graph().parameters() {
        let count: usize = parameter.shape.iter().product();
        if parameter.role == Role::Weight {
            // A bias follows its weight, and has the same bound.
            fan_in = parameter.shape[1..].iter().product();
        }
        let bound = 1.0 / (fan_in as f32).sqrt();
        let values = match parameter.role {
            Role::Weight | Role::Bias => (0..count).map(|_| bound * (2.0 * unit(&mut rng) - 1.0)).collect(),
            Role::NormWeight | Role::RunningVar => vec![1.0; count],
            Role::NormBias | Role::RunningMean => vec![0.0; count],
        };
        weights.insert(parameter.name, Tensor::new(parameter.shape, values)?);
    }
    Ok(weights)
}

/// The stream of the seed's generator that weights are drawn from; epochs have the low ones.
const STREAM: u64 = u64::MAX - 1;

/// Uniform in [0, 1), 24 bits.
fn unit(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1 << 24) as f32
}
