//! Data files as arrays.

use std::path::PathBuf;

use numpy::{PyArrayMethods, ToPyArray};
use obprox::data::{Csr, Matrix, ReadOptions, Rows, Value, read, write_cache};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::show;
use crate::crew::work;

/// Reads a data file: LIBSVM text or CSV, compressed or not, or a cache, which is mapped into memory and not read.
///
/// Sparse rows come as indptr, indices and data (None where all are ones), dense ones as cells; the arrays of a cache
/// are windows on its file.
#[pyfunction]
#[pyo3(signature = (path, *, n_cols=None, label=None, threads=0))]
pub fn read_file<'py>(
    py: Python<'py>,
    path: PathBuf,
    n_cols: Option<usize>,
    label: Option<&str>,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let label = label.map(|label| label.parse().unwrap_or_else(|never: std::convert::Infallible| match never {}));
    let options = ReadOptions { n_cols, label: label.unwrap_or_default(), ..ReadOptions::default() };
    let dataset = work(py, threads, move || read(path, &options))?;
    let parts = PyDict::new(py);
    parts.set_item("shape", (dataset.matrix.n_rows(), dataset.matrix.n_cols()))?;
    // A copy that is the caller's own: labels are often recoded in place.
    parts.set_item("targets", dataset.targets.to_pyarray(py))?;
    parts.set_item("names", dataset.names)?;
    match dataset.matrix {
        Matrix::Ones(rows) => {
            put(&parts, &rows)?;
            parts.set_item("data", py.None())?;
        }
        Matrix::Sparse32(rows) => {
            put(&parts, &rows)?;
            parts.set_item("data", show(py, rows.values().clone())?)?;
        }
        Matrix::Sparse64(rows) => {
            put(&parts, &rows)?;
            parts.set_item("data", show(py, rows.values().clone())?)?;
        }
        Matrix::Dense32(rows) => {
            parts.set_item("cells", show(py, rows.values().clone())?.reshape([rows.n_rows(), rows.n_cols()])?)?
        }
        Matrix::Dense64(rows) => {
            parts.set_item("cells", show(py, rows.values().clone())?.reshape([rows.n_rows(), rows.n_cols()])?)?
        }
    }
    Ok(parts)
}

fn put<V: Value>(parts: &Bound<'_, PyDict>, rows: &Csr<V>) -> PyResult<()> {
    let py = parts.py();
    parts.set_item("indptr", show(py, rows.offsets().clone())?)?;
    parts.set_item("indices", show(py, rows.indices().clone())?)
}

/// Writes what a data file holds as a cache, which opens at once.
#[pyfunction]
#[pyo3(signature = (source, path, *, n_cols=None, threads=0))]
pub fn write_cache_file(
    py: Python<'_>,
    source: PathBuf,
    path: PathBuf,
    n_cols: Option<usize>,
    threads: usize,
) -> PyResult<()> {
    work(py, threads, move || write_cache(&read(source, &ReadOptions { n_cols, ..ReadOptions::default() })?, path))
}
