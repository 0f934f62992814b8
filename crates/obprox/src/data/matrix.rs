//! The rows of a data set, sparse or dense, in the narrowest type that holds every value exactly.

use std::ops::Range;

use bytemuck::Pod;

use super::buffer::Buffer;
use super::csr::Csr;
use super::dense::Dense;
use super::rows::{Gathered, One, Rows, Value};

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
            Self::Ones(csr) => csr.indices().len(),
            Self::Sparse32(csr) => csr.indices().len(),
            Self::Sparse64(csr) => csr.indices().len(),
            Self::Dense32(dense) => dense.nnz(),
            Self::Dense64(dense) => dense.nnz(),
        }
    }

    /// Whether zeros are stored too.
    pub(crate) fn is_dense(&self) -> bool {
        matches!(self, Self::Dense32(_) | Self::Dense64(_))
    }

    /// Bytes that the arrays take.
    pub fn bytes(&self) -> usize {
        fn csr<V: Value>(csr: &Csr<V>, width: usize) -> usize {
            csr.offsets().len() * 8 + csr.indices().len() * (4 + width)
        }
        match self {
            Self::Ones(rows) => csr(rows, 0),
            Self::Sparse32(rows) => csr(rows, 4),
            Self::Sparse64(rows) => csr(rows, 8),
            Self::Dense32(rows) => rows.values().len() * 4,
            Self::Dense64(rows) => rows.values().len() * 8,
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

    /// Copies some rows one after the other to the end of a batch.
    pub(crate) fn gather(&self, rows: &[u32], batch: &mut Gathered) {
        let has_values = !batch.values.is_empty();
        // Where a row begins has to be known before it can be asked for.
        let soon = |at: usize| {
            if let Some(&row) = rows.get(at + 8) {
                with_rows!(self, |matrix| matrix.prefetch_ends(row as usize));
            }
            if let Some(&row) = rows.get(at + 2) {
                with_rows!(self, |matrix| matrix.prefetch_row(row as usize));
            }
        };
        match self {
            Self::Ones(csr) => {
                for (at, &row) in rows.iter().enumerate() {
                    soon(at);
                    batch.columns.extend_from_slice(&csr.indices()[csr.span(row as usize)]);
                    batch.ends.push(batch.columns.len());
                }
                if has_values {
                    batch.values.resize(batch.columns.len(), 1.0);
                }
            }
            _ => with_rows!(self, |matrix| {
                // Rows before these may have been ones.
                batch.values.resize(batch.columns.len(), 1.0);
                for (at, &row) in rows.iter().enumerate() {
                    soon(at);
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

    /// A row as it lies in memory, where that is as doubles one after the other.
    pub(crate) fn doubles(&self, row: usize) -> Option<&[f64]> {
        match self {
            Self::Dense64(rows) => Some(&rows.values()[row * rows.n_cols()..(row + 1) * rows.n_cols()]),
            _ => None,
        }
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
            Self::Ones(rows) => rows.widen(n_cols),
            Self::Sparse32(rows) => rows.widen(n_cols),
            Self::Sparse64(rows) => rows.widen(n_cols),
            Self::Dense32(rows) => return sparse(rows).widened(n_cols).in_fewest_bytes(),
            Self::Dense64(rows) => return sparse(rows).widened(n_cols).in_fewest_bytes(),
        }
        self
    }

    /// The same rows as dense ones where hardly an entry is left out: then indices cost more than they say.
    pub(crate) fn filled(self) -> Self {
        const FULL: f64 = 0.9;
        fn dense<V: Value<Array = Buffer<V>> + Pod + Send + Sync>(csr: &Csr<V>) -> Option<Dense<V>> {
            let (cells, entries) = (csr.n_rows().checked_mul(csr.n_cols())?, csr.indices().len());
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
            dense_is_smaller::<V>(csr.n_rows(), csr.n_cols(), csr.indices().len()).then(|| csr.to_dense())
        }
        fn sparse_if_smaller<V: Value<Array = Buffer<V>> + Pod + Into<f64>>(dense: &Dense<V>) -> Option<Matrix> {
            let values = dense.values().iter().map(|&value| value.into()).filter(|&value| value != 0.0);
            let (nnz, ones) = values.fold((0, true), |(nnz, ones), value: f64| (nnz + 1, ones && value == 1.0));
            (ones || !dense_is_smaller::<V>(dense.n_rows(), dense.n_cols(), nnz)).then(|| sparse(dense))
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
    builder.push_rows(rows);
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
