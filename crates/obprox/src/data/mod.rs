//! File → [`Dataset`]: rows, targets and, where the file has them, names.

mod blocks;
mod boundaries;
mod buffer;
mod builder;
mod cache;
mod cells;
mod csr;
mod csv;
mod dense;
mod describe;
mod guard;
mod import;
#[cfg(feature = "parquet")]
mod ipc;
mod label;
mod libsvm;
mod matrix;
mod number;
#[cfg(feature = "parquet")]
mod parquet;
mod pieces;
mod read;
mod rows;
mod shards;
mod sheet;
mod source;
mod standardise;
mod synth;
mod table;
mod transpose;
mod vector;

use std::sync::Arc;

pub use buffer::Buffer;
pub use builder::Builder;
pub use cache::write_cache;
pub use csr::Csr;
pub use dense::Dense;
pub use describe::{Spread, Summary, Targets};
pub use guard::panics_are_errors;
pub use import::Stored;
pub use label::Label;
pub use libsvm::write_libsvm;
pub use matrix::Matrix;
pub(crate) use matrix::with_rows;
pub use pieces::read_pieces;
pub use read::{Format, ReadOptions, read, read_from, read_vector};
pub(crate) use rows::Gathered;
pub use rows::{One, Rows, Value};
pub use shards::{Reading, ShardedData, Sharding};
pub use source::read_bytes;
pub use standardise::{Scaling, standardise};
pub use synth::{Entries, Planted, Synth, Task};
#[cfg(feature = "arrow")]
pub use table::numbers as arrow_numbers;
pub use table::{Categorical, Encoded, Encoding, Features, Fill, Missing, Recipe};
pub(crate) use transpose::Wanted;

/// Rows with their targets, as read: labels are still the file's own numbers.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The features.
    pub matrix: Matrix,
    /// One label or regression target a row.
    pub targets: Buffer<f64>,
    /// Names of the columns, where the source has them.
    pub names: Option<Vec<String>>,
    /// How the features were made of a table's columns, where they were learnt from one.
    pub recipe: Option<Arc<Recipe>>,
}

impl Dataset {
    /// Rows with their targets.
    pub fn new(matrix: Matrix, targets: Vec<f64>) -> Self {
        assert_eq!(matrix.n_rows(), targets.len(), "a data set has one target a row");
        Self { matrix, targets: targets.into(), names: None, recipe: None }
    }

    /// Makes it at least `n_cols` columns wide; the new columns are empty.
    pub fn widen(&mut self, n_cols: usize) {
        let empty = Matrix::from_rows(0, &[]);
        self.matrix = std::mem::replace(&mut self.matrix, empty).widened(n_cols);
        if let Some(names) = &mut self.names {
            names.extend((names.len()..n_cols).map(|column| format!("column {}", column + 1)));
        }
    }
}
