"""scikit-learn where it is there, and small stand-ins where it is not.

With scikit-learn the estimators are scikit-learn's in every respect. Without it they still fit and predict; what is
missed is what scikit-learn itself adds, such as cloning, feature names and conversions of odd inputs.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings

import numpy as np

__all__ = [
    "HAS_SKLEARN",
    "BaseEstimator",
    "ClassifierMixin",
    "ConvergenceWarning",
    "NotFittedError",
    "RegressorMixin",
    "available_if",
    "check_classification_targets",
    "scipy_csr_matrix",
    "validate_data",
]


def scipy_csr_matrix(why):
    """scipy's class, for those who cannot do without; ``why`` is told where it is missing."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError as error:
        raise ImportError(f"{why}: pip install scipy") from error
    return csr_matrix


try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning, NotFittedError
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data

    HAS_SKLEARN = True
except ImportError:
    HAS_SKLEARN = False
    if "sklearn" in sys.modules:
        found = getattr(sys.modules["sklearn"], "__version__", "this one")
        warnings.warn(
            f"obprox needs scikit-learn 1.6 or later and does without {found}: no cloning, pipelines or grid searches",
            stacklevel=2,
        )

    def available_if(check):  # type: ignore[no-redef]
        """A method that says why it cannot be had when it is called."""

        def decorate(method):
            @functools.wraps(method)
            def checked(self, *args, **given):
                check(self)
                return method(self, *args, **given)

            return checked

        return decorate

    class ConvergenceWarning(UserWarning):  # type: ignore[no-redef]
        """A run ended before its tolerance was reached."""

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """An estimator was used before it was fitted."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters by name, as scikit-learn's base class has them."""

        def get_params(self, deep=True):
            names = [name for name in inspect.signature(type(self).__init__).parameters if name != "self"]
            return {name: getattr(self, name) for name in names}

        def set_params(self, **params):
            known = self.get_params()
            for name, value in params.items():
                if name not in known:
                    raise ValueError(f"Invalid parameter {name!r} for estimator {type(self).__name__}")
                setattr(self, name, value)
            return self

        def __repr__(self):
            defaults = inspect.signature(type(self).__init__).parameters
            given = [f"{k}={v!r}" for k, v in self.get_params().items() if not _same(v, defaults[k].default)]
            return f"{type(self).__name__}({', '.join(given)})"

    class ClassifierMixin:  # type: ignore[no-redef]
        def score(self, X, y, sample_weight=None):
            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    class RegressorMixin:  # type: ignore[no-redef]
        def score(self, X, y, sample_weight=None):
            y = np.asarray(y, dtype=float)
            residual = np.average((y - self.predict(X)) ** 2, weights=sample_weight)
            return float(1 - residual / np.average((y - np.average(y, weights=sample_weight)) ** 2, weights=sample_weight))

    def check_classification_targets(y):
        y = np.asarray(y)
        if y.dtype.kind == "f" and np.any(y != np.floor(y)):
            raise ValueError("Unknown label type: continuous. A classifier needs labels; use a regressor for numbers.")

    def validate_data(
        estimator, X, y=None, *, dtype, reset=True, multi_output=False, y_numeric=False, ensure_all_finite=True, **_
    ):
        X = _rows(X, dtype)
        if ensure_all_finite and not np.isfinite(X.data if hasattr(X, "tocsr") else X).all():
            raise ValueError("Input X contains NaN or infinity.")
        if reset:
            estimator.n_features_in_ = X.shape[1]
            estimator.__dict__.pop("feature_names_in_", None)
        elif X.shape[1] != estimator.n_features_in_:
            name, known = type(estimator).__name__, estimator.n_features_in_
            raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {known} features as input.")
        if y is None:
            return X
        y = np.asarray(y, dtype=np.float64 if y_numeric else None)
        if y.ndim == 2 and (y.shape[1] == 1 or not multi_output):
            y = y.ravel()
        if len(y) != X.shape[0]:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[X.shape[0], len(y)]}")
        return X, y

    def _rows(X, dtypes):
        if hasattr(X, "tocsr"):
            X = X.tocsr()
            return X if X.dtype in dtypes else X.astype(dtypes[0])
        X = np.asarray(X)
        X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in dtypes else dtypes[0])
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data.")
        if X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError(f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s): at least 1 is needed.")
        return X

    def _same(value, default):
        return value is default or (type(value) is type(default) and np.array_equal(value, default))
