"""The estimators that choose their penalty by cross-validation."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._compat import HAS_SKLEARN, ConvergenceWarning
from ._inputs import vector
from ._linear import Linear
from ._parameters import PENALTY, checkpoint, parameters, threads
from ._progress import Progress
from .linear_model import ElasticNet, LogisticRegression, SparseClassifier, SparseRegressor
from .solvers import settings

if TYPE_CHECKING:
    from typing_extensions import Self

#: Scores that the core computes itself, as tables where smaller is better.
_BUILT_IN = {
    "loss": lambda scores: scores.loss,
    "neg_log_loss": lambda scores: scores.loss,
    "accuracy": lambda scores: -scores.score,
    "r2": lambda scores: -scores.score,
    "concordance": lambda scores: -scores.score,
    "neg_mean_squared_error": lambda scores: 2 * scores.loss,
}


#: The shares of the penalised weights that blends with a refit are tried with.
_SHARES = [1.0, 0.75, 0.5, 0.25, 0.0]


class CrossValidated(Linear):
    """Tries every penalty on every fold, takes the one that predicts best, and fits all rows with it."""

    _over_total = False
    _learns_in_parts = False
    _fit_part = ("all-rows",)
    _takes_many = False

    # ---- what the estimators differ in ---------------------------------------------------------------------------

    def _ratios(self):
        """The l1 ratios to try."""
        return [float(ratio) for ratio in np.atleast_1d(self.l1_ratio)]

    def _grid(self, problems, ratio):
        """The strengths to try, from the strongest penalty to the weakest."""
        if np.ndim(self.alphas) == 0:
            # Several problems share one grid: that of the one with the largest.
            return max((problem.alphas(ratio, int(self.alphas), self.eps) for problem in problems), key=max)
        return sorted((float(alpha) for alpha in self.alphas), reverse=True)

    def _scoring(self):
        return "loss"

    def _keep_scores(self, ratios, grids, tables, best):
        """Makes what was found out attributes; ``best`` are the places of ratio and strength."""
        at_ratio, at = best
        self.alpha_ = float(grids[at_ratio][at])
        self.l1_ratio_ = ratios[at_ratio]
        self.alphas_ = np.squeeze(np.array(grids), axis=0) if len(grids) == 1 else np.array(grids)
        # In scikit-learn's order: α, then folds; before them the ratio, where there are several.
        paths = np.array([table.T for table in tables])
        self._keep_paths(paths[0] if len(grids) == 1 else paths)

    def _keep_paths(self, paths):
        self.loss_path_ = paths

    def _chosen(self, problem):
        """The problem with the penalty that was chosen."""
        return problem.with_alpha(self.alpha_, self.l1_ratio_)

    # ---- how it is done ------------------------------------------------------------------------------------------

    _not_on_files = "holds rows out, which takes them in memory: choose alpha there, or go by max_features"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Choose the penalty by cross-validation and fit all rows with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, in the fits and in the scores.
        offset : array-like of shape (n_samples,), default=None
            What is added to the margin of each row, in the fits and in the scores; predictions then need it too.

        Returns
        -------
        self : object
            The fitted estimator. An interrupt (Ctrl-C) leaves it unfitted.
        """
        with self._beside(offset):
            problems = self._problems(X, y, sample_weight)
            self._validate(problems, X, y, sample_weight)
            self._keep(*self._run(problems))
        return self

    def _penalised(self, problem):
        return self._chosen(problem)

    def _run(self, problems):
        fits, chosen = super()._run(problems)
        if self.gamma_ < 1:
            solve = {"threads": threads(self.n_jobs)}
            pairs = zip(map(self._penalised, problems), fits)
            fits = [_core.relax(problem, fit, chosen, self.gamma_, **solve) for problem, fit in pairs]
        return fits, chosen

    def _validate(self, problems, X, y, sample_weight):
        """Scores every penalty on every fold and keeps the best."""
        scoring, chosen = self._scoring(), settings(self)
        built_in = isinstance(scoring, str) and scoring in _BUILT_IN
        if not built_in and self._offset is not None:
            raise ValueError(f"scoring: with offsets it is one of {', '.join(_BUILT_IN)}; no other score knows them")
        if not built_in and self.relax:
            raise ValueError(f"scoring: with relax it is one of {', '.join(_BUILT_IN)}")
        shares = _SHARES if self.relax else _SHARES[:1]
        y = np.asarray(y)
        folds = self._folds(X, y)
        ratios = self._ratios()
        grids = [self._grid(problems, ratio) for ratio in ratios]
        count = folds if isinstance(folds, int) else len(folds)
        weights = vector(sample_weight, len(y), "sample_weight")
        bar = Progress("cv") if self.verbose else None
        done, total = 0, sum(len(grid) for grid in grids) * count * len(problems)
        tables, blends, unconverged = [], [], 0
        try:
            for at, (ratio, grid) in enumerate(zip(ratios, grids)):
                parts = []
                for number, problem in enumerate(problems):
                    tell = None if bar is None else lambda now, _, before=done: bar.count(before + now, total)
                    scores = _core.cross_validate(
                        problem,
                        chosen,
                        grid,
                        ratio,
                        folds,
                        score_weights=np.ones(len(y)) if weights is None else weights,
                        over_total=self._over_total,
                        keep_models=not built_in,
                        shares=shares,
                        on_progress=tell,
                        checkpoint=checkpoint(self, f"folds-{at}-{number}"),
                        threads=threads(self.n_jobs),
                    )
                    parts.append(scores)
                    unconverged += scores.unconverged
                    done += len(grid) * count
                    if bar is not None:
                        # The last fits may have ended between two looks at them.
                        bar.count(done, total)
                if built_in:
                    # Classes that are learnt one by one have losses that add up.
                    found = [
                        np.sum([_BUILT_IN[scoring](scores.blend(at)) for scores in parts], axis=0)
                        for at in range(len(shares))
                    ]
                    # Each ratio by its best blend.
                    best = int(np.argmin([table.mean(axis=0).min() for table in found]))
                    tables.append(found[best])
                    blends.append(shares[best])
                else:
                    tables.append(self._scored(scoring, parts, len(grid), folds, X, y, weights))
                    blends.append(1.0)
        finally:
            if bar is not None:
                bar.close()
        places = [_core.choose(np.ascontiguousarray(table)) for table in tables]
        best = [place[0] for place in places]
        means = [table[:, at].mean() for table, at in zip(tables, best)]
        at_ratio = int(np.argmin(means))
        rule = {"best": 0, "1se": 1}.get(self.rule)
        if rule is None:
            raise ValueError(f"rule: {self.rule!r} is neither 'best' nor '1se'")
        self.gamma_ = blends[at_ratio]
        self._keep_scores(ratios, grids, tables, (at_ratio, places[at_ratio][rule]))
        if unconverged:
            warnings.warn(
                f"{unconverged} of {total} fits in the folds did not reach tol={self.tol:g}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _folds(self, X, y):
        """Splits as scikit-learn makes them; without it a number of folds, which the core deals itself."""
        if not HAS_SKLEARN:
            return 5 if self.cv is None else int(self.cv)
        from sklearn.base import is_classifier
        from sklearn.model_selection import check_cv

        cv = self.cv
        if cv is None and is_classifier(self):
            # Five, or fewer where every class is so small that five cannot be had.
            sizes = np.unique(y, return_counts=True)[1]
            cv = 5 if sizes.max() >= 5 else max(2, sizes.min())
        splitter = check_cv(cv, y, classifier=is_classifier(self))
        place = lambda rows: np.ascontiguousarray(np.arange(len(y))[rows], dtype=np.int64)
        return [(place(train), place(test)) for train, test in splitter.split(X, y)]

    def _scored(self, scoring, parts, count, folds, X, y, weights):
        """Scores by any of scikit-learn's scorers: folds × α, smaller is better."""
        from sklearn.metrics import check_scoring
        from sklearn.utils import _safe_indexing

        scorer = check_scoring(self, scoring=scoring)
        found = np.empty((len(folds), count))
        for number, (_, test) in enumerate(folds):
            held, truth = _safe_indexing(X, test), y[test]
            given = {} if weights is None else {"sample_weight": weights[test]}
            for at in range(count):
                models = [scores.model(number, at) for scores in parts]
                self._keep_weights(np.vstack([m[0] for m in models]), np.concatenate([m[1] for m in models]))
                found[number, at] = -scorer(self, held, truth, **given)
        return found


@parameters(
    Cs=10,
    l1_ratios=(1.0,),
    fit_intercept=True,
    cv=None,
    scoring=None,
    rule="best",
    relax=False,
    class_weight=None,
    penalty="auto",
)
class LogisticRegressionCV(CrossValidated, LogisticRegression):
    """Logistic regression whose C is chosen by cross-validation, and ``l1_ratio`` too where several are given.

    Parameters
    ----------
    Cs : int or list of float, default=10
        The C to try; a number stands for so many from 1e-4 to 1e4.
    l1_ratios : list of float, default=(1.0,)
        The shares of the l1 penalty to try. The default is the one that makes sparse models; scikit-learn's is 0.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn; None stands for 5, stratified.
    scoring : str or callable, default=None
        What is compared: None is accuracy; 'accuracy' and 'neg_log_loss' are fastest, any other score of
        scikit-learn goes too.
    rule : {'best', '1se'}, default='best'
        '1se' takes the smallest C within one standard error of the best.
    relax : bool, default=False
        Also try the refits without penalty on the features of each fit, and blends of the two; ``gamma_`` is the share of
        the penalised weights that was best.
    class_weight : dict or 'balanced', default=None
        How much the rows of each class count.
    penalty : {'auto', 'l1', 'l2', 'elasticnet'}, default='auto'
        'auto' leaves it to ``l1_ratios``.
    {solver}

    Attributes
    ----------
    C_ : ndarray of shape (1,)
        The C that was chosen.
    l1_ratio_ : ndarray of shape (1,)
        The share that was chosen.
    Cs_ : ndarray of shape (n_cs,)
        All that were tried.
    l1_ratios_ : ndarray of shape (n_l1_ratios,)
        All that were tried.
    scores_ : ndarray of shape (n_folds, n_l1_ratios, n_cs)
        The scores, larger is better.
    coef_, intercept_, classes_, n_iter_, certificate_, trace_
        As in :class:`LogisticRegression`, of the fit to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import LogisticRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 20))
    >>> y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    >>> model = LogisticRegressionCV(Cs=[0.01, 0.1, 1.0], scoring="neg_log_loss").fit(X, y)
    >>> model.C_
    array([0.1])
    """

    _over_total = True

    def _ratios(self):
        fixed = {"l1": [1.0], "l2": [0.0]}
        return fixed.get(self.penalty) or [float(ratio) for ratio in self.l1_ratios]

    def _grid(self, problems, ratio):
        Cs = np.logspace(-4, 4, int(self.Cs)) if np.ndim(self.Cs) == 0 else np.sort(np.asarray(self.Cs, dtype=float))
        self.Cs_ = Cs
        return [problems[0].alpha_of(C) for C in Cs]

    def _scoring(self):
        return "accuracy" if self.scoring is None else self.scoring

    def _keep_scores(self, ratios, grids, tables, best):
        self.C_ = np.array([self.Cs_[best[1]]])
        self.l1_ratio_ = np.array([ratios[best[0]]])
        self.l1_ratios_ = np.array(ratios)
        self.scores_ = -np.moveaxis(np.array(tables), 0, 1)

    def _chosen(self, problem):
        return problem.with_alpha(problem.alpha_of(float(self.C_[0])), float(self.l1_ratio_[0]))


@parameters(l1_ratio=0.5, eps=1e-3, alphas=100, fit_intercept=True, positive=False, cv=None, rule="best", relax=False)
class ElasticNetCV(CrossValidated, ElasticNet):
    """The elastic net whose ``alpha`` is chosen by cross-validation, and ``l1_ratio`` too where several are given.

    Parameters
    ----------
    l1_ratio : float or list of float, default=0.5
        The shares of the l1 penalty to try.
    eps : float, default=1e-3
        The smallest alpha of a grid as a share of the largest, which leaves every weight zero.
    alphas : int or list of float, default=100
        The alphas to try; a number stands for so many, evenly spaced on a logarithmic scale.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    positive : bool, default=False
        No weight is negative.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn; None stands for 5.
    rule : {'best', '1se'}, default='best'
        '1se' takes the largest alpha whose error is within one standard error of the best.
    relax : bool, default=False
        Also try the refits without penalty on the features of each fit, and blends of the two; ``gamma_`` is the share of
        the penalised weights that was best.
    {solver}

    Attributes
    ----------
    alpha_, l1_ratio_, gamma_ : float
        What was chosen.
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratios, n_alphas)
        All that were tried.
    mse_path_ : ndarray of shape (n_alphas, n_folds) or (n_l1_ratios, n_alphas, n_folds)
        The mean squared errors on the held-out rows.
    coef_, intercept_, n_iter_, dual_gap_, certificate_, trace_
        As in :class:`ElasticNet`, of the fit to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import ElasticNetCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 30))
    >>> y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60)
    >>> model = ElasticNetCV(l1_ratio=[0.5, 0.9], alphas=20).fit(X, y)
    >>> model.l1_ratio_, model.mse_path_.shape
    (0.9, (2, 20, 5))
    """

    def _scoring(self):
        return "neg_mean_squared_error"

    def _keep_paths(self, paths):
        self.mse_path_ = paths


@parameters(eps=1e-3, alphas=100, fit_intercept=True, positive=False, cv=None, rule="best", relax=False)
class LassoCV(ElasticNetCV):
    """The Lasso whose ``alpha`` is chosen by cross-validation.

    Parameters
    ----------
    eps : float, default=1e-3
        The smallest alpha of a grid as a share of the largest, which leaves every weight zero.
    alphas : int or list of float, default=100
        The alphas to try; a number stands for so many, evenly spaced on a logarithmic scale.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    positive : bool, default=False
        No weight is negative.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn; None stands for 5.
    rule : {'best', '1se'}, default='best'
        '1se' takes the largest alpha whose error is within one standard error of the best.
    relax : bool, default=False
        Also try the refits without penalty on the features of each fit, and blends of the two; ``gamma_`` is the share of
        the penalised weights that was best.
    {solver}

    Attributes
    ----------
    alpha_ : float
        What was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        All that were tried.
    mse_path_ : ndarray of shape (n_alphas, n_folds)
        The mean squared errors on the held-out rows.
    coef_, intercept_, n_iter_, dual_gap_, certificate_, trace_
        As in :class:`Lasso`, of the fit to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import LassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 30))
    >>> y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60)
    >>> model = LassoCV(alphas=20, rule="1se").fit(X, y)
    >>> np.flatnonzero(model.coef_)[:2]
    array([0, 1])
    """

    def _ratios(self):
        return [1.0]


@parameters(
    "loss",
    loss="logistic",
    l1_ratio=1.0,
    eps=None,
    alphas=100,
    fit_intercept=True,
    cv=None,
    scoring="loss",
    rule="best",
    relax=False,
    class_weight=None,
    penalty_weights=None,
    **PENALTY,
)
class SparseClassifierCV(CrossValidated, SparseClassifier):
    """A sparse linear classifier whose ``alpha`` is chosen by cross-validation.

    Parameters
    ----------
    loss : {'logistic', 'squared-hinge'}, default='logistic'
        As in :class:`SparseClassifier`.
    l1_ratio : float or list of float, default=1.0
        The shares of the l1 penalty to try.
    eps : float, default=None
        The smallest alpha of a grid as a share of the largest; None is 1e-2 where there are more features than rows,
        else 1e-3.
    alphas : int or list of float, default=100
        The alphas to try; a number stands for so many, evenly spaced on a logarithmic scale.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn; None stands for 5, stratified.
    scoring : str or callable, default='loss'
        What is compared: 'loss' and 'accuracy' are fastest, any other score of scikit-learn goes too.
    rule : {'best', '1se'}, default='best'
        '1se' takes the largest alpha within one standard error of the best.
    relax : bool, default=False
        Also try the refits without penalty on the features of each fit, and blends of the two; ``gamma_`` is the share of
        the penalised weights that was best.
    class_weight : dict or 'balanced', default=None
        How much the rows of each class count.
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
    coef_, intercept_, classes_, n_iter_, certificate_, trace_
        As in :class:`SparseClassifier`, of the fit to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import SparseClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 20))
    >>> y = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, "yes", "no")
    >>> model = SparseClassifierCV(alphas=20, rule="1se").fit(X, y)
    >>> bool(model.alpha_ > 0.02), int(np.abs(model.coef_).argmax())
    (True, 0)
    """

    max_features = None

    def _scoring(self):
        if self.scoring == "accuracy" and self.loss != "logistic":
            # Classes that are learnt one by one have no accuracy each: it is that of all of them together.
            from sklearn.metrics import get_scorer

            return get_scorer("accuracy")
        return self.scoring


@parameters(
    "loss",
    loss="squared",
    l1_ratio=1.0,
    delta=1.345,
    power=1.5,
    theta=1.0,
    eps=None,
    alphas=100,
    fit_intercept=True,
    cv=None,
    scoring="loss",
    rule="best",
    relax=False,
    penalty_weights=None,
    **PENALTY,
)
class SparseRegressorCV(CrossValidated, SparseRegressor):
    """A sparse linear model of numbers whose ``alpha`` is chosen by cross-validation.

    Parameters
    ----------
    loss : {'squared', 'huber', 'poisson', 'gamma', 'tweedie', 'negative-binomial'}, default='squared'
        As in :class:`SparseRegressor`.
    l1_ratio : float or list of float, default=1.0
        The shares of the l1 penalty to try.
    delta : float, default=1.345
        Where the Huber loss turns from quadratic to linear, in the units of y.
    power, theta : float
        Parameters of the Tweedie and of the negative binomial loss, as in :class:`SparseRegressor`.
    eps : float, default=None
        The smallest alpha of a grid as a share of the largest; None is 1e-2 where there are more features than rows,
        else 1e-3.
    alphas : int or list of float, default=100
        The alphas to try; a number stands for so many, evenly spaced on a logarithmic scale.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn; None stands for 5.
    scoring : str or callable, default='loss'
        What is compared: 'loss' and 'r2' are fastest, any other score of scikit-learn goes too.
    rule : {'best', '1se'}, default='best'
        '1se' takes the largest alpha within one standard error of the best.
    relax : bool, default=False
        Also try the refits without penalty on the features of each fit, and blends of the two; ``gamma_`` is the share of
        the penalised weights that was best.
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
    coef_, intercept_, n_iter_, certificate_, trace_
        As in :class:`SparseRegressor`, of the fit to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox import SparseRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> y = X[:, 0] + rng.standard_t(1, size=100)
    >>> model = SparseRegressorCV("huber", alphas=20).fit(X, y)
    >>> int(np.abs(model.coef_).argmax())
    0
    """

    max_features = None

    def _scoring(self):
        return self.scoring

