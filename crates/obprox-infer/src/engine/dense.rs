//! Convolution by all of its weights: a tile of four outputs stays in registers, so that a pixel that is read serves
//! four multiply-adds. Straight from the framed planes: nothing is copied into columns first.

use pulp::{Simd, WithSimd};

use super::kernel::Job;

/// Outputs that are computed together.
pub const GROUP: usize = 4;

/// Vectors of a tile of one output, in several rows and in one piece.
pub fn tile(unit: usize) -> [usize; 2] {
    if unit == super::plane::WIDEST { [4, 5] } else { [2, 2] }
}

/// The weights of each group of outputs side by side; missing outputs of the last group have zeros.
#[derive(Clone, Debug)]
pub struct DenseWeights {
    pub weights: Vec<[f32; GROUP]>,
    /// Where the pixels of each weight lie, the same for all outputs.
    pub offsets: Vec<u32>,
}

pub struct DenseConv<'a> {
    pub job: Job<'a>,
    pub weights: &'a DenseWeights,
}

impl WithSimd for DenseConv<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for tile in self.job.tiles {
            match (tile.rows, tile.vectors) {
                (1, 1) => self.tile::<S, 1, 1>(simd, tile.start),
                (1, 2) => self.tile::<S, 1, 2>(simd, tile.start),
                (1, 3) => self.tile::<S, 1, 3>(simd, tile.start),
                (1, 4) => self.tile::<S, 1, 4>(simd, tile.start),
                (1, 5) => self.tile::<S, 1, 5>(simd, tile.start),
                (2, 1) => self.tile::<S, 2, 1>(simd, tile.start),
                (2, 2) => self.tile::<S, 2, 2>(simd, tile.start),
                (4, 1) => self.tile::<S, 4, 1>(simd, tile.start),
                other => unreachable!("tiles are cut to what there is a kernel for: {other:?}"),
            }
        }
        self.job.clear_frames();
    }
}

impl DenseConv<'_> {
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(&mut self, simd: S, start: usize) {
        let (row, lanes) = (self.job.row_len(), self.job.lanes);
        let input = &self.job.input[start..];
        let offsets = &self.weights.offsets;
        for first in self.job.outputs.clone().step_by(GROUP) {
            let weights = &self.weights.weights[first / GROUP * offsets.len()..][..offsets.len()];
            let mut tiles: [[[S::f32s; V]; R]; GROUP] = std::array::from_fn(|output| {
                let bias = self.job.finish.bias.get(first + output).copied().unwrap_or(0.0);
                [[simd.splat_f32s(bias); V]; R]
            });
            for (&offset, weights) in offsets.iter().zip(weights) {
                let pixels = &input[offset as usize * lanes..];
                for r in 0..R {
                    let pixels = S::as_simd_f32s(&pixels[r * row..][..V * S::F32_LANES]).0;
                    for v in 0..V {
                        for output in 0..GROUP {
                            let weight = simd.splat_f32s(weights[output]);
                            tiles[output][r][v] = simd.mul_add_e_f32s(weight, pixels[v], tiles[output][r][v]);
                        }
                    }
                }
            }
            for (output, tile) in (first..self.job.outputs.end).zip(tiles) {
                self.job.write(simd, output, start, tile);
            }
        }
    }
}
