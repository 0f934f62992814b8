//! Rows that stay in files.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, ToPyArray};
use obprox::data::{ReadOptions, ShardedData, Sharding};
use pyo3::prelude::*;

use crate::crew::work;

/// Rows of files that were parsed into shards, which are read from the cache one after the other.
#[pyclass(frozen, module = "obprox._core")]
pub struct Shards {
    pub inner: Arc<ShardedData>,
}

#[pymethods]
impl Shards {
    /// Opens the shards of some files in a cache directory, or parses the files into them; `memory` is in bytes.
    #[new]
    #[pyo3(signature = (sources, cache, memory, *, n_cols=None, label=None, threads=0))]
    fn new(
        py: Python<'_>,
        sources: Vec<PathBuf>,
        cache: PathBuf,
        memory: u64,
        n_cols: Option<usize>,
        label: Option<&str>,
        threads: usize,
    ) -> PyResult<Self> {
        let label = label.map(|label| label.parse().unwrap_or_else(|never: std::convert::Infallible| match never {}));
        let options = ReadOptions { n_cols, label: label.unwrap_or_default(), ..ReadOptions::default() };
        let sharding = Sharding { cache, memory, rows: None };
        let inner =
            work(py, threads, move || ShardedData::open(&sources, &options, &sharding, &mut |_, _| {}).map(Arc::new))?;
        Ok(Self { inner })
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.inner.n_rows(), self.inner.n_cols())
    }

    /// The targets of all rows.
    fn targets<'py>(&self, py: Python<'py>, threads: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let shards = Arc::clone(&self.inner);
        Ok(work(py, threads, move || shards.targets())?.to_pyarray(py))
    }

    /// Names of the columns, where the files have them.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.inner.names().map(<[String]>::to_vec)
    }
}
