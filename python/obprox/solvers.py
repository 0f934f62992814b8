"""The paper's methods with their settings, for ``solver=`` of every estimator and of ``path``.

A method's name does as well where the settings are the paper's: ``solver="obproxsg"`` is ``solver=OBProxSG()``.
"""

from __future__ import annotations

from typing import Any, Optional, Union

from . import _core
from ._compat import BaseEstimator
from ._parameters import number, seed, whole
from .exceptions import ParameterError

__all__ = ["OBProxSG", "OBProxSGPlus", "ProxSG", "ProxSVRG", "RDA"]

#: scikit-learn's solvers of the same problem: whoever names one wants the optimum.
SKLEARN_SOLVERS = {"lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"}

_STEPS = """\
step : float or 'auto', default=1.0
    The first step size; 'auto' takes it from the smoothness of loss and data.
schedule : {'decay', 'constant', '1/k', '1/sqrt-k'}, default='decay'
    How the step size moves: 'decay' by a factor after each epoch, the last two with each step.
decay : float, default=0.995
    The factor of 'decay'.
batch : int or 'all', default=None
    Rows in a batch; None is the paper's min(256, N/100).
random_state : int, RandomState or None, default=None
    The seed of the batches; None is 0. The same seed gives the same bits for any number of threads."""


class Method(BaseEstimator):
    """A method with its settings: a value, like any other parameter of an estimator."""

    _name: str
    random_state: Any

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        steps = _STEPS if cls._name != "rda" else _STEPS[_STEPS.index("batch") :]
        cls.__doc__ = (cls.__doc__ or "").replace("{steps}", steps.replace("\n", "\n    "))

    def _keywords(self):
        """What the core is told."""
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "random_state"}
        for name in ("decay", "gamma"):
            if name in given:
                given[name] = number(name, given[name])
        if "n_p" in given:
            given["n_p"] = whole("n_p", given["n_p"], 0)
            given["n_o"] = float("inf") if given["n_o"] is None else whole("n_o", given["n_o"], 0)
        return {**given, "seed": seed(self.random_state)}


class OBProxSG(Method):
    """OBProx-SG: epochs of Prox-SG steps, which find the support, and of Orthant steps, which thin it, in turn.

    Parameters
    ----------
    n_p : int, default=5
        Prox-SG epochs before Orthant steps.
    n_o : int or None, default=5
        Orthant epochs before Prox-SG again; None is for ever.
    switch : {'epochs', 'iterations', 'adaptive', 'objective:VALUE'}, default='epochs'
        What ``n_p`` and ``n_o`` count, or what decides in their place.
    {steps}

    Examples
    --------
    >>> from obprox import LogisticRegression
    >>> from obprox.solvers import OBProxSG
    >>> LogisticRegression(C=1.0, solver=OBProxSG(n_p=15, n_o=None, step=0.5)).solver.step
    0.5
    """

    _name = "obproxsg"

    def __init__(
        self,
        n_p: int = 5,
        n_o: Optional[int] = 5,
        *,
        switch: str = "epochs",
        step: Union[float, str] = 1.0,
        schedule: str = "decay",
        decay: float = 0.995,
        batch: Union[int, str, None] = None,
        random_state: Any = None,
    ) -> None:
        self.n_p, self.n_o, self.switch = n_p, n_o, switch
        self.step, self.schedule, self.decay = step, schedule, decay
        self.batch, self.random_state = batch, random_state


class OBProxSGPlus(OBProxSG):
    """OBProx-SG+: Prox-SG epochs, then Orthant steps for good.

    Parameters
    ----------
    n_p : int, default=15
        Prox-SG epochs before Orthant steps.
    n_o : int or None, default=None
        Orthant epochs before Prox-SG again; None is for ever.
    switch : {'epochs', 'iterations', 'adaptive', 'objective:VALUE'}, default='epochs'
        What ``n_p`` and ``n_o`` count, or what decides in their place.
    {steps}
    """

    _name = "obproxsg-plus"

    def __init__(
        self,
        n_p: int = 15,
        n_o: Optional[int] = None,
        *,
        switch: str = "epochs",
        step: Union[float, str] = 1.0,
        schedule: str = "decay",
        decay: float = 0.995,
        batch: Union[int, str, None] = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_p, n_o, switch=switch, step=step, schedule=schedule, decay=decay, batch=batch, random_state=random_state
        )


class ProxSG(Method):
    """The proximal stochastic gradient method.

    Parameters
    ----------
    {steps}
    """

    _name = "prox-sg"

    def __init__(
        self,
        *,
        step: Union[float, str] = 1.0,
        schedule: str = "decay",
        decay: float = 0.995,
        batch: Union[int, str, None] = None,
        random_state: Any = None,
    ) -> None:
        self.step, self.schedule, self.decay = step, schedule, decay
        self.batch, self.random_state = batch, random_state


class ProxSVRG(ProxSG):
    """Prox-SG with variance reduction: each epoch corrects its gradients by the full gradient at its start.

    Parameters
    ----------
    average : bool, default=False
        Take the mean of an epoch's iterates instead of the last.
    {steps}
    """

    _name = "prox-svrg"

    def __init__(
        self,
        *,
        average: bool = False,
        step: Union[float, str] = 1.0,
        schedule: str = "decay",
        decay: float = 0.995,
        batch: Union[int, str, None] = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(step=step, schedule=schedule, decay=decay, batch=batch, random_state=random_state)
        self.average = average


class RDA(Method):
    """Regularised dual averaging, which has no step size.

    Parameters
    ----------
    gamma : float, default=0.1
        The weight of its strongly convex part.
    {steps}
    """

    _name = "rda"

    def __init__(self, *, gamma: float = 0.1, batch: Union[int, str, None] = None, random_state: Any = None) -> None:
        self.gamma, self.batch, self.random_state = gamma, batch, random_state


METHODS = {method._name: method for method in (OBProxSG, OBProxSGPlus, ProxSG, ProxSVRG, RDA)}


def method(solver):
    """The method that ``solver`` stands for; None is auto."""
    if isinstance(solver, Method):
        return solver
    if isinstance(solver, str) and (solver == "auto" or solver in SKLEARN_SOLVERS):
        return None
    if isinstance(solver, str) and solver in METHODS:
        return METHODS[solver]()
    names = ", ".join(["auto", *METHODS])
    raise ParameterError(f"solver: {solver!r} is none of {names}, and no method of obprox.solvers")


def name(solver):
    """What logs and progress bars call it."""
    chosen = method(solver)
    return "auto" if chosen is None else chosen._name


def settings(estimator, max_iter=None):
    """The core's settings for the keywords of an estimator; ``max_iter`` in place of its own, where given."""
    max_iter = estimator.max_iter if max_iter is None else max_iter
    chosen = method(estimator.solver)
    return _core.Settings(
        "auto" if chosen is None else chosen._name,
        max_iter=None if max_iter is None else whole("max_iter", max_iter, 1),
        tol=number("tol", estimator.tol),
        **({} if chosen is None else chosen._keywords()),
    )
