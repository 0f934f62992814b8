//! The rows of a data set, sparse or dense, in the narrowest type that holds every value exactly.

use std::ops::Range;

use bytemuck::Pod;
use rayon::prelude::*;

use super::buffer::Buffer;
use crate::huge::Huge;
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

    #[inline]
    fn span(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// The entries of rows in turn.
    #[inline]
    fn spans(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.offsets[rows.start..=rows.end].windows(2).map(|ends| ends[0] as usize..ends[1] as usize)
    }
}

impl<V: Value<Array = Buffer<V>> + Pod + Send + Sync> Csr<V> {
    /// The same rows with their zeros; where there are none the values are not even copied.
    fn to_dense(&self) -> Dense<V> {
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
    fn for_each_in(&self, row: usize, columns: Range<usize>, mut visit: impl FnMut(usize, f64)) {
        let span = self.span(row);
        let indices = &self.indices[span.clone()];
        let first = indices.partition_point(|&column| (column as usize) < columns.start);
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
        let (mut offsets, mut indices, mut slots) = (vec![0], Vec::new(), Vec::new());
        for &row in rows {
            let span = self.span(row as usize);
            indices.extend_from_slice(&self.indices[span.clone()]);
            slots.extend(span.map(|position| V::slot(&self.values, position)));
            offsets.push(indices.len() as u64);
        }
        Self::new(self.n_cols, offsets.into(), indices.into(), V::from_slots(slots.into()))
    }

    #[inline]
    fn prefetch_row(&self, row: usize) {
        prefetch_range(&self.indices, self.span(row));
        V::prefetch(&self.values, self.span(row));
    }

    #[inline]
    fn copy_row(&self, row: usize, columns: &mut Vec<u32>, values: &mut Vec<f64>) {
        let span = self.span(row);
        columns.extend_from_slice(&self.indices[span.clone()]);
        values.extend(V::iter(&self.values, span));
    }
}

/// Row-major dense storage, for data that is mostly nonzero.
#[derive(Clone, Debug)]
pub struct Dense<V: Value> {
    n_rows: usize,
    n_cols: usize,
    values: V::Array,
}

impl<V: Value> Dense<V> {
    /// Takes an array of `n_rows × n_cols` values, row after row.
    pub(crate) fn new(n_rows: usize, n_cols: usize, values: V::Array) -> Self {
        Self { n_rows, n_cols, values }
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

/// The rows of a data set in whichever storage holds them exactly in the fewest bytes.
#[derive(Clone, Debug)]
pub enum Matrix {
    /// Sparse, every value 1.
    Ones(Csr<One>),
    /// Sparse, every value exact in single precision.
    Sparse32(Csr<f32>),
    /// Sparse, double precision.
    Sparse64(Csr<f64>),
    /// Dense, every value exact in single precision.
    Dense32(Dense<f32>),
    /// Dense, double precision.
    Dense64(Dense<f64>),
}

/// Runs an expression with `$rows` bound to the concrete storage: the one place where storages are told apart.
macro_rules! with_rows {
    ($matrix:expr, |$rows:ident| $body:expr) => {
        match $matrix {
            $crate::data::Matrix::Ones($rows) => $body,
            $crate::data::Matrix::Sparse32($rows) => $body,
            $crate::data::Matrix::Sparse64($rows) => $body,
            $crate::data::Matrix::Dense32($rows) => $body,
            $crate::data::Matrix::Dense64($rows) => $body,
        }
    };
}
pub(crate) use with_rows;

impl Matrix {
    /// Number of rows, N.
    pub fn n_rows(&self) -> usize {
        with_rows!(self, |rows| rows.n_rows())
    }

    /// Number of columns, n.
    pub fn n_cols(&self) -> usize {
        with_rows!(self, |rows| rows.n_cols())
    }

    /// Entries that are not zero.
    pub fn nnz(&self) -> usize {
        match self {
            Self::Ones(csr) => csr.indices.len(),
            Self::Sparse32(csr) => csr.indices.len(),
            Self::Sparse64(csr) => csr.indices.len(),
            Self::Dense32(dense) => dense.values.iter().filter(|&&value| value != 0.0).count(),
            Self::Dense64(dense) => dense.values.iter().filter(|&&value| value != 0.0).count(),
        }
    }

    /// Whether zeros are stored too.
    pub(crate) fn is_dense(&self) -> bool {
        matches!(self, Self::Dense32(_) | Self::Dense64(_))
    }

    /// Bytes that the arrays take.
    pub fn bytes(&self) -> usize {
        fn csr<V: Value>(csr: &Csr<V>, width: usize) -> usize {
            csr.offsets.len() * 8 + csr.indices.len() * (4 + width)
        }
        match self {
            Self::Ones(rows) => csr(rows, 0),
            Self::Sparse32(rows) => csr(rows, 4),
            Self::Sparse64(rows) => csr(rows, 8),
            Self::Dense32(rows) => rows.values.len() * 4,
            Self::Dense64(rows) => rows.values.len() * 8,
        }
    }

    /// How values are stored, in words for people: "ones", "f32", "f64", "dense f32", "dense f64".
    pub fn storage(&self) -> &'static str {
        match self {
            Self::Ones(_) => "ones",
            Self::Sparse32(_) => "f32",
            Self::Sparse64(_) => "f64",
            Self::Dense32(_) => "dense f32",
            Self::Dense64(_) => "dense f64",
        }
    }

    /// Copies some rows one after the other into a batch.
    pub(crate) fn gather(&self, rows: &[u32], batch: &mut Gathered) {
        batch.ends.clear();
        batch.columns.clear();
        batch.values.clear();
        match self {
            Self::Ones(csr) => {
                for (at, &row) in rows.iter().enumerate() {
                    if let Some(&ahead) = rows.get(at + 2) {
                        csr.prefetch_row(ahead as usize);
                    }
                    batch.columns.extend_from_slice(&csr.indices[csr.span(row as usize)]);
                    batch.ends.push(batch.columns.len());
                }
            }
            _ => with_rows!(self, |matrix| {
                for (at, &row) in rows.iter().enumerate() {
                    if let Some(&ahead) = rows.get(at + 2) {
                        matrix.prefetch_row(ahead as usize);
                    }
                    matrix.copy_row(row as usize, &mut batch.columns, &mut batch.values);
                    batch.ends.push(batch.columns.len());
                }
            }),
        }
    }

    /// The same rows with only these columns, which rise and are numbered anew.
    pub(crate) fn keep_columns(&self, columns: &[u32]) -> Self {
        match self {
            Self::Ones(rows) => Self::Ones(rows.keep_columns(columns)),
            Self::Sparse32(rows) => Self::Sparse32(rows.keep_columns(columns)),
            Self::Sparse64(rows) => Self::Sparse64(rows.keep_columns(columns)),
            Self::Dense32(rows) => Self::Dense32(rows.keep_columns(columns)),
            Self::Dense64(rows) => Self::Dense64(rows.keep_columns(columns)),
        }
    }

    /// These rows alone.
    pub(crate) fn keep_rows(&self, rows: &[u32]) -> Self {
        match self {
            Self::Ones(matrix) => Self::Ones(matrix.keep_rows(rows)),
            Self::Sparse32(matrix) => Self::Sparse32(matrix.keep_rows(rows)),
            Self::Sparse64(matrix) => Self::Sparse64(matrix.keep_rows(rows)),
            Self::Dense32(matrix) => Self::Dense32(matrix.keep_rows(rows)),
            Self::Dense64(matrix) => Self::Dense64(matrix.keep_rows(rows)),
        }
    }

    /// Stored entries of a row.
    pub(crate) fn row_len(&self, row: usize) -> usize {
        with_rows!(self, |rows| rows.row_len(row))
    }

    /// Calls `visit(column, value)` for each stored entry of a row.
    #[inline]
    pub fn for_each(&self, row: usize, visit: impl FnMut(usize, f64)) {
        with_rows!(self, |rows| rows.for_each(row, visit));
    }

    /// The same, for the entries whose column lies in `columns`.
    #[inline]
    pub(crate) fn for_each_in(&self, row: usize, columns: Range<usize>, visit: impl FnMut(usize, f64)) {
        with_rows!(self, |rows| rows.for_each_in(row, columns, visit));
    }

    /// A row times a vector.
    #[inline]
    pub(crate) fn dot(&self, row: usize, with: &[f64]) -> f64 {
        with_rows!(self, |rows| rows.dot(row, with))
    }

    /// Adds a multiple of a row to numbers for some columns.
    #[inline]
    pub(crate) fn add_to(&self, row: usize, columns: Range<usize>, scale: f64, to: &mut [f64]) {
        with_rows!(self, |rows| rows.add_to(row, columns, scale, to));
    }

    /// Builds from rows given as (column, value) lists; columns must rise strictly. For small data and tests.
    pub fn from_rows(n_cols: usize, rows: &[Vec<(u32, f64)>]) -> Self {
        let mut builder = super::builder::Builder::default();
        for row in rows {
            for &(column, value) in row {
                builder.push(column, value);
            }
            builder.end_row();
        }
        builder.finish(Some(n_cols))
    }

    /// Builds from a dense row-major array; stored sparse where that takes fewer bytes.
    pub fn from_dense(n_rows: usize, n_cols: usize, values: &[f64]) -> Self {
        assert_eq!(values.len(), n_rows * n_cols, "a dense array has n_rows × n_cols values");
        let mut cells = super::cells::Cells::default();
        values.iter().for_each(|&value| cells.push(value));
        cells.finish(n_rows, n_cols).in_fewest_bytes()
    }

    /// The same rows with at least `n_cols` columns; the new ones are empty.
    pub fn widened(mut self, n_cols: usize) -> Self {
        if n_cols <= self.n_cols() {
            return self;
        }
        match &mut self {
            Self::Ones(rows) => rows.n_cols = n_cols,
            Self::Sparse32(rows) => rows.n_cols = n_cols,
            Self::Sparse64(rows) => rows.n_cols = n_cols,
            Self::Dense32(rows) => return sparse(rows).widened(n_cols).in_fewest_bytes(),
            Self::Dense64(rows) => return sparse(rows).widened(n_cols).in_fewest_bytes(),
        }
        self
    }

    /// The same rows as dense ones where hardly an entry is left out: then indices cost more than they say.
    pub(crate) fn filled(self) -> Self {
        const FULL: f64 = 0.9;
        fn dense<V: Value<Array = Buffer<V>> + Pod + Send + Sync>(csr: &Csr<V>) -> Option<Dense<V>> {
            let (cells, entries) = (csr.n_rows().checked_mul(csr.n_cols())?, csr.indices.len());
            (entries > 0 && entries as f64 >= FULL * cells as f64).then(|| csr.to_dense())
        }
        match self {
            Self::Sparse32(csr) => dense(&csr).map_or(Self::Sparse32(csr), Self::Dense32),
            Self::Sparse64(csr) => dense(&csr).map_or(Self::Sparse64(csr), Self::Dense64),
            other => other,
        }
    }

    /// The same rows sparse or dense, whichever takes fewer bytes; ones stay ones.
    pub fn in_fewest_bytes(self) -> Self {
        fn dense_is_smaller<V>(n_rows: usize, n_cols: usize, nnz: usize) -> bool {
            let cells = n_rows as u128 * n_cols as u128;
            let size = size_of::<V>() as u128;
            cells * size <= nnz as u128 * (4 + size) + (n_rows as u128 + 1) * 8
        }
        fn dense<V: Value<Array = Buffer<V>> + Pod + Send + Sync>(csr: &Csr<V>) -> Option<Dense<V>> {
            dense_is_smaller::<V>(csr.n_rows(), csr.n_cols(), csr.indices.len()).then(|| csr.to_dense())
        }
        fn sparse_if_smaller<V: Value<Array = Buffer<V>> + Pod + Into<f64>>(dense: &Dense<V>) -> Option<Matrix> {
            let values = dense.values.iter().map(|&value| value.into()).filter(|&value| value != 0.0);
            let (nnz, ones) = values.fold((0, true), |(nnz, ones), value: f64| (nnz + 1, ones && value == 1.0));
            (ones || !dense_is_smaller::<V>(dense.n_rows, dense.n_cols, nnz)).then(|| sparse(dense))
        }
        match self {
            Self::Ones(_) => self,
            Self::Sparse32(csr) => dense(&csr).map_or(Self::Sparse32(csr), Self::Dense32),
            Self::Sparse64(csr) => dense(&csr).map_or(Self::Sparse64(csr), Self::Dense64),
            Self::Dense32(rows) => sparse_if_smaller(&rows).unwrap_or(Self::Dense32(rows)),
            Self::Dense64(rows) => sparse_if_smaller(&rows).unwrap_or(Self::Dense64(rows)),
        }
    }
}

/// Any rows as sparse ones.
fn sparse(rows: &impl Rows) -> Matrix {
    let mut builder = super::builder::Builder::default();
    for row in 0..rows.n_rows() {
        rows.for_each(row, |column, value| builder.push(column as u32, value));
        builder.end_row();
    }
    builder.finish(Some(rows.n_cols()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_sums_are_those_entry_by_entry() {
        // Lengths around the number of running sums, and an empty row.
        let (n_rows, n_cols) = (14, 21);
        let value = |row: usize, column: usize| ((row * 31 + column * 17) % 23) as f64 / 8.0 + 0.25;
        let sparse = |of: &dyn Fn(usize, usize) -> f64| {
            let row = |row| (0..row).map(|column| ((column + column / 2) as u32, of(row, column))).collect();
            Matrix::from_rows(n_cols, &(0..n_rows).map(row).collect::<Vec<Vec<(u32, f64)>>>())
        };
        let whole: Vec<f64> = (0..n_rows * n_cols).map(|at| value(at / n_cols, at % n_cols)).collect();
        let uneven = whole.iter().map(|value| value / 3.0).collect::<Vec<_>>();
        let vector: Vec<f64> = (0..n_cols).map(|column| (column as f64).sin()).collect();
        for matrix in [
            sparse(&value),
            sparse(&|row, column| value(row, column) / 3.0),
            sparse(&|_, _| 1.0),
            Matrix::from_dense(n_rows, n_cols, &whole),
            Matrix::from_dense(n_rows, n_cols, &uneven),
        ] {
            for row in 0..n_rows {
                let (mut sum, columns) = (0.0, 3..17);
                let mut expected = vec![1.0; columns.len()];
                matrix.for_each(row, |column, value| {
                    sum += value * vector[column];
                    if columns.contains(&column) {
                        expected[column - columns.start] += 0.5 * value;
                    }
                });
                assert!((matrix.dot(row, &vector) - sum).abs() < 1e-12, "{} row {row}", matrix.storage());
                let mut to = vec![1.0; columns.len()];
                matrix.add_to(row, columns, 0.5, &mut to);
                assert_eq!(to, expected, "{} row {row}", matrix.storage());
            }
        }
    }

    #[test]
    fn rows_with_hardly_a_gap_become_dense_ones() {
        let value = |row: usize, column: usize| ((row * 31 + column * 17) % 23) as f64 / 3.0 + 0.25;
        let rows = |gaps: usize, of: &dyn Fn(f64) -> f64| -> Vec<Vec<(u32, f64)>> {
            let kept = |row: usize, column: usize| row * 20 + column >= gaps;
            let row = |row| (0..20).filter(move |&column| kept(row, column)).map(move |column| (column, row));
            (0..10).map(|r| row(r).map(|(c, r)| (c as u32, of(value(r, c)))).collect()).collect()
        };
        for (gaps, dense) in [(0, true), (1, true), (20, true), (21, false), (200, false)] {
            for single in [false, true] {
                let of = |value: f64| if single { f64::from(value as f32) } else { value };
                let sparse = Matrix::from_rows(20, &rows(gaps, &of));
                let filled = sparse.clone().filled();
                assert_eq!(filled.storage().starts_with("dense"), dense, "{gaps} gaps");
                assert!(filled.storage().ends_with(sparse.storage()), "{gaps} gaps");
                assert_eq!((filled.n_rows(), filled.n_cols()), (10, 20));
                for row in 0..10 {
                    let mut cells = [[0.0; 20]; 2];
                    sparse.for_each(row, |column, value| cells[0][column] = value);
                    filled.for_each(row, |column, value| cells[1][column] = value);
                    assert_eq!(cells[0], cells[1]);
                }
            }
        }
        assert_eq!(Matrix::from_rows(0, &[vec![], vec![]]).filled().n_cols(), 0);
    }
}
