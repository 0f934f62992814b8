//! The columns of a working set turned back into rows, so that second-order work can meet pairs of features.

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use crate::data::Matrix;
use crate::huge::Huge;
use crate::prefetch::prefetch_range;

/// Some columns turned back into rows: for each row its places, which rise, and their values.
///
/// Values are kept in single precision: a Hessian that is off by 10⁻⁷ steps as well as the true one, and the lists are
/// walked so often that their bytes count.
#[derive(Debug)]
pub(super) struct RowLists {
    /// Where the list of each row starts, and the last ends.
    starts: Vec<usize>,
    entries: Entries,
    /// Where the entries of each place start, and the last end.
    columns: Vec<usize>,
    /// The row of each entry of a place, and how far into the row's list the entry lies.
    rows: Huge<[u32; 2]>,
    /// What the values of each place were divided by to fit single precision, where any were.
    units: Option<Vec<f64>>,
}

/// Numbers whose products single precision holds with ease.
const ORDINARY: std::ops::Range<f64> = 1e-15..1e15;

/// The lists of the rows, one after the other.
#[derive(Debug)]
enum Entries {
    /// Places alone: every value is 1.
    Ones(Huge<u32>),
    /// Places and values.
    Valued(Huge<Pair>),
}

impl RowLists {
    /// Takes the given features, which are numbered anew in their order.
    pub fn of(columns: &Matrix, features: &[u32]) -> Self {
        let n_rows = columns.n_cols();
        let (mut column_starts, mut units) = (vec![0], Vec::with_capacity(features.len()));
        let mut starts = vec![0; n_rows + 1];
        for &feature in features {
            let mut largest = 0.0f64;
            columns.for_each(feature as usize, |row, value| {
                starts[row + 1] += 1;
                largest = largest.max(value.abs());
            });
            column_starts.push(column_starts[column_starts.len() - 1] + columns.row_len(feature as usize));
            units.push(if largest == 0.0 || ORDINARY.contains(&largest) { 1.0 } else { largest });
        }
        (0..n_rows).for_each(|row| starts[row + 1] += starts[row]);
        let mut rows = Huge::zeros(starts[n_rows]);
        let entries = if matches!(columns, Matrix::Ones(_)) {
            let mut places = Huge::zeros(starts[n_rows]);
            fill(columns, features, &starts, &mut rows, &mut places, |place, _| place);
            Entries::Ones(places)
        } else {
            let mut entries = Huge::zeros(starts[n_rows]);
            let entry = |place: u32, value: f64| Pair(place, (value / units[place as usize]) as f32);
            fill(columns, features, &starts, &mut rows, &mut entries, entry);
            Entries::Valued(entries)
        };
        let units = units.iter().any(|&unit| unit != 1.0).then_some(units);
        Self { starts, entries, columns: column_starts, rows, units }
    }

    /// The lower triangle of Σ hᵢ dᵢdᵢᵀ, `size` × `size`; a column of ones comes last where `intercept` says so.
    ///
    /// A line of the triangle is made at a time, and stays in the nearest cache while the rows of its feature are gone
    /// through. Lines do not share anything, so the bits do not depend on the number of threads.
    pub fn gram(&self, size: usize, intercept: bool, curvatures: &[f64]) -> Huge<f64> {
        let mut gram = Huge::zeros(size * size);
        match &self.entries {
            Entries::Ones(places) => self.lines(places, &mut gram, size, intercept, curvatures, |&place| (place, 1.0)),
            Entries::Valued(entries) => {
                let read = |&Pair(place, value): &Pair| (place, f64::from(value));
                self.lines(entries, &mut gram, size, intercept, curvatures, read);
            }
        }
        if let Some(units) = &self.units {
            let unit = |place: usize| units.get(place).copied().unwrap_or(1.0);
            for (place, line) in gram.chunks_exact_mut(size).enumerate() {
                line.iter_mut().enumerate().for_each(|(other, sum)| *sum *= unit(place) * unit(other));
            }
        }
        gram
    }

    fn lines<E: Sync>(
        &self,
        entries: &[E],
        gram: &mut [f64],
        size: usize,
        intercept: bool,
        curvatures: &[f64],
        read: impl Fn(&E) -> (u32, f64) + Sync,
    ) {
        gram.par_chunks_mut(size).enumerate().with_max_len(8).for_each(|(line, sums)| {
            if intercept && line + 1 == size {
                sums[line] = curvatures.iter().sum();
                for (row, &curvature) in curvatures.iter().enumerate() {
                    for entry in &entries[self.starts[row]..self.starts[row + 1]] {
                        let (place, value) = read(entry);
                        sums[place as usize] += curvature * value;
                    }
                }
                return;
            }
            let rows = &self.rows[self.columns[line]..self.columns[line + 1]];
            for (at, &[row, offset]) in rows.iter().enumerate() {
                // The lists lie anywhere in memory: a look ahead hides the way there.
                if let Some(&[row, offset]) = rows.get(at + 8) {
                    let start = self.starts[row as usize];
                    prefetch_range(entries, start..start + offset as usize + 1);
                }
                let curvature = curvatures[row as usize];
                if curvature == 0.0 {
                    continue;
                }
                let start = self.starts[row as usize];
                let list = &entries[start..start + offset as usize + 1];
                let scaled = curvature * read(&list[offset as usize]).1;
                for entry in list {
                    let (place, value) = read(entry);
                    sums[place as usize] += scaled * value;
                }
            }
        });
    }
}

/// A place and its value.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Pair(u32, f32);

/// Lists the entries of the features row by row, and says where each came to lie.
fn fill<E: Pod>(
    columns: &Matrix,
    features: &[u32],
    starts: &[usize],
    rows: &mut [[u32; 2]],
    entries: &mut [E],
    entry: impl Fn(u32, f64) -> E,
) {
    let mut next = starts.to_vec();
    let mut at = 0;
    for (place, &feature) in features.iter().enumerate() {
        columns.for_each(feature as usize, |row, value| {
            entries[next[row]] = entry(place as u32, value);
            rows[at] = [row as u32, (next[row] - starts[row]) as u32];
            next[row] += 1;
            at += 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gram_matrix_is_that_of_the_rows() {
        let rows = [vec![(0, 2.0), (3, 1.0)], vec![], vec![(1, 5.0), (3, -1.0)], vec![(0, 0.5)]];
        let columns = Matrix::from_rows(5, &rows).transposed(None);
        // Of columns 0 and 3 and the intercept, by hand.
        let h = [1.0, 10.0, 2.0, 4.0];
        let lists = RowLists::of(&columns, &[0, 3]);
        let gram = lists.gram(3, true, &h);
        let lower = [gram[0], gram[3], gram[4], gram[6], gram[7], gram[8]];
        assert_eq!(lower, [4.0 + 4.0 * 0.25, 2.0, 1.0 + 2.0, 2.0 + 4.0 * 0.5, 1.0 - 2.0, 17.0]);
    }
}
