//! Convolution by its nonzero weights: a tile of the output stays in registers while the weights of its channel pass by.
//!
//! A weight costs one broadcast and, for each vector of the tile, one multiply-add that reads its operand from memory.
//! Depthwise convolutions come here too, dense or not: they have no work to share between channels.

use pulp::{Simd, WithSimd};

use super::kernel::Job;

/// A weight and where its pixels lie, as a distance in pixels from those of the output.
#[derive(Clone, Copy, Debug)]
pub struct Tap {
    pub offset: u32,
    pub weight: f32,
}

/// The weights of each output, one after the other.
#[derive(Clone, Debug)]
pub struct SparseWeights {
    pub taps: Vec<Tap>,
    /// Where the weights of each output end; begins with 0.
    pub bounds: Vec<usize>,
}

/// Vectors of a tile: enough chains of multiply-adds to hide their latency.
pub const TILE: usize = 8;

pub struct SparseConv<'a> {
    pub job: Job<'a>,
    pub weights: &'a SparseWeights,
}

impl WithSimd for SparseConv<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.job.lanes {
            1 => self.run::<S, 1>(simd),
            _ => self.run::<S, { super::LANES }>(simd),
        }
    }
}

impl SparseConv<'_> {
    #[inline(always)]
    fn run<S: Simd, const LANES: usize>(mut self, simd: S) {
        for tile in self.job.tiles {
            let start = tile.start;
            match (tile.rows, tile.vectors) {
                (1, 8) => self.tile::<S, LANES, 1, 8>(simd, start),
                (2, 4) => self.tile::<S, LANES, 2, 4>(simd, start),
                (1, 4) => self.tile::<S, LANES, 1, 4>(simd, start),
                (1, 3) => self.tile::<S, LANES, 1, 3>(simd, start),
                (4, 2) => self.tile::<S, LANES, 4, 2>(simd, start),
                (1, 2) => self.tile::<S, LANES, 1, 2>(simd, start),
                (8, 1) => self.tile::<S, LANES, 8, 1>(simd, start),
                (1, 1) => self.tile::<S, LANES, 1, 1>(simd, start),
                other => unreachable!("tiles are cut to {TILE} vectors: {other:?}"),
            }
        }
        self.job.clear_frames();
    }

    #[inline(always)]
    fn tile<S: Simd, const LANES: usize, const R: usize, const V: usize>(&mut self, simd: S, start: usize) {
        let row = self.job.row_len();
        let input = &self.job.input[start..];
        for output in self.job.outputs.clone() {
            let mut tile = [[simd.splat_f32s(self.job.finish.bias[output]); V]; R];
            let bounds = &self.weights.bounds;
            for tap in &self.weights.taps[bounds[output]..bounds[output + 1]] {
                let weight = simd.splat_f32s(tap.weight);
                let pixels = &input[tap.offset as usize * LANES..];
                for (r, tile) in tile.iter_mut().enumerate() {
                    let pixels = S::as_simd_f32s(&pixels[r * row..][..V * S::F32_LANES]).0;
                    for (value, pixels) in tile.iter_mut().zip(pixels) {
                        *value = simd.mul_add_e_f32s(weight, *pixels, *value);
                    }
                }
            }
            self.job.write(simd, output, start, tile);
        }
    }
}
