"""``model.json``: the file that the command and this package share."""

from __future__ import annotations

import numpy as np

from . import _core
from ._results import Certificate


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


def load(path):
    """Read a model that this package or the command saved.

    Parameters
    ----------
    path : str or path-like
        A ``model.json``.

    Returns
    -------
    model : SparseClassifier or SparseRegressor
        A fitted estimator with the model's loss, penalty and certificate.

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

    model = _core.Model.load(path)
    l1, l2 = model.penalties
    penalty = {"alpha": l1 + l2, "l1_ratio": l1 / (l1 + l2) if l1 + l2 > 0 else 1.0}
    if model.is_classifier:
        known = "logistic" if model.loss == "softmax" else model.loss
        estimator = SparseClassifier(known, **penalty)
        estimator.classes_ = _classes(model)
    else:
        delta = {} if model.parameter is None else {"delta": model.parameter}
        estimator = SparseRegressor(model.loss, **penalty, **delta)
        estimator._many = False
    estimator.n_features_in_ = model.coef.shape[1]
    figures = model.certificate
    if figures is not None:
        estimator.certificate_ = Certificate(status="loaded", lambda_=l1, l2=l2, **figures)
    estimator._trace = {}
    estimator._keep_weights(model.coef, model.intercept)
    return estimator


def _classes(model):
    if model.label_names:
        return np.array(model.label_names)
    labels = np.array(model.labels)
    whole = labels.astype(np.int64)
    return whole if np.array_equal(whole, labels) else labels
