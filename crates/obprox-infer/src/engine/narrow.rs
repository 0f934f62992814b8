//! Dense convolution of one image whose rows are shorter than a vector: vectors go along the outputs instead.

use pulp::{Simd, WithSimd};

use super::kernel::{Job, NO_CHANNEL};

/// Vectors of outputs that are computed together, and pixels.
const VECTORS: usize = 2;
const PIXELS: usize = 4;

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
        let plane = self.job.plane;
        // A block's weights are read for every four pixels: block by block they come from a near cache.
        for first in self.job.outputs.clone().step_by(self.weights.block) {
            for y in 0..plane.height {
                for x in (0..plane.width).step_by(PIXELS) {
                    let values = self.pixels(simd, first, y * plane.row + x);
                    self.write(first, y * plane.row + x, PIXELS.min(plane.width - x), &values);
                }
            }
        }
        self.job.clear_frames();
    }
}

type Values = [[f32; VECTORS * WIDEST]; PIXELS];

impl NarrowConv<'_> {
    /// Four pixels of a block of outputs; those beyond the end of a row mean nothing.
    #[inline(always)]
    fn pixels<S: Simd>(&self, simd: S, first: usize, start: usize) -> Values {
        let NarrowWeights { weights, block, offsets } = self.weights;
        let weights = &weights[first / block * block * offsets.len()..][..block * offsets.len()];
        let input = &self.job.input[start..];
        let mut sums = [[simd.splat_f32s(0.0); VECTORS]; PIXELS];
        for (&offset, weights) in offsets.iter().zip(weights.chunks_exact(VECTORS * S::F32_LANES)) {
            let weights = S::as_simd_f32s(weights).0;
            let pixels = &input[offset as usize..][..PIXELS];
            for (sums, &pixel) in sums.iter_mut().zip(pixels) {
                let pixel = simd.splat_f32s(pixel);
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = simd.mul_add_e_f32s(*weight, pixel, *sum);
                }
            }
        }
        let mut values: Values = [[0.0; VECTORS * WIDEST]; PIXELS];
        for (values, sums) in values.iter_mut().zip(sums) {
            let values = S::as_mut_simd_f32s(&mut values[..VECTORS * S::F32_LANES]).0;
            values.copy_from_slice(&sums);
        }
        values
    }

    #[inline(always)]
    fn write(&mut self, first: usize, start: usize, pixels: usize, values: &Values) {
        let job = &mut self.job;
        let (plane, at) = (job.plane.len, job.plane.origin() + start);
        let end = (first + self.weights.block).min(job.outputs.end);
        for output in first..end {
            let residual = job.finish.residual[output];
            for (pixel, values) in values[..pixels].iter().enumerate() {
                let mut value = values[output - first] + job.finish.bias[output];
                if residual != NO_CHANNEL {
                    value += job.residual[residual as usize * plane + at + pixel];
                }
                let value = if job.finish.relu { value.max(0.0) } else { value };
                job.out[(output - job.outputs.start) * plane + at + pixel] = value;
            }
        }
    }
}
