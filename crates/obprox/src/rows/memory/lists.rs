//! The columns of a working set turned back into rows, so that second-order work can meet pairs of features.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::data::Matrix;
use crate::huge::Huge;
use crate::prefetch::prefetch_range;

/// Some columns turned back into rows: for each row its indices, which rise, and their values.
///
/// The lists are walked so often that their bytes count. Values are kept in single precision: a Hessian that is off by 10⁻⁷
/// steps as well as the true one. Where all values of a row are the same, as of ones brought to unit length, the row keeps
/// it and the list has indices alone.
#[derive(Debug)]
pub(super) struct RowLists {
    /// The rows, some in each, in their order: they are made side by side.
    parts: Vec<Part>,
    /// What the values of each index were divided by to fit single precision, where any were.
    units: Option<Vec<f64>>,
    /// The one value of each row, where every row has but one and it is not 1 anyway.
    common: Option<Vec<f64>>,
}

/// The lists of some rows.
#[derive(Debug)]
struct Part {
    first: usize,
    /// Where the list of each row starts, and the last ends.
    starts: Vec<usize>,
    /// The lists of the rows, one after the other.
    indices: Huge<u16>,
    /// Their values; none where they are all 1 or common to their row.
    values: Huge<f32>,
    /// Where the entries of each index start, and the last end.
    columns: Vec<usize>,
    /// The row of each entry of a index, counted from the first, and how far into the row's list the entry lies.
    rows: Huge<[u32; 2]>,
}

/// Numbers whose products single precision holds with ease.
const ORDINARY: std::ops::Range<f64> = 1e-15..1e15;

/// More than there are indices in any list: a line of sums is so long, and no index has to be checked.
const MOST_INDICES: usize = 4096;

impl RowLists {
    /// Takes the given columns, each a row of a matrix; their indices are in their order.
    pub fn of(n_rows: usize, columns: &[(&Matrix, usize)]) -> Self {
        assert!(columns.len() < MOST_INDICES, "a Hessian of so many features is never made");
        let are_ones = matches!(columns.first(), Some((Matrix::Ones(_), _)));
        let unit = |&(matrix, at): &(&Matrix, usize)| {
            if are_ones {
                return 1.0;
            }
            let mut largest = 0.0f64;
            matrix.for_each(at, |_, value| largest = largest.max(value.abs()));
            if largest == 0.0 || ORDINARY.contains(&largest) { 1.0 } else { largest }
        };
        let units: Vec<f64> = columns.par_iter().with_min_len(16).map(unit).collect();
        let units = units.iter().any(|&unit| unit != 1.0).then_some(units);
        let share = n_rows.div_ceil(rayon::current_num_threads()).max(1);
        let ranges: Vec<Range<usize>> = (0..n_rows).step_by(share).map(|at| at..(at + share).min(n_rows)).collect();
        // Whether rows have one value must not hang on how they are dealt.
        let common = if are_ones || units.is_some() { None } else { common_values(columns, &ranges) };
        let has_values = !are_ones && common.is_none();
        let unit = |index: usize| units.as_ref().map_or(1.0, |units| units[index]);
        let parts = ranges.into_par_iter().map(|range| Part::of(columns, has_values, unit, range)).collect();
        Self { parts, units, common }
    }

    /// The lower triangle of Σ hᵢ dᵢdᵢᵀ, `size` × `size`; a column of ones comes last where `intercept` says so.
    ///
    /// A line of the triangle is made at a time, and stays in the nearest cache while the rows of its feature are gone
    /// through. Lines do not share anything, so the bits do not depend on the number of threads.
    pub fn gram(&self, size: usize, intercept: bool, curvatures: &[f64]) -> Huge<f64> {
        // hᵢ times the one value of the row, once and twice.
        let once = self.times_common(curvatures);
        let twice = self.times_common(&once);
        let mut gram = Huge::zeros(size * size);
        let lines = gram.par_chunks_mut(size.max(1)).enumerate().with_max_len(8);
        lines.for_each_init(
            || vec![0.0; MOST_INDICES],
            |sums, (line, out)| {
                let sums: &mut [f64; MOST_INDICES] = (&mut sums[..]).try_into().expect("that long");
                for part in &self.parts {
                    let rows = part.first..part.first + part.starts.len() - 1;
                    if intercept && line + 1 == size {
                        part.add_intercept(sums, line, &curvatures[rows.clone()], &once[rows]);
                    } else {
                        part.add_line(sums, line, &twice[rows]);
                    }
                }
                out.copy_from_slice(&sums[..size]);
                sums[..size].fill(0.0);
            },
        );
        if let Some(units) = &self.units {
            let unit = |index: usize| units.get(index).copied().unwrap_or(1.0);
            for (index, line) in gram.chunks_exact_mut(size).enumerate() {
                line.iter_mut().enumerate().for_each(|(other, sum)| *sum *= unit(index) * unit(other));
            }
        }
        gram
    }

    fn times_common<'a>(&self, of: &'a [f64]) -> Cow<'a, [f64]> {
        match &self.common {
            Some(common) => of.iter().zip(common).map(|(of, value)| of * value).collect(),
            None => of.into(),
        }
    }
}

/// The one value of each row, where all entries of every row have the same (0 where it has none).
fn common_values(columns: &[(&Matrix, usize)], ranges: &[Range<usize>]) -> Option<Vec<f64>> {
    let of = |range: &Range<usize>| {
        let mut values = vec![0.0; range.len()];
        for &(matrix, at) in columns {
            let mut same = true;
            matrix.for_each_in(at, range.clone(), |row, value| {
                let known = &mut values[row - range.start];
                if *known == 0.0 {
                    *known = value;
                }
                same &= *known == value && value != 0.0;
            });
            if !same {
                return None;
            }
        }
        Some(values)
    };
    let parts: Option<Vec<Vec<f64>>> = ranges.par_iter().map(of).collect();
    parts.map(|parts| parts.concat())
}

impl Part {
    fn of(columns: &[(&Matrix, usize)], has_values: bool, unit: impl Fn(usize) -> f64, range: Range<usize>) -> Self {
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
        let (mut indices, mut rows) = (Huge::zeros(total), Huge::zeros(total));
        let mut values = Huge::zeros(if has_values { total } else { 0 });
        let (index_to, row_to, value_to) = (&mut indices[..], &mut rows[..], &mut values[..]);
        let mut next = starts.clone();
        let mut at = 0;
        for (index, &(matrix, column)) in columns.iter().enumerate() {
            let unit = unit(index);
            matrix.for_each_in(column, range.clone(), |row, value| {
                let row = row - range.start;
                let to = next[row];
                index_to[to] = index as u16;
                if has_values {
                    value_to[to] = (value / unit) as f32;
                }
                row_to[at] = [row as u32, (to - starts[row]) as u32];
                next[row] += 1;
                at += 1;
            });
        }
        Self { first: range.start, starts, indices, values, columns: column_starts, rows }
    }

    /// Adds what these rows have to a line of the triangle: hᵢ as it is, or times the square of the row's one value.
    fn add_line(&self, sums: &mut [f64; MOST_INDICES], line: usize, curvatures: &[f64]) {
        let rows = &self.rows[self.columns[line]..self.columns[line + 1]];
        for (at, &[row, offset]) in rows.iter().enumerate() {
            // The lists lie anywhere in memory: a look ahead hides the way there.
            if let Some(&[row, offset]) = rows.get(at + 8) {
                let start = self.starts[row as usize];
                prefetch_range(&self.indices, start..start + offset as usize + 1);
                if !self.values.is_empty() {
                    prefetch_range(&self.values, start..start + offset as usize + 1);
                }
            }
            let (curvature, start) = (curvatures[row as usize], self.starts[row as usize]);
            if curvature == 0.0 {
                continue;
            }
            let list = start..start + offset as usize + 1;
            let indices = &self.indices[list.clone()];
            if self.values.is_empty() {
                indices.iter().for_each(|&index| sums[index as usize % MOST_INDICES] += curvature);
                continue;
            }
            let values = &self.values[list];
            let scaled = curvature * f64::from(values[offset as usize]);
            for (&index, &value) in indices.iter().zip(values) {
                sums[index as usize % MOST_INDICES] += scaled * f64::from(value);
            }
        }
    }

    /// The same to the line of the intercept: hᵢ, and hᵢ times the row's one value where it has one.
    fn add_intercept(&self, sums: &mut [f64; MOST_INDICES], line: usize, curvatures: &[f64], pulls: &[f64]) {
        for (row, (&curvature, &pull)) in curvatures.iter().zip(pulls).enumerate() {
            sums[line] += curvature;
            let list = self.starts[row]..self.starts[row + 1];
            for (at, &index) in self.indices[list.clone()].iter().enumerate() {
                let value = self.values.get(list.start + at).map_or(1.0, |&value| f64::from(value));
                sums[index as usize % MOST_INDICES] += pull * value;
            }
        }
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
    fn a_row_of_one_value_needs_no_list_of_them() {
        let n_rows = 60;
        let unit = |row: usize| 1.0 / (1.0 + row as f64).sqrt();
        let present = |row: usize, column: usize| (row * 7 + column * (3 + row % 4)).is_multiple_of(3);
        let rows_of = |odd: Option<usize>| -> Vec<Vec<(u32, f64)>> {
            let value = |row: usize, column: usize| if odd == Some(row) && column > 5 { 0.25 } else { unit(row) };
            let row = |row| (0..9).filter(|&at| present(row, at)).map(|at| (at as u32, value(row, at))).collect();
            (0..n_rows).map(row).collect()
        };
        let h: Vec<f64> = (0..n_rows).map(|row| 1.0 / (1.0 + row as f64)).collect();
        // All rows of one value, and one that is not.
        for odd in [None, Some(n_rows - 2)] {
            let rows = rows_of(odd);
            let columns = Matrix::from_rows(9, &rows).transposed(None);
            let lists = RowLists::of(n_rows, &std::array::from_fn::<_, 9, _>(|at| (&columns, at)));
            assert_eq!(lists.common.is_some(), odd.is_none());
            let gram = lists.gram(10, true, &h);
            let entry = |row: usize, at: usize| match at {
                9 => 1.0,
                at => rows[row].iter().find(|(column, _)| *column as usize == at).map_or(0.0, |(_, value)| *value),
            };
            for line in 0..10 {
                for other in 0..=line {
                    let sum: f64 = (0..n_rows).map(|row| h[row] * entry(row, line) * entry(row, other)).sum();
                    assert!((gram[line * 10 + other] - sum).abs() <= 1e-6 * sum, "{line}, {other}, {odd:?}");
                }
            }
        }
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
