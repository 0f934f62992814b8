//! What every kernel of a convolution is given, and how a finished tile is written.

use std::ops::Range;

use pulp::Simd;

use super::plane::{Plane, Tile};

/// Stands for "no residual" among the channels of the residual value.
pub const NO_CHANNEL: u32 = u32::MAX;

/// What is done to an output after its weights: bias, residual, and bounds.
#[derive(Clone, Debug)]
pub struct Finish {
    pub bias: Vec<f32>,
    /// The channel of the residual value that is added to each output.
    pub residual: Vec<u32>,
    /// The least and the largest value, of ReLU and ReLU6; any other activation is a step of its own.
    pub bounds: Option<[f32; 2]>,
}

impl Finish {
    /// A number within the bounds.
    #[inline(always)]
    pub fn bound(&self, value: f32) -> f32 {
        self.bounds.map_or(value, |[least, most]| value.max(least).min(most))
    }
}

/// Some outputs of a convolution to be computed.
pub struct Job<'a> {
    /// Planes of the input, or their phases.
    pub input: &'a [f32],
    /// Planes of the residual value, shaped like the output's.
    pub residual: &'a [f32],
    pub finish: &'a Finish,
    /// The plane of every output.
    pub plane: Plane,
    pub lanes: usize,
    pub tiles: &'a [Tile],
    pub outputs: Range<usize>,
    /// The planes of these outputs.
    pub out: &'a mut [f32],
}

impl Job<'_> {
    /// Floats of a plane.
    #[inline(always)]
    pub fn plane_len(&self) -> usize {
        self.plane.len * self.lanes
    }

    /// Floats from one row to the next, in the input as in the output.
    #[inline(always)]
    pub fn row_len(&self) -> usize {
        self.plane.row * self.lanes
    }

    /// Zeros around every output.
    #[inline(always)]
    pub fn clear_frames(&mut self) {
        let (plane, lanes) = (self.plane, self.lanes);
        let len = self.plane_len();
        self.out.chunks_exact_mut(len).for_each(|out| plane.clear_frame(out, lanes));
    }

    /// Adds the residual, bounds and writes a tile of an output; the bias is in already.
    #[inline(always)]
    pub fn write<S: Simd, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        output: usize,
        start: usize,
        mut tile: [[S::f32s; V]; R],
    ) {
        let at = self.plane.origin() * self.lanes + start;
        let (plane, row) = (self.plane_len(), self.row_len());
        let residual = self.finish.residual[output];
        if residual != NO_CHANNEL {
            let residual = &self.residual[residual as usize * plane + at..];
            for (r, tile) in tile.iter_mut().enumerate() {
                let residual = S::as_simd_f32s(&residual[r * row..][..V * S::F32_LANES]).0;
                for (value, residual) in tile.iter_mut().zip(residual) {
                    *value = simd.add_f32s(*value, *residual);
                }
            }
        }
        if let Some(bounds) = self.finish.bounds {
            let [least, most] = bounds.map(|bound| simd.splat_f32s(bound));
            let values = tile.as_flattened_mut().iter_mut();
            values.for_each(|value| *value = simd.min_f32s(simd.max_f32s(*value, least), most));
        }
        let out = &mut self.out[(output - self.outputs.start) * plane + at..];
        for (r, tile) in tile.iter().enumerate() {
            S::as_mut_simd_f32s(&mut out[r * row..][..V * S::F32_LANES]).0.copy_from_slice(tile);
        }
    }
}
