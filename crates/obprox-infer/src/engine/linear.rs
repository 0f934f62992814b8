//! Layers whose output is one pixel: a matrix and a vector, or the last convolution of a network. What is read is a list
//! of numbers, the same for every output, or, where zeros are skipped, one of its own for each.

use pulp::{Simd, WithSimd};

use super::kernel::{Job, NO_CHANNEL};
use super::sparse::SparseWeights;

/// Outputs of a dense matrix that are computed together.
pub const GROUP: usize = 4;

/// Outputs × numbers, row after row; where each number lies, in pixels; whether they lie one after the other.
#[derive(Clone, Debug)]
pub struct Matrix {
    pub weights: Vec<f32>,
    pub offsets: Vec<u32>,
    pub contiguous: bool,
}

/// The weights in either form.
#[derive(Clone, Copy)]
pub enum Weights<'a> {
    Sparse(&'a SparseWeights),
    Dense(&'a Matrix),
}

pub struct Linear<'a> {
    pub job: Job<'a>,
    pub weights: Weights<'a>,
}

impl WithSimd for Linear<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        match self.weights {
            Weights::Dense(matrix) if self.job.lanes == 1 && matrix.contiguous => self.dots::<S>(simd, matrix),
            Weights::Dense(matrix) => {
                let of = |output: usize| {
                    let row = &matrix.weights[output * matrix.offsets.len()..][..matrix.offsets.len()];
                    row.iter().copied().zip(matrix.offsets.iter().copied())
                };
                self.sums(of);
            }
            Weights::Sparse(weights) => {
                let taps = |output: usize| &weights.taps[weights.bounds[output]..weights.bounds[output + 1]];
                self.sums(|output| taps(output).iter().map(|tap| (tap.weight, tap.offset)));
            }
        }
    }
}

impl Linear<'_> {
    /// Sums of weights times numbers that lie anywhere.
    #[inline(always)]
    fn sums<I: Iterator<Item = (f32, u32)>>(&mut self, taps: impl Fn(usize) -> I) {
        for output in self.job.outputs.clone() {
            match self.job.lanes {
                1 => {
                    let sum: f32 = taps(output).map(|(weight, offset)| weight * self.job.input[offset as usize]).sum();
                    self.write(output, [sum]);
                }
                _ => {
                    let mut sums = [0.0; super::LANES];
                    for (weight, offset) in taps(output) {
                        let numbers = &self.job.input[offset as usize * super::LANES..][..super::LANES];
                        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += weight * number);
                    }
                    self.write(output, sums);
                }
            }
        }
    }

    /// Products of a few rows and one vector that lies in one piece.
    #[inline(always)]
    fn dots<S: Simd>(&mut self, simd: S, matrix: &Matrix) {
        let len = matrix.offsets.len();
        let first = matrix.offsets.first().map_or(0, |&offset| offset as usize);
        let (vectors, rest) = S::as_simd_f32s(&self.job.input[first..first + len]);
        for first in self.job.outputs.clone().step_by(GROUP) {
            // The last group computes its last row several times.
            let last = self.job.outputs.end - 1;
            let rows: [&[f32]; GROUP] =
                std::array::from_fn(|at| &matrix.weights[(first + at).min(last) * len..][..len]);
            let rows: [(&[S::f32s], &[f32]); GROUP] = rows.map(S::as_simd_f32s);
            let mut sums = [simd.splat_f32s(0.0); GROUP];
            for (at, numbers) in vectors.iter().enumerate() {
                for (sum, row) in sums.iter_mut().zip(&rows) {
                    *sum = simd.mul_add_e_f32s(row.0[at], *numbers, *sum);
                }
            }
            for ((output, sum), row) in (first..=last).zip(sums).zip(rows) {
                let tail: f32 = row.1.iter().zip(rest).map(|(weight, number)| weight * number).sum();
                self.write(output, [simd.reduce_sum_f32s(sum) + tail]);
            }
        }
    }

    /// Bias, residual and bounds of an output.
    #[inline(always)]
    fn write<const LANES: usize>(&mut self, output: usize, sums: [f32; LANES]) {
        let job = &mut self.job;
        let (bias, residual) = (job.finish.bias[output], job.finish.residual[output]);
        let out = &mut job.out[(output - job.outputs.start) * LANES..][..LANES];
        for (lane, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
            let residual = if residual == NO_CHANNEL { 0.0 } else { job.residual[residual as usize * LANES + lane] };
            *out = job.finish.bound(sum + bias + residual);
        }
    }
}
