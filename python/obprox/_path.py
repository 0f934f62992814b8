"""Many penalties on one problem, each solved from the one before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Union

import numpy as np

from . import _core
from ._parameters import PENALTY, SOLVER, checkpoint, number, threads
from ._progress import Progress
from ._results import columns, table
from .exceptions import ParameterError
from ._linear import LOG_LINK
from .solvers import settings


@dataclass(frozen=True)
class Path:
    """The models of a path, from the strongest penalty to the weakest.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        The penalties' strengths.
    coefs : ndarray of shape (n_features, n_alphas) or (n_classes, n_features, n_alphas)
        The weights.
    intercepts : ndarray of shape (n_alphas,) or (n_classes, n_alphas)
        The intercepts.
    table : DataFrame or dict of ndarray
        The certificate of each model: ``lambda_``, ``status``, ``F``, ``gap``, ``kkt``, ``nnz``, ...
    classes : ndarray or None
        The labels, for classes.
    feature_names : ndarray or None
        The names of the features, where X has them.
    relaxed : Path or None
        The refits without penalty on the features of each model, where they were asked for: a path of its own.

    Examples
    --------
    >>> import obprox
    >>> path = obprox.path([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 3.0], alphas=[0.5, 0.1])
    >>> len(path), path.coefs.shape, path.coef(1).shape
    (2, (2, 2), (2,))
    """

    alphas: np.ndarray
    intercepts: np.ndarray
    classes: Optional[np.ndarray]
    feature_names: Optional[np.ndarray]
    _steps: Any = field(repr=False)
    _table: Any = field(repr=False)
    relaxed: Optional[Path] = field(default=None, repr=False)

    @property
    def coefs(self) -> np.ndarray:
        """The weights; computed when asked for, since there may be many."""
        coefs = self._steps.coefs()
        return coefs[0] if len(coefs) == 1 else coefs

    def coef(self, at: int) -> np.ndarray:
        """The weights at one place of the path.

        Parameters
        ----------
        at : int
            The place, from 0.

        Returns
        -------
        coef : ndarray of shape (n_features,) or (n_classes, n_features)
            The weights.
        """
        coef = self._steps.coef(range(len(self.alphas))[at])
        return coef[0] if len(coef) == 1 else coef

    def coef_at(self, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """The weights and the intercept at a strength between two of the path, on the line between theirs.

        They are near the optimum there and certified by nothing; :class:`Lasso` and the others solve at ``alpha`` itself.

        Parameters
        ----------
        alpha : float
            The penalty's strength, within those of the path.

        Returns
        -------
        coef : ndarray of shape (n_features,) or (n_classes, n_features)
            The weights.
        intercept : ndarray of shape () or (n_classes,)
            The intercept.

        Examples
        --------
        >>> import obprox
        >>> path = obprox.path([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 3.0], alphas=[0.5, 0.1])
        >>> coef, intercept = path.coef_at(0.3)
        >>> bool((abs(coef - (path.coef(0) + path.coef(1)) / 2) < 1e-12).all())
        True
        """
        alphas = np.asarray(self.alphas)
        if not alphas.min() <= alpha <= alphas.max():
            raise ParameterError(f"alpha: {alpha}: the path goes from {alphas.max()} to {alphas.min()}")
        below = int(np.argmax(alphas <= alpha))
        above = max(below - 1, 0) if alphas[below] < alpha else below
        apart = alphas[above] - alphas[below]
        share = (alphas[above] - alpha) / apart if apart > 0 else 0.0
        between = lambda first, second: (1 - share) * first + share * second
        intercept = between(self.intercepts[..., above], self.intercepts[..., below])
        return between(self.coef(above), self.coef(below)), intercept

    @property
    def table(self) -> Any:
        """The certificate of each model."""
        return table(self._table)

    def __len__(self) -> int:
        return len(self.alphas)

    def plot(self, **options: Any) -> Any:
        """See :func:`obprox.plot_path`."""
        from .plot import plot_path

        return plot_path(self, **options)


def path(
    X: Any,
    y: Any,
    *,
    loss: str = "squared",
    l1_ratio: float = 1.0,
    eps: Optional[float] = None,
    alphas: Any = 100,
    sample_weight: Any = None,
    class_weight: Union[dict, str, None] = None,
    penalty_weights: Any = None,
    delta: float = 1.345,
    power: float = 1.5,
    theta: float = 1.0,
    offset: Any = None,
    fit_intercept: bool = True,
    ties: str = "efron",
    relax: bool = False,
    **solver: Any,
) -> Path:
    """Solve at many penalties, each from the one before, each certified by itself.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        The targets.
    loss : {'squared', 'huber', 'poisson', 'gamma', 'tweedie', 'negative-binomial', 'logistic', 'squared-hinge', 'cox'}, default='squared'
        The loss; 'logistic' is softmax where there are several classes, 'cox' that of :class:`CoxPH`.
    l1_ratio : float, default=1.0
        The share of the l1 penalty.
    eps : float, default=None
        The smallest alpha as a share of the largest; None is 1e-2 where there are more features than rows, else 1e-3.
    alphas : int or list of float, default=100
        The strengths; a number stands for so many from the one that leaves every weight zero down.
    sample_weight : array-like of shape (n_samples,), default=None
        How much each row counts.
    class_weight : dict or 'balanced', default=None
        How much the rows of each class count.
    penalty_weights : array-like of shape (n_features,), default=None
        What the penalty of each feature is multiplied by; 0 leaves it unpenalised.
    delta : float, default=1.345
        Where the Huber loss turns from quadratic to linear.
    power, theta : float
        Parameters of the Tweedie and of the negative binomial loss, as in :class:`SparseRegressor`.
    offset : array-like of shape (n_samples,), default=None
        What is added to the margin of each row: known beforehand, and not learnt.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    ties : {'efron', 'breslow'}, default='efron'
        What the Cox loss does about events at one time.
    relax : bool, default=False
        Also refit the features of each model without penalty: ``Path.relaxed``.
    **solver
        The keywords of the solver, as every estimator has them: ``solver``, ``tol``, ``max_iter``, ``n_jobs``, ...; and
        ``positive``, ``bounds``, ``groups``, ``group_weights`` and ``group_l1``, as :class:`SparseRegressor` has them.

    Returns
    -------
    path : Path
        The models.

    Examples
    --------
    >>> import numpy as np
    >>> import obprox
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> found = obprox.path(X, X[:, 3] - X[:, 7], alphas=10)
    >>> found.coefs.shape
    (20, 10)
    >>> np.flatnonzero(found.coef(4))
    array([3, 7])
    """
    from .linear_model import SparseClassifier, SparseRegressor
    from .survival import CoxPH

    unknown = sorted(set(solver) - set(SOLVER) - set(PENALTY))
    if unknown:
        raise TypeError(f"path() got an unexpected keyword argument {unknown[0]!r}")
    common = {"l1_ratio": l1_ratio, "fit_intercept": fit_intercept, "penalty_weights": penalty_weights, **solver}
    if loss in ("logistic", "squared-hinge"):
        model = SparseClassifier(loss, class_weight=class_weight, **common)
    elif loss in ("squared", "huber", *LOG_LINK):
        model = SparseRegressor(loss, delta=delta, power=power, theta=theta, **common)
    elif loss == "cox":
        model = CoxPH(ties=ties, **{name: value for name, value in common.items() if name != "fit_intercept"})
    else:
        names = ("squared", "huber", *LOG_LINK, "logistic", "squared-hinge", "cox")
        raise ParameterError(f"loss: {loss!r} is none of {', '.join(map(repr, names))}")
    with model._beside(offset):
        problems = model._problems(X, y, sample_weight)
    if len(problems) > 1:
        raise ValueError("a path is for one target, or for classes that are learnt together: two, or loss='logistic'")
    (problem,) = problems
    ratio = number("l1_ratio", l1_ratio)
    if np.ndim(alphas) == 0:
        grid = problem.alphas(ratio, int(alphas), eps)
    else:
        grid = sorted((float(alpha) for alpha in alphas), reverse=True)
    bar = Progress("path") if model.verbose else None
    heard = _Heard(bar, model.callback, len(grid))
    try:
        steps = _core.path(
            problem,
            settings(model),
            grid,
            ratio,
            relax=bool(relax),
            on_epoch=heard.on_epoch,
            checkpoint=checkpoint(model),
            threads=threads(model.n_jobs),
        )
    finally:
        if bar is not None:
            bar.close()
    return _of_steps(steps, grid, model)


def _of_steps(steps, grid, model):
    """The path of some steps, and that of their refits."""
    intercepts, refits = steps.intercepts(), steps.relaxed()
    figures = {"alpha": np.array(grid[: len(steps)]), **columns(steps.table())}
    return Path(
        alphas=figures["alpha"],
        intercepts=intercepts[0] if len(intercepts) == 1 else intercepts,
        classes=getattr(model, "classes_", None),
        feature_names=getattr(model, "feature_names_in_", None),
        _steps=steps,
        _table=figures,
        relaxed=None if refits is None or not len(refits) else _of_steps(refits, grid, model),
    )


class _Heard:
    """The progress bar and the user's callback, as one function for the core; counts the penalties that are done."""

    def __init__(self, bar, callback, total):
        self._bar, self._callback, self._total, self._done = bar, callback, total, 0
        self.on_epoch = self._epoch if bar is not None or callback is not None else None

    def _epoch(self, figures):
        # Epochs are counted anew at each penalty.
        self._done += figures["epoch"] == 1
        if self._bar is not None:
            self._bar.show(self._done / self._total, f"{self._done}/{self._total} penalties  nnz {figures.get('nnz')}")
        return bool(self._callback(figures)) if self._callback is not None else False
