"""``model.json``: the file that the command and this package share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._compat import scipy_csr_matrix
from ._linear import LOSS_PARAMETERS
from ._parameters import penalty_name
from ._results import Certificate

if TYPE_CHECKING:
    from .linear_model import SparseClassifier, SparseRegressor
    from .survival import CoxPH


def save(estimator, path):
    """Writes a fitted estimator."""
    loss = estimator._loss_name()
    coef = estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else np.asarray(estimator.coef_)
    coef, intercept = np.atleast_2d(coef).astype(float), np.atleast_1d(np.asarray(estimator.intercept_, dtype=float))
    classes = getattr(estimator, "classes_", None)
    labels, names = _labels(classes)
    if classes is None and len(coef) > 1:
        raise ValueError("model.json holds one target: fit each column of y by itself to save it")
    if classes is not None and len(classes) > 2:
        if loss != "logistic":
            raise ValueError(f"model.json has no form for {len(classes)} classes with the {loss} loss; pickle it instead")
        loss = "softmax"
    features = getattr(estimator, "feature_names_in_", None)
    certificate = estimator.certificate_
    model = _core.Model(
        loss,
        coef,
        intercept,
        parameter=estimator._loss_parameter(),
        labels=labels,
        label_names=names,
        feature_names=None if features is None else [str(name) for name in features],
        l1=certificate.lambda_,
        l2=certificate.l2,
        penalty=penalty_name(estimator),
        offset=estimator._has_offset,
        certificate=certificate,
    )
    model.save(path)


def _labels(classes):
    """Labels as the file holds them: numbers, and names where they are none."""
    if classes is None:
        return [], []
    if classes.dtype.kind in "iufb":
        return [float(label) for label in classes], []
    return [float(at) for at in range(len(classes))], [str(label) for label in classes]


def load(path: str | os.PathLike[str]) -> SparseClassifier | SparseRegressor | CoxPH:
    """Read a model that this package or the command saved.

    Parameters
    ----------
    path : str or path-like
        A ``model.json``.

    Returns
    -------
    model : SparseClassifier, SparseRegressor or CoxPH
        A fitted estimator with the model's loss, penalty and certificate. Its ``coef_`` is a numpy array, or a scipy CSR
        matrix where the array would take more than a gigabyte.

    Examples
    --------
    >>> import os, tempfile
    >>> import obprox
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> obprox.Lasso(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).save(path)
    >>> obprox.load(path).predict([[4.0]]).round(6)
    array([3.55])
    """
    from .linear_model import SparseClassifier, SparseRegressor
    from .survival import CoxPH

    model = _core.Model.load(path)
    estimator: Any
    l1, l2 = model.penalties
    penalty: dict[str, Any] = {"alpha": l1 + l2, "l1_ratio": l1 / (l1 + l2) if l1 + l2 > 0 else 1.0}
    if model.is_classifier:
        known = "logistic" if model.loss == "softmax" else model.loss
        estimator = SparseClassifier(known, **penalty)
        estimator.classes_ = _classes(model)
    elif model.loss in ("cox", "cox-breslow"):
        estimator = CoxPH(ties="efron" if model.loss == "cox" else "breslow", **penalty)
        estimator._many = False
    else:
        estimator = SparseRegressor(model.loss, **penalty)
        if model.parameter is not None:
            estimator.set_params(**{LOSS_PARAMETERS[model.loss]: model.parameter})
        estimator._many = False
    estimator.n_features_in_ = model.n_features
    figures = model.certificate
    if figures is not None:
        estimator.certificate_ = Certificate(status="loaded", lambda_=l1, l2=l2, **figures)
    estimator._trace = {}
    estimator._has_offset = model.offset
    estimator._keep_weights(_weights(model), model.intercept)
    return estimator


#: A numpy array of more bytes is not made without being asked for.
MOST_BYTES = 1 << 30


def _weights(model):
    """x as an array, or by its nonzeros where the array would be mostly zeros and gigabytes of them."""
    nonzeros = model.nonzeros
    if 8 * len(nonzeros) * model.n_features <= MOST_BYTES:
        return model.coef
    try:
        csr_matrix = scipy_csr_matrix("a model of that many features is kept by its nonzeros")
    except ImportError:
        return model.coef
    features = np.concatenate([features for features, _ in nonzeros]).astype(np.int64)
    starts = np.cumsum([0] + [len(features) for features, _ in nonzeros])
    values = np.concatenate([values for _, values in nonzeros])
    return csr_matrix((values, features, starts), shape=(len(nonzeros), model.n_features))


def _classes(model):
    if model.label_names:
        return np.array(model.label_names)
    labels = np.array(model.labels)
    whole = labels.astype(np.int64)
    return whole if np.array_equal(whole, labels) else labels
