//! Batch normalisation and the rectifier after it, in as few passes over memory as it takes.
//!
//! y = γ·x̂ + β with x̂ = (x − mean)/√(variance + ε) over each channel of the batch, and max(y, 0) where asked.

use pulp::Arch;
use rayon::prelude::*;

use super::wide::wide;

/// Images in the order image, channel, pixel.
#[derive(Clone, Copy, Debug)]
pub struct NormShape {
    /// Channels.
    pub channels: usize,
    /// Pixels of a channel.
    pub plane: usize,
}

/// Mean of each channel, then variance of each channel.
pub fn statistics(shape: NormShape, x: &[f32]) -> Vec<f32> {
    let arch = Arch::new();
    let count = (x.len() / shape.channels) as f64;
    let both: Vec<(f32, f32)> = (0..shape.channels)
        .into_par_iter()
        .map(|channel| {
            wide!(arch, {
                let planes = || x.chunks_exact(shape.plane).skip(channel).step_by(shape.channels);
                let mean = planes().map(|plane| f64::from(sum(plane))).sum::<f64>() / count;
                let centre = mean as f32;
                let squares = planes().map(|plane| f64::from(sum_of_squares(plane, centre))).sum::<f64>();
                // What was subtracted is the rounded mean; its square is taken out again.
                let off = mean - f64::from(centre);
                (centre, (squares / count - off * off).max(0.0) as f32)
            })
        })
        .collect();
    both.iter().map(|pair| pair.0).chain(both.iter().map(|pair| pair.1)).collect()
}

/// The output.
pub fn forward(shape: NormShape, x: &[f32], affine: &Affine, rectify: bool) -> Vec<f32> {
    let arch = Arch::new();
    let mut out = vec![0.0; x.len()];
    let planes = out.par_chunks_mut(shape.plane).zip(x.par_chunks(shape.plane)).enumerate();
    planes.for_each(|(number, (out, x))| {
        let channel = number % shape.channels;
        let (scale, shift) = affine.line(channel);
        wide!(arch, {
            let pairs = out.iter_mut().zip(x);
            if rectify {
                // NaN must not become 0, so no `max`.
                pairs.for_each(|(out, x)| {
                    let y = scale * x + shift;
                    *out = if y <= 0.0 { 0.0 } else { y };
                });
            } else {
                pairs.for_each(|(out, x)| *out = scale * x + shift);
            }
        });
    });
    out
}

/// Gradients of the input, of γ and of β, from that of the output.
pub fn backward(shape: NormShape, x: &[f32], affine: &Affine, rectify: bool, dy: &[f32]) -> [Vec<f32>; 3] {
    let arch = Arch::new();
    let count = (x.len() / shape.channels) as f32;
    let sums: Vec<(f32, f32)> = (0..shape.channels)
        .into_par_iter()
        .map(|channel| {
            let line = affine.line(channel);
            let (mean, inverse) = (affine.mean[channel], affine.inverse[channel]);
            wide!(arch, {
                let planes = x.chunks_exact(shape.plane).zip(dy.chunks_exact(shape.plane));
                let planes = planes.skip(channel).step_by(shape.channels);
                let (mut flat, mut tilted) = (0.0f64, 0.0f64);
                for (x, dy) in planes {
                    let (one, two) = match rectify {
                        true => sum_gradients::<true>(x, dy, mean, line),
                        false => sum_gradients::<false>(x, dy, mean, line),
                    };
                    flat += f64::from(one);
                    tilted += f64::from(two);
                }
                (flat as f32, (tilted * f64::from(inverse)) as f32)
            })
        })
        .collect();
    let mut dx = vec![0.0; x.len()];
    let planes = dx.par_chunks_mut(shape.plane).zip(x.par_chunks(shape.plane).zip(dy.par_chunks(shape.plane)));
    planes.enumerate().for_each(|(number, (dx, (x, dy)))| {
        let channel = number % shape.channels;
        let line = affine.line(channel);
        let (flat, tilted) = sums[channel];
        // dx = γ/σ·(dy − mean(dy) − x̂·mean(dy·x̂)), with x̂ = (x − mean)/σ.
        let (mean, inverse, scale) = (affine.mean[channel], affine.inverse[channel], line.0);
        let (tilt, flat) = (inverse * tilted / count, flat / count);
        wide!(arch, {
            let triples = dx.iter_mut().zip(x.iter().zip(dy));
            let gradient = |x: f32, dy: f32| scale * (dy - flat - (x - mean) * tilt);
            if rectify {
                triples.for_each(|(dx, (x, dy))| *dx = gradient(*x, gate::<true>(*x, *dy, line)));
            } else {
                triples.for_each(|(dx, (x, dy))| *dx = gradient(*x, *dy));
            }
        });
    });
    [dx, sums.iter().map(|sums| sums.1).collect(), sums.iter().map(|sums| sums.0).collect()]
}

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
    /// From [`statistics`], γ and β.
    pub fn new(statistics: &[f32], gamma: &[f32], beta: &[f32], epsilon: f64) -> Self {
        let (mean, variance) = statistics.split_at(gamma.len());
        let inverse = |variance: &f32| (1.0 / (f64::from(*variance) + epsilon).sqrt()) as f32;
        let inverse = variance.iter().map(inverse).collect();
        Self { mean: mean.to_vec(), inverse, gamma: gamma.to_vec(), beta: beta.to_vec() }
    }

    /// y = scale·x + shift in a channel.
    fn line(&self, channel: usize) -> (f32, f32) {
        let scale = self.gamma[channel] * self.inverse[channel];
        (scale, self.beta[channel] - scale * self.mean[channel])
    }
}

/// The gradient behind the rectifier, where there is one: nothing comes through where the output was not positive.
#[inline(always)]
fn gate<const RECTIFIED: bool>(x: f32, dy: f32, (scale, shift): (f32, f32)) -> f32 {
    if RECTIFIED && scale * x + shift <= 0.0 { 0.0 } else { dy }
}

/// Partial sums that vector instructions can work on side by side.
const LANES: usize = 16;

#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    lanes(values, values, |value, _| value)
}

#[inline(always)]
fn sum_of_squares(values: &[f32], centre: f32) -> f32 {
    lanes(values, values, |value, _| (value - centre) * (value - centre))
}

#[inline(always)]
fn sum_gradients<const RECTIFIED: bool>(x: &[f32], dy: &[f32], mean: f32, line: (f32, f32)) -> (f32, f32) {
    let flat = lanes(x, dy, |x, dy| gate::<RECTIFIED>(x, dy, line));
    let tilted = lanes(x, dy, |x, dy| gate::<RECTIFIED>(x, dy, line) * (x - mean));
    (flat, tilted)
}

/// The sum over pairs, in a fixed order.
#[inline(always)]
fn lanes(x: &[f32], y: &[f32], value: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0f32; LANES];
    let (x_vectors, x_rest) = x.as_chunks::<LANES>();
    let (y_vectors, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in x_vectors.iter().zip(y_vectors) {
        for lane in 0..LANES {
            sums[lane] += value(x[lane], y[lane]);
        }
    }
    let rest: f32 = x_rest.iter().zip(y_rest).map(|(x, y)| value(*x, *y)).sum();
    sums.iter().sum::<f32>() + rest
}
