//! A data set at a glance.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::{Dataset, Rows, with_rows};

/// Up to this many different targets are counted one by one; more are a range.
const MOST_LABELS: usize = 100;

/// Smallest, mean and largest of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// What the targets are.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// A few different whole numbers, each with its number of rows, in increasing order.
    Labels(Vec<(f64, usize)>),
    /// Many different values, or values that are not whole.
    Range(Spread),
    /// The file has none.
    Absent,
}

/// What a data set is like, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Entries that are not zero.
    pub nnz: usize,
    /// Their share of all cells.
    pub density: f64,
    /// Bytes that the rows take in memory.
    pub bytes: usize,
    /// How values are stored.
    pub storage: &'static str,
    /// Rows without an entry.
    pub empty_rows: usize,
    /// Columns without an entry.
    pub empty_cols: usize,
    /// Entries a row.
    pub row_len: Spread,
    /// Euclidean norm of a row.
    pub row_norm: Spread,
    /// Smallest and largest stored value other than zero; zeros where there is none.
    pub values: (f64, f64),
    /// The targets.
    pub targets: Targets,
}

impl Summary {
    /// Looks at every entry once, in parallel.
    pub fn of(dataset: &Dataset) -> Self {
        let matrix = &dataset.matrix;
        let (rows, cols) = (matrix.n_rows(), matrix.n_cols());
        let seen = Seen::of(cols, matrix.nnz());
        let mut tally = with_rows!(matrix, |rows| tally(rows, &seen));
        let n_rows = rows.max(1) as f64;
        Self {
            rows,
            cols,
            nnz: tally.nnz,
            density: tally.nnz as f64 / (rows as f64 * cols as f64).max(1.0),
            bytes: matrix.bytes(),
            storage: matrix.storage(),
            empty_rows: tally.empty_rows,
            empty_cols: cols - seen.count(std::mem::take(&mut tally.columns)),
            row_len: tally.len.spread(n_rows),
            row_norm: tally.norm.spread(n_rows),
            values: if tally.nnz == 0 { (0.0, 0.0) } else { (tally.values.min, tally.values.max) },
            targets: Targets::of(&dataset.targets),
        }
    }
}

impl Targets {
    fn of(targets: &[f64]) -> Self {
        if targets.iter().any(|target| target.is_nan()) {
            return Self::Absent;
        }
        let mut counts: Vec<(f64, usize)> = Vec::new();
        for &target in targets {
            match counts.binary_search_by(|(label, _)| label.total_cmp(&(target + 0.0))) {
                Ok(at) => counts[at].1 += 1,
                Err(_) if counts.len() == MOST_LABELS || target.fract() != 0.0 => {
                    let mut range = Range::default();
                    targets.iter().for_each(|&target| range.add(target));
                    return Self::Range(range.spread(targets.len() as f64));
                }
                // `+ 0.0` makes one label of 0 and −0.
                Err(at) => counts.insert(at, (target + 0.0, 1)),
            }
        }
        Self::Labels(counts)
    }
}

#[derive(Clone, Copy)]
struct Range {
    min: f64,
    max: f64,
    sum: f64,
}

impl Default for Range {
    fn default() -> Self {
        Self { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0 }
    }
}

impl Range {
    fn add(&mut self, value: f64) {
        self.merge(Self { min: value, max: value, sum: value });
    }

    fn merge(&mut self, other: Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    fn spread(self, count: f64) -> Spread {
        Spread { min: self.min, mean: self.sum / count, max: self.max }
    }
}

/// What is counted over some of the rows.
#[derive(Default)]
struct Tally {
    nnz: usize,
    empty_rows: usize,
    len: Range,
    norm: Range,
    values: Range,
    /// The columns of the entries, where they are listed one by one.
    columns: Vec<u32>,
}

/// The columns that have an entry: a bit each, shared by all parts. Nothing where there are far fewer entries than columns;
/// those are listed instead, since one far index must not cost memory for all the columns before it.
struct Seen(Option<Vec<AtomicU64>>);

impl Seen {
    fn of(n_cols: usize, entries: usize) -> Self {
        let words = n_cols.div_ceil(64);
        Self((words < 1024 || words < entries).then(|| (0..words).map(|_| AtomicU64::new(0)).collect()))
    }

    #[inline]
    fn add(&self, column: usize, listed: &mut Vec<u32>) {
        let Some(bits) = &self.0 else { return listed.push(column as u32) };
        let (word, bit) = (&bits[column / 64], 1 << (column % 64));
        // Most have been seen, and to look is cheaper than to write.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn count(&self, mut listed: Vec<u32>) -> usize {
        match &self.0 {
            Some(bits) => bits.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum(),
            None => {
                listed.par_sort_unstable();
                listed.dedup();
                listed.len()
            }
        }
    }
}

impl Tally {
    fn add(&mut self, rows: &impl Rows, row: usize, seen: &Seen) {
        let (mut len, mut square) = (0, 0.0);
        rows.for_each(row, |column, value| {
            if value != 0.0 {
                len += 1;
                square += value * value;
                self.values.add(value);
                seen.add(column, &mut self.columns);
            }
        });
        self.nnz += len;
        self.empty_rows += usize::from(len == 0);
        self.len.add(len as f64);
        self.norm.add(f64::sqrt(square));
    }

    fn merge(mut self, other: Self) -> Self {
        self.nnz += other.nnz;
        self.empty_rows += other.empty_rows;
        self.len.merge(other.len);
        self.norm.merge(other.norm);
        self.values.merge(other.values);
        self.columns.extend(other.columns);
        self
    }
}

/// Always the same parts, merged in order, so that the means do not depend on the number of threads.
fn tally(rows: &impl Rows, seen: &Seen) -> Tally {
    const PARTS: usize = 16;
    let bound = |part: usize| (rows.n_rows() as u128 * part as u128 / PARTS as u128) as usize;
    let part = |part| {
        let mut tally = Tally::default();
        (bound(part)..bound(part + 1)).for_each(|row| tally.add(rows, row, seen));
        tally
    };
    let parts: Vec<Tally> = (0..PARTS).into_par_iter().map(part).collect();
    parts.into_iter().fold(Tally::default(), Tally::merge)
}

#[cfg(test)]
mod tests {
    use super::super::Matrix;
    use super::*;

    #[test]
    fn everything_is_counted() {
        let rows = vec![vec![(0, 3.0), (2, -4.0)], vec![], vec![(2, 2.0)]];
        let summary = Summary::of(&Dataset::new(Matrix::from_rows(70, &rows), vec![1.0, -1.0, 1.0]));
        assert_eq!((summary.rows, summary.cols, summary.nnz), (3, 70, 3));
        assert_eq!((summary.empty_rows, summary.empty_cols), (1, 68));
        assert_eq!(summary.row_len, Spread { min: 0.0, mean: 1.0, max: 2.0 });
        assert_eq!(summary.row_norm, Spread { min: 0.0, mean: 7.0 / 3.0, max: 5.0 });
        assert_eq!(summary.values, (-4.0, 3.0));
        assert_eq!(summary.targets, Targets::Labels(vec![(-1.0, 1), (1.0, 2)]));
        assert_eq!(summary.density, 3.0 / 210.0);
    }

    #[test]
    fn far_columns_are_counted_without_memory_for_those_before_them() {
        let last = u32::MAX as usize - 1;
        let rows = vec![vec![(7, 1.0), (last as u32, 1.0)], vec![(last as u32, 2.0)]];
        let summary = Summary::of(&Dataset::new(Matrix::from_rows(last + 1, &rows), vec![1.0, -1.0]));
        assert_eq!((summary.cols, summary.nnz, summary.empty_cols), (last + 1, 3, last - 1));
    }

    #[test]
    fn targets_are_labels_or_a_range() {
        assert_eq!(Targets::of(&[0.0, -0.0]), Targets::Labels(vec![(0.0, 2)]));
        assert_eq!(Targets::of(&[0.0, 1.5]), Targets::Range(Spread { min: 0.0, mean: 0.75, max: 1.5 }));
        let many: Vec<f64> = (0..=MOST_LABELS).map(|target| target as f64).collect();
        assert_eq!(Targets::of(&many), Targets::Range(Spread { min: 0.0, mean: 50.0, max: 100.0 }));
        assert_eq!(Targets::of(&[f64::NAN]), Targets::Absent);
    }
}
