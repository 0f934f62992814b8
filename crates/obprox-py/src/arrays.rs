//! numpy arrays in and out without a copy, and Arrow's streams: the one file that is unsafe.

use std::sync::Arc;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use bytemuck::Pod;
use numpy::ndarray::{ArrayView1, Dimension};
use numpy::{Element, PyArray, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use obprox::data::Buffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The first `len` elements of an array as a buffer of the library, which keeps the array alive. `U` is `T`, or the
/// unsigned twin of it.
pub fn lend<T: Element, U: Pod, D: Dimension>(array: &Bound<'_, PyArray<T, D>>, len: usize) -> PyResult<Buffer<U>> {
    const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>()) };
    let data = array.data().cast_const().cast::<U>();
    if !(array.is_c_contiguous() && data.is_aligned() && len <= array.len()) {
        return Err(PyValueError::new_err("an array must be contiguous, aligned and long enough to be lent"));
    }
    let owner = Arc::new(array.clone().into_any().unbind());
    // SAFETY: the array has at least `len` elements one after the other from `data` on, aligned as checked; `Pod` and the
    // same size and alignment make any of its bits a `U`. `owner` is a reference to the array object, which owns the
    // memory or refers to who does: numpy never moves the memory of an array that others refer to. That nobody writes to
    // it while a solver reads it, numpy cannot promise: as with every library that gives the lock back while it
    // computes, a Python thread that changes X while it is being fitted gets a result for no particular X.
    #[allow(unsafe_code)]
    Ok(unsafe { Buffer::lent(data, len, owner) })
}

/// The batches of a table that was handed over by Arrow's C interface.
pub fn stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<RecordBatchStreamReader> {
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds such a stream, by the protocol of `__arrow_c_stream__`. It is moved out, so
    // that the capsule has nothing left to release.
    #[allow(unsafe_code)]
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) };
    reader.map_err(|error| PyValueError::new_err(format!("X: not a table by Arrow's C interface: {error}")))
}

/// Keeps a buffer for the arrays that show it.
#[pyclass(frozen)]
struct Keeper {
    _buffer: Box<dyn std::any::Any + Send + Sync>,
}

/// A buffer of the library as a read-only array, which keeps the buffer alive.
pub fn show<T: Element + Pod + Send + Sync>(py: Python<'_>, buffer: Buffer<T>) -> PyResult<Bound<'_, PyArray1<T>>> {
    let kept = buffer.clone();
    let keeper = Bound::new(py, Keeper { _buffer: Box::new(buffer) })?;
    // SAFETY: `kept` shares its memory with the buffer that the keeper holds, and buffers never move theirs; the keeper
    // becomes the base object of the array.
    #[allow(unsafe_code)]
    let array = unsafe { PyArray1::borrow_from_array(&ArrayView1::from(&kept[..]), keeper.into_any()) };
    let array = array.readwrite().make_nonwriteable();
    Ok((*array).clone())
}
