//! The steps without weights: images and planes in, planes out.

use super::LANES;
use super::plane::Plane;
use crate::activation::apply_to;
use crate::network::{Activation, Window};

/// Images into planes, side by side; lanes without an image are zero.
pub fn load(images: &[f32], image_len: usize, channels: &[usize], plane: &Plane, out: &mut [f32], lanes: usize) {
    let pixels = plane.height * plane.width;
    for (&channel, out) in channels.iter().zip(out.chunks_exact_mut(plane.len * lanes)) {
        out.fill(0.0);
        for (lane, image) in images.chunks_exact(image_len).enumerate() {
            let rows = image[channel * pixels..][..pixels].chunks_exact(plane.width);
            for (y, row) in rows.enumerate() {
                let out = plane.row_mut(out, y, lanes);
                for (out, &pixel) in out.iter_mut().skip(lane).step_by(lanes).zip(row) {
                    *out = pixel;
                }
            }
        }
    }
}

/// Planes into the scores of each image.
pub fn store<'a>(planes: impl Iterator<Item = &'a [f32]>, plane: &Plane, scores: &mut [f32], len: usize, lanes: usize) {
    let pixels = plane.height * plane.width;
    for (channel, values) in planes.enumerate() {
        for (at, pixel) in plane.rows(values, lanes).flat_map(|row| row.chunks_exact(lanes)).enumerate() {
            for (scores, value) in scores.chunks_exact_mut(len).zip(pixel) {
                scores[channel * pixels + at] = *value;
            }
        }
    }
}

pub fn activate(plane: &Plane, values: &mut [f32], activation: Activation, lanes: usize) {
    (0..plane.height).for_each(|y| apply_to(activation, plane.row_mut(values, y, lanes)));
}

/// The pixels of a window on the image, in a direction: from the one to the other, by steps.
fn span(window: &Window, axis: usize, at: usize, side: usize) -> impl Iterator<Item = usize> + Clone {
    let (start, before) = (at * window.stride[axis], window.padding[axis]);
    let places = (0..window.kernel[axis]).map(move |tap| start + tap * window.dilation[axis]);
    places.filter_map(move |place| place.checked_sub(before)).filter(move |place| *place < side)
}

/// Pixels of a window that lie on the image or on the padding around it, in a direction.
fn padded_span(window: &Window, axis: usize, at: usize, side: usize) -> usize {
    let end = side + window.padding[axis] + window.padding[axis + 2];
    let start = at * window.stride[axis];
    (0..window.kernel[axis]).filter(|tap| start + tap * window.dilation[axis] < end).count()
}

/// The largest of each window, or their mean.
pub fn pool(
    (input, from): (&[f32], &Plane),
    (out, to): (&mut [f32], &Plane),
    window: &Window,
    mean: Option<bool>,
    lanes: usize,
) {
    for y in 0..to.height {
        let rows = span(window, 0, y, from.height);
        let out = to.row_mut(out, y, lanes);
        for (x, out) in out.chunks_exact_mut(lanes).enumerate() {
            out.fill(if mean.is_some() { 0.0 } else { f32::NEG_INFINITY });
            let mut count = 0;
            for row in rows.clone() {
                let row = &input[(from.origin() + row * from.row) * lanes..];
                for column in span(window, 1, x, from.width) {
                    let pixel = &row[column * lanes..][..lanes];
                    match mean {
                        Some(_) => out.iter_mut().zip(pixel).for_each(|(out, &pixel)| *out += pixel),
                        None => out.iter_mut().zip(pixel).for_each(|(out, &pixel)| *out = out.max(pixel)),
                    }
                    count += 1;
                }
            }
            if let Some(count_padding) = mean {
                if count_padding {
                    count = padded_span(window, 0, y, from.height) * padded_span(window, 1, x, from.width);
                }
                let share = 1.0 / count.max(1) as f32;
                out.iter_mut().for_each(|out| *out *= share);
            }
        }
    }
    to.clear_frame(out, lanes);
}

/// Means of windows that cover the image, one a pixel of the output.
pub fn adaptive_pool((input, from): (&[f32], &Plane), (out, to): (&mut [f32], &Plane), lanes: usize) {
    let covered = |at: usize, from: usize, to: usize| at * from / to..((at + 1) * from).div_ceil(to);
    for y in 0..to.height {
        let rows = covered(y, from.height, to.height);
        let out = to.row_mut(out, y, lanes);
        for (x, out) in out.chunks_exact_mut(lanes).enumerate() {
            let columns = covered(x, from.width, to.width);
            let mut sums = [0.0; LANES];
            for row in rows.clone() {
                let start = from.origin() + row * from.row;
                let row = &input[(start + columns.start) * lanes..(start + columns.end) * lanes];
                for pixel in row.chunks_exact(lanes) {
                    sums.iter_mut().zip(pixel).for_each(|(sum, pixel)| *sum += pixel);
                }
            }
            let share = 1.0 / (rows.len() * columns.len()) as f32;
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum * share);
        }
    }
    to.clear_frame(out, lanes);
}

pub fn upsample((input, from): (&[f32], &Plane), (out, to): (&mut [f32], &Plane), scale: [usize; 2], lanes: usize) {
    let rows: Vec<&[f32]> = from.rows(input, lanes).collect();
    for y in 0..to.height {
        let pixels = rows[y / scale[0]].chunks_exact(lanes);
        let out = to.row_mut(out, y, lanes);
        for (out, pixel) in out.chunks_exact_mut(lanes * scale[1]).zip(pixels) {
            out.chunks_exact_mut(lanes).for_each(|out| out.copy_from_slice(pixel));
        }
    }
    to.clear_frame(out, lanes);
}

/// The sum or product of two planes of one size, or of one and a number.
pub fn combine(
    (one, of_one): (&[f32], &Plane),
    (two, of_two): (&[f32], &Plane),
    (out, to): (&mut [f32], &Plane),
    multiply: bool,
    lanes: usize,
) {
    let f = |one: f32, two: f32| if multiply { one * two } else { one + two };
    if of_one == to && of_two == to {
        let pairs = out.iter_mut().zip(one.iter().zip(two));
        return if multiply {
            pairs.for_each(|(out, (one, two))| *out = one * two);
        } else {
            pairs.for_each(|(out, (one, two))| *out = one + two);
        };
    }
    let (large, of_large, small) = if of_one == to { (one, of_one, two) } else { (two, of_two, one) };
    for (y, row) in of_large.rows(large, lanes).enumerate() {
        let out = to.row_mut(out, y, lanes);
        for (out, pixel) in out.chunks_exact_mut(lanes).zip(row.chunks_exact(lanes)) {
            let numbers = pixel.iter().zip(small);
            out.iter_mut().zip(numbers).for_each(|(out, (&pixel, &number))| *out = f(pixel, number));
        }
    }
    to.clear_frame(out, lanes);
}

/// eˣ over the sum of all channels' eˣ, at every pixel; the planes of all channels, one after the other.
pub fn softmax(input: &[f32], out: &mut [f32], channels: usize, plane: &Plane, lanes: usize) {
    let len = plane.len * lanes;
    out[..channels * len].copy_from_slice(&input[..channels * len]);
    for y in 0..plane.height {
        let start = (plane.origin() + y * plane.row) * lanes;
        for at in start..start + plane.width * lanes {
            let places = || (0..channels).map(|channel| channel * len + at);
            let largest = places().map(|at| out[at]).fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = places().map(|at| (out[at] - largest).exp()).sum();
            places().for_each(|at| out[at] = (out[at] - largest).exp() / sum);
        }
    }
}
