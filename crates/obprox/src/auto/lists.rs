//! The columns of a working set turned back into rows, so that second-order work can meet pairs of features.

use std::ops::Range;

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
    /// The rows, some in each, in their order: they are made side by side.
    parts: Vec<Part>,
    /// What the values of each place were divided by to fit single precision, where any were.
    units: Option<Vec<f64>>,
}

/// The lists of some rows.
#[derive(Debug)]
struct Part {
    first: usize,
    /// Where the list of each row starts, and the last ends.
    starts: Vec<usize>,
    entries: Entries,
    /// Where the entries of each place start, and the last end.
    columns: Vec<usize>,
    /// The row of each entry of a place, counted from the first, and how far into the row's list the entry lies.
    rows: Huge<[u32; 2]>,
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
    /// Takes the given columns, each a row of a matrix; their places are in their order.
    pub fn of(n_rows: usize, columns: &[(&Matrix, usize)]) -> Self {
        let unit = |&(matrix, at): &(&Matrix, usize)| {
            if matches!(matrix, Matrix::Ones(_)) {
                return 1.0;
            }
            let mut largest = 0.0f64;
            matrix.for_each(at, |_, value| largest = largest.max(value.abs()));
            if largest == 0.0 || ORDINARY.contains(&largest) { 1.0 } else { largest }
        };
        let units: Vec<f64> = columns.par_iter().with_min_len(16).map(unit).collect();
        let share = n_rows.div_ceil(rayon::current_num_threads()).max(1);
        let firsts: Vec<usize> = (0..n_rows).step_by(share).collect();
        let part = |first: usize| Part::of(columns, &units, first..(first + share).min(n_rows));
        let parts = firsts.into_par_iter().map(part).collect();
        Self { parts, units: units.iter().any(|&unit| unit != 1.0).then_some(units) }
    }

    /// The lower triangle of Σ hᵢ dᵢdᵢᵀ, `size` × `size`; a column of ones comes last where `intercept` says so.
    ///
    /// A line of the triangle is made at a time, and stays in the nearest cache while the rows of its feature are gone
    /// through. Lines do not share anything, so the bits do not depend on the number of threads.
    pub fn gram(&self, size: usize, intercept: bool, curvatures: &[f64]) -> Huge<f64> {
        let mut gram = Huge::zeros(size * size);
        gram.par_chunks_mut(size.max(1)).enumerate().with_max_len(8).for_each(|(line, sums)| {
            for part in &self.parts {
                let curvatures = &curvatures[part.first..][..part.starts.len() - 1];
                let line = if intercept && line + 1 == size { None } else { Some(line) };
                match &part.entries {
                    Entries::Ones(places) => part.add_line(places, line, sums, curvatures, |&place| (place, 1.0)),
                    Entries::Valued(entries) => {
                        let read = |&Pair(place, value): &Pair| (place, f64::from(value));
                        part.add_line(entries, line, sums, curvatures, read);
                    }
                }
            }
        });
        if let Some(units) = &self.units {
            let unit = |place: usize| units.get(place).copied().unwrap_or(1.0);
            for (place, line) in gram.chunks_exact_mut(size).enumerate() {
                line.iter_mut().enumerate().for_each(|(other, sum)| *sum *= unit(place) * unit(other));
            }
        }
        gram
    }
}

impl Part {
    fn of(columns: &[(&Matrix, usize)], units: &[f64], range: Range<usize>) -> Self {
        let mut column_starts = vec![0];
        let mut starts = vec![0; range.len() + 1];
        for &(matrix, at) in columns {
            let mut len = 0;
            matrix.for_each_in(at, range.clone(), |row, _| {
                starts[row - range.start + 1] += 1;
                len += 1;
            });
            column_starts.push(column_starts[column_starts.len() - 1] + len);
        }
        (0..range.len()).for_each(|row| starts[row + 1] += starts[row]);
        let total = starts[range.len()];
        let mut rows = Huge::zeros(total);
        let entries = if matches!(columns.first(), Some((Matrix::Ones(_), _))) {
            let mut places = Huge::zeros(total);
            fill(columns, &range, &starts, &mut rows, &mut places, |place, _| place);
            Entries::Ones(places)
        } else {
            let mut entries = Huge::zeros(total);
            let entry = |place: u32, value: f64| Pair(place, (value / units[place as usize]) as f32);
            fill(columns, &range, &starts, &mut rows, &mut entries, entry);
            Entries::Valued(entries)
        };
        Self { first: range.start, starts, entries, columns: column_starts, rows }
    }

    /// Adds what these rows have to a line of the triangle, or to that of the intercept.
    fn add_line<E: Sync>(
        &self,
        entries: &[E],
        line: Option<usize>,
        sums: &mut [f64],
        curvatures: &[f64],
        read: impl Fn(&E) -> (u32, f64),
    ) {
        let Some(line) = line else {
            let last = sums.len() - 1;
            for (row, &curvature) in curvatures.iter().enumerate() {
                sums[last] += curvature;
                for entry in &entries[self.starts[row]..self.starts[row + 1]] {
                    let (place, value) = read(entry);
                    sums[place as usize] += curvature * value;
                }
            }
            return;
        };
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
    }
}

/// A place and its value.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Pair(u32, f32);

/// Lists the entries of the features row by row, and says where each came to lie.
fn fill<E: Pod>(
    columns: &[(&Matrix, usize)],
    range: &Range<usize>,
    starts: &[usize],
    rows: &mut [[u32; 2]],
    entries: &mut [E],
    entry: impl Fn(u32, f64) -> E,
) {
    let mut next = starts.to_vec();
    let mut at = 0;
    for (place, &(matrix, column)) in columns.iter().enumerate() {
        matrix.for_each_in(column, range.clone(), |row, value| {
            let row = row - range.start;
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
        let lists = RowLists::of(4, &[(&columns, 0), (&columns, 3)]);
        let gram = lists.gram(3, true, &h);
        let lower = [gram[0], gram[3], gram[4], gram[6], gram[7], gram[8]];
        // Row 1 has none of the features and counts for the intercept alone.
        assert_eq!(lower, [4.0 + 4.0 * 0.25, 2.0, 1.0 + 2.0, 2.0 + 4.0 * 0.5, 1.0 - 2.0, 17.0]);
    }

    #[test]
    fn the_bits_do_not_depend_on_the_number_of_threads() {
        let (n_rows, n_cols) = (500, 12);
        let value = |row: usize, column: usize| ((row * 31 + column * 17 + row * column) % 23) as f64 / 7.0 - 1.0;
        let present = |row: usize, column: usize| (row + column * row / 3).is_multiple_of(3);
        let entries =
            |row: usize| (0..n_cols).filter(move |&c| present(row, c)).map(move |c| (c as u32, value(row, c)));
        let rows: Vec<Vec<(u32, f64)>> = (0..n_rows).map(|row| entries(row).collect()).collect();
        let columns = Matrix::from_rows(n_cols, &rows).transposed(None);
        let h: Vec<f64> = (0..n_rows).map(|row| 1.0 / (1.0 + row as f64)).collect();
        let gram = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let sums =
                pool.install(|| RowLists::of(n_rows, &[0, 11, 3, 5, 7].map(|at| (&columns, at))).gram(6, true, &h));
            sums.iter().map(|sum| sum.to_bits()).collect::<Vec<u64>>()
        };
        assert!(gram(1) == gram(2) && gram(1) == gram(3) && gram(1) == gram(7));
    }
}
