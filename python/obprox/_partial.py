"""Learning from rows that come a part at a time: one epoch of a stochastic method over each."""

from __future__ import annotations

from . import _core
from ._compat import available_if
from ._parameters import checkpoint, threads
from .exceptions import ParameterError
from .solvers import method, settings


def _has_steps(estimator):
    """Whether the estimator learns by steps that can go on from weights alone."""
    chosen = method(estimator.solver)
    if not estimator._learns_in_parts:
        raise AttributeError(f"{type(estimator).__name__} learns from all rows at once")
    if chosen is None or chosen._name == "rda":
        raise AttributeError(
            f"solver={estimator.solver!r} learns from all rows at once: partial_fit is for those of obprox.solvers "
            "but RDA, such as solver=OBProxSG()"
        )
    return True


#: Makes a method be there for such estimators alone.
with_steps = available_if(_has_steps)


def learn(estimator, problems):
    """One epoch over the rows of the problems, from where the parts before led to."""
    if getattr(estimator, "max_features", None) is not None:
        raise ParameterError("max_features: λ is searched on all rows at once, by fit")
    if checkpoint(estimator) is not None:
        raise ParameterError("checkpoint: there is nothing to go on from within a part; save the estimator between them")
    epochs, steps = vars(estimator).get("_parts", (0, 0)) if estimator.__sklearn_is_fitted__() else (0, 0)
    chosen = settings(estimator, max_iter=1)
    penalised = [estimator._penalised(problem) for problem in problems]
    starts = estimator._here([problem.outputs for problem in penalised])
    fits = [
        _core.fit(problem, chosen, start=start, before=(epochs, steps), threads=threads(estimator.n_jobs))
        for problem, start in zip(penalised, starts)
    ]
    estimator._keep_figures(fits)
    estimator._keep_n_iter([epochs + 1] * len(fits))
    estimator._parts = (epochs + 1, fits[0].steps)
    return estimator
