"""Cox models: times to an event that some rows have not had yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._tasks import Regressor
from ._parameters import PENALTY, parameters, whole
from .cross_validation import CrossValidated

__all__ = ["CoxPH", "CoxPHCV"]

_Y = """\
y : structured array, array-like of shape (n_samples, 2) or array-like of shape (n_samples,)
    When each event was: a structured array with a field of booleans (seen or not) and one of times, as
    scikit-survival has it; or two columns, the time and whether the event was seen; or the times alone, negative
    where the row is censored."""


def times(y):
    """Times that are negative where the event was not seen."""
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    y = np.asarray(y)
    if y.dtype.names is not None:
        kinds = {"event": [], "time": []}
        for name in y.dtype.names:
            kinds["event" if y.dtype[name].kind == "b" else "time"].append(name)
        if len(kinds["event"]) != 1 or len(kinds["time"]) != 1:
            raise ValueError("y: the fields must be two, of booleans (whether the event was seen) and of times")
        time, event = y[kinds["time"][0]].astype(float), y[kinds["event"][0]]
    elif y.ndim == 2 and y.shape[1] == 2:
        time, event = y[:, 0].astype(float), y[:, 1].astype(float)
        odd = ~np.isin(event, (0, 1))
        if odd.any():
            raise ValueError(
                f"y: row {int(np.argmax(odd))}: {event[odd][0]}: the second column is 1 where the event was seen, 0 where the "
                "row is censored"
            )
    else:
        return y
    if np.any(time < 0):
        raise ValueError("y: a time is negative; beside a column of events it is not")
    return np.where(event.astype(bool), time, -time)


class _Survival(Regressor):
    """What the two estimators have in common."""

    _takes_many = False
    _learns_in_parts = False
    _not_on_files = "compares all rows with each other, which takes them in memory"
    #: An intercept changes nothing where rows are compared; the core takes one for its steps and leaves it at 0.
    fit_intercept = True

    def _loss_name(self):
        if self.ties not in ("efron", "breslow"):
            raise ValueError(f"ties: {self.ties!r} is neither 'efron' nor 'breslow'")
        return "cox" if self.ties == "efron" else "cox-breslow"

    def _problems(self, X, y, sample_weight):
        return super()._problems(X, times(y), sample_weight)

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """The logarithm of the hazard of each row, up to a constant: the larger, the sooner the event.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            x·d.
        """
        return super().predict(X, offset)

    def predict_partial_hazard(self, X: Any, offset: Any = None) -> np.ndarray:
        """The hazard of each row relative to that of a row of zeros: e to the power of :meth:`predict`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        hazards : ndarray of shape (n_samples,)
            How many times as large each hazard is.
        """
        return np.exp(self.predict(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Harrell's concordance: the share of pairs of rows whose order in time the scores have right.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like
            Their times, as in :meth:`fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.
        offset : array-like of shape (n_samples,), default=None
            Their offsets, for a model that was fitted with some.

        Returns
        -------
        concordance : float
            ½ is as good as a guess, 1 is perfect; NaN where no two rows can be compared.
        """
        scores, found = self.predict(X, offset), np.ascontiguousarray(times(y), dtype=np.float64)
        weights = np.ones(len(found)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return _core.concordance(np.ascontiguousarray(scores, dtype=np.float64), found, weights)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


@parameters("alpha", alpha=0.01, l1_ratio=1.0, ties="efron", penalty_weights=None, **PENALTY, max_features=None)
class CoxPH(_Survival):
    """Cox's proportional hazards with an l1 or elastic net penalty.

    Minimises −(1/W)·ln L(x) + α(r‖x‖₁ + (1 − r)/2·‖x‖₂²) with L the partial likelihood, α = ``alpha``, r = ``l1_ratio`` and
    W = Σ wᵢ: the hazard of a row is exp(x·d) times one that all rows share, and nothing is assumed of that.

    Parameters
    ----------
    alpha : float, default=0.01
        The penalty's strength.
    l1_ratio : float, default=1.0
        The share of the l1 penalty.
    ties : {'efron', 'breslow'}, default='efron'
        How events at one time are counted.
    penalty_weights : array-like of shape (n_features,), default=None
        What the penalty of each feature is multiplied by; 0 leaves it unpenalised.
    {penalty}
    max_features : int, default=None
        At most this many features: the l1 penalty for it is searched and ``alpha`` passed over.
    {solver}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights x, logarithms of hazard ratios.
    n_iter_ : int
        Rounds.
    certificate_ : Certificate
        How far the result can be from the optimum at most.
    trace_ : DataFrame or dict of ndarray
        The figures of each round.

    Notes
    -----
    {y}

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import CoxPH
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 20))
    >>> time, seen = rng.exponential(np.exp(-X[:, 3])), rng.uniform(size=200) < 0.7
    >>> model = CoxPH(alpha=0.1).fit(X, np.column_stack([time, seen]))
    >>> np.flatnonzero(model.coef_)
    array([3])
    >>> bool(model.score(X, np.where(seen, time, -time)) > 0.7)
    True
    """


@parameters(
    l1_ratio=1.0,
    eps=None,
    alphas=100,
    ties="efron",
    cv=None,
    scoring="loss",
    rule="best",
    relax=False,
    penalty_weights=None,
    **PENALTY,
)
class CoxPHCV(CrossValidated, _Survival):
    """A Cox model whose ``alpha`` is chosen by cross-validation.

    Parameters
    ----------
    l1_ratio : float or list of float, default=1.0
        The shares of the l1 penalty to try.
    eps : float, default=None
        The smallest alpha of a grid as a share of the largest; None is 1e-2 where there are more features than rows,
        else 1e-3.
    alphas : int or list of float, default=100
        The alphas to try; a number stands for so many, evenly spaced on a logarithmic scale.
    ties : {'efron', 'breslow'}, default='efron'
        How events at one time are counted.
    cv : int, splitter or iterable, default=None
        The folds; a number of them has the events dealt evenly, and None stands for 5.
    scoring : {'loss', 'concordance'}, default='loss'
        What is compared: −ln of the partial likelihood of all rows less that of those a fold learnt from, for each of its
        events; or the concordance among the held-out rows.
    rule : {'best', '1se'}, default='best'
        '1se' takes the largest alpha within one standard error of the best.
    relax : bool, default=False
        Also try refits without penalty and blends of the two: see :class:`ElasticNetCV`.
    penalty_weights : array-like of shape (n_features,), default=None
        What the penalty of each feature is multiplied by; 0 leaves it unpenalised.
    {penalty}
    {solver}

    Attributes
    ----------
    alpha_, l1_ratio_, gamma_ : float
        What was chosen.
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratios, n_alphas)
        All that were tried.
    loss_path_ : ndarray of shape (n_alphas, n_folds) or (n_l1_ratios, n_alphas, n_folds)
        What was compared on the held-out rows, smaller is better.
    coef_, n_iter_, certificate_, trace_
        As in :class:`CoxPH`, of the fit to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import CoxPHCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 10))
    >>> y = rng.exponential(np.exp(-X[:, 3])) * np.where(rng.uniform(size=150) < 0.7, 1, -1)
    >>> model = CoxPHCV(alphas=10).fit(X, y)
    >>> int(np.abs(model.coef_).argmax())
    3
    """

    max_features = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> CoxPHCV:
        """Choose the penalty by cross-validation and fit all rows with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like
            Their times, as in :class:`CoxPH`.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, in the fits and in the scores.
        offset : array-like of shape (n_samples,), default=None
            What is added to the margin of each row, in the fits and in the scores; predictions then need it too.

        Returns
        -------
        self : object
            The fitted estimator. An interrupt (Ctrl-C) leaves it unfitted.
        """
        return super().fit(X, times(y), sample_weight, offset)

    def _scoring(self):
        if self.scoring not in ("loss", "concordance"):
            raise ValueError(f"scoring: {self.scoring!r} is neither 'loss' nor 'concordance'")
        return self.scoring

    def _folds(self, X, y):
        # A number of folds is dealt by the core, each with its share of the events.
        if self.cv is None or np.ndim(self.cv) == 0 and not hasattr(self.cv, "split"):
            return 5 if self.cv is None else whole("cv", self.cv, 2)
        return super()._folds(X, y)


for _class in (CoxPH, CoxPHCV):
    _class.__doc__ = _class.__doc__.replace("{y}", _Y.replace("\n", "\n    "))
