//! Convolutions in which every channel sees every channel, as products of matrices.
//!
//! A tile of images is laid out so that column p holds what the kernel sees at pixel p ("im2col"): rows are taps of
//! channels. Then the output is W·columns, the gradient of W is dY·columnsᵀ, and the gradient of the input is Wᵀ·dY laid
//! back. Tiles are small enough to stay in the cache, and are shared out over threads; sums over tiles are folded in a
//! fixed order, so that the result does not depend on the number of threads.

use std::cell::RefCell;

use rayon::prelude::*;

use super::matrix::{Matrix, multiply};
use super::shape::ConvShape;

/// Columns of a tile, about: enough for a matrix product to be fast, few enough to stay in the cache.
const COLUMNS: usize = 512;
/// Tiles there are at least, where there are as many images: so that several threads have something to do.
const LEAST_TILES: usize = 4;
/// Partial sums of the gradient of the weights.
const PARTS: usize = 8;

thread_local! {
    // Tiles are megabytes: allocating them anew for each would cost as much as filling them.
    static SCRATCH: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// The output of a convolution.
pub fn forward(shape: &ConvShape, x: &[f32], weight: &[f32]) -> Vec<f32> {
    let tiling = Tiling::new(shape);
    let mut out = vec![0.0; shape.images * shape.outputs * tiling.plane];
    let weight = Matrix::new(weight, shape.outputs, tiling.rows);
    let tiles = out.par_chunks_mut(tiling.images * shape.outputs * tiling.plane).enumerate();
    tiles.for_each(|(tile, out)| {
        let images = out.len() / (shape.outputs * tiling.plane);
        with_scratch(|columns, product| {
            let columns = tiling.columns(shape, x, tile, images, columns);
            if images == 1 {
                return multiply(weight, columns, out, false);
            }
            product.resize(out.len(), 0.0);
            multiply(weight, columns, product, false);
            swap(product, out, shape.outputs, images, tiling.plane);
        });
    });
    out
}

/// The gradient of the input, from that of the output.
pub fn input_gradient(shape: &ConvShape, weight: &[f32], dy: &[f32]) -> Vec<f32> {
    let tiling = Tiling::new(shape);
    let mut dx = vec![0.0; shape.images * shape.inputs * shape.input_plane()];
    let weight = Matrix::new(weight, shape.outputs, tiling.rows).transposed();
    let tiles = dx.par_chunks_mut(tiling.images * shape.inputs * shape.input_plane()).enumerate();
    tiles.for_each(|(tile, dx)| {
        let images = dx.len() / (shape.inputs * shape.input_plane());
        with_scratch(|columns, gathered| {
            let dy = tiling.outputs(shape, dy, tile, images, gathered);
            if tiling.direct(shape, images) {
                return multiply(weight, dy, dx, false);
            }
            columns.resize(tiling.rows * images * tiling.plane, 0.0);
            multiply(weight, dy, columns, false);
            lay_back(shape, columns, images, dx);
        });
    });
    dx
}

/// The gradient of the weights, from that of the output.
pub fn weight_gradient(shape: &ConvShape, x: &[f32], dy: &[f32]) -> Vec<f32> {
    let tiling = Tiling::new(shape);
    let tiles = shape.images.div_ceil(tiling.images);
    let size = shape.outputs * tiling.rows;
    let part = tiles.div_ceil(PARTS);
    let parts: Vec<Vec<f32>> = (0..tiles.div_ceil(part))
        .into_par_iter()
        .map(|number| {
            let mut sum = vec![0.0; size];
            for tile in number * part..((number + 1) * part).min(tiles) {
                let images = tiling.images.min(shape.images - tile * tiling.images);
                with_scratch(|columns, gathered| {
                    let columns = tiling.columns(shape, x, tile, images, columns);
                    let dy = tiling.outputs(shape, dy, tile, images, gathered);
                    multiply(dy, columns.transposed(), &mut sum, true);
                });
            }
            sum
        })
        .collect();
    let fold = |mut sum: Vec<f32>, part: Vec<f32>| {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        sum
    };
    parts.into_iter().reduce(fold).unwrap_or_else(|| vec![0.0; size])
}

fn with_scratch<R>(work: impl FnOnce(&mut Vec<f32>, &mut Vec<f32>) -> R) -> R {
    SCRATCH.with_borrow_mut(|[first, second]| work(first, second))
}

/// How images are grouped.
struct Tiling {
    /// Images in a tile; the last one may have fewer.
    images: usize,
    /// Pixels of a channel of the output.
    plane: usize,
    /// Taps of all channels.
    rows: usize,
}

impl Tiling {
    fn new(shape: &ConvShape) -> Self {
        let plane = shape.output_plane();
        let images = COLUMNS.div_ceil(plane.max(1)).min(shape.images.div_ceil(LEAST_TILES)).max(1);
        Self { images, plane, rows: shape.inputs * shape.kernel * shape.kernel }
    }

    /// Whether an image is its own columns.
    fn direct(&self, shape: &ConvShape, images: usize) -> bool {
        images == 1 && shape.kernel == 1 && shape.stride == 1 && shape.padding == 0
    }

    /// The columns of a tile.
    fn columns<'a>(
        &self,
        shape: &ConvShape,
        x: &'a [f32],
        tile: usize,
        images: usize,
        scratch: &'a mut Vec<f32>,
    ) -> Matrix<'a> {
        let image = shape.inputs * shape.input_plane();
        let x = &x[tile * self.images * image..][..images * image];
        let count = images * self.plane;
        if self.direct(shape, images) {
            return Matrix::new(x, self.rows, count);
        }
        scratch.resize(self.rows * count, 0.0);
        lay_out(shape, x, images, scratch);
        Matrix::new(scratch, self.rows, count)
    }

    /// The gradient of the output of a tile, a row for each channel.
    fn outputs<'a>(
        &self,
        shape: &ConvShape,
        dy: &'a [f32],
        tile: usize,
        images: usize,
        scratch: &'a mut Vec<f32>,
    ) -> Matrix<'a> {
        let image = shape.outputs * self.plane;
        let dy = &dy[tile * self.images * image..][..images * image];
        if images == 1 {
            return Matrix::new(dy, shape.outputs, self.plane);
        }
        scratch.resize(dy.len(), 0.0);
        swap(dy, scratch, images, shape.outputs, self.plane);
        Matrix::new(scratch, shape.outputs, images * self.plane)
    }
}

/// From first × second planes to second × first planes.
fn swap(from: &[f32], to: &mut [f32], first: usize, second: usize, plane: usize) {
    for (number, to) in to.chunks_exact_mut(plane).enumerate() {
        let (outer, inner) = (number / first, number % first);
        to.copy_from_slice(&from[(inner * second + outer) * plane..][..plane]);
    }
}

fn lay_out(shape: &ConvShape, x: &[f32], images: usize, columns: &mut [f32]) {
    let ([height, width], [rows, across]) = (shape.size, shape.output_size());
    let (plane, taps) = (rows * across, shape.kernel * shape.kernel);
    for (row, columns) in columns.chunks_exact_mut(images * plane).enumerate() {
        let (channel, down, right) = (row / taps, row % taps / shape.kernel, row % shape.kernel);
        let (inside_rows, inside) = (shape.inside(down, height, rows), shape.inside(right, width, across));
        for (image, columns) in columns.chunks_exact_mut(plane).enumerate() {
            let x = &x[(image * shape.inputs + channel) * height * width..][..height * width];
            for (output, line) in columns.chunks_exact_mut(across).enumerate() {
                if !inside_rows.contains(&output) || inside.is_empty() {
                    line.fill(0.0);
                    continue;
                }
                let from = &x[shape.under(output, down) * width..][..width];
                line[..inside.start].fill(0.0);
                line[inside.end..].fill(0.0);
                let from = &from[shape.under(inside.start, right)..];
                let line = &mut line[inside.clone()];
                if shape.stride == 1 {
                    line.copy_from_slice(&from[..line.len()]);
                } else {
                    line.iter_mut().zip(from.iter().step_by(shape.stride)).for_each(|(to, from)| *to = *from);
                }
            }
        }
    }
}

/// The transpose of [`lay_out`]: adds every value to the pixel it came from.
fn lay_back(shape: &ConvShape, columns: &[f32], images: usize, dx: &mut [f32]) {
    let ([height, width], [rows, across]) = (shape.size, shape.output_size());
    let (plane, taps) = (rows * across, shape.kernel * shape.kernel);
    for (row, columns) in columns.chunks_exact(images * plane).enumerate() {
        let (channel, down, right) = (row / taps, row % taps / shape.kernel, row % shape.kernel);
        let inside = shape.inside(right, width, across);
        if inside.is_empty() {
            continue;
        }
        for (image, columns) in columns.chunks_exact(plane).enumerate() {
            let dx = &mut dx[(image * shape.inputs + channel) * height * width..][..height * width];
            for output in shape.inside(down, height, rows) {
                let line = &columns[output * across..][inside.clone()];
                let to = &mut dx[shape.under(output, down) * width..][..width];
                let to = &mut to[shape.under(inside.start, right)..];
                if shape.stride == 1 {
                    to.iter_mut().zip(line).for_each(|(to, from)| *to += from);
                } else {
                    to.iter_mut().step_by(shape.stride).zip(line).for_each(|(to, from)| *to += from);
                }
            }
        }
    }
}
