//! Rows on other machines: the driver's side, which calls back into Python to reach them, and the side of a worker.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use obprox::data::{Buffer, Dataset, Label, ReadOptions};
use obprox::remote::{self, Engine, RemoteData, Shard};
use obprox::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use crate::crew::work;
use crate::error::parameter;
use crate::matrix::Matrix;

/// Shards that a Python function reaches, and what they told of themselves.
#[pyclass(frozen, module = "obprox._core")]
pub struct Cluster {
    pub inner: Arc<RemoteData>,
}

#[pymethods]
impl Cluster {
    /// `map` is called with a request and gives the reply of each shard, in their order.
    #[new]
    #[pyo3(signature = (map, *, n_cols=0, room=1073741824))]
    fn new(py: Python<'_>, map: Py<PyAny>, n_cols: usize, room: u64) -> PyResult<Self> {
        let inner = work(py, 1, move || RemoteData::open(Box::new(Calls(map)), n_cols, room))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.inner.n_rows(), self.inner.n_cols())
    }

    /// Entries that are not zero.
    #[getter]
    fn nnz(&self) -> usize {
        self.inner.nnz()
    }

    #[getter]
    fn n_shards(&self) -> usize {
        self.inner.n_shards()
    }

    /// How often all shards were asked.
    #[getter]
    fn passes(&self) -> u64 {
        self.inner.passes()
    }

    /// Names of the columns, where the shards have them.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.inner.names().map(<[String]>::to_vec)
    }

    /// What to say where machines round differently.
    #[getter]
    fn notice(&self) -> Option<String> {
        self.inner.notice()
    }

    /// The distinct targets, where they are labels of classes.
    fn labels(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        self.inner.distinct_labels().map_err(|error| crate::error::raise(py, error))
    }
}

/// A Python function as an engine.
struct Calls(Py<PyAny>);

impl Engine for Calls {
    fn map(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let raised = |error: PyErr| Error::Data(error.to_string());
        let replies = Python::attach(|py| -> PyResult<Py<PyIterator>> {
            Ok(self.0.bind(py).call1((PyBytes::new(py, request),))?.try_iter()?.unbind())
        });
        let replies = replies.map_err(raised)?;
        loop {
            let reply = Python::attach(|py| -> PyResult<Option<Py<PyBytes>>> {
                let next = replies.bind(py).clone().next().transpose()?;
                next.map(|reply| Ok(reply.cast_into::<PyBytes>()?.unbind())).transpose()
            });
            let Some(reply) = reply.map_err(raised)? else { return Ok(()) };
            // The bytes of Python never change, but reading them where they lie needs its lock.
            Python::attach(|py| each(reply.bind(py).as_bytes()))?;
        }
    }
}

/// Does what a request asks of a shard that is in memory, or was kept of one.
#[pyfunction]
#[pyo3(signature = (number, request, matrix=None, targets=None, weights=None, *, name="", names=None, threads=1))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn work_rows<'py>(
    py: Python<'py>,
    number: usize,
    request: &[u8],
    matrix: Option<&Matrix>,
    targets: Option<PyReadonlyArray1<'_, f64>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    name: &str,
    names: Option<Vec<String>>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let shard = match (matrix, targets) {
        (Some(matrix), Some(targets)) => {
            let n_rows = matrix.inner.n_rows();
            let lengths = [Some(targets.len()), weights.as_ref().map(|weights| weights.len())];
            if let Some(other) = lengths.into_iter().flatten().find(|len| *len != n_rows) {
                return Err(parameter("y", format!("{other} numbers for {n_rows} rows of {name}")));
            }
            let mut data = Dataset::new(matrix.inner.clone(), targets.as_array().to_vec());
            data.names = names;
            let weights = weights.map(|weights| Buffer::from(weights.as_array().to_vec()));
            Ok(Shard { name: name.to_owned(), data, weights })
        }
        _ => Err(Error::Data(format!("nothing was kept of {name}"))),
    };
    let reply = work(py, threads, || Ok(remote::work(number, request, || shard)))?;
    Ok(PyBytes::new(py, &reply))
}

/// Does what a request asks of a shard that is a file.
#[pyfunction]
#[pyo3(signature = (number, request, path, *, label=None, threads=1))]
pub fn work_file<'py>(
    py: Python<'py>,
    number: usize,
    request: &[u8],
    path: PathBuf,
    label: Option<&str>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let label: Option<Label> =
        label.map(|label| label.parse().unwrap_or_else(|never: std::convert::Infallible| match never {}));
    let options = ReadOptions { label: label.unwrap_or_default(), ..ReadOptions::default() };
    let reply = work(py, threads, || Ok(remote::work(number, request, || Shard::open(&path, &options))))?;
    Ok(PyBytes::new(py, &reply))
}

/// Whether a shard is at hand for a request, so that nobody need make it again.
#[pyfunction]
pub fn is_kept(number: usize, request: &[u8]) -> bool {
    remote::is_kept(number, request)
}
