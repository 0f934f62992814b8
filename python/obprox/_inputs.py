"""Arrays of every kind as the core takes them."""

from __future__ import annotations

import numpy as np

from . import _core
from .exceptions import NotFiniteError

#: What the core computes with; everything else becomes the first.
DTYPES = [np.float64, np.float32]


def rows(X, threads, names=None):
    """The core's matrix of a checked X.

    Without a copy: C-ordered float64 and float32 arrays, and CSR matrices of such values with sorted int32 columns.
    Copied on the way: other types and orders, CSC, int64 columns, rows whose columns are not sorted, and dense arrays
    that take fewer bytes when stored sparse. An error about a value has the name of its column, where there are names.
    """
    try:
        return _rows(X, threads)
    except NotFiniteError as error:
        raise error.of(names) from None


def _rows(X, threads):
    if not hasattr(X, "tocsr"):
        return _core.Matrix.dense(np.require(X, requirements="CA"), threads)
    same = [np.require(part, requirements="CA") for part in (X.indptr, X.indices, X.data)]
    if same[0].dtype != same[1].dtype:
        same[:2] = [part.astype(np.int64) for part in same[:2]]
    return _core.Matrix.csr(X.shape[1], *same, threads)


def vector(values, length, name):
    """A vector of numbers, one for each of ``length`` things, or None."""
    if values is None:
        return None
    values = np.asarray(values, dtype=np.float64, order="C")
    if values.ndim == 0:
        return np.full(length, values)
    if values.ndim != 1:
        raise ValueError(f"{name}: Expected 1D array, got {values.ndim}D array instead")
    if len(values) != length:
        raise ValueError(f"{name}.shape == {values.shape}, expected ({length},)!")
    return values
