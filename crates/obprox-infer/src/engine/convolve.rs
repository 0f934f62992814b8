//! A convolution, ready to be executed: its weights in the form of each kernel that it uses, its outputs split between
//! threads.

use std::ops::Range;
use std::sync::Arc;

use obprox_kernels::{dispatch, dispatch_to_eight};
use rayon::prelude::*;

use super::choice::Choice;
use super::dense::{self, DenseConv, DenseWeights};
use super::kernel::{Finish, Job};
use super::linear::{self, Linear, Matrix, Weights};
use super::narrow::{NarrowConv, NarrowWeights};
use super::plane::{Plane, Tile};
use super::sparse::{SparseConv, SparseWeights};

/// What a convolution is executed with; single images and images side by side share the weights.
#[derive(Clone, Debug)]
pub enum Kernel {
    Sparse {
        weights: Arc<SparseWeights>,
        tiles: Vec<Tile>,
    },
    Dense {
        weights: Arc<DenseWeights>,
        tiles: Vec<Tile>,
    },
    Narrow {
        weights: NarrowWeights,
    },
    /// Outputs of one pixel, zeros skipped.
    Numbers {
        weights: Arc<SparseWeights>,
    },
    /// Outputs of one pixel, by every weight.
    Matrix {
        weights: Arc<Matrix>,
    },
}

impl Kernel {
    /// The choice that it comes from.
    pub fn choice(&self) -> Choice {
        match self {
            Self::Sparse { .. } | Self::Numbers { .. } => Choice::Sparse,
            Self::Dense { .. } | Self::Narrow { .. } | Self::Matrix { .. } => Choice::Dense,
        }
    }

    /// Outputs that must stay together.
    fn group(&self) -> usize {
        match self {
            Self::Sparse { .. } | Self::Numbers { .. } => 1,
            Self::Matrix { .. } => linear::GROUP,
            Self::Dense { .. } => dense::GROUP,
            Self::Narrow { weights } => weights.block,
        }
    }

    /// What the outputs before the given one cost: multiply-adds a pixel, and as much as a few for writing it.
    fn cost_before(&self, output: usize) -> usize {
        const WRITING: usize = 4;
        let weights = match self {
            Self::Sparse { weights, .. } | Self::Numbers { weights } => weights.bounds[output],
            Self::Matrix { weights } => output * weights.offsets.len(),
            Self::Dense { weights, .. } => output * weights.offsets.len(),
            Self::Narrow { weights } => output * weights.offsets.len(),
        };
        weights + WRITING * output
    }
}

/// Multiply-adds that are worth waking a thread for: some ten microseconds of work.
const WORTH_A_THREAD: usize = 1 << 18;

/// Where a convolution reads and writes.
pub struct Buffers<'a> {
    pub input: &'a [f32],
    pub residual: &'a [f32],
    pub out: &'a mut [f32],
}

/// Computes all outputs of a convolution, by at most so many threads.
pub fn convolve(kernel: &Kernel, finish: &Finish, plane: Plane, lanes: usize, buffers: Buffers, threads: usize) {
    let outputs = finish.bias.len();
    let work = kernel.cost_before(outputs) * plane.height * plane.width * lanes;
    let parts = threads.min(work / WORTH_A_THREAD + 1);
    let Buffers { input, residual, mut out } = buffers;
    let mut jobs = Vec::with_capacity(parts);
    for outputs in ranges(kernel, outputs, parts) {
        let (part, rest) = out.split_at_mut(outputs.len() * plane.len * lanes);
        out = rest;
        jobs.push(Job { input, residual, finish, plane, lanes, tiles: tiles(kernel), outputs, out: part });
    }
    match jobs.len() {
        1 => jobs.into_iter().for_each(|job| run(kernel, job)),
        _ => jobs.into_par_iter().for_each(|job| run(kernel, job)),
    }
}

fn tiles(kernel: &Kernel) -> &[Tile] {
    match kernel {
        Kernel::Sparse { tiles, .. } | Kernel::Dense { tiles, .. } => tiles,
        Kernel::Narrow { .. } | Kernel::Numbers { .. } | Kernel::Matrix { .. } => &[],
    }
}

fn run(kernel: &Kernel, job: Job) {
    match kernel {
        Kernel::Sparse { weights, .. } => dispatch(SparseConv { job, weights }),
        Kernel::Dense { weights, .. } => dispatch(DenseConv { job, weights }),
        Kernel::Narrow { weights } => dispatch(NarrowConv { job, weights }),
        Kernel::Numbers { weights } => dispatch_to_eight(Linear { job, weights: Weights::Sparse(weights) }),
        Kernel::Matrix { weights } => dispatch_to_eight(Linear { job, weights: Weights::Dense(weights) }),
    }
}

/// Cuts the outputs into parts of about the same cost.
fn ranges(kernel: &Kernel, outputs: usize, parts: usize) -> Vec<Range<usize>> {
    let group = kernel.group();
    let total = kernel.cost_before(outputs);
    let mut ranges = Vec::with_capacity(parts);
    let mut start = 0;
    for part in 1..=parts {
        let mut end = start;
        while end < outputs && kernel.cost_before(end) * parts < total * part {
            end = (end + group).min(outputs);
        }
        if part == parts {
            end = outputs;
        }
        if end > start {
            ranges.push(start..end);
        }
        start = end;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use obprox_kernels::dispatch_to_eight;

    use super::super::plane::{WIDEST, tiles};
    use super::super::sparse::Tap;
    use super::super::{LANES, VectorWidth, sparse};
    use super::*;

    const INPUTS: usize = 3;
    const OUTPUTS: usize = 6;

    /// All that two kernels need for outputs of 3×3 pixels each of every input.
    fn weights(plane: &Plane) -> (SparseWeights, DenseWeights) {
        let taps = (0..INPUTS * 9).map(|at| (at / 9 * plane.len + at % 9 / 3 * plane.row + at % 3) as u32);
        let weight = |output: usize, at: usize| ((output * 31 + at * 17) % 23) as f32 / 11.0 - 1.0;
        let row = |output: usize| {
            let taps = taps.clone().enumerate();
            taps.map(move |(at, offset)| Tap { offset, weight: weight(output, at) })
        };
        let sparse = SparseWeights {
            taps: (0..OUTPUTS).flat_map(row).collect(),
            bounds: (0..=OUTPUTS).map(|output| output * INPUTS * 9).collect(),
            grouped: false,
        };
        let groups = (0..OUTPUTS).step_by(dense::GROUP);
        let of_group = |first: usize| {
            let of = move |at: usize, output: usize| if output < OUTPUTS { weight(output, at) } else { 0.0 };
            (0..INPUTS * 9).map(move |at| std::array::from_fn(|output| of(at, first + output)))
        };
        (sparse, DenseWeights { weights: groups.flat_map(of_group).collect(), offsets: taps.clone().collect() })
    }

    /// Narrow or wide vectors, tiles of any length, zeros skipped or not: every pixel is the same sum in the same order.
    #[test]
    fn same_bits_for_vectors_of_any_width() {
        let widest = dispatch(VectorWidth);
        for (height, width) in [(2, 2), (3, 7), (7, 7), (8, 8), (13, 11), (14, 14), (16, 16), (20, 23), (9, 32)] {
            for lanes in [1, LANES] {
                let plane = Plane::new(height, width, 1);
                let (sparse, dense) = weights(&plane);
                let mut input: Vec<f32> = (0..(INPUTS * plane.len + 8 * WIDEST) * lanes)
                    .map(|at| (at * at % 1009) as f32 / 505.0 - 1.0)
                    .collect();
                input.chunks_exact_mut(plane.len * lanes).for_each(|input| plane.clear_frame(input, lanes));
                let bias = (0..OUTPUTS).map(|output| output as f32 / 7.0).collect();
                let finish = Finish { bias, residual: vec![u32::MAX; OUTPUTS], bounds: Some([-0.5, 6.0]) };
                let outs = [(8.min(widest), true), (8.min(widest), false), (widest, true), (widest, false)].map(
                    |(unit, is_sparse)| {
                        let most = if is_sparse { sparse::tile(unit) } else { dense::tile(unit) };
                        let tiles = tiles(&plane, lanes, unit, most);
                        let mut out = vec![f32::NAN; OUTPUTS * plane.len * lanes];
                        let (input, residual) = (&input[..], &[][..]);
                        let (outputs, tiles) = (0..OUTPUTS, &tiles[..]);
                        let job = Job { input, residual, finish: &finish, plane, lanes, tiles, outputs, out: &mut out };
                        match (unit == widest, is_sparse) {
                            (true, true) => dispatch(SparseConv { job, weights: &sparse }),
                            (true, false) => dispatch(DenseConv { job, weights: &dense }),
                            (false, true) => dispatch_to_eight(SparseConv { job, weights: &sparse }),
                            (false, false) => dispatch_to_eight(DenseConv { job, weights: &dense }),
                        }
                        out.iter().map(|value| value.to_bits()).collect::<Vec<u32>>()
                    },
                );
                assert!(outs.iter().all(|out| *out == outs[0]), "{height}×{width}, {lanes} lanes");
            }
        }
    }
}
