//! Tables of others, by Arrow's C interface: one array of numbers and the names of its columns.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Schema};
use numpy::PyArray2;
use numpy::ndarray::Array2;
use obprox::data::arrow_numbers;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rayon::prelude::*;

use crate::arrays::stream;
use crate::crew::work;

/// Rows that are written together: their columns stay in the cache.
const ROWS: usize = 256;

/// The numbers of a table in C order, float32 where all columns are, and the names of its columns; NaN where a value is
/// missing. Columns lie apart in such tables, so they are copied, each number once.
#[pyfunction]
#[pyo3(signature = (stream_of, threads=0))]
pub fn columns<'py>(
    py: Python<'py>,
    stream_of: &Bound<'py, PyCapsule>,
    threads: usize,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>)> {
    let reader = stream(stream_of)?;
    let schema = reader.schema();
    let batches: Vec<RecordBatch> =
        reader.collect::<Result<_, _>>().map_err(|error| PyValueError::new_err(error.to_string()))?;
    refuse_words(&schema)?;
    let names = schema.fields().iter().map(|field| field.name().clone()).collect();
    let single = schema.fields().iter().all(|field| *field.data_type() == DataType::Float32);
    let array = match single {
        true => rows(py, threads, &batches, schema.fields().len(), |value| value as f32)?,
        false => rows(py, threads, &batches, schema.fields().len(), |value| value)?,
    };
    Ok((array, names))
}

/// Says which column has no numbers.
fn refuse_words(schema: &Schema) -> PyResult<()> {
    for field in schema.fields() {
        let empty = arrow_array::new_empty_array(field.data_type());
        if arrow_numbers(empty.as_ref()).is_none() {
            let (name, of) = (field.name(), field.data_type());
            let advice = "give numbers; words become numbers by scikit-learn's OneHotEncoder";
            return Err(PyValueError::new_err(format!("X: column {name:?} is of type {of}: {advice}")));
        }
    }
    Ok(())
}

fn rows<'py, T: numpy::Element + Copy + Default + Send + Sync>(
    py: Python<'py>,
    threads: usize,
    batches: &[RecordBatch],
    n_cols: usize,
    to: impl Fn(f64) -> T + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let n_rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let mut cells = vec![T::default(); n_rows * n_cols];
    work(py, threads, || {
        let mut rest = &mut cells[..];
        for batch in batches {
            let (part, after) = rest.split_at_mut(batch.num_rows() * n_cols);
            rest = after;
            part.par_chunks_mut((ROWS * n_cols).max(1)).enumerate().for_each(|(piece, cells)| {
                let slice = batch.slice(piece * ROWS, cells.len() / n_cols);
                for (at, column) in slice.columns().iter().enumerate() {
                    // Its type was looked at before.
                    let values = arrow_numbers(column.as_ref()).unwrap_or_default();
                    cells.iter_mut().skip(at).step_by(n_cols).zip(values).for_each(|(cell, value)| *cell = to(value));
                }
            });
        }
        Ok(())
    })?;
    let array = Array2::from_shape_vec((n_rows, n_cols), cells);
    let array = array.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyArray2::from_owned_array(py, array).into_any())
}
