//! Rows on other machines: the driver's side, which calls back into Python to reach them, and the side of a worker.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use obprox::data::{Buffer, Dataset, Format, Label, ReadOptions, read_vector};
use obprox::remote::{self, Engine, Pieces, RemoteData, Shard};
use obprox::{Error, Result};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
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
    /// `map` is called with a request and gives the reply of each shard, in their order; `reduce`, where there is one, with a
    /// number of pieces and their width too, and gives the sum of each piece. A piece has `piece` numbers or more.
    #[new]
    #[pyo3(signature = (map, *, reduce=None, piece=None, n_cols=0, room=1073741824))]
    fn new(
        py: Python<'_>,
        map: Py<PyAny>,
        reduce: Option<Py<PyAny>>,
        piece: Option<usize>,
        n_cols: usize,
        room: u64,
    ) -> PyResult<Self> {
        let engine = Calls { map, reduce: reduce.zip(piece) };
        let inner = work(py, 1, move || RemoteData::open(Box::new(engine), n_cols, room))?;
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

    /// Whether the margins of the rows have a part that is known.
    #[getter]
    fn has_offsets(&self) -> bool {
        self.inner.has_offsets()
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

/// Python functions as an engine.
struct Calls {
    map: Py<PyAny>,
    /// What adds replies up on their way, and how many numbers a piece has.
    reduce: Option<(Py<PyAny>, usize)>,
}

/// Hands on what an iterator of Python gives, once that is there.
fn hand_on(replies: PyResult<Py<PyIterator>>, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let raised = |error: PyErr| Error::Data(error.to_string());
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

impl Engine for Calls {
    fn map(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let replies = Python::attach(|py| -> PyResult<Py<PyIterator>> {
            Ok(self.map.bind(py).call1((PyBytes::new(py, request),))?.try_iter()?.unbind())
        });
        hand_on(replies, each)
    }

    fn piece(&self) -> Option<usize> {
        self.reduce.as_ref().map(|(_, numbers)| *numbers)
    }

    fn reduce(&self, request: &[u8], pieces: Pieces, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some((reduce, _)) = &self.reduce else { return Err(Error::Data("an engine that adds up nothing".into())) };
        let replies = Python::attach(|py| -> PyResult<Py<PyIterator>> {
            let arguments = (PyBytes::new(py, request), pieces.count, pieces.width);
            Ok(reduce.bind(py).call1(arguments)?.try_iter()?.unbind())
        });
        hand_on(replies, each)
    }
}

/// Cuts a reply into pieces.
#[pyfunction]
pub fn cut_reply<'py>(py: Python<'py>, reply: &[u8], count: usize, width: usize) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let pieces = work(py, 1, || Ok(remote::cut(reply, Pieces { count, width })))?;
    Ok(pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
}

/// Adds up pieces of one number, in the order of the shards.
#[pyfunction]
pub fn add_replies<'py>(py: Python<'py>, replies: Vec<PyBackedBytes>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &work(py, 1, || Ok(remote::add(&replies)))?))
}

/// Does what a request asks of a shard that is in memory, or was kept of one.
#[pyfunction]
#[pyo3(signature = (number, request, matrix=None, targets=None, weights=None, offsets=None, *, name="", names=None, threads=1))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn work_rows<'py>(
    py: Python<'py>,
    number: usize,
    request: &[u8],
    matrix: Option<&Matrix>,
    targets: Option<PyReadonlyArray1<'_, f64>>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    offsets: Option<PyReadonlyArray1<'_, f64>>,
    name: &str,
    names: Option<Vec<String>>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let shard = match (matrix, targets) {
        (Some(matrix), Some(targets)) => {
            let (n_rows, n_targets) = (matrix.inner.n_rows(), targets.len());
            if n_targets != n_rows {
                return Err(parameter("y", format!("{n_targets} numbers for {n_rows} rows of {name}")));
            }
            let mut data = Dataset::new(matrix.inner.clone(), targets.as_array().to_vec());
            data.names = names;
            let own = |numbers: PyReadonlyArray1<'_, f64>| Buffer::from(numbers.as_array().to_vec());
            let shard = Shard { name: name.to_owned(), data, weights: None, offsets: None };
            shard.beside(weights.map(own), offsets.map(own))
        }
        _ => Err(Error::Data(format!("nothing was kept of {name}"))),
    };
    let reply = work(py, threads, || Ok(remote::work(number, request, || shard)))?;
    Ok(PyBytes::new(py, &reply))
}

/// Does what a request asks of a shard that is a file, with its weights and offsets in files of their own.
#[pyfunction]
#[pyo3(signature = (number, request, path, *, label=None, weights=None, offsets=None, header=None, format=None, threads=1))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn work_file<'py>(
    py: Python<'py>,
    number: usize,
    request: &[u8],
    path: PathBuf,
    label: Option<&str>,
    weights: Option<PathBuf>,
    offsets: Option<PathBuf>,
    header: Option<bool>,
    format: Option<&str>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let label: Option<Label> =
        label.map(|label| label.parse().unwrap_or_else(|never: std::convert::Infallible| match never {}));
    let format = match format {
        None => None,
        Some("libsvm") => Some(Format::Libsvm),
        Some("csv") => Some(Format::Csv),
        Some("cache") => Some(Format::Cache),
        Some(other) => return Err(parameter("format", format!("{other:?} is none of libsvm, csv and cache"))),
    };
    let options = ReadOptions { label: label.unwrap_or_default(), header, format, ..ReadOptions::default() };
    let open = || {
        let beside = |file: &Option<PathBuf>| file.as_deref().map(read_vector).transpose();
        let [weights, offsets] = [beside(&weights)?, beside(&offsets)?];
        Shard::open(&path, &options)?.beside(weights.map(Into::into), offsets.map(Into::into))
    };
    let reply = work(py, threads, || Ok(remote::work(number, request, open)))?;
    Ok(PyBytes::new(py, &reply))
}

/// Whether a shard is at hand for a request, so that nobody need make it again.
#[pyfunction]
pub fn is_kept(number: usize, request: &[u8]) -> bool {
    remote::is_kept(number, request)
}
