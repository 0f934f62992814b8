//! Dense convolution of one image whose rows are shorter than a vector: vectors go along the outputs instead.

use pulp::{Simd, WithSimd};

use super::kernel::{Job, NO_CHANNEL};

/// Vectors of outputs that are computed together, for four pixels.
const VECTORS: usize = 2;

/// The most lanes a vector has.
const WIDEST: usize = 16;

/// The weights of each block of outputs side by side; missing outputs of the last block have zeros.
#[derive(Clone, Debug)]
pub struct NarrowWeights {
    pub weights: Vec<f32>,
    /// Outputs of a block.
    pub block: usize,
    /// Where the pixels of each weight lie, the same for all outputs.
    pub offsets: Vec<u32>,
}

/// Outputs of a block, for vectors of so many floats.
pub fn block(unit: usize) -> usize {
    VECTORS * unit
}

pub struct NarrowConv<'a> {
    pub job: Job<'a>,
    pub weights: &'a NarrowWeights,
}

impl WithSimd for NarrowConv<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        match self.job.plane.width {
            1 => self.run::<S, 4, 1>(simd),
            2 => self.run::<S, 2, 2>(simd),
            _ => self.run::<S, 1, 4>(simd),
        }
        self.job.clear_frames();
    }
}

/// Values of `ROWS` rows of `WIDTH` pixels, for the outputs of a block.
type Values<const ROWS: usize, const WIDTH: usize> = [[[f32; VECTORS * WIDEST]; WIDTH]; ROWS];

impl NarrowConv<'_> {
    #[inline(always)]
    fn run<S: Simd, const ROWS: usize, const WIDTH: usize>(&mut self, simd: S) {
        let plane = self.job.plane;
        // A block's weights are read for every four pixels: block by block they come from a near cache.
        for first in self.job.outputs.clone().step_by(self.weights.block) {
            for y in (0..plane.height).step_by(ROWS) {
                for x in (0..plane.width).step_by(WIDTH) {
                    let values = self.pixels::<S, ROWS, WIDTH>(simd, first, y * plane.row + x);
                    self.write(first, (y, x), &values);
                }
            }
        }
    }

    /// A few pixels of a block of outputs; those beyond the end of the plane mean nothing.
    #[inline(always)]
    fn pixels<S: Simd, const ROWS: usize, const WIDTH: usize>(
        &self,
        simd: S,
        first: usize,
        start: usize,
    ) -> Values<ROWS, WIDTH> {
        let NarrowWeights { weights, block, offsets } = self.weights;
        let weights = &weights[first / block * block * offsets.len()..][..block * offsets.len()];
        let (row, input) = (self.job.row_len(), &self.job.input[start..]);
        let mut sums = [[[simd.splat_f32s(0.0); VECTORS]; WIDTH]; ROWS];
        for (&offset, weights) in offsets.iter().zip(weights.chunks_exact(VECTORS * S::F32_LANES)) {
            let weights = S::as_simd_f32s(weights).0;
            let pixels = &input[offset as usize..];
            for (y, sums) in sums.iter_mut().enumerate() {
                for (sums, &pixel) in sums.iter_mut().zip(&pixels[y * row..][..WIDTH]) {
                    let pixel = simd.splat_f32s(pixel);
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum = simd.mul_add_e_f32s(*weight, pixel, *sum);
                    }
                }
            }
        }
        let mut values: Values<ROWS, WIDTH> = [[[0.0; VECTORS * WIDEST]; WIDTH]; ROWS];
        for (values, sums) in values.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
            S::as_mut_simd_f32s(&mut values[..VECTORS * S::F32_LANES]).0.copy_from_slice(sums);
        }
        values
    }

    #[inline(always)]
    fn write<const ROWS: usize, const WIDTH: usize>(
        &mut self,
        first: usize,
        (y, x): (usize, usize),
        values: &Values<ROWS, WIDTH>,
    ) {
        let job = &mut self.job;
        let plane = job.plane;
        for output in first..(first + self.weights.block).min(job.outputs.end) {
            let (bias, residual) = (job.finish.bias[output], job.finish.residual[output]);
            for (y, values) in (y..plane.height).zip(values) {
                for (x, values) in (x..plane.width).zip(values) {
                    let at = plane.origin() + y * plane.row + x;
                    let mut value = values[output - first] + bias;
                    if residual != NO_CHANNEL {
                        value += job.residual[residual as usize * plane.len + at];
                    }
                    job.out[(output - job.outputs.start) * plane.len + at] = job.finish.bound(value);
                }
            }
        }
    }
}
