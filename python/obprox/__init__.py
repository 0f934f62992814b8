"""Models that are mostly exact zeros: min f(x) + λ‖x‖₁.

Importing this package needs numpy and nothing else; scikit-learn, scipy, pandas, matplotlib and torch are used where
they are there.

>>> import obprox
>>> model = obprox.Lasso(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
>>> model.certificate_.status
'converged'
"""

from __future__ import annotations

import importlib

from ._core import __version__

#: Where each name lives. It is imported when it is asked for: whoever wants one door need not wait for the others.
_HOMES = {
    "LogisticRegression": "linear_model",
    "Lasso": "linear_model",
    "ElasticNet": "linear_model",
    "SparseClassifier": "linear_model",
    "SparseRegressor": "linear_model",
    "LogisticRegressionCV": "cross_validation",
    "LassoCV": "cross_validation",
    "ElasticNetCV": "cross_validation",
    "SparseClassifierCV": "cross_validation",
    "SparseRegressorCV": "cross_validation",
    "path": "_path",
    "Path": "_path",
    "Certificate": "_results",
    "ConvergenceWarning": "_compat",
    "load": "_model",
    "load_svmlight_file": "_files",
    "plot_path": "plot",
    "plot_trace": "plot",
    "plot_density": "plot",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'obprox' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOMES})
