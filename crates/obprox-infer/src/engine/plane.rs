//! One channel of a value in memory, and the tiles in which it is computed.
//!
//! A plane is kept with a frame of zeros one pixel wide, so that a 3×3 kernel reads its padding like any other pixel and
//! a weight of the kernel is nothing but a distance in memory. A pixel is one float, or as many as there are images
//! side by side (`lanes`). Lengths and distances are counted in pixels where nothing else is said.

use super::LANES;

/// Shape of a plane within its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plane {
    pub height: usize,
    pub width: usize,
    /// From one row to the next.
    pub row: usize,
    /// From one plane to the next.
    pub len: usize,
}

/// The widest vector that a kernel writes with: tiles that do not end with the plane run over by less than that.
const WIDEST: usize = 8;

impl Plane {
    pub fn new(height: usize, width: usize) -> Self {
        let row = width + 2;
        let framed = (height + 2) * row;
        let overrun = height * row + width + WIDEST;
        Self { height, width, row, len: framed.max(overrun).next_multiple_of(WIDEST) }
    }

    /// The first pixel within the frame.
    pub fn origin(&self) -> usize {
        self.row + 1
    }

    /// Makes the frame zero, after tiles that ran over it.
    pub fn clear_frame(&self, plane: &mut [f32], lanes: usize) {
        plane[..self.origin() * lanes].fill(0.0);
        for y in 1..self.height {
            let end = y * self.row + 1 + self.width;
            plane[end * lanes..(end + 2) * lanes].fill(0.0);
        }
        plane[(self.height * self.row + 1 + self.width) * lanes..self.len * lanes].fill(0.0);
    }

    /// The rows within the frame.
    pub fn rows<'a>(&self, plane: &'a [f32], lanes: usize) -> impl Iterator<Item = &'a [f32]> {
        let Self { height, width, row, .. } = *self;
        (1..=height).map(move |y| &plane[(y * row + 1) * lanes..][..width * lanes])
    }
}

/// The four planes that every second pixel of a framed plane makes, for convolutions of stride 2. Their rows are as far
/// apart as those of the output, so that one distance in memory serves both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phases {
    pub from: Plane,
    pub row: usize,
    /// From one plane to the next; four of them are a channel.
    pub len: usize,
}

impl Phases {
    pub const COUNT: usize = 4;

    pub fn new(from: Plane, to: Plane) -> Self {
        let rows = (from.height + 2).div_ceil(2);
        Self { from, row: to.row, len: (rows * to.row).next_multiple_of(WIDEST) }
    }

    /// Takes a plane apart.
    pub fn split(&self, plane: &[f32], phases: &mut [f32], lanes: usize) {
        let row_len = (self.from.width + 2) * lanes;
        for (y, row) in plane.chunks_exact(self.from.row * lanes).take(self.from.height + 2).enumerate() {
            let pair = &mut phases[y % 2 * 2 * self.len * lanes..][..2 * self.len * lanes];
            let (even, odd) = pair.split_at_mut(self.len * lanes);
            let start = y / 2 * self.row * lanes;
            let (even, odd) = (&mut even[start..][..self.row * lanes], &mut odd[start..][..self.row * lanes]);
            let row = &row[..row_len];
            match lanes {
                1 => split_row::<1>(row, even, odd),
                _ => split_row::<LANES>(row, even, odd),
            }
        }
    }
}

/// Every second pixel of a row to one side.
fn split_row<const LANES: usize>(row: &[f32], even: &mut [f32], odd: &mut [f32]) {
    let (row, even, odd) =
        (row.as_chunks::<LANES>().0, even.as_chunks_mut::<LANES>().0, odd.as_chunks_mut::<LANES>().0);
    for ((pair, even), odd) in row.as_chunks::<2>().0.iter().zip(even.iter_mut()).zip(odd) {
        (*even, *odd) = (pair[0], pair[1]);
    }
    if let Some(last) = row.as_chunks::<2>().1.first() {
        even[row.len() / 2] = *last;
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

/// Covers a plane by tiles of at most `most` vectors, a power of two; `unit` floats are a vector.
pub fn tiles(plane: &Plane, lanes: usize, unit: usize, most: usize) -> Vec<Tile> {
    let (row, row_len) = (plane.row * lanes, plane.width * lanes);
    let mut tiles = Vec::new();
    if row_len.is_multiple_of(unit) {
        for (start, vectors) in blocks(row_len / unit, most, false) {
            let rows = most / vectors;
            let whole = plane.height / rows * rows;
            let high = (0..whole).step_by(rows).map(|y| (y, rows));
            for (y, rows) in high.chain((whole..plane.height).map(|y| (y, 1))) {
                tiles.push(Tile { start: y * row + start * unit, rows, vectors });
            }
        }
    } else {
        // Straight on over the frame between the rows; what is computed there is made zero again.
        let len = (plane.height - 1) * row + row_len;
        let blocks = blocks(len.div_ceil(unit), most, most > 3);
        tiles.extend(blocks.map(|(start, vectors)| Tile { start: start * unit, rows: 1, vectors }));
    }
    tiles
}

/// Cuts a length into pieces of `most`, and the rest into powers of two: (start, length). A rest of three may stay whole.
fn blocks(len: usize, most: usize, threes: bool) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    let mut piece = most;
    std::iter::from_fn(move || {
        let left = len - start;
        while left > 0 && piece > left {
            piece /= 2;
        }
        let length = if threes && left == 3 { 3 } else { piece.min(left) };
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
        for (height, width) in [(1, 1), (2, 2), (3, 5), (4, 4), (7, 7), (8, 8), (16, 16), (5, 32), (28, 28), (32, 32)] {
            for (lanes, most) in [(1, 8), (1, 2), (8, 8), (8, 2)] {
                let plane = Plane::new(height, width);
                let mut times = vec![0; plane.len * lanes];
                for tile in tiles(&plane, lanes, 8, most) {
                    assert!(tile.rows * tile.vectors <= most);
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
        for (height, width, lanes) in [(1, 1, 1), (4, 3, 1), (5, 7, 8)] {
            let plane = Plane::new(height, width);
            let mut values = vec![1.0; plane.len * lanes];
            plane.clear_frame(&mut values, lanes);
            assert_eq!(values.iter().sum::<f32>(), (height * width * lanes) as f32);
            assert!(plane.rows(&values, lanes).flatten().all(|&value| value == 1.0));
        }
    }

    #[test]
    fn phases_hold_every_second_pixel() {
        for (from, lanes) in [(Plane::new(5, 7), 1), (Plane::new(8, 4), LANES)] {
            let to = Plane::new(from.height.div_ceil(2), from.width.div_ceil(2));
            let phases = Phases::new(from, to);
            let plane: Vec<f32> = (0..from.len * lanes).map(|at| at as f32).collect();
            let mut split = vec![-1.0; Phases::COUNT * phases.len * lanes];
            phases.split(&plane, &mut split, lanes);
            for y in 0..from.height + 2 {
                for x in 0..(from.width + 2) {
                    let phase = y % 2 * 2 + x % 2;
                    let at = (phase * phases.len + y / 2 * phases.row + x / 2) * lanes;
                    let there = (y * from.row + x) * lanes;
                    assert_eq!(split[at..at + lanes], plane[there..there + lanes]);
                }
            }
        }
    }
}
