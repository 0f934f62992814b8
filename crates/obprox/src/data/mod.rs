//! File → [`Dataset`]: rows, targets and, where the file has them, names.

mod blocks;
mod buffer;
mod builder;
mod cells;
mod csv;
mod label;
mod libsvm;
mod matrix;
mod number;
mod read;
mod source;
mod vector;

pub use buffer::Buffer;
pub use builder::Builder;
pub use label::Label;
pub use libsvm::write_libsvm;
pub use matrix::{Csr, Dense, Matrix, One, Rows, Value};
pub(crate) use matrix::{Gathered, with_rows};
pub use read::{Format, ReadOptions, read, read_from, read_vector};

/// Rows with their targets, as read: labels are still the file's own numbers.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The features.
    pub matrix: Matrix,
    /// One label or regression target a row.
    pub targets: Vec<f64>,
    /// Names of the columns, where the source has them.
    pub names: Option<Vec<String>>,
}

impl Dataset {
    /// Rows with their targets.
    pub fn new(matrix: Matrix, targets: Vec<f64>) -> Self {
        assert_eq!(matrix.n_rows(), targets.len(), "a data set has one target a row");
        Self { matrix, targets, names: None }
    }
}

/// Placeholder until the real one is merged.
#[derive(Clone, Debug)]
pub struct Scaling {}
impl Scaling {
    /// Placeholder.
    pub fn to_original(&self, _weights: &mut [f64], _outputs: usize, _intercept: &mut [f64]) {}
}
/// Placeholder.
pub fn standardise(matrix: &Matrix, _centre: bool) -> (Matrix, Scaling) {
    (matrix.clone(), Scaling {})
}
