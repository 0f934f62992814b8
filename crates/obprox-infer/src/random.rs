//! Networks that were never trained, for measurements and tests.

use obprox::Result;

use crate::architecture::Architecture;
use crate::graph::{Parameter, Role};
use crate::images::Preprocessing;
use crate::model::{Model, Training};
use crate::weights::{Tensor, Weights};

/// Where the nonzero weights of a network are that was never trained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pattern {
    /// Every weight has the same chance.
    #[default]
    Even,
    /// As training leaves them: large layers are sparser than small ones, few channels have most of the weights.
    Uneven,
}

impl Model {
    /// A network of random parameters. Of the weights of convolutions about `density` are not zero, in random places,
    /// scaled so that values neither vanish nor explode on their way. Depthwise convolutions and the last layer have
    /// few weights and are dense: holes in them would make whole channels die, and the rest look faster than it is.
    pub fn random(architecture: Architecture, density: f64, seed: u64) -> Result<Self> {
        Self::random_with(architecture, density, Pattern::Even, seed)
    }

    /// The same with the nonzero weights in a pattern.
    pub fn random_with(architecture: Architecture, density: f64, pattern: Pattern, seed: u64) -> Result<Self> {
        let mut noise = Noise(seed);
        let parameters = architecture.graph().parameters();
        let densities = layer_densities(&parameters, density, pattern);
        let weights: Weights = parameters
            .into_iter()
            .zip(densities)
            .map(|(parameter, density)| {
                let read: usize = parameter.shape[1..].iter().product();
                let scale = (3.0 / (read as f64 * density).max(1.0)).sqrt();
                let mut tensor = Tensor::zeros(parameter.shape.clone());
                let chances = Chances::new(&parameter, density, pattern, &mut noise);
                for (at, value) in tensor.data_mut().iter_mut().enumerate() {
                    *value = match parameter.role {
                        Role::Weight if noise.unit() >= chances.of(at) => 0.0,
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

/// The density of each parameter. Uneven ones fall with the root of the size, all together they are `density`.
fn layer_densities(parameters: &[Parameter], density: f64, pattern: Pattern) -> Vec<f64> {
    let sizes = parameters.iter().map(|parameter| parameter.shape.iter().product::<usize>() as f64);
    let sizes: Vec<(f64, bool)> = sizes.zip(parameters.iter().map(is_masked)).collect();
    let masked = || sizes.iter().filter(|(_, masked)| *masked).map(|(size, _)| *size);
    let (all, roots) = (masked().sum::<f64>(), masked().map(f64::sqrt).sum::<f64>());
    let of_layer = |&(size, masked): &(f64, bool)| match pattern {
        _ if !masked => 1.0,
        Pattern::Even => density,
        Pattern::Uneven => (density * all / roots / size.sqrt()).min(1.0),
    };
    sizes.iter().map(of_layer).collect()
}

/// How likely each weight of a parameter is not to be zero.
struct Chances {
    density: f64,
    /// How much likelier weights to an output and from an input are than others; empty where all are alike.
    outputs: Vec<f64>,
    inputs: Vec<f64>,
    kernel: usize,
}

impl Chances {
    fn new(parameter: &Parameter, density: f64, pattern: Pattern, noise: &mut Noise) -> Self {
        // The square of a uniform number has the mean 1/3: half of the channels get less than a quarter of the most.
        let mut channels = |count: usize| (0..count).map(|_| 3.0 * noise.unit().powi(2)).collect();
        let (outputs, inputs) = match (pattern, &parameter.shape[..]) {
            (Pattern::Uneven, &[outputs, inputs, _, _]) if is_masked(parameter) => {
                (channels(outputs), channels(inputs))
            }
            _ => (Vec::new(), Vec::new()),
        };
        Self { density, outputs, inputs, kernel: parameter.shape.iter().skip(2).product() }
    }

    /// Of the weight at a place in memory.
    fn of(&self, at: usize) -> f64 {
        match self.inputs.len() {
            0 => self.density,
            inputs => {
                let (output, input) = (at / self.kernel / inputs, at / self.kernel % inputs);
                self.density * self.outputs[output] * self.inputs[input]
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::Kind;

    /// What is measured at a density has that density, and the uneven pattern is one.
    #[test]
    fn patterns_have_the_density_that_was_asked_for() {
        let architecture = Architecture::new(Kind::ResNet18).with_width(0.5).unwrap();
        for pattern in [Pattern::Even, Pattern::Uneven] {
            let model = Model::random_with(architecture, 0.05, pattern, 1).unwrap();
            let density = |names: &dyn Fn(&str) -> bool| {
                let convs = model.weights().iter().filter(|(name, tensor)| tensor.shape().len() == 4 && names(name));
                let (nonzeros, all) = convs.fold((0, 0), |(n, all), (_, t)| (n + t.nnz(), all + t.len()));
                nonzeros as f64 / all as f64
            };
            let (all, early, late) = (
                density(&|_| true),
                density(&|name| name.contains("layer1")),
                density(&|name| name.contains("layer4")),
            );
            assert!((0.045..0.055).contains(&all), "{pattern:?}: {all}");
            assert_eq!(early > 3.0 * late, pattern == Pattern::Uneven, "{pattern:?}: {early} and {late}");
        }
    }
}
