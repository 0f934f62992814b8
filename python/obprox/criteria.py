"""The Lasso whose penalty is chosen by an information criterion: one path, and no folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._parameters import checkpoint, number, parameters, threads
from .exceptions import ParameterError
from .linear_model import Lasso
from .solvers import settings

if TYPE_CHECKING:
    from typing_extensions import Self


@parameters("criterion", criterion="aic", eps=None, alphas=100, noise_variance=None, fit_intercept=True, positive=False)
class LassoIC(Lasso):
    """The Lasso whose ``alpha`` has the least AIC or BIC.

    Both are N·ln(2πσ²) + RSS/σ² + c·k, where k counts the weights that are not zero, which is what a Lasso spends (Zou,
    Hastie and Tibshirani 2007), and c is 2 for AIC and ln N for BIC: what :class:`sklearn.linear_model.LassoLarsIC` has,
    on a grid of alphas each of which is solved to ``tol``.

    Parameters
    ----------
    criterion : {'aic', 'bic'}, default='aic'
        Which one.
    eps : float, default=None
        The smallest alpha as a share of the largest; None is 1e-2 where there are more features than rows, else 1e-3.
    alphas : int or list of float, default=100
        The alphas to try; a number stands for so many, evenly spaced on a logarithmic scale.
    noise_variance : float, default=None
        σ²; None takes that of the residuals of least squares on all features, for which rows must outnumber them.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    positive : bool, default=False
        No weight is negative.
    {solver}

    Attributes
    ----------
    alpha_ : float
        What was chosen.
    alphas_, criterion_ : ndarray of shape (n_alphas,)
        All that were tried, and what the criterion says of each.
    noise_variance_ : float
        σ².
    coef_, intercept_, n_iter_, dual_gap_, certificate_, trace_
        As in :class:`Lasso`, at ``alpha_``.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import LassoIC
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 30))
    >>> model = LassoIC("bic").fit(X, X[:, 0] - X[:, 4] + rng.normal(size=200))
    >>> np.flatnonzero(model.coef_)
    array([0, 4])
    """

    _takes_many = False
    _learns_in_parts = False

    def fit_files(self, paths: Any, **_: Any) -> Self:
        """Refused: a path needs the rows in memory."""
        raise TypeError("LassoIC solves a path, which takes the rows in memory: choose alpha there")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Choose the penalty by the criterion and fit with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.
        offset : array-like of shape (n_samples,), default=None
            What is added to the margin of each row; predictions then need it too.

        Returns
        -------
        self : object
            The fitted estimator. An interrupt (Ctrl-C) leaves it unfitted.
        """
        if self.criterion not in ("aic", "bic"):
            raise ParameterError(f"criterion: {self.criterion!r} is neither 'aic' nor 'bic'")
        with self._beside(offset):
            (problem,) = problems = self._problems(X, y, sample_weight)
            # A row of weight 2 is two rows.
            n_rows = 1 / problem.alpha_of(1.0)
            if np.ndim(self.alphas) == 0:
                grid = problem.alphas(1.0, int(self.alphas), self.eps)
            else:
                grid = sorted((float(alpha) for alpha in self.alphas), reverse=True)
            call = {"threads": threads(self.n_jobs)}
            kept = checkpoint(self, "path")
            rows = _core.path(problem, settings(self), grid, 1.0, checkpoint=kept, **call).table()
            self.noise_variance_ = self._noise_variance(problem, n_rows)
            cost = 2.0 if self.criterion == "aic" else np.log(n_rows)
            # Half the mean squared residual is f.
            squares = np.array([2 * n_rows * row["f"] for row in rows])
            nonzeros = np.array([row["nnz"] for row in rows])
            likelihood = n_rows * np.log(2 * np.pi * self.noise_variance_) + squares / self.noise_variance_
            self.criterion_ = likelihood + cost * nonzeros
            self.alphas_ = np.array(grid)
            self.alpha_ = float(grid[int(np.argmin(self.criterion_))])
            self._keep(*self._run(problems))
        return self

    def _noise_variance(self, problem, n_rows):
        if self.noise_variance is not None:
            variance = number("noise_variance", self.noise_variance)
            if not variance > 0:
                raise ParameterError(f"noise_variance: {variance} must be positive")
            return variance
        free = n_rows - self.n_features_in_ - bool(self.fit_intercept)
        if free <= 0:
            raise ValueError(
                f"{n_rows:g} rows and {self.n_features_in_} features leave nothing to estimate the noise variance from: give "
                "noise_variance"
            )
        plain = _core.fit(problem.with_alpha(0.0, 1.0), settings(self), threads=threads(self.n_jobs))
        return max(2 * n_rows * plain.certificate["f"] / free, np.finfo(float).tiny)

    def _penalised(self, problem):
        return problem.with_alpha(self.alpha_, 1.0)
