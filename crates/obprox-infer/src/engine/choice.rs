//! Sparse or dense: which kernel is faster for a convolution.

use crate::fused::ConvShape;

/// Which kernels a network is executed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kernels {
    /// Dead channels left out; each convolution with the kernel that is faster at its density.
    #[default]
    Auto,
    /// Dead channels left out; zeros skipped in every convolution.
    Sparse,
    /// Every weight multiplied, zero or not: what a network costs that is not known to be sparse.
    Dense,
}

/// The kernel of a convolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Zeros are skipped.
    Sparse,
    /// Every weight is multiplied.
    Dense,
}

/// Densities below which zeros are better skipped, as measured (benches/NETS.md has the measurement).
const CROSSOVER_SINGLE: f64 = 0.45;
const CROSSOVER_LANES: f64 = 0.45;

/// For a matrix and one vector: weights are then read one by one rather than by whole vectors.
const CROSSOVER_VECTOR: f64 = 0.15;

/// Chooses for a convolution of which `density` of the weights are nonzero.
pub fn choose(kernels: Kernels, conv: &ConvShape, density: f64, lanes: usize, is_vector: bool) -> Choice {
    let crossover = match lanes {
        1 if is_vector => CROSSOVER_VECTOR,
        1 => CROSSOVER_SINGLE,
        _ => CROSSOVER_LANES,
    };
    let sparse = match kernels {
        // A depthwise convolution has no pixel that serves two outputs, so one kernel does for both.
        _ if conv.groups > 1 => true,
        Kernels::Sparse => true,
        Kernels::Dense => false,
        Kernels::Auto => density < crossover,
    };
    if sparse { Choice::Sparse } else { Choice::Dense }
}
