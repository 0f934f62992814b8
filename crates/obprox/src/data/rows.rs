//! What rows are asked for, and the types their values can have.

use std::ops::Range;

use bytemuck::Pod;

use super::buffer::Buffer;
use crate::prefetch::prefetch_range;

/// A type that a stored value can have.
pub trait Value: Copy + Send + Sync + 'static {
    /// An array of this type.
    type Array: Send + Sync + Clone + std::fmt::Debug;
    /// What an entry takes in memory.
    type Slot: Pod + Send + Sync;
    /// The entries of a range, as numbers: a slice for the compiler to walk without bounds checks.
    fn iter(array: &Self::Array, range: Range<usize>) -> impl Iterator<Item = f64>;
    /// One entry, as it is stored.
    fn slot(array: &Self::Array, position: usize) -> Self::Slot;
    /// Entries as they are stored.
    fn from_slots(slots: Buffer<Self::Slot>) -> Self::Array;
    /// Asks for the cache lines of a range.
    fn prefetch(array: &Self::Array, range: Range<usize>);
}

/// The value of a matrix whose every entry is 1: takes no memory at all.
#[derive(Clone, Copy, Debug)]
pub struct One;

impl Value for One {
    type Array = ();
    type Slot = ();

    fn iter(_: &(), range: Range<usize>) -> impl Iterator<Item = f64> {
        range.map(|_| 1.0)
    }

    fn slot(_: &(), _: usize) {}

    fn from_slots(_: Buffer<()>) {}

    fn prefetch(_: &(), _: Range<usize>) {}
}

macro_rules! stored {
    ($($type:ty),*) => {$(
        impl Value for $type {
            type Array = Buffer<$type>;
            type Slot = $type;

            #[inline]
            fn iter(array: &Buffer<$type>, range: Range<usize>) -> impl Iterator<Item = f64> {
                array[range].iter().map(|&value| f64::from(value))
            }

            #[inline]
            fn slot(array: &Buffer<$type>, position: usize) -> $type {
                array[position]
            }

            fn from_slots(slots: Buffer<$type>) -> Buffer<$type> {
                slots
            }

            #[inline]
            fn prefetch(array: &Buffer<$type>, range: Range<usize>) {
                prefetch_range(array, range);
            }
        }
    )*};
}
stored!(f32, f64);

/// Rows that can be walked: what every computation in the library asks of its data.
///
/// Columns within a row come in increasing order, so a range of columns is a contiguous part of each row.
pub trait Rows: Sync {
    /// Number of rows, N.
    fn n_rows(&self) -> usize;
    /// Number of columns, n.
    fn n_cols(&self) -> usize;
    /// Stored entries of one row.
    fn row_len(&self, row: usize) -> usize;
    /// Calls `visit(column, value)` for each stored entry of a row.
    fn for_each(&self, row: usize, visit: impl FnMut(usize, f64));
    /// The same, with `soon(column)` for entries that are some visits away, which may be those of the next rows.
    #[inline]
    fn for_each_ahead(&self, row: usize, _soon: impl FnMut(usize), visit: impl FnMut(usize, f64)) {
        self.for_each(row, visit);
    }
    /// The same, for the entries whose column lies in `columns`.
    fn for_each_in(&self, row: usize, columns: Range<usize>, visit: impl FnMut(usize, f64));
    /// A row times a vector, in several running sums: one would have to wait for itself at every entry.
    fn dot(&self, row: usize, with: &[f64]) -> f64;
    /// Many rows in turn times a vector, each added to a number.
    fn dots(&self, rows: Range<usize>, with: &[f64], to: &mut [f64]) {
        rows.zip(to).for_each(|(row, to)| *to += self.dot(row, with));
    }
    /// Adds multiples of many rows in turn to numbers for all columns.
    fn add_rows(&self, rows: Range<usize>, scales: &[f64], to: &mut [f64]) {
        rows.zip(scales).for_each(|(row, &scale)| self.add_all_to(row, scale, to));
    }
    /// Adds a multiple of a row to numbers for some columns.
    fn add_to(&self, row: usize, columns: Range<usize>, scale: f64, to: &mut [f64]);
    /// The same for all columns.
    #[inline]
    fn add_all_to(&self, row: usize, scale: f64, to: &mut [f64]) {
        self.for_each(row, |column, value| to[column] += value * scale);
    }
    /// The same rows with only these columns, which rise and are numbered anew.
    fn keep_columns(&self, columns: &[u32]) -> Self
    where
        Self: Sized;
    /// These rows alone.
    fn keep_rows(&self, rows: &[u32]) -> Self
    where
        Self: Sized;
    /// Asks for the cache lines of a row that is about to be visited.
    fn prefetch_row(&self, row: usize);
    /// Asks for where a row begins and ends.
    fn prefetch_ends(&self, _row: usize) {}
    /// Appends the entries of a row to two arrays.
    fn copy_row(&self, row: usize, columns: &mut Vec<u32>, values: &mut Vec<f64>);
}

/// Some rows, copied one after the other: what a step works on, wherever the rows came from.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Where each row ends in the arrays below.
    pub ends: Vec<usize>,
    /// The columns of the entries.
    pub columns: Vec<u32>,
    /// Their values; empty where every value is 1.
    pub values: Vec<f64>,
}

impl Gathered {
    /// Begins another batch.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.columns.clear();
        self.values.clear();
    }

    /// Visits the entries of a row.
    #[inline]
    pub fn for_each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        for at in start..self.ends[row] {
            visit(self.columns[at] as usize, self.values.get(at).copied().unwrap_or(1.0));
        }
    }
}
