"""What all estimators have in common: state problems, have them solved, keep what comes out."""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._compat import (
    BaseEstimator,
    ConvergenceWarning,
    NotFittedError,
    scipy_csr_matrix,
)
from ._files import shards
from ._inputs import vector
from ._parameters import checkpoint, number, penalty, threads
from ._progress import Progress
from ._results import Certificate, columns, combined, table
from ._tables import checked
from .solvers import name as solver_name
from .solvers import settings

if TYPE_CHECKING:
    from typing_extensions import Self


#: The keyword that a loss has for itself.
LOSS_PARAMETERS = {"huber": "delta", "tweedie": "power", "negative-binomial": "theta"}
#: The losses of numbers that are not negative, whose mean is e to the margin.
LOG_LINK = ("poisson", "gamma", "tweedie", "negative-binomial")


def _sparse_product(X, coef):
    """X @ coef.T in the memory of their nonzeros: scipy's own takes some for every column there is."""
    if not hasattr(X, "indptr"):
        return X @ coef.toarray().T
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    product = np.zeros((X.shape[0], coef.shape[0]))
    for output in range(coef.shape[0]):
        own = slice(coef.indptr[output], coef.indptr[output + 1])
        order = np.argsort(coef.indices[own])
        features, values = coef.indices[own][order], coef.data[own][order]
        if len(features):
            at = np.minimum(np.searchsorted(features, X.indices), len(features) - 1)
            terms = np.where(features[at] == X.indices, values[at] * X.data, 0.0)
            product[:, output] = np.bincount(rows, weights=terms, minlength=X.shape[0])
    return product


class Linear(BaseEstimator):
    """A linear model with a certificate."""

    coef_: Any
    intercept_: Any
    n_iter_: Any
    n_features_in_: int
    certificate_: Certificate
    _loss: str | None = None

    # ---- what is solved ------------------------------------------------------------------------------------------

    def _loss_parameter(self):
        named = LOSS_PARAMETERS.get(self._loss_name())
        return None if named is None else getattr(self, named, None)

    def _loss_name(self):
        return self._loss

    def _penalised(self, problem):
        """The problem with its penalty."""
        return problem.with_alpha(number("alpha", self.alpha), number("l1_ratio", self.l1_ratio))

    def _state(self, matrix, targets, loss, sample_weight, **options):
        """A problem of the core, without penalty yet."""
        n_features = matrix.shape[1]
        return _core.Problem(
            matrix,
            np.ascontiguousarray(targets, dtype=np.float64),
            loss,
            parameter=self._loss_parameter(),
            row_weights=vector(sample_weight, len(targets), "sample_weight"),
            offset=vector(self._offset, len(targets), "offset"),
            feature_weights=vector(getattr(self, "penalty_weights", None), n_features, "penalty_weights"),
            fit_intercept=bool(self.fit_intercept),
            threads=threads(self.n_jobs),
            **penalty(self, n_features),
            **options,
        )

    # ---- how it is solved ----------------------------------------------------------------------------------------

    #: The offsets of the rows while they are learnt from; fitted models know only whether there were any.
    _offset: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows. Used without a copy where they are C-ordered float64 or float32, or CSR of these with sorted
            int32 columns.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.
        offset : array-like of shape (n_samples,), default=None
            What is added to the margin of each row: known beforehand, such as the logarithm of an exposure, and not
            learnt. Predictions then need it too.

        Returns
        -------
        self : object
            The fitted estimator. An interrupt (Ctrl-C) leaves it unfitted.
        """
        with self._beside(offset):
            self._keep(*self._run(self._problems(X, y, sample_weight)))
        return self

    @contextmanager
    def _beside(self, offset):
        """Learns beside offsets; an interrupt leaves the estimator unfitted."""
        self._offset = offset
        try:
            yield
            self._has_offset = offset is not None
        except KeyboardInterrupt:
            self._forget()
            raise
        finally:
            self._offset = None

    def fit_files(
        self,
        paths: Any,
        *,
        memory: int | str = "1G",
        cache: str | os.PathLike[str] | None = None,
        n_features: int | None = None,
        label: str | None = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> Self:
        """Fit the model on files that may be larger than memory.

        They are parsed once into shards of as many rows each, in a cache directory, and used again from there while they
        are unchanged; shards are then read one after the other. ``solver="auto"`` works by passes over them; with the
        paper's methods an epoch is a random order of the shards, and a random order of the rows within each. The weights
        do not depend on ``memory``.

        Parameters
        ----------
        paths : str, path-like, or a sequence of these
            LIBSVM or CSV files (numbers; the label first), plain or compressed, or caches (``.obx``); a pattern such as
            ``"part-*.svm.zst"`` or a directory stands for its files in the order of their names.
        memory : int or str, default="1G"
            Memory for rows, in bytes or with a unit: ``"500M"``, ``"2G"``. The n weights, and some tens of bytes a row
            for targets and margins, come on top.
        cache : path-like, default=None
            The directory of the shards; ``.obprox`` beside the first file where None.
        n_features : int, default=None
            At least that many columns, for data whose last columns are empty.
        label : str, default=None
            The label's column of CSV files: ``"first"``, ``"last"``, its number counted from 1, or its name.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.
        offset : array-like of shape (n_samples,), default=None
            What is added to the margin of each row; predictions then need it too.

        Returns
        -------
        self : object
            The fitted estimator. An interrupt (Ctrl-C) leaves it unfitted.
        """
        if self._not_on_files is not None:
            raise TypeError(f"{type(self).__name__} {self._not_on_files}")
        crew = threads(self.n_jobs)
        found = shards(paths, memory, cache, n_cols=n_features, label=label, threads=crew)
        self.n_features_in_ = found.shape[1]
        vars(self).pop("feature_names_in_", None)
        if found.names is not None:
            self.feature_names_in_ = np.array(found.names, dtype=object)
        with self._beside(offset):
            self._keep(*self._run(self._stated(found, found.targets(crew), sample_weight)))
        return self

    #: Whether rows may come a part at a time.
    _learns_in_parts = True

    #: Why an estimator is not fitted on files, where it is not.
    _not_on_files: str | None = None

    #: The directory of the fit within that of the checkpoint.
    _fit_part: tuple[str, ...] = ()

    def _run(self, problems):
        """Solves the problems one after the other: the fits, and the settings they were made with."""
        chosen = settings(self)
        penalised = [self._penalised(problem) for problem in problems]
        starts = self._starts([problem.outputs for problem in problems])
        with Watch(self, chosen.max_iter) as watch:
            most = getattr(self, "max_features", None)
            fits = []
            for at, (problem, start) in enumerate(zip(penalised, starts)):
                # Several targets, or classes one by one, have a directory each.
                part = (*self._fit_part, str(at)) if len(problems) > 1 else self._fit_part
                kept = checkpoint(self, *part)
                call = {"on_epoch": watch.on_epoch, "checkpoint": kept, "threads": threads(self.n_jobs)}
                if most is not None:
                    fits.append(_core.fit_at_most(problem, chosen, int(most), **call))
                else:
                    fits.append(_core.fit(problem, chosen, start=start, **call))
            return fits, chosen

    def _starts(self, outputs):
        """Where each of the problems starts: for a warm start at the solution before."""
        return self._here(outputs) if self.warm_start else [None] * len(outputs)

    def _here(self, outputs):
        """The solution that there is for each of the problems, if it has their shape."""
        coef = getattr(self, "coef_", None)
        nowhere = [None] * len(outputs)
        if coef is None:
            return nowhere
        coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef).astype(float)
        intercept = np.broadcast_to(np.ravel(self.intercept_), len(coef)).astype(float)
        if coef.shape != (sum(outputs), self.n_features_in_):
            return nowhere
        at = np.cumsum(outputs)[:-1]
        return list(zip(np.split(coef, at), np.split(intercept, at)))

    def _keep(self, fits, chosen):
        """Makes the results attributes, and says so where they are not what was asked for."""
        self._keep_figures(fits)
        self._warn(chosen)

    def _keep_figures(self, fits):
        """Makes the results attributes."""
        vars(self).pop("_parts", None)
        self.certificate_ = combined([Certificate(**fit.certificate) for fit in fits])
        traces = [columns(fit.trace) for fit in fits]
        self._trace = traces[0] if len(traces) == 1 else _stacked(traces)
        self._keep_weights(np.vstack([fit.coef for fit in fits]), np.concatenate([fit.intercept for fit in fits]))
        self._keep_n_iter([fit.n_iter for fit in fits])

    def _keep_n_iter(self, counts):
        self.n_iter_ = counts[0] if len(counts) == 1 else counts

    def _warn(self, chosen):
        """Says that the tolerance was not reached, and what was."""
        status, reached = self.certificate_.status, self.certificate_.relative_gap
        if status in ("converged", "stopped"):
            return
        measure = "relative duality gap" if reached is not None else "KKT distance"
        reached = self.certificate_.kkt if reached is None else reached
        advice = {
            "max_epochs": f"increase max_iter (now {chosen.max_iter})",
            "stalled": "rounding stands in the way: increase tol, or scale the features",
            "diverged": "give the method a smaller step, step='auto', or scale the features",
        }[status]
        warnings.warn(
            f"{type(self).__name__}(solver={solver_name(self.solver)!r}) ended with status {status!r} at a {measure} of "
            f"{reached:.3g}, and tol={self.tol:g}. To get there: {advice}.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _forget(self):
        """Makes the estimator unfitted again."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    # ---- what comes out ------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self):
        return "coef_" in vars(self)

    def _check_fitted(self):
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFittedError(
                f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments before using it."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def trace_(self) -> Any:
        """The epochs of the run as a table: a DataFrame where pandas is there, else a dict of arrays."""
        self._check_fitted()
        return table(self._trace)

    _has_offset = False

    def _margins(self, X, offset=None):
        """x·d + b of each row, and its offset."""
        self._check_fitted()
        X = checked(self, X, reset=False)
        if self._has_offset != (offset is not None):
            said = "with offsets: give those of these rows" if self._has_offset else "without offsets: give none"
            raise ValueError(f"offset: this {type(self).__name__} was fitted {said}")
        if hasattr(self.coef_, "toarray"):
            margins = _sparse_product(X, self.coef_) + self.intercept_
        else:
            margins = X @ np.asarray(self.coef_).T + self.intercept_
        if offset is None:
            return margins
        offset = vector(offset, X.shape[0], "offset")
        return margins + (offset if margins.ndim == 1 else offset[:, None])

    def sparsify(self) -> Self:
        """Keep ``coef_`` as a scipy CSR matrix, which holds the nonzeros alone. Predictions stay the same.

        Returns
        -------
        self : object
            The estimator.
        """
        self._check_fitted()
        self.coef_ = scipy_csr_matrix("sparsify makes a scipy matrix")(self.coef_)
        return self

    def densify(self) -> Self:
        """Keep ``coef_`` as a numpy array again.

        Returns
        -------
        self : object
            The estimator.
        """
        self._check_fitted()
        if hasattr(self.coef_, "toarray"):
            self._keep_weights(self.coef_.toarray(), np.atleast_1d(self.intercept_))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as ``model.json``, which the command and :func:`obprox.load` read.

        Parameters
        ----------
        path : str or path-like
            The file. It appears whole or not at all.
        """
        self._check_fitted()
        from ._model import save

        save(self, path)

    def _repr_html_(self) -> str:
        return self._html()

    def _repr_mimebundle_(self, **_):
        return {"text/plain": repr(self), "text/html": self._html()}

    def _html(self):
        from html import escape

        diagram = getattr(BaseEstimator, "_repr_html_inner", None)
        shown = diagram(self) if diagram is not None else f"<pre>{escape(repr(self))}</pre>"
        return shown + (self.certificate_._repr_html_() if self.__sklearn_is_fitted__() else "")


class Watch:
    """What looks at a run: the progress bar and the user's callback, as one function for the core."""

    def __init__(self, estimator, max_iter):
        self._bar = Progress(solver_name(estimator.solver), max_iter, estimator.tol) if estimator.verbose else None
        self._callback = estimator.callback
        watched = self._bar is not None or self._callback is not None
        self.on_epoch = self._epoch if watched else None

    def _epoch(self, figures):
        if self._bar is not None:
            self._bar.epoch(figures)
        return bool(self._callback(figures)) if self._callback is not None else False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._bar is not None:
            self._bar.close()


def _stacked(traces):
    """Several traces as one, with a column that tells them apart."""
    output = np.concatenate([np.full(len(trace["epoch"]), at) for at, trace in enumerate(traces)])
    return {"output": output, **{name: np.concatenate([trace[name] for trace in traces]) for name in traces[0]}}
