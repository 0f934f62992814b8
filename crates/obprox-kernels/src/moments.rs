//! Mean and variance of channels, taken while they are written.
//!
//! For every image and channel: the first value as a pivot, the sum of what differs from it and of its square. The pivot
//! keeps a large mean from eating up the digits of a small variance. The images are then put together in f64, in a fixed
//! order.

use pulp::Simd;

use crate::planes::{LANES, Planes};

/// Sums over each channel of each group, lane by lane.
#[derive(Clone, Debug)]
pub struct Moments {
    values: Vec<f32>,
}

impl Moments {
    /// Floats of a channel: pivots, sums, sums of squares.
    pub const EACH: usize = 3 * LANES;

    /// Of planes that are about to be written.
    pub fn new(planes: &Planes) -> Self {
        Self { values: vec![0.0; planes.groups() * planes.channels * Self::EACH] }
    }

    /// The groups, each of so many channels.
    pub(crate) fn groups_mut(&mut self, channels: usize) -> std::slice::ChunksExactMut<'_, f32> {
        self.values.chunks_exact_mut(channels * Self::EACH)
    }

    /// Takes in a tile of a channel; the first one brings the pivot.
    #[inline(always)]
    pub(crate) fn add<S: Simd, const R: usize, const P: usize>(
        simd: S,
        channel: &mut [f32],
        lane: usize,
        first: bool,
        tile: [[S::f32s; P]; R],
    ) {
        let (pivot, sums) = channel.split_at_mut(LANES);
        let (sum, squares) = sums.split_at_mut(LANES);
        let lanes = lane..lane + S::F32_LANES;
        let pivot = &mut S::as_mut_simd_f32s(&mut pivot[lanes.clone()]).0[0];
        let sum = &mut S::as_mut_simd_f32s(&mut sum[lanes.clone()]).0[0];
        let squares = &mut S::as_mut_simd_f32s(&mut squares[lanes]).0[0];
        if first {
            *pivot = tile[0][0];
        }
        let (centre, mut total, mut square) = (*pivot, *sum, *squares);
        for row in tile {
            for value in row {
                let off = simd.sub_f32s(value, centre);
                total = simd.add_f32s(total, off);
                square = simd.mul_add_e_f32s(off, off, square);
            }
        }
        (*sum, *squares) = (total, square);
    }

    /// Mean and variance of each channel over all images.
    pub fn finish(&self, planes: &Planes) -> Vec<(f64, f64)> {
        let pixels = planes.pixels() as f64;
        let of = |channel: usize| {
            let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
            for group in 0..planes.groups() {
                let values = &self.values[(group * planes.channels + channel) * Self::EACH..][..Self::EACH];
                for lane in 0..planes.images_in(group) {
                    let [pivot, sum, square] = [0, 1, 2].map(|part| f64::from(values[part * LANES + lane]));
                    let (here, spread) = (pivot + sum / pixels, square - sum * sum / pixels);
                    // Two sets of numbers put together: their squares, and those of how far apart they are.
                    let apart = here - mean;
                    let all = count + pixels;
                    squares += spread.max(0.0) + apart * apart * count * pixels / all;
                    mean += apart * pixels / all;
                    count = all;
                }
            }
            (mean, squares / count)
        };
        (0..planes.channels).map(of).collect()
    }
}
