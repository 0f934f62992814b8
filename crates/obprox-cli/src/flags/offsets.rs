//! The offsets of rows that are read some at a time.

use std::path::Path;

use obprox::data::read_vector;

use crate::failure::Failure;

/// A file of `--offset`, as far as it was used.
pub struct Offsets {
    values: Option<Vec<f64>>,
    used: usize,
}

impl Offsets {
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self { values: path.map(read_vector).transpose()?, used: 0 })
    }

    /// Those of the next rows; nothing where no file was given.
    pub fn next(&mut self, rows: usize) -> Result<Option<&[f64]>, Failure> {
        let from = self.used;
        self.used += rows;
        match &self.values {
            Some(values) if values.len() < self.used => {
                Err(Failure::input(format!("--offset: {} numbers, and more rows than that", values.len())))
            }
            values => Ok(values.as_ref().map(|values| &values[from..self.used])),
        }
    }

    /// Refuses what is left.
    pub fn end(self) -> Result<(), Failure> {
        match self.values {
            Some(values) if values.len() != self.used => {
                Err(Failure::input(format!("--offset: {} numbers for {} rows", values.len(), self.used)))
            }
            _ => Ok(()),
        }
    }
}
