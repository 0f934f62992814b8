"""The estimators: scikit-learn's names and parameters, solved by the core to a certified optimum."""

from __future__ import annotations

import numpy as np

from ._compat import available_if
from ._linear import LOG_LINK
from ._parameters import PENALTY, number, parameters
from ._tasks import Classifier, MultiTask, Regressor


@parameters(
    "penalty",
    penalty="auto",
    C=1.0,
    l1_ratio=1.0,
    fit_intercept=True,
    class_weight=None,
)
class LogisticRegression(Classifier):
    """Logistic regression with an l1 or elastic net penalty, for two classes or several.

    Minimises C·Σ wᵢ·loss(yᵢ, x·dᵢ + b) + r‖x‖₁ + (1 − r)/2·‖x‖₂² with r = ``l1_ratio``, as
    :class:`sklearn.linear_model.LogisticRegression` does; the intercept b is never penalised. Several classes are
    learnt together (softmax).

    Parameters
    ----------
    penalty : {'auto', 'l1', 'l2', 'elasticnet', None}, default='auto'
        'auto' leaves it to ``l1_ratio``, as scikit-learn does from 1.8 on; the others are the names of before.
    C : float, default=1.0
        The inverse of the penalty's strength; np.inf is no penalty.
    l1_ratio : float, default=1.0
        The share r of the l1 penalty. The default is the one that makes sparse models; scikit-learn's is 0.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    class_weight : dict or 'balanced', default=None
        How much the rows of each class count.
    {solver}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights x.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts b.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : ndarray of shape (1,)
        Rounds or epochs.
    certificate_ : Certificate
        How far the result can be from the optimum at most.
    trace_ : DataFrame or dict of ndarray
        The figures of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = (X[:, 0] - 2 * X[:, 1] > 0).astype(int)
    >>> model = LogisticRegression(C=0.1).fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([0, 1])
    >>> model.certificate_.status, model.certificate_.relative_gap <= 1e-6
    ('converged', True)
    """

    _loss = "logistic"

    def _share(self):
        """r, from whichever of the two ways of naming it was used."""
        given = {"auto": self.l1_ratio, "deprecated": self.l1_ratio, "elasticnet": self.l1_ratio, "l1": 1, "l2": 0, None: 1}
        if self.penalty not in given:
            raise ValueError(f"penalty: {self.penalty!r} is none of 'auto', 'l1', 'l2', 'elasticnet', None")
        return number("l1_ratio", given[self.penalty])

    def _penalised(self, problem):
        alpha = 0.0 if self.penalty is None else problem.alpha_of(number("C", self.C))
        return problem.with_alpha(alpha, self._share())

    def _keep_n_iter(self, counts):
        self.n_iter_ = np.asarray(counts)

    def predict_proba(self, X, offset=None):
        """The probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            A column for each of ``classes_``.
        """
        return self._probabilities(X, offset)

    def predict_log_proba(self, X, offset=None):
        """The logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            A column for each of ``classes_``.
        """
        return np.log(self.predict_proba(X, offset))


@parameters("alpha", alpha=1.0, l1_ratio=0.5, fit_intercept=True, positive=False)
class ElasticNet(Regressor):
    """Least squares with the elastic net penalty.

    Minimises 1/(2W)·Σ wᵢ(yᵢ − x·dᵢ − b)² + α(r‖x‖₁ + (1 − r)/2·‖x‖₂²) with α = ``alpha``, r = ``l1_ratio`` and
    W = Σ wᵢ, as :class:`sklearn.linear_model.ElasticNet` does.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty's strength.
    l1_ratio : float, default=0.5
        The share of the l1 penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    positive : bool, default=False
        No weight is negative.
    {solver}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights x.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    n_iter_ : int or list of int
        Rounds or epochs.
    dual_gap_ : float
        The duality gap of the result.
    certificate_ : Certificate
        How far the result can be from the optimum at most.
    trace_ : DataFrame or dict of ndarray
        The figures of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import ElasticNet
    >>> X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 1.5], [3.0, 0.0]])
    >>> model = ElasticNet(alpha=0.1).fit(X, [1.0, 2.0, 3.1, 3.9])
    >>> model.coef_.round(4), round(model.intercept_, 4)
    (array([0.9038, 0.    ]), 1.1442)
    """

    _loss = "squared"

    @property
    def dual_gap_(self):
        """The duality gap of the result."""
        self._check_fitted()
        return self.certificate_.gap


@parameters("alpha", alpha=1.0, fit_intercept=True, positive=False)
class Lasso(ElasticNet):
    """Least squares with the l1 penalty.

    Minimises 1/(2W)·Σ wᵢ(yᵢ − x·dᵢ − b)² + α‖x‖₁ with α = ``alpha`` and W = Σ wᵢ, as
    :class:`sklearn.linear_model.Lasso` does.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty's strength.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    positive : bool, default=False
        No weight is negative.
    {solver}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights x.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    n_iter_ : int or list of int
        Rounds or epochs.
    dual_gap_ : float
        The duality gap of the result.
    certificate_ : Certificate
        How far the result can be from the optimum at most.
    trace_ : DataFrame or dict of ndarray
        The figures of each epoch.

    Examples
    --------
    >>> from obprox import Lasso
    >>> model = Lasso(alpha=0.1).fit([[0, 0], [1, 1], [2, 2]], [0, 1, 2])
    >>> round(float(model.coef_.sum()), 4), round(model.intercept_, 4)
    (0.85, 0.15)
    """

    def _penalised(self, problem):
        return problem.with_alpha(number("alpha", self.alpha), 1.0)


@parameters("alpha", alpha=1.0, l1_ratio=0.5, fit_intercept=True)
class MultiTaskElasticNet(MultiTask):
    """Least squares for several targets, with a penalty on each feature's weights for all of them.

    Minimises 1/(2W)·Σ wᵢ‖yᵢ − x·dᵢ − b‖₂² + α(r Σ_j ‖x_j‖₂ + (1 − r)/2·‖x‖₂²) with x_j the weights of feature j,
    α = ``alpha``, r = ``l1_ratio`` and W = Σ wᵢ, as :class:`sklearn.linear_model.MultiTaskElasticNet` does.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty's strength.
    l1_ratio : float, default=0.5
        The share of the penalty that makes features zero.
    fit_intercept : bool, default=True
        Whether there are intercepts.
    {solver}

    Attributes
    ----------
    coef_ : ndarray of shape (n_targets, n_features)
        The weights x.
    intercept_ : ndarray of shape (n_targets,)
        The intercepts b.
    n_iter_ : int
        Rounds or epochs.
    certificate_ : Certificate
        How far the result can be from the optimum at most.
    trace_ : DataFrame or dict of ndarray
        The figures of each epoch.

    Examples
    --------
    >>> from obprox import MultiTaskElasticNet
    >>> model = MultiTaskElasticNet(alpha=0.1).fit([[0, 0], [1, 1], [2, 2]], [[0, 0], [1, 1], [2, 2]])
    >>> model.coef_.round(4).tolist()
    [[0.4564, 0.4564], [0.4564, 0.4564]]
    """


@parameters("alpha", alpha=1.0, fit_intercept=True)
class MultiTaskLasso(MultiTask):
    """Least squares for several targets, where the weights of a feature are zero for all of them or for none.

    Minimises 1/(2W)·Σ wᵢ‖yᵢ − x·dᵢ − b‖₂² + α Σ_j ‖x_j‖₂ with x_j the weights of feature j, α = ``alpha`` and W = Σ wᵢ,
    as :class:`sklearn.linear_model.MultiTaskLasso` does.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty's strength.
    fit_intercept : bool, default=True
        Whether there are intercepts.
    {solver}

    Attributes
    ----------
    coef_ : ndarray of shape (n_targets, n_features)
        The weights x.
    intercept_ : ndarray of shape (n_targets,)
        The intercepts b.
    n_iter_ : int
        Rounds or epochs.
    certificate_ : Certificate
        How far the result can be from the optimum at most.
    trace_ : DataFrame or dict of ndarray
        The figures of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import MultiTaskLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> Y = np.column_stack([X[:, 3], X[:, 3] - X[:, 7]])
    >>> model = MultiTaskLasso(alpha=0.1).fit(X, Y)
    >>> np.flatnonzero(model.coef_[0]), np.flatnonzero(model.coef_[1])
    (array([3, 7]), array([3, 7]))
    """

    def _penalised(self, problem):
        return problem.with_alpha(number("alpha", self.alpha), 1.0)


@parameters(
    "loss",
    loss="logistic",
    alpha=0.01,
    l1_ratio=1.0,
    fit_intercept=True,
    class_weight=None,
    penalty_weights=None,
    **PENALTY,
    max_features=None,
)
class SparseClassifier(Classifier):
    """A sparse linear classifier with a choice of losses.

    Minimises (1/W)·Σ wᵢ·loss(yᵢ, x·dᵢ + b) + α(r‖x‖₁ + (1 − r)/2·‖x‖₂²) with α = ``alpha``, r = ``l1_ratio`` and
    W = Σ wᵢ: the units of :class:`sklearn.linear_model.SGDClassifier`, and of the command, whose λ is α·r.

    Parameters
    ----------
    loss : {'logistic', 'squared-hinge'}, default='logistic'
        'logistic' learns several classes together (softmax) and has probabilities; 'squared-hinge' is the linear
        support vector machine and learns each class against the others.
    alpha : float, default=0.01
        The penalty's strength.
    l1_ratio : float, default=1.0
        The share of the l1 penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    class_weight : dict or 'balanced', default=None
        How much the rows of each class count.
    penalty_weights : array-like of shape (n_features,), default=None
        What the penalty of each feature is multiplied by; 0 leaves it unpenalised.
    {penalty}
    max_features : int, default=None
        At most this many features: the l1 penalty for it is searched and ``alpha`` passed over.
    {solver}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights x.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts b.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int or list of int
        Rounds or epochs.
    certificate_ : Certificate
        How far the result can be from the optimum at most.
    trace_ : DataFrame or dict of ndarray
        The figures of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import SparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = np.where(X[:, 0] - 2 * X[:, 1] + 0.5 * X[:, 2] > 0, "yes", "no")
    >>> model = SparseClassifier("squared-hinge", max_features=2).fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([0, 1])
    """

    def _loss_name(self):
        if self.loss not in ("logistic", "squared-hinge"):
            raise ValueError(f"loss: {self.loss!r} is neither 'logistic' nor 'squared-hinge'")
        return self.loss

    def _has_probabilities(self):
        if self.loss != "logistic":
            raise AttributeError(f"the {self.loss} loss has no probabilities")
        return True

    @available_if(_has_probabilities)
    def predict_proba(self, X, offset=None):
        """The probability of each class; for the logistic loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            A column for each of ``classes_``.
        """
        self._has_probabilities()
        return self._probabilities(X, offset)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X, offset=None):
        """The logarithm of the probability of each class; for the logistic loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            A column for each of ``classes_``.
        """
        return np.log(self.predict_proba(X, offset))


@parameters(
    "loss",
    loss="squared",
    alpha=0.01,
    l1_ratio=1.0,
    delta=1.345,
    power=1.5,
    theta=1.0,
    fit_intercept=True,
    penalty_weights=None,
    **PENALTY,
    max_features=None,
)
class SparseRegressor(Regressor):
    """A sparse linear model of numbers with a choice of losses.

    Minimises (1/W)·Σ wᵢ·loss(yᵢ, x·dᵢ + b) + α(r‖x‖₁ + (1 − r)/2·‖x‖₂²) with α = ``alpha``, r = ``l1_ratio`` and
    W = Σ wᵢ.

    Parameters
    ----------
    loss : {'squared', 'huber', 'poisson', 'gamma', 'tweedie', 'negative-binomial'}, default='squared'
        'squared' is half the squared error; 'huber' is that up to ``delta`` and linear beyond, so that outliers pull
        with bounded force. The others have the mean exp(x·d + b): 'poisson' is for counts, 'negative-binomial' for counts
        that vary more, 'gamma' for positive amounts, 'tweedie' for amounts of which some are zero.
    alpha : float, default=0.01
        The penalty's strength.
    l1_ratio : float, default=1.0
        The share of the l1 penalty.
    delta : float, default=1.345
        Where the Huber loss turns from quadratic to linear, in the units of y.
    power : float, default=1.5
        Of the Tweedie loss, between 1 and 2: the variance is in proportion to mean**power.
    theta : float, default=1.0
        Of the negative binomial loss: the variance is mean + mean**2 / theta.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    penalty_weights : array-like of shape (n_features,), default=None
        What the penalty of each feature is multiplied by; 0 leaves it unpenalised.
    {penalty}
    max_features : int, default=None
        At most this many features: the l1 penalty for it is searched and ``alpha`` passed over.
    {solver}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights x.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    n_iter_ : int or list of int
        Rounds or epochs.
    certificate_ : Certificate
        How far the result can be from the optimum at most.
    trace_ : DataFrame or dict of ndarray
        The figures of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> counts = rng.poisson(np.exp(X[:, 3]))
    >>> model = SparseRegressor("poisson", alpha=0.2).fit(X, counts)
    >>> np.flatnonzero(model.coef_)
    array([3])
    """

    @property
    def _takes_many(self):
        # Counts are for one target, as in scikit-learn's PoissonRegressor.
        return self.loss not in LOG_LINK

    def _loss_name(self):
        names = ("squared", "huber", *LOG_LINK)
        if self.loss not in names:
            raise ValueError(f"loss: {self.loss!r} is none of {', '.join(map(repr, names))}")
        return self.loss
