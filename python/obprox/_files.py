"""Data files."""

from __future__ import annotations

import glob
import os
from typing import Any

import numpy as np

from . import _core
from ._compat import scipy_csr_matrix
from ._parameters import threads
from .exceptions import FileError, ParseError


def load_svmlight_file(
    f: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    dtype: Any = np.float64,
    cache: bool | str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
) -> tuple[Any, np.ndarray]:
    """Read a data file into a scipy CSR matrix and its targets.

    Parameters
    ----------
    f : str or path-like
        A file in LIBSVM (svmlight) format, whose columns are counted from 1; plain, or compressed by gzip, bzip2, xz or
        zstd, told by content. CSV is read too, its label in the first column, and so is a cache.
    n_features : int, default=None
        At least that many columns, for data whose last columns are empty.
    dtype : numpy dtype or None, default=np.float64
        The type of the values. None takes the narrowest that holds all of them exactly.
    cache : bool or path-like, default=None
        Keep the data in a binary file, beside ``f`` with ``.obx`` added where True. A cache that is not older than
        ``f`` is mapped into memory instead of reading ``f``: it opens at once, and its pages are shared by processes.
        One that is damaged, or of another version of obprox, is written again.
    n_jobs : int, default=None
        Threads.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        The rows. Of a cache the columns are read-only windows on the file, and so are the values where ``dtype`` is
        the type they are stored in.
    y : ndarray of shape (n_samples,)
        The targets.

    Examples
    --------
    >>> import os, tempfile
    >>> from obprox import load_svmlight_file
    >>> path = os.path.join(tempfile.mkdtemp(), "tiny.svm")
    >>> with open(path, "w") as file:
    ...     _ = file.write("+1 1:0.5 3:2\\n-1 2:1\\n")
    >>> X, y = load_svmlight_file(path)
    >>> X.toarray(), y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    csr_matrix = scipy_csr_matrix("load_svmlight_file returns a scipy matrix")
    crew = threads(n_jobs)
    path = os.fspath(f)
    if cache:
        kept = f"{path}.obx" if cache is True else os.fspath(cache)
        if not os.path.exists(kept) or os.path.getmtime(kept) < os.path.getmtime(path):
            _core.write_cache_file(path, kept, threads=crew)
        try:
            parts = _core.read_file(kept, n_cols=n_features, threads=crew)
        except (FileError, ParseError):
            # It is damaged, of another version, or no cache at all: its source is at hand.
            _core.write_cache_file(path, kept, threads=crew)
            parts = _core.read_file(kept, n_cols=n_features, threads=crew)
    else:
        parts = _core.read_file(path, n_cols=n_features, threads=crew)
    if "cells" in parts:
        cells = parts["cells"]
        return csr_matrix(cells if dtype is None else cells.astype(dtype, copy=False)), parts["targets"]
    # scipy's indices are signed; the library's columns fit, and are looked at as such.
    indices = parts["indices"]
    indices = indices.view(np.int32) if parts["shape"][1] <= np.iinfo(np.int32).max else indices.astype(np.int64)
    data = parts["data"]
    if data is None:
        data = np.ones(len(indices), dtype=np.float32 if dtype is None else dtype)
    elif dtype is not None:
        data = data.astype(dtype, copy=False)
    X = csr_matrix((data, indices, parts["indptr"].view(np.int64)), shape=parts["shape"], copy=False)
    X.has_sorted_indices = True
    return X, parts["targets"]


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def size(memory: Any) -> int:
    """Bytes: a number of them, or a string such as ``"500M"`` or ``"2G"``."""
    text = str(memory).strip().upper().removesuffix("B")
    number, unit = (text[:-1], text[-1:]) if text[-1:] in ("K", "M", "G", "T") else (text, "")
    try:
        found = float(number) * _UNITS[unit]
    except ValueError:
        found = float("nan")
    if not 0 < found < float("inf"):
        raise ValueError(f"memory={memory!r} must be a number of bytes, or a size such as '500M' or '2G'")
    return int(found)


def sources(paths: Any) -> list[str]:
    """The files that are meant, those of patterns and directories in the order of their names."""
    found: list[str] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        path = os.fspath(path)
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if not name.startswith("."))
            found += [file for file in (os.path.join(path, name) for name in names) if os.path.isfile(file)]
        elif not os.path.exists(path) and any(mark in path for mark in "*?["):
            found += sorted(file for file in glob.glob(path) if os.path.isfile(file))
        else:
            found.append(path)
    if not found:
        raise FileNotFoundError(f"there is no such file: {paths!r}")
    return found


def shards(paths: Any, memory: Any, cache: Any, **options: Any) -> _core.Shards:
    """The rows of files, parsed into shards in a cache directory where they are not there yet."""
    files = sources(paths)
    if cache is None:
        cache = os.path.join(os.path.dirname(files[0]), ".obprox")
    return _core.Shards(files, os.fspath(cache), size(memory), **options)
