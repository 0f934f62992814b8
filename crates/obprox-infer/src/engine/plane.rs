//! One channel of a value in memory, and the tiles in which it is computed.
//!
//! A plane is kept with a frame of zeros, so that a kernel reads its padding like any other pixel and a weight of the
//! kernel is nothing but a distance in memory. A plane of one pixel, a number of a vector, has no frame. A pixel is one
//! float, or as many as there are images side by side (`lanes`). Lengths and distances are counted in pixels where
//! nothing else is said.

use super::LANES;
use crate::network::Window;

/// Shape of a plane within its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plane {
    pub height: usize,
    pub width: usize,
    /// Zeros on each side.
    pub frame: usize,
    /// From one row to the next.
    pub row: usize,
    /// From one plane to the next.
    pub len: usize,
}

/// The widest vector that a kernel writes with: tiles that do not end with the plane run over by less than that.
pub const WIDEST: usize = 16;

impl Plane {
    /// A plane of several pixels, or of one.
    pub fn new(height: usize, width: usize, frame: usize) -> Self {
        if (height, width) == (1, 1) {
            return Self { height, width, frame: 0, row: 1, len: 1 };
        }
        let row = width + 2 * frame;
        let framed = (height + 2 * frame) * row;
        let overrun = (frame + height - 1) * row + frame + width + WIDEST;
        Self { height, width, frame, row, len: framed.max(overrun).next_multiple_of(WIDEST) }
    }

    /// The first pixel within the frame.
    pub fn origin(&self) -> usize {
        self.frame * self.row + self.frame
    }

    /// Whether it is a number of a vector.
    pub fn is_number(&self) -> bool {
        self.len == 1
    }

    /// Makes the frame zero, after tiles that ran over it.
    pub fn clear_frame(&self, plane: &mut [f32], lanes: usize) {
        plane[..self.origin() * lanes].fill(0.0);
        for y in 1..self.height {
            let end = (self.frame + y - 1) * self.row + self.frame + self.width;
            let between = &mut plane[end * lanes..(end + 2 * self.frame) * lanes];
            // The usual ones are too short for a call.
            match between.len() {
                2 => between.copy_from_slice(&[0.0; 2]),
                _ => between.fill(0.0),
            }
        }
        let end = (self.frame + self.height - 1) * self.row + self.frame + self.width;
        plane[end * lanes..self.len * lanes].fill(0.0);
    }

    /// The rows within the frame.
    pub fn rows<'a>(&self, plane: &'a [f32], lanes: usize) -> impl Iterator<Item = &'a [f32]> {
        let Self { height, width, row, frame, .. } = *self;
        (frame..frame + height).map(move |y| &plane[(y * row + frame) * lanes..][..width * lanes])
    }

    /// A row within the frame, to be written.
    pub fn row_mut<'a>(&self, plane: &'a mut [f32], y: usize, lanes: usize) -> &'a mut [f32] {
        &mut plane[(self.origin() + y * self.row) * lanes..][..self.width * lanes]
    }
}

/// The planes that a convolution reads which cannot read its input as it lies: one for each pixel of a stride, padded as
/// the convolution asks for. Their rows are as far apart as those of the output, so that one distance in memory serves
/// both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phases {
    pub from: Plane,
    pub stride: [usize; 2],
    /// Pixels of a stride that a kernel reads, which may be smaller than its stride.
    pub used: [usize; 2],
    /// Zeros above and to the left.
    pub padding: [usize; 2],
    pub row: usize,
    pub rows: usize,
    /// From one plane to the next; `count` of them are a channel.
    pub len: usize,
}

impl Phases {
    pub fn new(from: Plane, to: Plane, window: &Window) -> Self {
        let rows = to.height + (window.reach(0) - 1) / window.stride[0];
        let padding = [window.padding[0], window.padding[1]];
        let used = [0, 1].map(|axis| window.stride[axis].min(window.reach(axis)));
        let len = (rows * to.row).next_multiple_of(WIDEST);
        Self { from, stride: window.stride, used, padding, row: to.row, rows, len }
    }

    pub fn count(&self) -> usize {
        self.used[0] * self.used[1]
    }

    /// Where a tap of the kernel, `down` and `right` of its first pixel, lies from the first pixel of the channel.
    pub fn offset(&self, down: usize, right: usize) -> usize {
        let [high, wide] = self.stride;
        (down % high * self.used[1] + right % wide) * self.len + down / high * self.row + right / wide
    }

    /// Takes a plane apart.
    #[inline(always)]
    pub fn split(&self, plane: &[f32], phases: &mut [f32], lanes: usize) {
        let ([high, wide], [top, left]) = (self.stride, self.padding);
        for (phase, out) in phases.chunks_exact_mut(self.len * lanes).enumerate() {
            let (down, right) = (phase / self.used[1], phase % self.used[1]);
            // The columns of this phase that are on the image.
            let first = left.saturating_sub(right).div_ceil(wide).min(self.row);
            let end = (self.from.width + left).saturating_sub(right).div_ceil(wide).clamp(first, self.row);
            out.fill(0.0);
            for (y, out) in out.chunks_exact_mut(self.row * lanes).take(self.rows).enumerate() {
                let y = (y * high + down).checked_sub(top).filter(|y| *y < self.from.height);
                if let Some(y) = y.filter(|_| end > first) {
                    let start = self.from.origin() + y * self.from.row + first * wide + right - left;
                    let out = &mut out[first * lanes..end * lanes];
                    match lanes {
                        1 => every::<1>(&plane[start..], wide, out),
                        _ => every::<LANES>(&plane[start * lanes..], wide, out),
                    }
                }
            }
        }
    }
}

/// Every so many pixels of a row.
#[inline(always)]
fn every<const LANES: usize>(row: &[f32], step: usize, out: &mut [f32]) {
    match step {
        1 => out.copy_from_slice(&row[..out.len()]),
        _ => strided::<LANES>(row, step, out, |out, pixel| *out = pixel),
    }
}

/// Goes over the pixels of a row together with every so many of another, which begins with the first of them.
#[inline(always)]
pub fn strided<const LANES: usize>(row: &[f32], step: usize, out: &mut [f32], f: impl Fn(&mut f32, f32)) {
    let out = out.as_chunks_mut::<LANES>().0;
    let both = |(out, pixel): (&mut [f32; LANES], &[f32; LANES])| {
        out.iter_mut().zip(pixel).for_each(|(out, pixel)| f(out, *pixel));
    };
    let pixels = row.as_chunks::<LANES>().0;
    match step {
        1 => out.iter_mut().zip(pixels).for_each(both),
        // The compiler makes vectors of pairs, and not of steps that it does not know.
        2 => {
            let (pairs, last) = pixels.as_chunks::<2>();
            out.iter_mut().zip(pairs).for_each(|(out, [first, _])| both((out, first)));
            out.iter_mut().skip(pairs.len()).zip(last).for_each(both);
        }
        _ => out.iter_mut().zip(pixels.iter().step_by(step)).for_each(both),
    }
}

/// A part of a plane that is computed at once: `rows` rows of `vectors` vectors each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Floats from the first pixel within the frame.
    pub start: usize,
    pub rows: usize,
    pub vectors: usize,
}

/// Covers a plane by tiles of at most `square` vectors in several rows, a power of two, or of `most` that are one piece of
/// memory; `unit` floats are a vector.
pub fn tiles(plane: &Plane, lanes: usize, unit: usize, [square, most]: [usize; 2]) -> Vec<Tile> {
    let (row, row_len) = (plane.row * lanes, plane.width * lanes);
    let mut tiles = Vec::new();
    if row_len.is_multiple_of(unit) {
        for (start, vectors) in blocks(row_len / unit, square) {
            let rows = square / vectors;
            let whole = plane.height / rows * rows;
            let high = (0..whole).step_by(rows).map(|y| (y, rows));
            for (y, rows) in high.chain((whole..plane.height).map(|y| (y, 1))) {
                tiles.push(Tile { start: y * row + start * unit, rows, vectors });
            }
        }
    } else {
        // Straight on over the frame between the rows; what is computed there is made zero again.
        let len = (plane.height - 1) * row + row_len;
        let vectors = len.div_ceil(unit);
        let count = vectors.div_ceil(most);
        let starts: Vec<usize> = (0..=count).map(|at| at * vectors / count).collect();
        let pairs = starts.windows(2);
        tiles.extend(pairs.map(|pair| Tile { start: pair[0] * unit, rows: 1, vectors: pair[1] - pair[0] }));
    }
    tiles
}

/// Cuts a length into pieces of `most`, and the rest into powers of two: (start, length).
fn blocks(len: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    let mut piece = most;
    std::iter::from_fn(move || {
        let left = len - start;
        while left > 0 && piece > left {
            piece /= 2;
        }
        let length = piece.min(left);
        start += length;
        (length > 0).then_some((start - length, length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pixel within the frame is in exactly one tile, and no tile leaves the plane.
    #[test]
    fn tiles_cover_a_plane() {
        for (height, width) in [(1, 2), (2, 2), (3, 5), (4, 4), (7, 7), (8, 8), (16, 16), (5, 32), (28, 28), (32, 32)] {
            for (lanes, [square, most]) in [(1, [8, 14]), (1, [4, 5]), (8, [8, 8]), (8, [2, 3])] {
                let plane = Plane::new(height, width, 1 + height % 3);
                let mut times = vec![0; plane.len * lanes];
                for tile in tiles(&plane, lanes, 8, [square, most]) {
                    assert!(tile.rows * tile.vectors <= if tile.rows > 1 { square } else { most.max(square) });
                    for row in 0..tile.rows {
                        let start = plane.origin() * lanes + tile.start + row * plane.row * lanes;
                        times[start..start + 8 * tile.vectors].iter_mut().for_each(|times| *times += 1);
                    }
                }
                let times: Vec<f32> = times.into_iter().map(|times| times as f32).collect();
                let within: Vec<f32> = plane.rows(&times, lanes).flatten().copied().collect();
                assert_eq!(within, vec![1.0; height * width * lanes], "{height}×{width}, {lanes} lanes");
            }
        }
    }

    #[test]
    fn frames_are_cleared_and_nothing_else() {
        for (height, width, frame, lanes) in [(1, 1, 0, 1), (4, 3, 1, 1), (5, 7, 2, 8), (2, 2, 3, 1)] {
            let plane = Plane::new(height, width, frame);
            let mut values = vec![1.0; plane.len * lanes];
            plane.clear_frame(&mut values, lanes);
            assert_eq!(values.iter().sum::<f32>(), (height * width * lanes) as f32);
            assert!(plane.rows(&values, lanes).flatten().all(|&value| value == 1.0));
        }
    }

    /// Every tap of a kernel finds its pixel, or the zero beyond the edge.
    #[test]
    fn phases_hold_what_a_kernel_reads() {
        let windows = [
            (Plane::new(5, 7, 1), Window::square(3, 2, 1), 1),
            (Plane::new(8, 4, 2), Window::square(3, 2, 1), LANES),
            (Plane::new(9, 9, 1), Window::square(7, 2, 3), 1),
            (Plane::new(6, 8, 1), Window::square(5, 3, 0), 1),
            (Plane::new(1, 1, 1), Window::square(3, 1, 2), LANES),
            (
                Plane::new(7, 6, 1),
                Window { kernel: [1, 3], stride: [1, 2], padding: [0, 1, 2, 3], dilation: [1, 2] },
                1,
            ),
        ];
        for (from, window, lanes) in windows {
            let sides = [from.height, from.width];
            let [height, width] = [0, 1].map(|axis| window.output_side(axis, sides[axis], false).unwrap());
            let to = Plane::new(height, width, 3);
            let phases = Phases::new(from, to, &window);
            let mut plane = vec![f32::NAN; from.len * lanes];
            for y in 0..from.height {
                let row = from.row_mut(&mut plane, y, lanes);
                row.iter_mut().enumerate().for_each(|(x, value)| *value = (1000 * y + x) as f32);
            }
            let mut split = vec![-1.0; phases.count() * phases.len * lanes];
            phases.split(&plane, &mut split, lanes);
            let taps = |axis: usize| 0..window.kernel[axis];
            for (y, x, ky, kx) in (0..height)
                .flat_map(|y| (0..width).map(move |x| (y, x)))
                .flat_map(|(y, x)| taps(0).flat_map(move |ky| taps(1).map(move |kx| (y, x, ky, kx))))
            {
                let (down, right) = (ky * window.dilation[0], kx * window.dilation[1]);
                let at = (phases.offset(down, right) + y * phases.row + x) * lanes;
                let there = (y * window.stride[0] + down).checked_sub(window.padding[0]);
                let there = there.zip((x * window.stride[1] + right).checked_sub(window.padding[1]));
                let inside = there.filter(|(y, x)| *y < from.height && *x < from.width);
                let expected = inside.map_or(0.0, |(y, x)| (1000 * y + x * lanes) as f32);
                assert_eq!(split[at], expected, "{window:?} {:?}", (y, x, ky, kx));
            }
        }
    }
}
