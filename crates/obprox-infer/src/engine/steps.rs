//! The steps without weights: images and planes in, planes out.

use super::LANES;
use super::plane::{Plane, strided};
use crate::activation::apply_to;
use crate::network::{Activation, Window};

/// A plane that is read, and its shape.
pub type Framed<'a> = (&'a [f32], &'a Plane);

/// A plane that is written, and its shape.
pub type FramedMut<'a> = (&'a mut [f32], &'a Plane);

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

#[inline(always)]
pub fn activate(plane: &Plane, values: &mut [f32], activation: Activation, lanes: usize) {
    (0..plane.height).for_each(|y| apply_to(activation, plane.row_mut(values, y, lanes)));
}

/// The pixels of a window that lie on the image, in a direction.
fn span(window: &Window, axis: usize, at: usize, side: usize) -> impl Iterator<Item = usize> {
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
#[inline(always)]
pub fn pool(input: Framed, out: FramedMut, window: &Window, mean: Option<bool>, lanes: usize) {
    match (mean, lanes) {
        (None, 1) => fold::<1>(input, out, window, f32::NEG_INFINITY, f32::max),
        (None, _) => fold::<LANES>(input, out, window, f32::NEG_INFINITY, f32::max),
        (Some(count_padding), lanes) => {
            let ((_, from), (sums, to)) = (input, out);
            match lanes {
                1 => fold::<1>(input, (&mut *sums, to), window, 0.0, |sum, pixel| sum + pixel),
                _ => fold::<LANES>(input, (&mut *sums, to), window, 0.0, |sum, pixel| sum + pixel),
            }
            let sides = [from.height, from.width];
            let counts = [(0, to.height), (1, to.width)].map(|(axis, count)| {
                let count_at = |at: usize| match count_padding {
                    true => padded_span(window, axis, at, sides[axis]),
                    false => span(window, axis, at, sides[axis]).count(),
                };
                (0..count).map(count_at).collect::<Vec<usize>>()
            });
            for (y, rows) in counts[0].iter().enumerate() {
                let row = to.row_mut(sums, y, lanes);
                for (sums, columns) in row.chunks_exact_mut(lanes).zip(&counts[1]) {
                    let share = 1.0 / (rows * columns).max(1) as f32;
                    sums.iter_mut().for_each(|sum| *sum *= share);
                }
            }
        }
    }
}

/// Folds windows: first the rows of one, whole rows at once, then the columns of what came of them.
#[inline(always)]
fn fold<const LANES: usize>(
    (input, from): Framed,
    (out, to): FramedMut,
    window: &Window,
    empty: f32,
    f: impl Fn(f32, f32) -> f32,
) {
    let reach = (to.width - 1) * window.stride[1] + window.reach(1);
    let left = window.padding[1];
    let mut column = vec![empty; reach.max(left + from.width) * LANES];
    for y in 0..to.height {
        let folded = &mut column[left * LANES..][..from.width * LANES];
        folded.fill(empty);
        for row in span(window, 0, y, from.height) {
            let row = &input[(from.origin() + row * from.row) * LANES..][..folded.len()];
            folded.iter_mut().zip(row).for_each(|(folded, pixel)| *folded = f(*folded, *pixel));
        }
        let out = to.row_mut(out, y, LANES);
        out.fill(empty);
        for tap in 0..window.kernel[1] {
            let pixels = &column[tap * window.dilation[1] * LANES..];
            strided::<LANES>(pixels, window.stride[1], out, |out, pixel| *out = f(*out, pixel));
        }
    }
    to.clear_frame(out, LANES);
}

/// Means of windows that cover the image, one a pixel of the output.
#[inline(always)]
pub fn adaptive_pool((input, from): Framed, (out, to): FramedMut, lanes: usize) {
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

#[inline(always)]
pub fn upsample((input, from): Framed, (out, to): FramedMut, scale: [usize; 2], lanes: usize) {
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
#[inline(always)]
pub fn combine((one, of_one): Framed, (two, of_two): Framed, (out, to): FramedMut, multiply: bool, lanes: usize) {
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
