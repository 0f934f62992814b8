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
from typing import TYPE_CHECKING

from . import exceptions
from ._core import __version__

if TYPE_CHECKING:
    from ._compat import ConvergenceWarning
    from ._files import load_svmlight_file
    from ._model import load
    from ._path import Path, path
    from ._results import Certificate
    from .inference import Refit, refit
    from .criteria import LassoIC
    from .cross_validation import ElasticNetCV, LassoCV, LogisticRegressionCV, SparseClassifierCV, SparseRegressorCV
    from .linear_model import (
        ElasticNet,
        Lasso,
        LogisticRegression,
        MultiTaskElasticNet,
        MultiTaskLasso,
        SparseClassifier,
        SparseRegressor,
    )
    from .survival import CoxPH, CoxPHCV
    from .plot import plot_density, plot_path, plot_trace

#: Where each name lives. It is imported when it is asked for: whoever wants one door need not wait for the others.
_HOMES = {
    "LogisticRegression": "linear_model",
    "Lasso": "linear_model",
    "ElasticNet": "linear_model",
    "MultiTaskLasso": "linear_model",
    "MultiTaskElasticNet": "linear_model",
    "SparseClassifier": "linear_model",
    "SparseRegressor": "linear_model",
    "LogisticRegressionCV": "cross_validation",
    "LassoCV": "cross_validation",
    "ElasticNetCV": "cross_validation",
    "SparseClassifierCV": "cross_validation",
    "SparseRegressorCV": "cross_validation",
    "LassoIC": "criteria",
    "CoxPH": "survival",
    "CoxPHCV": "survival",
    "path": "_path",
    "Path": "_path",
    "Certificate": "_results",
    "ConvergenceWarning": "_compat",
    "refit": "inference",
    "Refit": "inference",
    "load": "_model",
    "load_svmlight_file": "_files",
    "plot_path": "plot",
    "plot_trace": "plot",
    "plot_density": "plot",
}

__all__ = [
    "Certificate",
    "ConvergenceWarning",
    "CoxPH",
    "CoxPHCV",
    "ElasticNet",
    "ElasticNetCV",
    "Lasso",
    "LassoCV",
    "LassoIC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MultiTaskElasticNet",
    "MultiTaskLasso",
    "Path",
    "Refit",
    "SparseClassifier",
    "SparseClassifierCV",
    "SparseRegressor",
    "SparseRegressorCV",
    "__version__",
    "exceptions",
    "load",
    "load_svmlight_file",
    "path",
    "plot_density",
    "plot_path",
    "plot_trace",
    "refit",
]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'obprox' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOMES})
