//! The rows with the features of a large working set alone, in as few bytes as will do.
//!
//! All that is asked of a set of thousands of features, for which no Hessian is formed, is a pass over its rows, again and
//! again. A feature is two bytes where the set has no more than 65,536. Where all values of a row are the same, as of ones
//! brought to unit length, the row keeps it, and an entry is its feature alone. How the rows are dealt depends on their
//! number, and so do the bits.

use std::ops::Range;

use rayon::prelude::*;

use super::pass::rows_a_task;
use crate::data::{Matrix, Rows, Wanted, with_rows};

/// Rows in a block, of which a sample has one in so many.
const SAMPLED: usize = 256;

/// Rows with some of the features, which are numbered anew.
#[derive(Debug)]
pub(super) struct Narrow {
    n_features: usize,
    parts: Vec<Part>,
}

/// Some of the rows.
#[derive(Debug)]
struct Part {
    rows: Range<usize>,
    /// Where each row ends.
    ends: Vec<u32>,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    Few(Stored<u16>),
    Many(Stored<u32>),
}

/// Entries whose features are numbers of this type.
#[derive(Debug)]
struct Stored<I> {
    indices: Vec<I>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// One for each row, whose entries all have it.
    OfRows(Vec<f64>),
    /// One for each entry.
    OfEntries(Vec<f64>),
}

/// A number of a feature.
trait Index: Copy + Send + Sync {
    fn of(index: u32) -> Self;
    fn at(self) -> usize;
}

impl Index for u16 {
    fn of(index: u32) -> Self {
        index as Self
    }
    #[inline(always)]
    fn at(self) -> usize {
        usize::from(self)
    }
}

impl Index for u32 {
    fn of(index: u32) -> Self {
        index
    }
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

/// Runs an expression on the entries of a part, of whichever type.
macro_rules! with_entries {
    ($entries:expr, |$stored:ident| $body:expr) => {
        match $entries {
            Entries::Few($stored) => $body,
            Entries::Many($stored) => $body,
        }
    };
}

impl Narrow {
    /// The rows of a matrix with these features, which rise.
    pub fn of(matrix: &Matrix, features: &[u32]) -> Self {
        let wanted = Wanted::new(matrix.n_cols(), features);
        let (n_rows, share) = (matrix.n_rows(), rows_a_task(matrix.n_rows()));
        let starts: Vec<usize> = (0..n_rows).step_by(share).collect();
        let part = |first: usize| {
            let rows = first..(first + share).min(n_rows);
            with_rows!(matrix, |all| match features.len() <= 1 << 16 {
                true => Part::of(all, rows, &wanted, Entries::Few),
                false => Part::of(all, rows, &wanted, Entries::Many),
            })
        };
        Self { n_features: features.len(), parts: starts.into_par_iter().map(part).collect() }
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.parts.iter().map(|part| part.ends.last().copied().unwrap_or(0) as usize).sum()
    }

    /// Adds dᵢ·v to a number for each row.
    pub fn add_dots(&self, v: &[f64], to: &mut [f64]) {
        let mut tasks = Vec::new();
        let mut rest = to;
        for part in &self.parts {
            let (of_part, tail) = rest.split_at_mut(part.rows.len());
            tasks.push((part, of_part));
            rest = tail;
        }
        tasks.into_par_iter().for_each(|(part, to)| part.dots(0..to.len(), v, to));
    }

    /// Σ sᵢ dᵢ.
    pub fn sum(&self, scales: &[f64]) -> Vec<f64> {
        self.fold(|part, sums| part.add(0..part.rows.len(), &scales[part.rows.clone()], sums, |value| value))
    }

    /// The diagonal of Σ hᵢ dᵢdᵢᵀ, where dᵢ has a 1 at its end, over the rows of one block in so many.
    pub fn diagonal(&self, curvatures: &[f64], stride: usize) -> Vec<f64> {
        self.fold(|part, sums| {
            for rows in part.blocks(stride) {
                let curvatures = &curvatures[part.rows.start + rows.start..part.rows.start + rows.end];
                part.add(rows, curvatures, sums, |value| value * value);
                sums[self.n_features] += curvatures.iter().sum::<f64>();
            }
        })
    }

    /// Σ hᵢ dᵢ(dᵢ·v) over the same rows, where dᵢ has a 1 at its end if v has one number more than there are features.
    pub fn product(&self, curvatures: &[f64], v: &[f64], stride: usize) -> Vec<f64> {
        let (of_set, of_intercept) = v.split_at(self.n_features);
        let sums = self.fold(|part, sums| {
            let mut pulls = vec![0.0; SAMPLED];
            for rows in part.blocks(stride) {
                let pulls = &mut pulls[..rows.len()];
                pulls.fill(of_intercept.first().copied().unwrap_or(0.0));
                part.dots(rows.clone(), of_set, pulls);
                let curvatures = &curvatures[part.rows.start + rows.start..part.rows.start + rows.end];
                pulls.iter_mut().zip(curvatures).for_each(|(pull, h)| *pull *= h);
                part.add(rows, pulls, sums, |value| value);
                // The one beyond the features is the intercept's.
                sums[self.n_features] += pulls.iter().sum::<f64>();
            }
        });
        sums[..v.len()].to_vec()
    }

    /// Sums over the parts, each by itself and then all in their order; one number more than there are features.
    fn fold(&self, add: impl Fn(&Part, &mut [f64]) + Sync) -> Vec<f64> {
        let of = |part: &Part| {
            let mut sums = vec![0.0; self.n_features + 1];
            add(part, &mut sums);
            sums
        };
        let parts: Vec<Vec<f64>> = self.parts.par_iter().map(of).collect();
        let mut sums = vec![0.0; self.n_features + 1];
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        sums
    }
}

impl Part {
    fn of<I: Index>(all: &impl Rows, rows: Range<usize>, wanted: &Wanted, kind: impl Fn(Stored<I>) -> Entries) -> Self {
        let mut ends = Vec::with_capacity(rows.len());
        let mut stored = Stored { indices: Vec::<I>::new(), values: Values::OfRows(Vec::with_capacity(rows.len())) };
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for row in rows.clone() {
            let room = all.row_len(row) + 1;
            indices.resize(room.max(indices.len()), 0);
            values.resize(room.max(values.len()), 0.0);
            let mut len = 0;
            // Whether a feature is wanted is hard to foresee: it is written down anyway, and perhaps written over.
            all.for_each(row, |column, value| {
                (indices[len], values[len]) = (wanted.place(column as u32), value);
                len += usize::from(wanted.has(column as u32));
            });
            stored.push(&ends, &indices[..len], &values[..len]);
            ends.push(stored.indices.len() as u32);
        }
        stored.indices.shrink_to_fit();
        Self { rows, ends, entries: kind(stored) }
    }

    /// One block of the rows in so many.
    fn blocks(&self, stride: usize) -> impl Iterator<Item = Range<usize>> {
        let n_rows = self.rows.len();
        (0..n_rows).step_by(SAMPLED * stride).map(move |first| first..(first + SAMPLED).min(n_rows))
    }

    /// Adds each row's Σ value·v to its number.
    fn dots(&self, rows: Range<usize>, v: &[f64], to: &mut [f64]) {
        with_entries!(&self.entries, |stored| {
            self.for_each_row(rows, to, |row, span, to| {
                let indices = &stored.indices[span.clone()];
                match &stored.values {
                    Values::OfRows(values) => *to += values[row] * indices.iter().map(|i| v[i.at()]).sum::<f64>(),
                    Values::OfEntries(values) => {
                        *to += indices.iter().zip(&values[span]).map(|(i, value)| value * v[i.at()]).sum::<f64>();
                    }
                }
            });
        });
    }

    /// Adds each row's s·of(value) to the sums of its features.
    fn add(&self, rows: Range<usize>, scales: &[f64], sums: &mut [f64], of: impl Fn(f64) -> f64) {
        with_entries!(&self.entries, |stored| {
            self.for_each_row(rows, scales, |row, span, scale| {
                let indices = &stored.indices[span.clone()];
                match &stored.values {
                    Values::OfRows(values) => {
                        let pull = scale * of(values[row]);
                        indices.iter().for_each(|i| sums[i.at()] += pull);
                    }
                    Values::OfEntries(values) => {
                        let entries = indices.iter().zip(&values[span]);
                        entries.for_each(|(i, &value)| sums[i.at()] += scale * of(value));
                    }
                }
            });
        });
    }

    /// Calls `visit` with each row's number, the place of its entries and what there is for it.
    #[inline(always)]
    fn for_each_row<T>(
        &self,
        rows: Range<usize>,
        with: impl IntoIterator<Item = T>,
        mut visit: impl FnMut(usize, Range<usize>, T),
    ) {
        let mut start = if rows.start == 0 { 0 } else { self.ends[rows.start - 1] as usize };
        for ((row, &end), with) in rows.clone().zip(&self.ends[rows]).zip(with) {
            visit(row, start..end as usize, with);
            start = end as usize;
        }
    }
}

impl<I: Index> Stored<I> {
    /// Appends the entries of a row; `ends` are those of the rows before it.
    fn push(&mut self, ends: &[u32], indices: &[u32], values: &[f64]) {
        self.indices.extend(indices.iter().map(|&index| I::of(index)));
        let first = values.first().copied().unwrap_or(0.0);
        if let Values::OfRows(of_rows) = &mut self.values {
            if values.iter().all(|&value| value == first) {
                return of_rows.push(first);
            }
            // From this row on each entry has its own, and so have those before it.
            let starts = [0].iter().chain(ends);
            let spread = starts.zip(ends).zip(&*of_rows);
            let spread = spread.flat_map(|((start, end), &value)| std::iter::repeat_n(value, (end - start) as usize));
            self.values = Values::OfEntries(spread.collect());
        }
        if let Values::OfEntries(of_entries) = &mut self.values {
            of_entries.extend_from_slice(values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pass::BLOCK;
    use super::*;

    /// Sparse rows of one value each, but for one row where it is said; some have no entry.
    fn rows(n_rows: usize, n_cols: usize, odd: Option<usize>) -> Vec<Vec<(u32, f64)>> {
        let value = |row: usize, column: usize| match odd {
            Some(odd) if odd == row => 1.0 / (1.0 + column as f64),
            _ => 1.0 / (1.0 + (row % 50) as f64).sqrt(),
        };
        let present = |row: usize, column: usize| row % 9 != 4 && (row * 7 + column * (3 + row % 4)).is_multiple_of(11);
        let row = |row| (0..n_cols).filter(|&at| present(row, at)).map(|at| (at as u32, value(row, at))).collect();
        (0..n_rows).map(row).collect()
    }

    #[test]
    fn a_pass_over_narrow_rows_is_one_over_the_rows() {
        // More rows than all parts have in one block; features of two bytes and of four.
        let n_rows = 17 * BLOCK + 5;
        for (n_cols, odd) in [(40, None), (40, Some(3 * BLOCK + 7)), (70_000, None), (70_000, Some(0))] {
            let rows = match n_cols {
                40 => rows(n_rows, n_cols, odd),
                // Far apart, so that numbers need four bytes.
                _ => rows(n_rows, 40, odd)
                    .into_iter()
                    .map(|row| row.into_iter().map(|(column, value)| (column * 1700, value)).collect())
                    .collect(),
            };
            let matrix = Matrix::from_rows(n_cols, &rows);
            let features: Vec<u32> = (0..n_cols as u32).filter(|column| column % 1700 % 5 != 2).collect();
            let narrow = Narrow::of(&matrix, &features);
            let compact = matrix.keep_columns(&features);
            assert_eq!(narrow.entries(), compact.nnz());
            let h: Vec<f64> = (0..n_rows).map(|row| 1.0 / (1.0 + row as f64)).collect();
            let v: Vec<f64> = (0..=features.len()).map(|at| (at as f64 * 0.7).sin()).collect();
            let near = |a: &[f64], b: &[f64]| {
                assert_eq!(a.len(), b.len());
                assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs())), "{n_cols}, {odd:?}");
            };
            let mut dots = vec![0.5; n_rows];
            narrow.add_dots(&v[..features.len()], &mut dots);
            let (mut expected, mut sums, mut squares) = (vec![0.5; n_rows], vec![0.0; v.len()], vec![0.0; v.len()]);
            let (mut product, mut last) = (vec![0.0; v.len()], 0.0);
            for row in 0..n_rows {
                compact.for_each(row, |at, value| expected[row] += value * v[at]);
                let pull = h[row] * (expected[row] - 0.5 + v[features.len()]);
                compact.for_each(row, |at, value| {
                    sums[at] += h[row] * value;
                    squares[at] += h[row] * value * value;
                    product[at] += pull * value;
                });
                last += pull;
            }
            product[features.len()] = last;
            near(&dots, &expected);
            near(&narrow.sum(&h), &sums);
            squares[features.len()] = h.iter().sum();
            near(&narrow.diagonal(&h, 1), &squares);
            near(&narrow.product(&h, &v, 1), &product);
            near(&narrow.product(&h, &v[..features.len()], 1)[..1], &{
                let mut first = 0.0;
                for row in 0..n_rows {
                    compact.for_each(row, |at, value| {
                        first += if at == 0 { value * h[row] * (expected[row] - 0.5) } else { 0.0 };
                    });
                }
                [first]
            });
            let on_one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            let bits = |sums: Vec<f64>| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<u64>>();
            assert_eq!(bits(narrow.product(&h, &v, 1)), bits(on_one_thread.install(|| narrow.product(&h, &v, 1))));
        }
    }
}
