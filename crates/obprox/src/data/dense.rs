//! Rows stored whole.

use std::ops::Range;
use std::sync::OnceLock;

use super::rows::{Rows, Value};

/// Row-major dense storage, for data that is mostly nonzero.
#[derive(Clone, Debug)]
pub struct Dense<V: Value> {
    n_rows: usize,
    n_cols: usize,
    values: V::Array,
    /// Entries that are not zero, once they were counted.
    nnz: OnceLock<usize>,
}

impl<V: Value> Dense<V> {
    /// Takes an array of `n_rows × n_cols` values, row after row.
    pub(crate) fn new(n_rows: usize, n_cols: usize, values: V::Array) -> Self {
        Self { n_rows, n_cols, values, nnz: OnceLock::new() }
    }

    /// Entries that are not zero; they are counted once.
    pub(crate) fn nnz(&self) -> usize {
        let count = || V::iter(&self.values, 0..self.n_rows * self.n_cols).filter(|&value| value != 0.0).count();
        *self.nnz.get_or_init(count)
    }

    /// The values' array.
    pub fn values(&self) -> &V::Array {
        &self.values
    }

    /// Copies some entries of a row, whose columns rise.
    pub(crate) fn pick(&self, row: usize, columns: &[u32], to: &mut [f64]) {
        let start = row * self.n_cols;
        if columns.len() == self.n_cols {
            to.iter_mut().zip(V::iter(&self.values, start..start + self.n_cols)).for_each(|(to, value)| *to = value);
            return;
        }
        for (to, &column) in to.iter_mut().zip(columns) {
            let at = start + column as usize;
            V::iter(&self.values, at..at + 1).for_each(|value| *to = value);
        }
    }
}

impl<V: Value> Rows for Dense<V> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn row_len(&self, _: usize) -> usize {
        self.n_cols
    }

    #[inline]
    fn for_each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        let start = row * self.n_cols;
        for (column, value) in V::iter(&self.values, start..start + self.n_cols).enumerate() {
            visit(column, value);
        }
    }

    #[inline]
    fn for_each_in(&self, row: usize, columns: Range<usize>, mut visit: impl FnMut(usize, f64)) {
        let start = row * self.n_cols;
        let range = start + columns.start..start + columns.end.min(self.n_cols);
        for (offset, value) in V::iter(&self.values, range).enumerate() {
            visit(columns.start + offset, value);
        }
    }

    #[inline]
    fn dot(&self, row: usize, with: &[f64]) -> f64 {
        const LANES: usize = 8;
        let (mut sums, mut start) = ([0.0; LANES], row * self.n_cols);
        let lanes = with[..self.n_cols].chunks_exact(LANES);
        let rest = lanes.remainder();
        for with in lanes {
            let values = V::iter(&self.values, start..start + LANES);
            sums.iter_mut().zip(with.iter().zip(values)).for_each(|(sum, (with, value))| *sum += value * with);
            start += LANES;
        }
        let rest = rest.iter().zip(V::iter(&self.values, start..start + rest.len()));
        sums.iter().sum::<f64>() + rest.map(|(with, value)| value * with).sum::<f64>()
    }

    #[inline]
    fn add_to(&self, row: usize, columns: Range<usize>, scale: f64, to: &mut [f64]) {
        let start = row * self.n_cols;
        let values = V::iter(&self.values, start + columns.start..start + columns.end.min(self.n_cols));
        to.iter_mut().zip(values).for_each(|(to, value)| *to += value * scale);
    }

    #[inline]
    fn add_all_to(&self, row: usize, scale: f64, to: &mut [f64]) {
        self.add_to(row, 0..self.n_cols, scale, to);
    }

    fn keep_columns(&self, columns: &[u32]) -> Self {
        let positions =
            (0..self.n_rows).flat_map(|row| columns.iter().map(move |&column| row * self.n_cols + column as usize));
        let kept = positions.map(|position| V::slot(&self.values, position));
        Self::new(self.n_rows, columns.len(), V::from_slots(kept.collect::<Vec<_>>().into()))
    }

    fn keep_rows(&self, rows: &[u32]) -> Self {
        let span = |&row: &u32| row as usize * self.n_cols..(row as usize + 1) * self.n_cols;
        let slots: Vec<V::Slot> = rows.iter().flat_map(span).map(|position| V::slot(&self.values, position)).collect();
        Self::new(rows.len(), self.n_cols, V::from_slots(slots.into()))
    }

    #[inline]
    fn prefetch_row(&self, row: usize) {
        V::prefetch(&self.values, row * self.n_cols..(row + 1) * self.n_cols);
    }

    #[inline]
    fn copy_row(&self, row: usize, columns: &mut Vec<u32>, values: &mut Vec<f64>) {
        columns.extend(0..self.n_cols as u32);
        values.extend(V::iter(&self.values, row * self.n_cols..(row + 1) * self.n_cols));
    }
}
