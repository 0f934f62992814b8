//! Batch normalisation, what is added to it and the rectifier after it, channel by channel.
//!
//! y = γ·x̂ + β with x̂ = (x − mean)/√(variance + ε) over each channel of the batch, plus a residual where there is one,
//! and max(y, 0) where asked. A channel of a whole batch is small enough that a second look at it finds it in a cache.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::machine::dispatch;
use crate::moments::Moments;
use crate::planes::{LANES, Planes};

/// What a normalisation does to each channel.
#[derive(Clone, Debug)]
pub struct Affine {
    mean: Vec<f32>,
    /// 1/√(variance + ε).
    inverse: Vec<f32>,
    gamma: Vec<f32>,
    beta: Vec<f32>,
}

impl Affine {
    /// From means and variances, γ and β.
    pub fn new(statistics: &[(f64, f64)], gamma: &[f32], beta: &[f32], epsilon: f64) -> Self {
        let mean = statistics.iter().map(|(mean, _)| *mean as f32).collect();
        let inverse = statistics.iter().map(|(_, variance)| (1.0 / (variance + epsilon).sqrt()) as f32).collect();
        Self { mean, inverse, gamma: gamma.to_vec(), beta: beta.to_vec() }
    }

    fn line(&self, channel: usize) -> Line {
        let (mean, inverse) = (self.mean[channel], self.inverse[channel]);
        let scale = self.gamma[channel] * inverse;
        Line { mean, inverse, scale, shift: self.beta[channel] - scale * mean }
    }
}

/// y = scale·x + shift in a channel.
#[derive(Clone, Copy)]
struct Line {
    mean: f32,
    inverse: f32,
    scale: f32,
    shift: f32,
}

/// Mean and variance of each channel.
pub fn statistics(planes: &Planes, x: &[f32]) -> Vec<(f64, f64)> {
    assert_eq!(x.len(), planes.floats(), "the planes fit their slice");
    let mut moments = Moments::new(planes);
    let groups = moments.groups_mut(planes.channels).collect::<Vec<_>>().into_par_iter();
    groups.zip(x.par_chunks(planes.group_floats())).for_each(|(moments, group)| {
        for (moments, channel) in moments.chunks_exact_mut(Moments::EACH).zip(planes.channels_of(group)) {
            dispatch(Take { planes, moments, channel });
        }
    });
    moments.finish(planes)
}

/// Takes the moments of a channel that is there already.
struct Take<'a> {
    planes: &'a Planes,
    moments: &'a mut [f32],
    channel: &'a [f32],
}

impl WithSimd for Take<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (number, row) in self.planes.rows(self.channel).enumerate() {
            for (column, pixel) in row.chunks_exact(LANES).enumerate() {
                for (part, value) in S::as_simd_f32s(pixel).0.iter().enumerate() {
                    Moments::add(simd, self.moments, part * S::F32_LANES, number + column == 0, [[*value]]);
                }
            }
        }
    }
}

/// The output.
pub fn normalise(
    planes: &Planes,
    x: &[f32],
    affine: &Affine,
    residual: Option<&[f32]>,
    rectify: bool,
    out: &mut [f32],
) {
    assert!(x.len() == planes.floats() && out.len() == x.len(), "the planes fit their slices");
    assert!(residual.is_none_or(|residual| residual.len() == x.len()), "the residual has the shape of the output");
    out.par_chunks_mut(planes.group_floats()).enumerate().for_each(|(number, out)| {
        planes.clear_lead(out);
        let at = number * planes.group_floats();
        let x = planes.channels_of(&x[at..][..planes.group_floats()]);
        let mut residual = residual.map(|values| planes.channels_of(&values[at..][..planes.group_floats()]));
        for (channel, (out, x)) in planes.channels_of_mut(out).zip(x).enumerate() {
            let residual = residual.as_mut().and_then(Iterator::next);
            dispatch(Apply { planes, line: affine.line(channel), x, residual, rectify, out });
        }
    });
}

/// Normalises a channel of a group.
struct Apply<'a> {
    planes: &'a Planes,
    line: Line,
    x: &'a [f32],
    residual: Option<&'a [f32]>,
    rectify: bool,
    out: &'a mut [f32],
}

impl WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { planes, line, x, residual, rectify, out } = self;
        planes.clear_frame(out);
        let (scale, shift) = (simd.splat_f32s(line.scale), simd.splat_f32s(line.shift));
        let mut residual = residual.map(|residual| planes.rows(residual));
        for (out, x) in planes.rows_mut(out).zip(planes.rows(x)) {
            let (out, x) = (S::as_mut_simd_f32s(out).0, S::as_simd_f32s(x).0);
            match residual.as_mut().and_then(Iterator::next) {
                None => {
                    for (out, x) in out.iter_mut().zip(x) {
                        *out = simd.mul_add_e_f32s(scale, *x, shift);
                    }
                }
                Some(residual) => {
                    for ((out, x), more) in out.iter_mut().zip(x).zip(S::as_simd_f32s(residual).0) {
                        *out = simd.add_f32s(simd.mul_add_e_f32s(scale, *x, shift), *more);
                    }
                }
            }
            if rectify {
                out.iter_mut().for_each(
                    #[inline(always)]
                    |out| *out = rectified(simd, *out, *out),
                );
            }
        }
    }
}

/// The value where what decides is positive, else 0. NaN decides for the value, so that it is not lost.
#[inline(always)]
fn rectified<S: Simd>(simd: S, decides: S::f32s, value: S::f32s) -> S::f32s {
    let zero = simd.splat_f32s(0.0);
    simd.select_f32s(simd.less_than_or_equal_f32s(decides, zero), zero, value)
}

/// What lets a gradient through.
#[derive(Clone, Copy, Debug)]
pub enum Gate<'a> {
    /// Everything: there was no rectifier.
    Open,
    /// The sign of the normalised value, which is computed again.
    Normalised,
    /// The sign of the output.
    Output(&'a [f32]),
}

/// Gradients of γ and β; `dy`, the gradient of the output, becomes that of the input.
///
/// Where `dx` is given it becomes that of the input, and `dy` what came through the gate: the gradient of a residual.
pub fn normalise_gradient(
    planes: &Planes,
    x: &[f32],
    affine: &Affine,
    gate: Gate,
    dy: &mut [f32],
    dx: Option<&mut [f32]>,
) -> [Vec<f32>; 2] {
    assert!(x.len() == planes.floats() && dy.len() == x.len(), "the planes fit their slices");
    assert!(dx.as_ref().is_none_or(|dx| dx.len() == x.len()), "the gradients have one shape");
    if let Gate::Output(output) = gate {
        assert_eq!(output.len(), x.len(), "the output has the shape of the input");
    }
    let dys = by_channel(planes, dy);
    let dxs: Vec<_> = match dx {
        Some(dx) => by_channel(planes, dx).into_iter().map(Some).collect(),
        None => (0..planes.channels).map(|_| None).collect(),
    };
    let channels = dys.into_par_iter().zip(dxs).enumerate();
    let sums = channels
        .map(|(channel, (dy, dx))| dispatch(Gradient { planes, line: affine.line(channel), channel, x, gate, dy, dx }));
    let sums: Vec<(f32, f32)> = sums.collect();
    [sums.iter().map(|sums| sums.1).collect(), sums.iter().map(|sums| sums.0).collect()]
}

/// The groups of each channel, to be written; what is above the first is made zero.
fn by_channel<'a>(planes: &Planes, values: &'a mut [f32]) -> Vec<Vec<&'a mut [f32]>> {
    let mut channels: Vec<Vec<&mut [f32]>> = (0..planes.channels).map(|_| Vec::new()).collect();
    for group in values.chunks_exact_mut(planes.group_floats()) {
        planes.clear_lead(group);
        channels.iter_mut().zip(planes.channels_of_mut(group)).for_each(|(of, channel)| of.push(channel));
    }
    channels
}

/// The gradient of a channel.
struct Gradient<'a> {
    planes: &'a Planes,
    line: Line,
    channel: usize,
    x: &'a [f32],
    gate: Gate<'a>,
    dy: Vec<&'a mut [f32]>,
    dx: Option<Vec<&'a mut [f32]>>,
}

impl WithSimd for Gradient<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> (f32, f32) {
        let (flat, tilted) = match self.gate {
            Gate::Open => self.sums::<S, 0>(simd),
            Gate::Normalised => self.sums::<S, 1>(simd),
            Gate::Output(_) => self.sums::<S, 2>(simd),
        };
        self.write(simd, flat, tilted);
        (flat as f32, tilted as f32)
    }
}

impl Gradient<'_> {
    fn of<'b>(&self, values: &'b [f32], group: usize) -> &'b [f32] {
        let at = group * self.planes.group_floats() + self.planes.lead() * LANES;
        &values[at + self.channel * self.planes.plane_floats()..][..self.planes.plane_floats()]
    }

    /// Σ dy and Σ dy·x̂ of what comes through the gate, which is kept in the place of dy.
    #[inline(always)]
    fn sums<S: Simd, const GATE: u8>(&mut self, simd: S) -> (f64, f64) {
        let Line { mean, inverse, scale, shift } = self.line;
        let (means, scales, shifts) = (simd.splat_f32s(mean), simd.splat_f32s(scale), simd.splat_f32s(shift));
        let (mut flat, mut tilted) = (0.0, 0.0);
        let mut dys = std::mem::take(&mut self.dy);
        for (group, dy) in dys.iter_mut().enumerate() {
            let x = self.of(self.x, group);
            let output = if let Gate::Output(output) = self.gate { self.of(output, group) } else { x };
            let mut sums = [simd.splat_f32s(0.0); 4];
            let rows = self.planes.rows_mut(dy).zip(self.planes.rows(x).zip(self.planes.rows(output)));
            for (dy, (x, output)) in rows {
                let (dy, x) = (S::as_mut_simd_f32s(dy).0, S::as_simd_f32s(x).0);
                for (at, ((dy, x), output)) in dy.iter_mut().zip(x).zip(S::as_simd_f32s(output).0).enumerate() {
                    let through = match GATE {
                        0 => *dy,
                        1 => rectified(simd, simd.mul_add_e_f32s(scales, *x, shifts), *dy),
                        _ => rectified(simd, *output, *dy),
                    };
                    if GATE > 0 {
                        *dy = through;
                    }
                    // Two sums of each, so that one need not wait for the other.
                    let off = simd.sub_f32s(*x, means);
                    sums[at % 2] = simd.add_f32s(sums[at % 2], through);
                    sums[2 + at % 2] = simd.mul_add_e_f32s(through, off, sums[2 + at % 2]);
                }
            }
            flat += total(simd, sums[0]) + total(simd, sums[1]);
            tilted += total(simd, sums[2]) + total(simd, sums[3]);
        }
        self.dy = dys;
        (flat, tilted * f64::from(inverse))
    }

    /// dx = γ/σ·(dy − mean(dy) − x̂·mean(dy·x̂)), and 0 where there is no image.
    #[inline(always)]
    fn write<S: Simd>(&mut self, simd: S, flat: f64, tilted: f64) {
        let Line { mean, inverse, scale, .. } = self.line;
        let count = (self.planes.images * self.planes.pixels()) as f64;
        let (flat, tilt) = ((flat / count) as f32, (f64::from(inverse) * tilted / count) as f32);
        // As a line in x and dy: scale·dy − (scale·tilt)·x + rest.
        let rest = scale * (mean * tilt - flat);
        let (scales, tilts, rests) = (simd.splat_f32s(scale), simd.splat_f32s(-scale * tilt), simd.splat_f32s(rest));
        let mut dys = std::mem::take(&mut self.dy);
        let mut dxs = self.dx.take();
        for (group, dy) in dys.iter_mut().enumerate() {
            let x = self.of(self.x, group);
            let dx = dxs.as_mut().map(|dxs| &mut *dxs[group]);
            let images = self.planes.images_in(group);
            let written = match dx {
                Some(dx) => {
                    self.planes.clear_frame(dx);
                    let rows = self.planes.rows_mut(dx).zip(self.planes.rows(dy)).zip(self.planes.rows(x));
                    for ((dx, dy), x) in rows {
                        let pairs = S::as_simd_f32s(dy).0.iter().zip(S::as_simd_f32s(x).0);
                        for (dx, (dy, x)) in S::as_mut_simd_f32s(dx).0.iter_mut().zip(pairs) {
                            let line = simd.mul_add_e_f32s(tilts, *x, rests);
                            *dx = simd.mul_add_e_f32s(scales, *dy, line);
                        }
                    }
                    dx
                }
                None => {
                    for (dy, x) in self.planes.rows_mut(dy).zip(self.planes.rows(x)) {
                        for (dy, x) in S::as_mut_simd_f32s(dy).0.iter_mut().zip(S::as_simd_f32s(x).0) {
                            let line = simd.mul_add_e_f32s(tilts, *x, rests);
                            *dy = simd.mul_add_e_f32s(scales, *dy, line);
                        }
                    }
                    &mut **dy
                }
            };
            if images < LANES {
                for row in self.planes.rows_mut(written) {
                    row.chunks_exact_mut(LANES).for_each(|pixel| pixel[images..].fill(0.0));
                }
            }
        }
    }
}

/// The lanes of a sum put together, in an order that does not hang on how wide a register is.
#[inline(always)]
fn total<S: Simd>(_: S, sums: S::f32s) -> f64 {
    pulp::bytemuck::cast_slice::<S::f32s, f32>(&[sums]).iter().map(|value| f64::from(*value)).sum()
}
