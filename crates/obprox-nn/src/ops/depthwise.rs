//! Convolutions in which every channel sees itself only, plane by plane.
//!
//! Each tap of the kernel adds a shifted row of the input, scaled, to a row of the output; rows are long enough to be
//! worked on by vector instructions, which `pulp` chooses for the machine at hand. The stock backward pass instead cuts
//! the tensor into its groups and runs a whole convolution for each.

use pulp::Arch;
use rayon::prelude::*;

use super::shape::ConvShape;

/// Partial sums of a dot product: as many as a vector register holds, so that they can be added side by side.
const LANES: usize = 8;

/// The output.
pub fn forward(shape: &ConvShape, x: &[f32], weight: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; shape.images * shape.outputs * shape.output_plane()];
    let arch = Arch::new();
    let planes = out.par_chunks_mut(shape.output_plane()).zip(x.par_chunks(shape.input_plane())).enumerate();
    planes.for_each(|(plane, (out, x))| {
        let weight = kernel(shape, weight, plane);
        arch.dispatch(|| {
            for_taps(shape, |tap, rows, under, inside, first| {
                for output in rows {
                    let [_, across] = shape.output_size();
                    let from = &x[under(output) * shape.size[1] + first..];
                    let to = &mut out[output * across..][inside.clone()];
                    add_scaled(to, 1, from, shape.stride, weight[tap]);
                }
            });
        });
    });
    out
}

/// The gradient of the input, from that of the output.
pub fn input_gradient(shape: &ConvShape, weight: &[f32], dy: &[f32]) -> Vec<f32> {
    let mut dx = vec![0.0; shape.images * shape.inputs * shape.input_plane()];
    let arch = Arch::new();
    let planes = dx.par_chunks_mut(shape.input_plane()).zip(dy.par_chunks(shape.output_plane())).enumerate();
    planes.for_each(|(plane, (dx, dy))| {
        let weight = kernel(shape, weight, plane);
        arch.dispatch(|| {
            for_taps(shape, |tap, rows, under, inside, first| {
                for output in rows {
                    let [_, across] = shape.output_size();
                    let from = &dy[output * across..][inside.clone()];
                    let to = &mut dx[under(output) * shape.size[1] + first..];
                    let reach = (from.len() - 1) * shape.stride + 1;
                    add_scaled(&mut to[..reach], shape.stride, from, 1, weight[tap]);
                }
            });
        });
    });
    dx
}

/// The gradient of the weights, from that of the output: for each channel a sum over images in their order.
pub fn weight_gradient(shape: &ConvShape, x: &[f32], dy: &[f32]) -> Vec<f32> {
    let taps = shape.kernel * shape.kernel;
    let mut gradient = vec![0.0; shape.inputs * taps];
    let arch = Arch::new();
    gradient.par_chunks_mut(taps).enumerate().for_each(|(channel, gradient)| {
        arch.dispatch(|| {
            for image in 0..shape.images {
                let plane = image * shape.inputs + channel;
                let x = &x[plane * shape.input_plane()..][..shape.input_plane()];
                let dy = &dy[plane * shape.output_plane()..][..shape.output_plane()];
                for_taps(shape, |tap, rows, under, inside, first| {
                    let mut sums = [0.0; LANES];
                    for output in rows {
                        let [_, across] = shape.output_size();
                        let one = &dy[output * across..][inside.clone()];
                        let two = &x[under(output) * shape.size[1] + first..];
                        add_products(&mut sums, one, two, shape.stride);
                    }
                    gradient[tap] += sums.iter().sum::<f32>();
                });
            }
        });
    });
    gradient
}

fn kernel<'a>(shape: &ConvShape, weight: &'a [f32], plane: usize) -> &'a [f32] {
    let taps = shape.kernel * shape.kernel;
    &weight[plane % shape.inputs * taps..][..taps]
}

/// Calls `work(tap, output rows, input row of an output row, output columns, input column of the first of them)` for
/// each tap that meets the image.
#[inline(always)]
fn for_taps(
    shape: &ConvShape,
    mut work: impl FnMut(usize, std::ops::Range<usize>, &dyn Fn(usize) -> usize, std::ops::Range<usize>, usize),
) {
    let ([height, width], [rows, across]) = (shape.size, shape.output_size());
    for down in 0..shape.kernel {
        for right in 0..shape.kernel {
            let inside = shape.inside(right, width, across);
            if !inside.is_empty() {
                let first = shape.under(inside.start, right);
                let under = |output| shape.under(output, down);
                work(down * shape.kernel + right, shape.inside(down, height, rows), &under, inside, first);
            }
        }
    }
}

/// to[i·s] += factor·from[i·t] for as many as there are. One of the strides is 1.
#[inline(always)]
fn add_scaled(to: &mut [f32], to_stride: usize, from: &[f32], from_stride: usize, factor: f32) {
    if to_stride == 1 && from_stride == 1 {
        to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
    } else {
        let from = from.iter().step_by(from_stride);
        to.iter_mut().step_by(to_stride).zip(from).for_each(|(to, from)| *to += factor * from);
    }
}

/// Adds the products of `one` and every `stride`th of `two` to partial sums.
#[inline(always)]
fn add_products(sums: &mut [f32; LANES], one: &[f32], two: &[f32], stride: usize) {
    if stride == 1 {
        let two = &two[..one.len()];
        let (chunks, others) = (one.chunks_exact(LANES), two.chunks_exact(LANES));
        let rest = chunks.remainder().iter().zip(others.remainder());
        rest.zip(&mut *sums).for_each(|((a, b), sum)| *sum += a * b);
        for (a, b) in chunks.zip(others) {
            for lane in 0..LANES {
                sums[lane] += a[lane] * b[lane];
            }
        }
    } else {
        let pairs = one.iter().zip(two.iter().step_by(stride));
        pairs.enumerate().for_each(|(number, (a, b))| sums[number % LANES] += a * b);
    }
}
