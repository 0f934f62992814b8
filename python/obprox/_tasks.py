"""What estimators learn: classes, numbers, several numbers together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._compat import ClassifierMixin, RegressorMixin, check_classification_targets
from ._inputs import rows, vector
from ._linear import LOG_LINK, Linear
from ._parameters import threads, weights_of_classes
from ._partial import learn, with_steps
from ._tables import checked, names_of

if TYPE_CHECKING:
    from typing_extensions import Self


class Classifier(ClassifierMixin, Linear):
    """A linear model of classes."""

    classes_: np.ndarray

    def _problems(self, X, y, sample_weight):
        X, y = checked(self, X, y)
        return self._stated(rows(X, threads(self.n_jobs), names_of(self)), y, sample_weight)

    def _stated(self, matrix, y, sample_weight, known=False):
        if known:
            numbers = np.searchsorted(self.classes_, y)
        else:
            self.classes_, numbers = classes_of(y)
        pairs, balanced = weights_of_classes(self.class_weight, self.classes_)
        loss, count = self._loss_name(), len(self.classes_)
        # A part of the rows may lack some classes.
        labels = lambda count: {"labels": [float(at) for at in range(count)]} if known else {}
        if self._offset is not None and count > 2:
            raise ValueError("offset: several classes have a margin each, and an offset is for one")
        if count == 2 or loss == "logistic":
            name = "softmax" if count > 2 else loss
            given = {"class_weights": pairs, "balanced": balanced, **labels(count)}
            return [self._state(matrix, numbers, name, sample_weight, **given)]
        # One class against the others, each by itself; the weight of a class counts where it is the one.
        own = dict(pairs or [])
        if balanced:
            weights = vector(sample_weight, len(numbers), "sample_weight")
            sums = np.bincount(numbers, weights=weights, minlength=count)
            own = {at: sums.sum() / (count * total) for at, total in enumerate(sums)}
        one = lambda at: [(1.0, own[at])] if at in own else None
        return [
            self._state(matrix, numbers == at, loss, sample_weight, class_weights=one(at), **labels(2))
            for at in range(count)
        ]

    @with_steps
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Take one epoch of steps on some rows, from where the rows before them led to.

        Each call is an epoch: step sizes, and the kinds of steps of OBProx-SG, go on from one to the next. The penalty is
        weighed against the rows of the call, and ``certificate_`` is that of their problem.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels there will be; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        self : object
            The estimator.
        """
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight: 'balanced' takes all rows at once; give the weight of each class")
        first = not self.__sklearn_is_fitted__()
        if first and classes is None:
            raise ValueError("classes: all labels must be given in the first call")
        X, y = checked(self, X, y, reset=first)
        check_classification_targets(y)
        known = np.unique(classes) if first else self.classes_
        if not first and classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes: {list(classes)} are not those of the first call, {known.tolist()}")
        if len(known) < 2:
            raise ValueError(f"classes: two at the least are needed, not {known.tolist()}")
        new = np.setdiff1d(y, known)
        if len(new):
            raise ValueError(f"y: {new[0]!r} is none of the classes {known.tolist()}")
        self.classes_ = known
        return learn(self, self._stated(rows(X, threads(self.n_jobs), names_of(self)), y, sample_weight, known=True))

    def _keep_weights(self, coef, intercept):
        self.coef_, self.intercept_ = coef, intercept

    def decision_function(self, X: Any, offset: Any = None) -> np.ndarray:
        """The margins x·d + b: how far each row is on the side of the class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one score a row, positive for ``classes_[1]``.
        """
        scores = self._margins(X, offset)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """The most likely class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes.
        """
        scores = self.decision_function(X, offset)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def _probabilities(self, X, offset=None):
        margins = np.ascontiguousarray(self._margins(X, offset), dtype=np.float64)
        return _core.probabilities(margins, threads(self.n_jobs))


class Regressor(RegressorMixin, Linear):
    """A linear model of numbers."""

    #: Whether y may have several columns, each learnt by itself.
    _takes_many = True

    def _problems(self, X, y, sample_weight):
        X, y = checked(self, X, y, multi_output=self._takes_many, y_numeric=True)
        return self._stated(rows(X, threads(self.n_jobs), names_of(self)), y, sample_weight)

    def _stated(self, matrix, y, sample_weight):
        self._many = y.ndim == 2 and y.shape[1] > 1
        return [self._state(matrix, column, self._loss_name(), sample_weight) for column in y.reshape(len(y), -1).T]

    @with_steps
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take one epoch of steps on some rows, from where the rows before them led to.

        Each call is an epoch: step sizes, and the kinds of steps of OBProx-SG, go on from one to the next. The penalty is
        weighed against the mean loss of the rows of the call, and ``certificate_`` is that of their problem.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        self : object
            The estimator.
        """
        first = not self.__sklearn_is_fitted__()
        X, y = checked(self, X, y, reset=first, multi_output=self._takes_many, y_numeric=True)
        return learn(self, self._stated(rows(X, threads(self.n_jobs), names_of(self)), y, sample_weight))

    def _keep_weights(self, coef, intercept):
        if self._many:
            self.coef_, self.intercept_ = coef, intercept
        else:
            self.coef_, self.intercept_ = coef[0], float(intercept[0])

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """The number predicted for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The predictions.
        """
        margins = self._margins(X, offset)
        if margins.ndim == 2 and not self._many:
            margins = margins[:, 0]
        return np.exp(margins) if self._loss_name() in LOG_LINK else margins

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._takes_many
        tags.target_tags.positive_only = getattr(self, "loss", None) in LOG_LINK
        return tags


class MultiTask(Regressor):
    """Several targets whose weights of a feature are zero together."""

    _loss = "squared"
    _learns_in_parts = False
    _not_on_files = "learns several targets together, and files have one: fit Lasso on them"

    def _problems(self, X, y, sample_weight):
        X, y = checked(self, X, y, multi_output=True, y_numeric=True)
        if y.ndim == 1:
            raise ValueError("For mono-task outputs, use ElasticNet or Lasso: y has one column")
        self._many = True
        matrix = rows(X, threads(self.n_jobs), names_of(self))
        n_features = matrix.shape[1]
        groups = {"groups": np.arange(n_features, dtype=np.uint32), "group_weights": np.ones(n_features)}
        many = np.ascontiguousarray(y, dtype=np.float64)
        return [self._state(matrix, np.zeros(len(y)), "squared", sample_weight, many=many, **groups)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        return tags


def classes_of(y):
    """The distinct labels, and the number of each row's."""
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"obprox needs samples of at least 2 classes in the data, but the data contains only one class: {classes[0]}"
        )
    return classes, numbers
