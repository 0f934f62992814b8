//! Σ hᵢ dᵢdᵢᵀ of few features, straight from the rows.
//!
//! The rows are dealt to a few tasks, each with sums of its own: the lower triangle, line after line. How many there are
//! depends on the numbers of features and rows alone, so the bits do not depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use crate::data::{Dense, Matrix, Rows, Value};
use crate::wide::wide;

/// Sums that are kept at a time, about: they shall stay in the caches.
const AT_A_TIME: usize = 1 << 17;
/// Rows that a task takes in a row: they are dealt in turns, since the long ones often lie together.
const CHUNK: usize = 64;

/// A column that is not among the features.
const NOT_WANTED: u32 = u32::MAX;

/// The lower triangle, line after line; a column of ones comes last where `intercept` says so. Features rise.
pub(super) fn of_rows(rows: &Matrix, features: &[u32], intercept: bool, curvatures: &[f64]) -> Vec<f64> {
    match rows {
        Matrix::Ones(rows) => of_sparse::<_, true>(rows, features, intercept, curvatures),
        Matrix::Sparse32(rows) => of_sparse::<_, false>(rows, features, intercept, curvatures),
        Matrix::Sparse64(rows) => of_sparse::<_, false>(rows, features, intercept, curvatures),
        Matrix::Dense32(rows) => of_dense(rows, features, intercept, curvatures),
        Matrix::Dense64(rows) => of_dense(rows, features, intercept, curvatures),
    }
}

/// The lower triangle of a matrix of that size, each task's part made by `add` out of chunks of rows.
fn by_chunks(
    size: usize,
    n_rows: usize,
    add: impl Fn(&mut dyn Iterator<Item = Range<usize>>, &mut [f64]) + Sync,
) -> Vec<f64> {
    let tasks = (AT_A_TIME / (size * size).max(1)).clamp(2, 16).min(n_rows.div_ceil(CHUNK)).max(1);
    let part = |task: usize| {
        let mut sums = vec![0.0; line_start(size)];
        let starts = (task * CHUNK..n_rows).step_by(tasks * CHUNK);
        add(&mut starts.map(|start| start..(start + CHUNK).min(n_rows)), &mut sums);
        sums
    };
    let mut parts = (0..tasks).into_par_iter().map(part).collect::<Vec<_>>().into_iter();
    let mut sums = parts.next().expect("there is one at least");
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    let mut gram = vec![0.0; size * size];
    for (index, line) in gram.chunks_exact_mut(size.max(1)).enumerate() {
        line[..=index].copy_from_slice(&sums[line_start(index)..line_start(index + 1)]);
    }
    gram
}

/// Where a line starts in a triangle without gaps.
#[inline]
fn line_start(index: usize) -> usize {
    index * (index + 1) / 2
}

/// Of rows that are stored sparsely, where every value is 1 or not.
fn of_sparse<R: Rows + Sync, const ONES: bool>(
    rows: &R,
    features: &[u32],
    intercept: bool,
    curvatures: &[f64],
) -> Vec<f64> {
    let size = features.len() + usize::from(intercept);
    let mut indices = vec![NOT_WANTED; rows.n_cols()];
    features.iter().enumerate().for_each(|(index, &feature)| indices[feature as usize] = index as u32);
    by_chunks(size, curvatures.len(), |chunks, sums| {
        // A row: its indices and values.
        let (mut at, mut values) = (vec![0; size + 1], vec![1.0; size + 1]);
        for row in chunks.flatten().filter(|&row| curvatures[row] != 0.0) {
            let mut len = 0;
            rows.for_each(row, |column, value| {
                at[len] = indices[column];
                if !ONES {
                    values[len] = value;
                }
                len += usize::from(indices[column] != NOT_WANTED);
            });
            if intercept {
                (at[len], values[len]) = (size as u32 - 1, 1.0);
                len += 1;
            }
            add_row::<ONES>(sums, &at[..len], &values[..len], curvatures[row]);
        }
    })
}

/// Lines of a triangle that a sparse row is added to at a time.
const LINES: usize = 4;

/// Adds h·ddᵀ of a sparse row d to a triangle: its indices, which rise, and their values (nothing where all are 1).
///
/// Four lines at a time: each index is looked up once for all, and there are fewer loops, whose ends are hard to foresee.
#[inline]
fn add_row<const ONES: bool>(sums: &mut [f64], indices: &[u32], values: &[f64], h: f64) {
    let value = |at: usize| if ONES { 1.0 } else { values[at] };
    let first = indices.len() % LINES;
    for end in 0..first {
        let last = indices[end] as usize;
        let line = &mut sums[line_start(last)..][..=last];
        let scaled = h * value(end);
        for (at, &index) in indices[..=end].iter().enumerate() {
            line[index as usize] += scaled * value(at);
        }
    }
    for start in (first..indices.len()).step_by(LINES) {
        let four: [usize; LINES] = std::array::from_fn(|line| indices[start + line] as usize);
        let scaled: [f64; LINES] = std::array::from_fn(|line| h * value(start + line));
        let (head, rest) = sums.split_at_mut(line_start(four[1]));
        let (second, rest) = rest.split_at_mut(line_start(four[2]) - line_start(four[1]));
        let (third, fourth) = rest.split_at_mut(line_start(four[3]) - line_start(four[2]));
        let mut lines = [&mut head[line_start(four[0])..], second, third, fourth];
        for (at, &index) in indices[..start].iter().enumerate() {
            for (line, scaled) in lines.iter_mut().zip(scaled) {
                line[index as usize] += scaled * value(at);
            }
        }
        for (own, (line, scaled)) in lines.iter_mut().zip(scaled).enumerate() {
            for other in 0..=own {
                line[four[other]] += scaled * value(start + other);
            }
        }
    }
}

/// Rows and columns of a product that stay in registers.
const TALL: usize = 4;
const WIDE: usize = 8;

/// Of rows that are stored densely.
fn of_dense<V: Value>(rows: &Dense<V>, features: &[u32], intercept: bool, curvatures: &[f64]) -> Vec<f64> {
    let size = features.len() + usize::from(intercept);
    let width = size.max(1).next_multiple_of(WIDE);
    by_chunks(size, curvatures.len(), |chunks, sums| {
        // The rows of a chunk and the same times their curvatures, with zeros up to a whole number of registers.
        let (mut plain, mut scaled) = (vec![0.0; CHUNK * width], vec![0.0; CHUNK * width]);
        let mut square = vec![0.0; width * width];
        for chunk in chunks {
            let len = chunk.len();
            let lines = plain.chunks_exact_mut(width).zip(scaled.chunks_exact_mut(width));
            for (row, (plain, scaled)) in chunk.zip(lines) {
                rows.pick(row, features, plain);
                if intercept {
                    plain[size - 1] = 1.0;
                }
                scaled.iter_mut().zip(plain).for_each(|(scaled, plain)| *scaled = *plain * curvatures[row]);
            }
            add_product(&mut square, width, &scaled[..len * width], &plain[..len * width]);
        }
        for index in 0..size {
            sums[line_start(index)..line_start(index + 1)].copy_from_slice(&square[index * width..][..=index]);
        }
    })
}

wide! {
    /// Adds leftᵀ·right to a square, on and below its diagonal; both have as many columns as it, a multiple of [`WIDE`].
    fn add_product(square: &mut [f64], width: usize, left: &[f64], right: &[f64]) {
        for row in (0..width).step_by(TALL) {
            for column in (0..row + TALL).step_by(WIDE) {
                let mut sums = [[0.0; WIDE]; TALL];
                for (left, right) in left.chunks_exact(width).zip(right.chunks_exact(width)) {
                    let left: &[f64; TALL] = left[row..][..TALL].try_into().expect("as long as that");
                    let right: &[f64; WIDE] = right[column..][..WIDE].try_into().expect("as long as that");
                    for (sums, left) in sums.iter_mut().zip(left) {
                        sums.iter_mut().zip(right).for_each(|(sum, right)| *sum += left * right);
                    }
                }
                for (r, sums) in sums.iter().enumerate() {
                    let line = &mut square[(row + r) * width + column..][..WIDE];
                    line.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lists::RowLists;
    use super::*;

    #[test]
    fn the_gram_matrix_is_that_of_the_lists() {
        let (n_rows, n_cols) = (1000, 9);
        let value = |row: usize, column: usize| ((row * 31 + column * 17 + row * column) % 23) as f64 / 8.0 - 1.0;
        let sparse = |of: &dyn Fn(usize, usize) -> f64| {
            let present = |row: usize, column: usize| (row + column * row / 3).is_multiple_of(3);
            let entries = |row| (0..n_cols).filter(move |&column| present(row, column));
            let rows: Vec<Vec<(u32, f64)>> =
                (0..n_rows).map(|row| entries(row).map(|column| (column as u32, of(row, column))).collect()).collect();
            Matrix::from_rows(n_cols, &rows)
        };
        let dense: Vec<f64> = (0..n_rows * n_cols).map(|at| value(at / n_cols, at % n_cols) + 0.01).collect();
        let curvatures: Vec<f64> = (0..n_rows).map(|row| (row % 7) as f64 / 8.0).collect();
        for rows in [sparse(&value), sparse(&|_, _| 1.0), Matrix::from_dense(n_rows, n_cols, &dense)] {
            let columns = rows.transposed(None);
            for features in [&[0, 1, 2, 3, 4, 5, 6, 7, 8][..], &[1, 4, 8], &[2, 3], &[]] {
                for intercept in [false, true] {
                    let size = features.len() + usize::from(intercept);
                    let gram = of_rows(&rows, features, intercept, &curvatures);
                    if size == 0 {
                        assert!(gram.is_empty());
                        continue;
                    }
                    let expected = {
                        let listed: Vec<_> = features.iter().map(|&feature| (&columns, feature as usize)).collect();
                        RowLists::of(n_rows, &listed).gram(size, intercept, &curvatures)
                    };
                    assert_eq!(gram.len(), size * size);
                    for (at, (sum, expected)) in gram.iter().zip(expected.iter()).enumerate() {
                        // Lists keep values in single precision.
                        let lower = at % size <= at / size;
                        assert!(!lower || (sum - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{sum} {expected}");
                    }
                }
            }
        }
    }
}
