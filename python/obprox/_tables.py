"""X and y as they are given: arrays, data frames, and tables with Arrow's C interface."""

from __future__ import annotations

import warnings

import numpy as np

from . import _core
from ._compat import validate_data
from ._inputs import DTYPES, rows
from ._parameters import threads
from .exceptions import DataError


def checked(estimator, X, y=None, *, reset=True, **options):
    """X, and y where there is one, checked and remembered for later calls.

    While fitting, whether X is finite is left to the core, which looks anyway.
    """
    if reset and _is_ready(X, y):
        # As validate_data leaves it, whose questions take longer than a small fit.
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
        return X, y
    options = {"accept_sparse": "csr", "dtype": DTYPES, **options}
    given = (y,) if reset or y is not None else ()
    if reset:
        options.update(order="C", ensure_all_finite=False)
    found = table(X, threads(estimator.n_jobs))
    if found is None:
        _refuse_words(X)
        names = _names_of_frame(X)
        if reset or names is None or given:
            return validate_data(estimator, X, *given, reset=reset, **options)
        return _finite(validate_data(estimator, X, reset=False, **options, ensure_all_finite=False), names)
    X, names = found
    if reset:
        result = validate_data(estimator, X, *given, reset=True, **options)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return result
    _check_names(estimator, names)
    with warnings.catch_warnings():
        # Its names were looked at here.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        X = validate_data(estimator, X, *given, reset=False, **options, ensure_all_finite=False)
    return X if given else _finite(X, names)


def names_of(estimator):
    """The names of the columns an estimator was given, or None."""
    return getattr(estimator, "feature_names_in_", None)


def _finite(X, names):
    """X, if all of it is finite; else says which column is not."""
    if not np.isfinite(X.data if hasattr(X, "tocsr") else X).all():
        rows(X, 1, names)
    return X


def _refuse_words(X):
    """Says which column of a frame of numpy's types holds no numbers; a conversion would name none."""
    if type(X).__module__.split(".")[0] != "pandas" or not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return
    for at, (name, of) in enumerate(zip(X.columns, X.dtypes)):
        kind = getattr(of, "kind", "")
        if kind in "mM":
            raise DataError(f'column "{name}" is of type {of}: give numbers, as the days since a date')
        if kind == "O":
            for row, value in enumerate(X.iloc[:, at]):
                if not _is_number(value):
                    advice = "words become numbers by scikit-learn's OneHotEncoder"
                    raise DataError(f'column "{name}": {value!r} in row {row} is no number; {advice}')


def _is_number(value):
    try:
        float(value)
    except TypeError:
        # What is missing is said elsewhere.
        return value is None or str(value) == "<NA>"
    except ValueError:
        return False
    return True


def _names_of_frame(X):
    """The names of the columns of a frame, where all are words."""
    columns = getattr(X, "columns", None)
    return list(columns) if columns is not None and all(isinstance(name, str) for name in columns) else None


def _is_ready(X, y):
    """Whether X and y are arrays that nothing would be changed of, nor said about."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in DTYPES
        and X.flags.carray
        and 0 not in X.shape
        and type(y) is np.ndarray
        and y.dtype == np.float64
        and y.shape == X.shape[:1]
        and bool(np.isfinite(y).all())
    )


def table(X, threads):
    """The array of a data frame or a table with Arrow's C interface, and the names of its columns; None of anything else.

    polars, pyarrow, duckdb and others have the interface, and so has pandas. Frames of numpy's types are left to numpy,
    which may show them without a copy; the nullable types and Arrow's are read here, with NaN for what is missing.
    """
    if not hasattr(X, "__arrow_c_stream__"):
        return None
    columns = getattr(X, "columns", None) if type(X).__module__.split(".")[0] == "pandas" else None
    if columns is not None:
        types = list(X.dtypes)
        if all(isinstance(of, np.dtype) for of in types) or any(str(of).startswith("Sparse") for of in types):
            return None
        # Arrow would make a column of an index.
        X = X.reset_index(drop=True)
    try:
        capsule = X.__arrow_c_stream__()
    except ImportError:
        return None
    array, names = _core.columns(capsule, threads)
    return array, names if columns is None or _names_of_frame(X) is not None else None


def _check_names(estimator, names):
    """Refuses a table whose columns are not those of the fit, as scikit-learn does."""
    known = names_of(estimator)
    if known is None or names is None or list(known) == names:
        return
    new, gone = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    what = [f"Feature names unseen at fit time: {', '.join(new[:5])}"] if new else []
    what += [f"Feature names seen at fit time, yet now missing: {', '.join(gone[:5])}"] if gone else []
    what = what or ["Feature names must be in the same order as they were in fit."]
    raise ValueError("\n".join(["The feature names should match those that were passed during fit.", *what]))
