//! Rows stored sparsely.

use std::ops::Range;

use bytemuck::Pod;
use rayon::prelude::*;

use super::buffer::Buffer;
use super::dense::Dense;
use super::rows::{Rows, Value};
use crate::huge::Huge;
use crate::prefetch::{AHEAD, prefetch, prefetch_range};

/// Compressed sparse rows.
#[derive(Clone, Debug)]
pub struct Csr<V: Value> {
    n_cols: usize,
    offsets: Buffer<u64>,
    indices: Buffer<u32>,
    values: V::Array,
}

impl<V: Value> Csr<V> {
    /// Takes arrays that are known to be sound: offsets start at 0, never fall and end at the number of indices;
    /// indices rise strictly within a row and stay below `n_cols`; there are as many values as indices.
    pub(crate) fn new(n_cols: usize, offsets: Buffer<u64>, indices: Buffer<u32>, values: V::Array) -> Self {
        debug_assert_eq!(offsets.last().copied(), Some(indices.len() as u64));
        Self { n_cols, offsets, indices, values }
    }

    /// Row offsets, N + 1 of them.
    pub fn offsets(&self) -> &Buffer<u64> {
        &self.offsets
    }

    /// Column indices, counted from 0.
    pub fn indices(&self) -> &Buffer<u32> {
        &self.indices
    }

    /// The values' array.
    pub fn values(&self) -> &V::Array {
        &self.values
    }

    /// Where the entries of a row are.
    #[inline]
    pub(super) fn span(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// Makes it wider; the new columns are empty.
    pub(super) fn widen(&mut self, n_cols: usize) {
        self.n_cols = n_cols;
    }

    /// The entries of rows in turn.
    #[inline]
    fn spans(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.offsets[rows.start..=rows.end].windows(2).map(|ends| ends[0] as usize..ends[1] as usize)
    }
}

impl<V: Value<Array = Buffer<V>> + Pod + Send + Sync> Csr<V> {
    /// The same rows with their zeros; where there are none the values are not even copied.
    pub(super) fn to_dense(&self) -> Dense<V> {
        let (n_rows, n_cols) = (self.n_rows(), self.n_cols());
        if self.indices.len() == n_rows * n_cols {
            return Dense::new(n_rows, n_cols, self.values.clone());
        }
        let mut values = Huge::<V>::zeros(n_rows * n_cols);
        values.par_chunks_mut(n_cols).enumerate().with_min_len(16).for_each(|(row, cells)| {
            self.span(row).for_each(|position| cells[self.indices[position] as usize] = self.values[position]);
        });
        Dense::new(n_rows, n_cols, values.into())
    }
}

impl<V: Value> Rows for Csr<V> {
    fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn row_len(&self, row: usize) -> usize {
        self.span(row).len()
    }

    #[inline]
    fn for_each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        let span = self.span(row);
        for (&column, value) in self.indices[span.clone()].iter().zip(V::iter(&self.values, span)) {
            visit(column as usize, value);
        }
    }

    #[inline]
    fn for_each_ahead(&self, row: usize, mut soon: impl FnMut(usize), mut visit: impl FnMut(usize, f64)) {
        let span = self.span(row);
        let all = &self.indices[..];
        for (position, value) in span.clone().zip(V::iter(&self.values, span)) {
            if let Some(&ahead) = all.get(position + AHEAD) {
                soon(ahead as usize);
            }
            visit(all[position] as usize, value);
        }
    }

    #[inline]
    fn for_each_in(&self, row: usize, columns: Range<usize>, mut visit: impl FnMut(usize, f64)) {
        let span = self.span(row);
        let indices = &self.indices[span.clone()];
        let first =
            if columns.start == 0 { 0 } else { indices.partition_point(|&column| (column as usize) < columns.start) };
        for (&column, value) in indices[first..].iter().zip(V::iter(&self.values, span.start + first..span.end)) {
            if column as usize >= columns.end {
                break;
            }
            visit(column as usize, value);
        }
    }

    #[inline]
    fn dot(&self, row: usize, with: &[f64]) -> f64 {
        const LANES: usize = 4;
        let span = self.span(row);
        let (mut sums, mut start) = ([0.0; LANES], span.start);
        let lanes = self.indices[span.clone()].chunks_exact(LANES);
        let rest = lanes.remainder();
        for columns in lanes {
            let values = V::iter(&self.values, start..start + LANES);
            for (sum, (&column, value)) in sums.iter_mut().zip(columns.iter().zip(values)) {
                *sum += value * with[column as usize];
            }
            start += LANES;
        }
        let rest = rest.iter().zip(V::iter(&self.values, start..span.end));
        (sums[0] + sums[2])
            + (sums[1] + sums[3])
            + rest.map(|(&column, value)| value * with[column as usize]).sum::<f64>()
    }

    /// One sum a row: the end of a short row is hard to foresee, so there should be one loop to end, and the next rows are
    /// under way while a sum waits for itself.
    fn dots(&self, rows: Range<usize>, with: &[f64], to: &mut [f64]) {
        for (span, to) in self.spans(rows).zip(to) {
            let entries = self.indices[span.clone()].iter().zip(V::iter(&self.values, span));
            *to += entries.map(|(&column, value)| value * with[column as usize]).sum::<f64>();
        }
    }

    fn add_rows(&self, rows: Range<usize>, scales: &[f64], to: &mut [f64]) {
        for (span, scale) in self.spans(rows).zip(scales) {
            let entries = self.indices[span.clone()].iter().zip(V::iter(&self.values, span));
            entries.for_each(|(&column, value)| to[column as usize] += value * scale);
        }
    }

    #[inline]
    fn add_to(&self, row: usize, columns: Range<usize>, scale: f64, to: &mut [f64]) {
        self.for_each_in(row, columns.clone(), |column, value| to[column - columns.start] += value * scale);
    }

    fn keep_columns(&self, columns: &[u32]) -> Self {
        super::transpose::keep_columns(self, columns)
    }

    fn keep_rows(&self, rows: &[u32]) -> Self {
        let mut offsets = Vec::with_capacity(rows.len() + 1);
        offsets.push(0);
        offsets.extend(rows.iter().scan(0, |end, &row| {
            *end += self.row_len(row as usize) as u64;
            Some(*end)
        }));
        let total = offsets[rows.len()] as usize;
        let (mut indices, mut slots) = (Huge::<u32>::zeros(total), Huge::<V::Slot>::zeros(total));
        /// Rows that one task copies.
        const ROWS: usize = 4096;
        let mut tasks = Vec::new();
        let (mut rest, mut rest_slots) = (&mut indices[..], &mut slots[..]);
        for (some, ends) in rows.chunks(ROWS).zip(offsets.chunks(ROWS).zip(offsets[1..].chunks(ROWS))) {
            let len = (ends.1[ends.1.len() - 1] - ends.0[0]) as usize;
            let (part, tail) = rest.split_at_mut(len);
            let (part_slots, tail_slots) = rest_slots.split_at_mut(len);
            tasks.push((some, part, part_slots));
            (rest, rest_slots) = (tail, tail_slots);
        }
        tasks.into_par_iter().for_each(|(rows, mut indices, mut slots)| {
            for &row in rows {
                let span = self.span(row as usize);
                let (to, tail) = indices.split_at_mut(span.len());
                let (to_slots, tail_slots) = slots.split_at_mut(span.len());
                to.copy_from_slice(&self.indices[span.clone()]);
                to_slots.iter_mut().zip(span).for_each(|(slot, position)| *slot = V::slot(&self.values, position));
                (indices, slots) = (tail, tail_slots);
            }
        });
        Self::new(self.n_cols, offsets.into(), indices.into(), V::from_slots(slots.into()))
    }

    #[inline]
    fn prefetch_row(&self, row: usize) {
        prefetch_range(&self.indices, self.span(row));
        V::prefetch(&self.values, self.span(row));
    }

    #[inline]
    fn prefetch_ends(&self, row: usize) {
        prefetch(&self.offsets, row);
    }

    #[inline]
    fn copy_row(&self, row: usize, columns: &mut Vec<u32>, values: &mut Vec<f64>) {
        let span = self.span(row);
        columns.extend_from_slice(&self.indices[span.clone()]);
        values.extend(V::iter(&self.values, span));
    }
}
