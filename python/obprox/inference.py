"""Standard errors and intervals for the features that a sparse model has chosen.

A penalised model has no standard errors worth the name: its weights are shrunk on purpose. What can be had is a refit
without penalty on the features it chose (glmnet's *relaxed* fit). Its errors are honest only where the rows of the refit had
no part in the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Optional

import numpy as np

from ._inputs import vector
from ._linear import LOG_LINK, Linear
from ._parameters import whole
from ._results import table
from .exceptions import ParameterError

NAIVE = (
    "naive: the same rows chose the features and give the errors, so the intervals are too narrow and the p-values too "
    "small; split=True is honest"
)
HONEST = "honest: half of the rows chose the features, the other half alone gives weights and errors"


@dataclass(frozen=True)
class Refit:
    """A refit without penalty on the features of a sparse model.

    Attributes
    ----------
    features : ndarray of shape (n_chosen,)
        The features that were chosen; -1, first, stands for the intercept.
    names : list of str
        What they are called.
    coef, standard_error, low, high, p_value : ndarray of shape (n_chosen,)
        Weights without shrinkage, their standard errors, the ends of their confidence intervals, and the p-values of
        weights that are zero, by the normal distribution.
    scale : float
        The dispersion: of 'squared' the variance of the residuals, of 'gamma' and 'tweedie' Pearson's; 1 for the others.
    n_rows : int
        The rows of the refit.
    note : str
        Whether the errors are honest, and why.
    model : estimator
        The refit as an estimator of all features, for predictions.
    """

    features: np.ndarray
    names: list[str]
    coef: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_value: np.ndarray
    scale: float
    n_rows: int
    note: str
    model: Any = field(repr=False)

    @property
    def table(self) -> Any:
        """A row for each weight: a DataFrame where pandas is there, else a dict of arrays."""
        columns = ("coef", "standard_error", "low", "high", "p_value")
        return table({"feature": np.array(self.names, dtype=object), **{name: getattr(self, name) for name in columns}})

    def _repr_html_(self) -> str:
        shown = self.table
        body = shown._repr_html_() if hasattr(shown, "_repr_html_") else f"<pre>{shown}</pre>"
        return f"{body}<p>{self.note}</p>"


def refit(
    model: Any,
    X: Any,
    y: Any,
    *,
    offset: Any = None,
    split: bool = False,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Refit:
    """Refit the chosen features of a sparse model without penalty, with standard errors and intervals.

    Parameters
    ----------
    model : estimator
        One of this package with one output: of numbers, or of two classes by the logistic loss. Without ``split`` it is
        fitted already; with it a copy of it is fitted to half of the rows.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        The targets.
    offset : array-like of shape (n_samples,), default=None
        What is added to the margin of each row.
    split : bool, default=False
        Choose the features on half of the rows, drawn by ``random_state``, and refit on the other half: the intervals
        then mean what they say, for the weights of a model with those features.
    confidence : float, default=0.95
        The share of intervals that hold the weight.
    random_state : int, default=0
        The seed of the halves.

    Returns
    -------
    refit : Refit
        Weights, errors, and what they are worth.

    Examples
    --------
    >>> import numpy as np
    >>> import obprox
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 30))
    >>> y = X[:, 2] - X[:, 7] + rng.normal(size=400)
    >>> found = obprox.refit(obprox.Lasso(alpha=0.3), X, y, split=True)
    >>> found.names, found.n_rows, found.note.split(":")[0]
    (['intercept', 'x2', 'x7'], 200, 'honest')
    >>> bool(((found.low < [0, 1, -1]) & (found.high > [0, 1, -1])).all())
    True
    """
    from sklearn.base import clone

    if not isinstance(model, Linear):
        raise ParameterError(f"model: {type(model).__name__} is no estimator of obprox")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence: {confidence} must lie between 0 and 1")
    offset = vector(offset, len(y), "offset")
    part = lambda values, rows: None if values is None else values[rows]
    rows = np.arange(len(y))
    if split:
        order = np.random.default_rng(whole("random_state", random_state, 0)).permutation(len(y))
        chosen, rows = np.sort(order[: len(y) // 2]), np.sort(order[len(y) // 2 :])
        model = clone(model).fit(_rows(X, chosen), _rows(y, chosen), offset=part(offset, chosen))
    model._check_fitted()
    coef = np.atleast_2d(model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_)
    loss = model._loss_name()
    if len(coef) > 1 or loss in ("huber", "squared-hinge"):
        raise ParameterError(f"model: standard errors are for one output and a likelihood; this is {loss} with {len(coef)}")
    features = np.flatnonzero(coef[0])
    return _refitted(model, _rows(X, rows), _rows(y, rows), part(offset, rows), features, confidence, split)


def _rows(values, rows):
    from sklearn.utils import _safe_indexing

    return _safe_indexing(values, rows)


def _refitted(model, X, y, offset, features, confidence, split):
    """The refit of some features, and what its Hessian says."""
    from ._tables import checked

    names = getattr(model, "feature_names_in_", None)
    design = checked(model, X, reset=False)
    chosen = design[:, features]
    chosen = np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen, dtype=float)
    relaxed = _unpenalised(model)
    columns = chosen if len(features) else np.zeros((len(chosen), 1))
    relaxed.fit(columns, y, offset=offset)
    margins = np.ravel(relaxed._margins(columns, offset))
    has_classes = hasattr(relaxed, "classes_")
    truth = np.asarray(y == relaxed.classes_[1] if has_classes else y, dtype=float)
    # Classes that are told apart have a loss that falls for ever as the weights grow.
    apart = has_classes and bool(((margins > 0) == (truth > 0)).all())
    if apart or relaxed.certificate_.status not in ("converged", "stalled"):
        raise ValueError(
            "the refit without penalty has no optimum, as where the chosen features tell the classes apart: choose fewer of "
            "them, by a stronger penalty"
        )
    curvature, pearson = _likelihood(model._loss_name(), margins, truth, model._loss_parameter())
    full = np.column_stack([np.ones(len(chosen)), chosen]) if model.fit_intercept else chosen
    free = len(truth) - full.shape[1]
    if free <= 0:
        raise ValueError(f"{full.shape[1]} weights of {len(truth)} rows leave nothing to estimate their errors from")
    scale = pearson.sum() / free if model._loss_name() in ("squared", "gamma", "tweedie") else 1.0
    hessian = full.T @ (full * curvature[:, None])
    if np.linalg.cond(hessian) > 1e14:
        raise ValueError("the chosen features are collinear on these rows: their weights have no standard errors")
    error = np.sqrt(scale * np.diag(np.linalg.inv(hessian)))
    weights = np.ravel(relaxed.coef_)[: len(features)]
    if model.fit_intercept:
        weights = np.r_[np.ravel(relaxed.intercept_), weights]
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * error
    tails = np.array([2 * NormalDist().cdf(-abs(z)) for z in weights / error])
    called = [str(names[at]) if names is not None else f"x{at}" for at in features]
    return Refit(
        features=np.r_[-1, features] if model.fit_intercept else features,
        names=["intercept", *called] if model.fit_intercept else called,
        coef=weights,
        standard_error=error,
        low=weights - reach,
        high=weights + reach,
        p_value=tails,
        scale=float(scale),
        n_rows=len(truth),
        note=HONEST if split else NAIVE,
        model=_widened(model, relaxed, features),
    )


def _unpenalised(model):
    """An estimator of the same loss without penalty."""
    from .linear_model import SparseClassifier, SparseRegressor

    common = {"alpha": 0.0, "fit_intercept": model.fit_intercept, "tol": 1e-11, "n_jobs": model.n_jobs}
    if hasattr(model, "classes_"):
        return SparseClassifier("logistic", **common)
    named = {name: getattr(model, name) for name in ("power", "theta") if hasattr(model, name)}
    return SparseRegressor(model._loss_name(), **named, **common)


def _widened(model, relaxed, features):
    """The refit as an estimator of all features."""
    from copy import deepcopy

    wide = deepcopy(model)
    coef = np.zeros((1, model.n_features_in_))
    coef[0, features] = np.ravel(relaxed.coef_)[: len(features)]
    wide.certificate_, wide._trace = relaxed.certificate_, relaxed._trace
    wide._has_offset = relaxed._has_offset
    wide._keep_weights(coef, np.atleast_1d(np.asarray(relaxed.intercept_, dtype=float)))
    return wide


def _likelihood(loss, margins, truth, parameter: Optional[float]):
    """The expected curvature of each row's loss, and its squared residual over the variance of a unit dispersion."""
    mean = np.exp(margins) if loss in LOG_LINK else margins
    if loss == "logistic":
        mean = 1 / (1 + np.exp(-margins))
    variance = {
        "squared": lambda: np.ones_like(mean),
        "logistic": lambda: mean * (1 - mean),
        "poisson": lambda: mean,
        "gamma": lambda: mean**2,
        "tweedie": lambda: mean**parameter,
        "negative-binomial": lambda: mean + mean**2 / parameter,
    }[loss]()
    # With links whose derivative is V (logistic) or the mean (logarithm), Fisher's information of a row is μ′²/V.
    slope = {"squared": 1.0, "logistic": variance}.get(loss, mean)
    return slope**2 / variance, (truth - mean) ** 2 / variance
