//! Convolution by its nonzero weights: a tile of the output stays in registers while the weights of its channel pass by.
//!
//! A weight costs one broadcast and, for each vector of the tile, one multiply-add that reads its operand from memory.
//! Depthwise convolutions come here too, dense or not: they have no work to share between channels.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::kernel::Job;
use super::plane::Tile;

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
    /// Whether outputs read different channels.
    pub grouped: bool,
}

/// Vectors of a tile in several rows, and in one piece: enough chains of multiply-adds to hide their latency, as many as
/// there are registers for, so that the list of weights is seldom read anew.
pub fn tile(unit: usize) -> [usize; 2] {
    [8, if unit == super::plane::WIDEST { 14 } else { 8 }]
}

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
        let (tiles, outputs) = (self.job.tiles, self.job.outputs.clone());
        // What an output of a group reads is its own, and stays near from tile to tile. What a tile of other outputs reads is
        // the same, and stays near from output to output.
        let together = if self.weights.grouped { 1 } else { outputs.len().max(1) };
        for first in outputs.clone().step_by(together) {
            for tile in tiles {
                self.outputs::<S, LANES>(simd, first..(first + together).min(outputs.end), tile);
            }
        }
        self.job.clear_frames();
    }

    /// A tile of some outputs.
    #[inline(always)]
    fn outputs<S: Simd, const LANES: usize>(&mut self, simd: S, outputs: Range<usize>, tile: &Tile) {
        let start = tile.start;
        match (tile.rows, tile.vectors) {
            (1, 1) => self.tile::<S, LANES, 1, 1>(simd, outputs, start),
            (1, 2) => self.tile::<S, LANES, 1, 2>(simd, outputs, start),
            (1, 3) => self.tile::<S, LANES, 1, 3>(simd, outputs, start),
            (1, 4) => self.tile::<S, LANES, 1, 4>(simd, outputs, start),
            (1, 5) => self.tile::<S, LANES, 1, 5>(simd, outputs, start),
            (1, 6) => self.tile::<S, LANES, 1, 6>(simd, outputs, start),
            (1, 7) => self.tile::<S, LANES, 1, 7>(simd, outputs, start),
            (1, 8) => self.tile::<S, LANES, 1, 8>(simd, outputs, start),
            (1, 9) => self.tile::<S, LANES, 1, 9>(simd, outputs, start),
            (1, 10) => self.tile::<S, LANES, 1, 10>(simd, outputs, start),
            (1, 11) => self.tile::<S, LANES, 1, 11>(simd, outputs, start),
            (1, 12) => self.tile::<S, LANES, 1, 12>(simd, outputs, start),
            (1, 13) => self.tile::<S, LANES, 1, 13>(simd, outputs, start),
            (1, 14) => self.tile::<S, LANES, 1, 14>(simd, outputs, start),
            (2, 4) => self.tile::<S, LANES, 2, 4>(simd, outputs, start),
            (4, 2) => self.tile::<S, LANES, 4, 2>(simd, outputs, start),
            (8, 1) => self.tile::<S, LANES, 8, 1>(simd, outputs, start),
            other => unreachable!("tiles are cut to what there is a kernel for: {other:?}"),
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const LANES: usize, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        outputs: Range<usize>,
        start: usize,
    ) {
        let row = self.job.row_len();
        let input = &self.job.input[start..];
        for output in outputs {
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
