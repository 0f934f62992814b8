//! Convolutions in which every channel sees itself only, plane by plane.
//!
//! The stock backward pass cuts the tensor into its groups and runs a whole convolution for each. Here a plane is worked
//! on by vector instructions, which `pulp` chooses for the machine at hand; what it calls must be inlined and must own
//! its numbers, or the loops are compiled for the oldest machine. The usual layer, 3 × 3 taps one pixel apart, has a way
//! of its own ([`Framed`]); any other goes tap by tap over the rows.

use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use super::shape::ConvShape;
use super::wide::wide;

/// Sums that are kept side by side: as many as a vector register holds.
const LANES: usize = 8;
/// Taps of the usual kernel.
const TAPS: usize = 9;

/// The output.
pub fn forward(shape: &ConvShape, x: &[f32], weight: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; shape.images * shape.outputs * shape.output_plane()];
    let arch = Arch::new();
    let planes = out.par_chunks_mut(shape.output_plane()).zip(x.par_chunks(shape.input_plane())).enumerate();
    if let Some(frame) = Frame::of(shape) {
        planes.for_each_init(
            || Framed::new(frame),
            |framed, (plane, (out, x))| {
                let weight = usual_kernel(shape, weight, plane);
                wide!(arch, framed.convolve(x, weight, out));
            },
        );
        return out;
    }
    planes.for_each(|(plane, (out, x))| {
        let weight = kernel(shape, weight, plane);
        wide!(arch, {
            for_taps(shape, |tap, rows, down, inside, first| {
                for output in rows {
                    let [_, across] = shape.output_size();
                    let from = &x[shape.under(output, down) * shape.size[1] + first..];
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
    if let Some(frame) = Frame::of(shape) {
        planes.for_each_init(
            || Framed::new(frame),
            |framed, (plane, (dx, dy))| {
                // What a pixel gave to the one on its left it gets back from there.
                let mut weight = usual_kernel(shape, weight, plane);
                weight.reverse();
                wide!(arch, framed.convolve(dy, weight, dx));
            },
        );
        return dx;
    }
    planes.for_each(|(plane, (dx, dy))| {
        let weight = kernel(shape, weight, plane);
        wide!(arch, {
            for_taps(shape, |tap, rows, down, inside, first| {
                for output in rows {
                    let [_, across] = shape.output_size();
                    let from = &dy[output * across..][inside.clone()];
                    let to = &mut dx[shape.under(output, down) * shape.size[1] + first..];
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
    let planes_of = |channel: usize| {
        (0..shape.images).map(move |image| {
            let plane = image * shape.inputs + channel;
            let x = &x[plane * shape.input_plane()..][..shape.input_plane()];
            (x, &dy[plane * shape.output_plane()..][..shape.output_plane()])
        })
    };
    let channels = gradient.par_chunks_mut(taps).enumerate();
    if let Some(frame) = Frame::of(shape) {
        channels.for_each_init(
            || [Framed::new(frame), Framed::new(frame)],
            |[framed, spread], (channel, gradient)| {
                wide!(arch, {
                    for (x, dy) in planes_of(channel) {
                        let sums = framed.products(x, dy, spread);
                        gradient.iter_mut().zip(sums).for_each(|(gradient, sum)| *gradient += sum);
                    }
                });
            },
        );
        return gradient;
    }
    channels.for_each(|(channel, gradient)| {
        wide!(arch, {
            for (x, dy) in planes_of(channel) {
                for_taps(shape, |tap, rows, down, inside, first| {
                    let mut sums = [0.0; LANES];
                    for output in rows {
                        let [_, across] = shape.output_size();
                        let one = &dy[output * across..][inside.clone()];
                        let two = &x[shape.under(output, down) * shape.size[1] + first..];
                        let pairs = one.iter().zip(two.iter().step_by(shape.stride));
                        pairs.enumerate().for_each(|(number, (a, b))| sums[number % LANES] += a * b);
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

fn usual_kernel(shape: &ConvShape, weight: &[f32], plane: usize) -> [f32; TAPS] {
    kernel(shape, weight, plane).try_into().expect("a frame is made for nine taps")
}

/// The size of a plane with a frame of zeros, one pixel wide.
#[derive(Clone, Copy)]
struct Frame {
    height: usize,
    width: usize,
}

impl Frame {
    /// Of layers with 3 × 3 taps, one pixel apart, whose output is as large as their input.
    fn of(shape: &ConvShape) -> Option<Self> {
        let [height, width] = shape.size;
        (shape.kernel == 3 && shape.stride == 1 && shape.padding == 1).then_some(Self { height, width })
    }

    /// Pixels of a line.
    fn line(self) -> usize {
        self.width + 2
    }

    /// Pixels from the first under the first tap to the last, whole vectors of them.
    fn span(self) -> usize {
        (self.height * self.line()).next_multiple_of(LANES)
    }
}

/// A plane in its frame. To shift such a plane is to begin elsewhere: however short its rows, all of it is one row.
struct Framed {
    frame: Frame,
    pixels: Vec<f32>,
    /// What was computed for each pixel, those of the frame's sides included.
    sums: Vec<f32>,
}

impl Framed {
    fn new(frame: Frame) -> Self {
        Self { frame, pixels: vec![0.0; frame.span() + 2 * frame.line() + 2], sums: vec![0.0; frame.span()] }
    }

    /// Puts a plane into the frame, its first pixel at `at`.
    #[inline(always)]
    fn fill(&mut self, plane: &[f32], at: usize) {
        let (line, width) = (self.frame.line(), self.frame.width);
        for (row, from) in plane.chunks_exact(width).enumerate() {
            copy(from, &mut self.pixels[at + row * line..][..width]);
        }
    }

    /// The vectors under each of the nine taps, from a pixel on.
    #[inline(always)]
    fn under(&self, at: usize) -> [&[f32]; TAPS] {
        let line = self.frame.line();
        let pixels = &self.pixels[at..][..2 * line + 2 + LANES];
        std::array::from_fn(|tap| &pixels[tap / 3 * line + tap % 3..][..LANES])
    }

    /// What the taps give for every pixel of the plane.
    #[inline(always)]
    fn convolve(&mut self, plane: &[f32], weight: [f32; TAPS], out: &mut [f32]) {
        let (line, width) = (self.frame.line(), self.frame.width);
        self.fill(plane, line + 1);
        for at in (0..self.frame.span()).step_by(LANES) {
            let mut sums = [0.0; LANES];
            for (from, weight) in self.under(at).into_iter().zip(weight) {
                for lane in 0..LANES {
                    sums[lane] += weight * from[lane];
                }
            }
            self.sums[at..at + LANES].copy_from_slice(&sums);
        }
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            copy(&self.sums[row * line..][..width], out);
        }
    }

    /// For each tap the sum of the products of `dy` and what the tap sees there.
    #[inline(always)]
    fn products(&mut self, plane: &[f32], dy: &[f32], spread: &mut Self) -> [f32; TAPS] {
        self.fill(plane, self.frame.line() + 1);
        spread.fill(dy, 0);
        let mut sums = [[0.0; LANES]; TAPS];
        for at in (0..self.frame.span()).step_by(LANES) {
            let dy = &spread.pixels[at..at + LANES];
            for (from, sums) in self.under(at).into_iter().zip(&mut sums) {
                for lane in 0..LANES {
                    sums[lane] += dy[lane] * from[lane];
                }
            }
        }
        sums.map(|sums| sums.iter().sum())
    }
}

/// Copies a row, which may be so short that a call to the library's copy would cost more than the copying.
#[inline(always)]
fn copy(from: &[f32], to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// Calls `work(tap, output rows, how far down the tap is, output columns, input column of the first of them)` for each
/// tap that meets the image.
#[inline(always)]
fn for_taps(shape: &ConvShape, mut work: impl FnMut(usize, Range<usize>, usize, Range<usize>, usize)) {
    let ([height, width], [rows, across]) = (shape.size, shape.output_size());
    for down in 0..shape.kernel {
        for right in 0..shape.kernel {
            let inside = shape.inside(right, width, across);
            if !inside.is_empty() {
                let first = shape.under(inside.start, right);
                work(down * shape.kernel + right, shape.inside(down, height, rows), down, inside, first);
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
