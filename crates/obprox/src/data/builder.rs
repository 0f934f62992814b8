//! Rows arrive one after the other; their values are kept in the narrowest type that holds all of them so far.

use super::csr::Csr;
use super::matrix::Matrix;
use super::rows::Rows;

/// Grows a sparse matrix row by row.
#[derive(Debug)]
pub struct Builder {
    offsets: Vec<u64>,
    indices: Vec<u32>,
    values: Values,
    n_cols: usize,
}

/// The values seen so far, widened when one does not fit.
#[derive(Debug)]
enum Values {
    Ones,
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Default for Builder {
    fn default() -> Self {
        Self { offsets: vec![0], indices: Vec::new(), values: Values::Ones, n_cols: 0 }
    }
}

/// Whether single precision holds the value without rounding.
#[inline]
pub(super) fn fits_f32(value: f64) -> bool {
    f64::from(value as f32) == value
}

impl Builder {
    /// Appends an entry to the row under way; the caller has checked that columns rise. A zero leaves no entry but
    /// widens the matrix to its column.
    #[inline]
    pub fn push(&mut self, column: u32, value: f64) {
        self.n_cols = self.n_cols.max(column as usize + 1);
        if value == 0.0 {
            return;
        }
        loop {
            match &mut self.values {
                Values::Ones if value == 1.0 => break,
                Values::F32(values) if fits_f32(value) => {
                    values.push(value as f32);
                    break;
                }
                Values::F64(values) => {
                    values.push(value);
                    break;
                }
                _ => self.values.widen(self.indices.len(), fits_f32(value)),
            }
        }
        self.indices.push(column);
    }

    /// Ends the row under way; a row without entries is a row.
    pub fn end_row(&mut self) {
        self.offsets.push(self.indices.len() as u64);
    }

    /// Appends any rows.
    pub(super) fn push_rows(&mut self, rows: &impl Rows) {
        for row in 0..rows.n_rows() {
            rows.for_each(row, |column, value| self.push(column as u32, value));
            self.end_row();
        }
    }

    /// Number of finished rows.
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Appends all rows of another builder.
    pub fn append(&mut self, other: Self) {
        let (before, added) = (self.indices.len(), other.indices.len());
        while self.values.width() < other.values.width() {
            self.values.widen(before, other.values.width() == 1);
        }
        match (&mut self.values, other.values) {
            (Values::Ones, _) => {}
            (Values::F32(mine), Values::F32(theirs)) => mine.extend_from_slice(&theirs),
            (Values::F32(mine), _) => mine.resize(before + added, 1.0),
            (Values::F64(mine), Values::F64(theirs)) => mine.extend_from_slice(&theirs),
            (Values::F64(mine), Values::F32(theirs)) => mine.extend(theirs.iter().map(|&value| f64::from(value))),
            (Values::F64(mine), Values::Ones) => mine.resize(before + added, 1.0),
        }
        self.indices.extend_from_slice(&other.indices);
        self.offsets.extend(other.offsets[1..].iter().map(|&offset| offset + before as u64));
        self.n_cols = self.n_cols.max(other.n_cols);
    }

    /// The matrix; `n_cols` where the caller knows of more columns than were seen.
    pub fn finish(mut self, n_cols: Option<usize>) -> Matrix {
        self.offsets.shrink_to_fit();
        self.indices.shrink_to_fit();
        let n_cols = self.n_cols.max(n_cols.unwrap_or(0));
        let (offsets, indices) = (self.offsets.into(), self.indices.into());
        match self.values {
            Values::Ones => Matrix::Ones(Csr::new(n_cols, offsets, indices, ())),
            Values::F32(mut values) => {
                values.shrink_to_fit();
                Matrix::Sparse32(Csr::new(n_cols, offsets, indices, values.into()))
            }
            Values::F64(mut values) => {
                values.shrink_to_fit();
                Matrix::Sparse64(Csr::new(n_cols, offsets, indices, values.into()))
            }
        }
    }
}

impl Values {
    fn width(&self) -> usize {
        match self {
            Self::Ones => 0,
            Self::F32(_) => 1,
            Self::F64(_) => 2,
        }
    }

    /// The same `len` values in the next wider type; ones go straight to double precision where single is not enough.
    #[cold]
    fn widen(&mut self, len: usize, single_is_enough: bool) {
        *self = match std::mem::replace(self, Self::Ones) {
            Self::Ones if single_is_enough => Self::F32(vec![1.0; len]),
            Self::Ones => Self::F64(vec![1.0; len]),
            Self::F32(values) => Self::F64(values.into_iter().map(f64::from).collect()),
            Self::F64(values) => Self::F64(values),
        };
    }
}
