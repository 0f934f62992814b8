//! Pools: the largest of each square of pixels, the mean of each channel.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::machine::dispatch;
use crate::planes::{LANES, Planes};

/// The shape of planes after [`max_pool`]: squares that do not fit whole are left out.
pub fn pooled(planes: &Planes, size: usize) -> Planes {
    Planes { height: planes.height / size, width: planes.width / size, ..*planes }
}

/// The largest value of every square of `size` by `size` pixels.
pub fn max_pool(planes: &Planes, size: usize, x: &[f32], out: &mut [f32]) {
    let result = pooled(planes, size);
    assert!(x.len() == planes.floats() && out.len() == result.floats(), "the planes fit their slices");
    let groups = out.par_chunks_mut(result.group_floats()).zip(x.par_chunks(planes.group_floats()));
    groups.for_each(|(out, x)| {
        result.clear_lead(out);
        for (out, x) in result.channels_of_mut(out).zip(planes.channels_of(x)) {
            result.clear_frame(out);
            dispatch(MaxPool { planes, result: &result, size, x, out });
        }
    });
}

struct MaxPool<'a> {
    planes: &'a Planes,
    result: &'a Planes,
    size: usize,
    x: &'a [f32],
    out: &'a mut [f32],
}

/// The larger of two; NaN is larger than anything.
#[inline(always)]
fn larger<S: Simd>(simd: S, best: S::f32s, value: S::f32s) -> S::f32s {
    let number = simd.equal_f32s(value, value);
    let larger = simd.or_m32s(simd.greater_than_f32s(value, best), simd.not_m32s(number));
    simd.select_f32s(larger, value, best)
}

impl WithSimd for MaxPool<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (row, size) = (self.planes.row() * LANES, self.size);
        for (y, out) in self.result.rows_mut(self.out).enumerate() {
            for (at, out) in S::as_mut_simd_f32s(out).0.iter_mut().enumerate() {
                let (pixel, lane) = (at * S::F32_LANES / LANES, at * S::F32_LANES % LANES);
                let first = y * size * row + pixel * size * LANES + lane;
                let mut best = simd.splat_f32s(f32::NEG_INFINITY);
                for down in 0..size {
                    for right in 0..size {
                        let at = first + down * row + right * LANES;
                        best = larger(simd, best, S::as_simd_f32s(&self.x[at..at + S::F32_LANES]).0[0]);
                    }
                }
                *out = best;
            }
        }
    }
}

/// The gradient of the input of [`max_pool`]: that of the output goes to the first of the largest.
pub fn max_pool_gradient(planes: &Planes, size: usize, x: &[f32], y: &[f32], dy: &[f32], dx: &mut [f32]) {
    let result = pooled(planes, size);
    assert!(x.len() == planes.floats() && dx.len() == x.len(), "the planes fit their slices");
    assert!(y.len() == result.floats() && dy.len() == y.len(), "the planes fit their slices");
    let (group, small) = (planes.group_floats(), result.group_floats());
    dx.par_chunks_mut(group).enumerate().for_each(|(number, dx)| {
        planes.clear_lead(dx);
        let x = planes.channels_of(&x[number * group..][..group]);
        let y = result.channels_of(&y[number * small..][..small]);
        let dy = result.channels_of(&dy[number * small..][..small]);
        for (dx, (x, (y, dy))) in planes.channels_of_mut(dx).zip(x.zip(y.zip(dy))) {
            // What lies in no whole square has no gradient.
            if planes.height % size + planes.width % size > 0 {
                dx.fill(0.0);
            }
            planes.clear_frame(dx);
            dispatch(MaxGradient { planes, result: &result, size, x, y, dy, dx });
        }
    });
}

struct MaxGradient<'a> {
    planes: &'a Planes,
    result: &'a Planes,
    size: usize,
    x: &'a [f32],
    y: &'a [f32],
    dy: &'a [f32],
    dx: &'a mut [f32],
}

impl WithSimd for MaxGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (row, size) = (self.planes.row() * LANES, self.size);
        for (line, (y, dy)) in self.result.rows(self.y).zip(self.result.rows(self.dy)).enumerate() {
            for (at, (y, dy)) in S::as_simd_f32s(y).0.iter().zip(S::as_simd_f32s(dy).0).enumerate() {
                let (pixel, lane) = (at * S::F32_LANES / LANES, at * S::F32_LANES % LANES);
                let first = line * size * row + pixel * size * LANES + lane;
                let zero = simd.splat_f32s(0.0);
                let mut left = *dy;
                for down in 0..size {
                    for right in 0..size {
                        let at = first + down * row + right * LANES;
                        let here = simd.equal_f32s(S::as_simd_f32s(&self.x[at..at + S::F32_LANES]).0[0], *y);
                        S::as_mut_simd_f32s(&mut self.dx[at..at + S::F32_LANES]).0[0] =
                            simd.select_f32s(here, left, zero);
                        left = simd.select_f32s(here, zero, left);
                    }
                }
            }
        }
    }
}

/// The mean of each channel, in the order image, channel.
pub fn channel_means(planes: &Planes, x: &[f32]) -> Vec<f32> {
    assert_eq!(x.len(), planes.floats(), "the planes fit their slice");
    let mut means = vec![0.0; planes.images * planes.channels];
    let groups = means.par_chunks_mut(LANES * planes.channels).zip(x.par_chunks(planes.group_floats()));
    groups.for_each(|(means, group)| {
        for (number, channel) in planes.channels_of(group).enumerate() {
            let mut sums = [0.0f32; LANES];
            for pixel in planes.rows(channel).flat_map(|row| row.as_chunks::<LANES>().0) {
                sums.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value);
            }
            for (image, sum) in means.chunks_exact_mut(planes.channels).zip(sums) {
                image[number] = sum / planes.pixels() as f32;
            }
        }
    });
    means
}

/// The gradient of the input of [`channel_means`].
pub fn channel_means_gradient(planes: &Planes, dy: &[f32], dx: &mut [f32]) {
    assert!(dx.len() == planes.floats() && dy.len() == planes.images * planes.channels, "the planes fit their slice");
    let groups = dx.par_chunks_mut(planes.group_floats()).zip(dy.par_chunks(LANES * planes.channels));
    groups.for_each(|(group, dy)| {
        planes.clear_lead(group);
        for (number, channel) in planes.channels_of_mut(group).enumerate() {
            planes.clear_frame(channel);
            let mut each = [0.0f32; LANES];
            for (each, image) in each.iter_mut().zip(dy.chunks_exact(planes.channels)) {
                *each = image[number] / planes.pixels() as f32;
            }
            for row in planes.rows_mut(channel) {
                row.as_chunks_mut::<LANES>().0.iter_mut().for_each(|pixel| *pixel = each);
            }
        }
    });
}
