//! Σ hᵢ dᵢdᵢᵀ of few features, straight from the rows.

use rayon::prelude::*;

use crate::data::{Matrix, Rows, with_rows};

/// A column that is not among the features.
const NOT_WANTED: u32 = u32::MAX;
/// Sums that are kept at a time, about: they shall stay in the caches.
const AT_A_TIME: usize = 1 << 17;

/// The lower triangle, line after line; a column of ones comes last where `intercept` says so. Features rise.
///
/// The rows are cut into blocks, each with sums of its own. How many depends on the number of features alone, so the bits
/// do not depend on the number of threads.
pub(super) fn of_rows(rows: &Matrix, features: &[u32], intercept: bool, curvatures: &[f64]) -> Vec<f64> {
    let size = features.len() + usize::from(intercept);
    let mut places = vec![NOT_WANTED; rows.n_cols()];
    features.iter().enumerate().for_each(|(place, &feature)| places[feature as usize] = place as u32);
    let blocks = (AT_A_TIME / (size * size).max(1)).clamp(2, 16);
    let share = curvatures.len().div_ceil(blocks).max(1);
    let of_block = |(block, curvatures): (usize, &[f64])| {
        with_rows!(rows, |rows| of_block(rows, block * share, &places, size, intercept, curvatures))
    };
    let parts: Vec<Vec<f64>> = curvatures.par_chunks(share).enumerate().map(of_block).collect();
    let mut parts = parts.into_iter();
    let mut gram = parts.next().unwrap_or_else(|| vec![0.0; size * size]);
    for part in parts {
        gram.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    gram
}

fn of_block<R: Rows>(
    rows: &R,
    first: usize,
    places: &[u32],
    size: usize,
    intercept: bool,
    curvatures: &[f64],
) -> Vec<f64> {
    let mut gram = vec![0.0; size * size];
    // A row: its places and values.
    let (mut at, mut values) = (Vec::with_capacity(size), Vec::with_capacity(size));
    for (row, &curvature) in curvatures.iter().enumerate().filter(|(_, curvature)| **curvature != 0.0) {
        at.clear();
        values.clear();
        rows.for_each(first + row, |column, value| {
            if places[column] != NOT_WANTED {
                at.push(places[column]);
                values.push(value);
            }
        });
        if intercept {
            at.push(size as u32 - 1);
            values.push(1.0);
        }
        let full = at.len() == size;
        for (end, &place) in at.iter().enumerate() {
            let line = &mut gram[place as usize * size..][..size];
            let scaled = curvature * values[end];
            if full {
                line.iter_mut().zip(&values[..=end]).for_each(|(sum, value)| *sum += scaled * value);
            } else {
                at[..=end].iter().zip(&values).for_each(|(&other, value)| line[other as usize] += scaled * value);
            }
        }
    }
    gram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::lists::RowLists;

    #[test]
    fn the_gram_matrix_is_that_of_the_lists() {
        let (n_rows, n_cols) = (1000, 9);
        let value = |row: usize, column: usize| ((row * 31 + column * 17 + row * column) % 23) as f64 / 8.0 - 1.0;
        let sparse: Vec<Vec<(u32, f64)>> = (0..n_rows)
            .map(|row| {
                let present = |&column: &usize| (row + column * row / 3) % 3 == 0;
                (0..n_cols).filter(present).map(|column| (column as u32, value(row, column))).collect()
            })
            .collect();
        let dense: Vec<f64> = (0..n_rows * n_cols).map(|at| value(at / n_cols, at % n_cols) + 0.01).collect();
        let curvatures: Vec<f64> = (0..n_rows).map(|row| (row % 7) as f64 / 8.0).collect();
        for rows in [Matrix::from_rows(n_cols, &sparse), Matrix::from_dense(n_rows, n_cols, &dense)] {
            let columns = rows.transposed(None);
            for features in [&[0, 1, 2, 3, 4, 5, 6, 7, 8][..], &[1, 4, 8], &[]] {
                for intercept in [false, true] {
                    let size = features.len() + usize::from(intercept);
                    let gram = of_rows(&rows, features, intercept, &curvatures);
                    if size == 0 {
                        assert!(gram.is_empty());
                        continue;
                    }
                    let expected = RowLists::of(&columns, features).gram(size, intercept, &curvatures);
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
