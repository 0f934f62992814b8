//! Dense rows arrive; their values are kept in the narrower type that holds all of them so far.

use super::builder::fits_f32;
use super::{Builder, Dense, Matrix};

/// Grows a dense matrix value by value.
#[derive(Debug)]
pub(super) enum Cells {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Default for Cells {
    fn default() -> Self {
        Self::F32(Vec::new())
    }
}

impl Cells {
    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: f64) {
        // Turns −0 into 0, as sparse storage does.
        let value = value + 0.0;
        match self {
            Self::F32(values) if fits_f32(value) => values.push(value as f32),
            Self::F64(values) => values.push(value),
            Self::F32(_) => {
                self.widen();
                self.push(value);
            }
        }
    }

    /// Forgets all values but the first.
    pub fn truncate(&mut self, len: usize) {
        match self {
            Self::F32(values) => values.truncate(len),
            Self::F64(values) => values.truncate(len),
        }
    }

    /// Appends all values of another.
    pub fn append(&mut self, other: Self) {
        if matches!((&self, &other), (Self::F32(_), Self::F64(_))) {
            self.widen();
        }
        match (self, other) {
            (Self::F32(mine), Self::F32(theirs)) => mine.extend_from_slice(&theirs),
            (Self::F64(mine), Self::F64(theirs)) => mine.extend_from_slice(&theirs),
            (Self::F64(mine), Self::F32(theirs)) => mine.extend(theirs.iter().map(|&value| f64::from(value))),
            (Self::F32(_), Self::F64(_)) => unreachable!("widened above"),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Number of values that are not zero.
    pub fn nnz(&self) -> usize {
        match self {
            Self::F32(values) => values.iter().filter(|&&value| value != 0.0).count(),
            Self::F64(values) => values.iter().filter(|&&value| value != 0.0).count(),
        }
    }

    /// Appends the values to sparse rows, `n_cols` a row.
    pub fn push_rows(&self, n_cols: usize, builder: &mut Builder) {
        let mut push = |values: &mut dyn Iterator<Item = f64>| {
            for (column, value) in values.enumerate() {
                builder.push(column as u32, value);
            }
            builder.end_row();
        };
        match self {
            Self::F32(values) => values.chunks(n_cols).for_each(|row| push(&mut row.iter().map(|&value| value.into()))),
            Self::F64(values) => values.chunks(n_cols).for_each(|row| push(&mut row.iter().copied())),
        }
    }

    /// The matrix of `n_cols` columns that the values are the rows of.
    pub fn finish(mut self, n_rows: usize, n_cols: usize) -> Matrix {
        match &mut self {
            Self::F32(values) => values.shrink_to_fit(),
            Self::F64(values) => values.shrink_to_fit(),
        }
        match self {
            Self::F32(values) => Matrix::Dense32(Dense::new(n_rows, n_cols, values.into())),
            Self::F64(values) => Matrix::Dense64(Dense::new(n_rows, n_cols, values.into())),
        }
    }

    #[cold]
    fn widen(&mut self) {
        if let Self::F32(values) = self {
            *self = Self::F64(values.iter().map(|&value| f64::from(value)).collect());
        }
    }
}
