//! Rows of numpy and scipy as the library's.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use obprox::data::{self, Buffer, Stored};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrays::lend;
use crate::crew::work;
use crate::error::parameter;

/// Rows that were checked: finite values, columns in range.
///
/// Memory is shared with the arrays it was made from where their layout is the library's own: float32 and float64
/// values, int32 columns, int64 row offsets; else they are copied. Leave the arrays as they are while it lives.
#[pyclass(frozen, module = "obprox._core")]
pub struct Matrix {
    pub inner: data::Matrix,
}

#[pymethods]
impl Matrix {
    /// Compressed sparse rows, as scipy holds them.
    #[staticmethod]
    #[pyo3(signature = (n_cols, indptr, indices, data, threads=0))]
    fn csr(
        py: Python<'_>,
        n_cols: usize,
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<Self> {
        if n_cols > u32::MAX as usize {
            return Err(parameter("X", format!("{n_cols} columns; at most {} are supported", u32::MAX)));
        }
        let offsets: Buffer<u64> = match indptr.cast::<PyArray1<i64>>() {
            // A negative offset is a huge one here, and refused as such.
            Ok(array) => lend(array, array.len())?,
            Err(_) => {
                let array = indptr.cast::<PyArray1<i32>>().map_err(|_| index_type("indptr"))?.readonly();
                array.as_array().iter().map(|&offset| i64::from(offset) as u64).collect::<Vec<u64>>().into()
            }
        };
        // scipy lets the arrays be longer than what the rows use of them.
        let len = offsets.last().map_or(0, |&end| usize::try_from(end).unwrap_or(usize::MAX));
        let columns: Buffer<u32> = match indices.cast::<PyArray1<i32>>() {
            // A negative column is one beyond i32 here, and refused as such unless there are so many.
            Ok(array) if i32::try_from(n_cols).is_ok() => lend(array, len.min(array.len()))?,
            _ => {
                let array = indices.cast::<PyArray1<i64>>().map_err(|_| index_type("indices"))?.readonly();
                let narrow = |&column: &i64| u32::try_from(column).unwrap_or(u32::MAX);
                array.as_array().iter().take(len).map(narrow).collect::<Vec<u32>>().into()
            }
        };
        fn build<T: Stored + numpy::Element>(
            py: Python<'_>,
            threads: usize,
            n_cols: usize,
            (offsets, columns): (Buffer<u64>, Buffer<u32>),
            values: &Bound<'_, PyArray1<T>>,
        ) -> PyResult<data::Matrix> {
            let values: Buffer<T> = lend(values, columns.len().min(values.len()))?;
            work(py, threads, move || data::Matrix::from_csr(n_cols, offsets, columns, values))
        }
        let inner = if let Ok(values) = data.cast::<PyArray1<f64>>() {
            build(py, threads, n_cols, (offsets, columns), values)?
        } else {
            let values = data.cast::<PyArray1<f32>>().map_err(|_| value_type())?;
            build(py, threads, n_cols, (offsets, columns), values)?
        };
        Ok(Self { inner })
    }

    /// A dense array in C order.
    #[staticmethod]
    #[pyo3(signature = (array, threads=0))]
    fn dense(py: Python<'_>, array: &Bound<'_, PyAny>, threads: usize) -> PyResult<Self> {
        fn build<T: Stored + numpy::Element>(
            py: Python<'_>,
            threads: usize,
            array: &Bound<'_, PyArray2<T>>,
        ) -> PyResult<data::Matrix> {
            let (n_rows, n_cols) = (array.shape()[0], array.shape()[1]);
            let values: Buffer<T> = lend(array, array.len())?;
            work(py, threads, move || data::Matrix::from_cells(n_rows, n_cols, values))
        }
        let inner = if let Ok(array) = array.cast::<PyArray2<f64>>() {
            build(py, threads, array)?
        } else {
            build(py, threads, array.cast::<PyArray2<f32>>().map_err(|_| value_type())?)?
        };
        Ok(Self { inner })
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.inner.n_rows(), self.inner.n_cols())
    }

    /// How values are stored: "ones", "f32", "f64", "dense f32" or "dense f64".
    #[getter]
    fn storage(&self) -> &'static str {
        self.inner.storage()
    }
}

fn index_type(name: &str) -> PyErr {
    PyTypeError::new_err(format!("{name} must be an array of int32 or int64"))
}

fn value_type() -> PyErr {
    PyTypeError::new_err("values must be an array of float32 or float64")
}
