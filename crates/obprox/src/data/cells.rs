//! Dense rows arrive; their values are kept in the narrower type that holds all of them so far.

use super::builder::fits_f32;
use super::{Dense, Matrix};

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
