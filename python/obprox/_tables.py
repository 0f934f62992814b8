"""X and y as they are given: arrays, data frames, and tables with Arrow's C interface."""

from __future__ import annotations

import warnings

import numpy as np

from . import _core
from ._compat import validate_data
from ._inputs import DTYPES
from ._parameters import threads


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
        return validate_data(estimator, X, *given, reset=reset, **options)
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
        return validate_data(estimator, X, *given, reset=False, **options)


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
    has_names = columns is None or all(isinstance(name, str) for name in columns)
    return array, names if has_names else None


def _check_names(estimator, names):
    """Refuses a table whose columns are not those of the fit, as scikit-learn does."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None or names is None or list(known) == names:
        return
    new, gone = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    what = [f"Feature names unseen at fit time: {', '.join(new[:5])}"] if new else []
    what += [f"Feature names seen at fit time, yet now missing: {', '.join(gone[:5])}"] if gone else []
    what = what or ["Feature names must be in the same order as they were in fit."]
    raise ValueError("\n".join(["The feature names should match those that were passed during fit.", *what]))
