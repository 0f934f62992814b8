"""The keywords of the estimators: declared once, checked by the core."""

from __future__ import annotations

import inspect
import os
from numbers import Integral

import numpy as np

from ._inputs import vector
from .exceptions import ParameterError

#: The keywords that say how a problem is solved, the same for every estimator, with their defaults.
SOLVER = {
    "solver": "auto",
    "tol": 1e-6,
    "max_iter": None,
    "warm_start": False,
    "n_jobs": None,
    "verbose": 0,
    "callback": None,
    "checkpoint": None,
    "resume": False,
}

SOLVER_DOC = """\
solver : {'auto', 'obproxsg-plus', 'obproxsg', 'prox-sg', 'rda', 'prox-svrg'} or Method, default='auto'
    'auto' finds the support, solves on it by Newton steps and proves the optimum. The others are the paper's
    methods, exactly as the paper has them: they make sparse models quickly and seldom reach ``tol``. Other settings
    of theirs are given with the method itself, ``OBProxSG(n_p=10)``: see :mod:`obprox.solvers`.
tol : float, default=1e-6
    Stops at this relative duality gap: F is then at most ``tol * F`` above its minimum. (The KKT distance
    where the loss has no dual.) The last rounds of 'auto' are Newton steps, which double the digits: a smaller
    ``tol`` costs one more of them.
max_iter : int, default=None
    At most this many rounds of 'auto', or epochs of the others; None stands for 200 and 30.
warm_start : bool, default=False
    Start from the solution of the previous fit.
n_jobs : int, default=None
    Threads. None and -1 are all cores, or what OMP_NUM_THREADS says.
verbose : int, default=0
    1 shows a progress bar, in a terminal or a notebook.
callback : callable, default=None
    Is called after each epoch with a dict of its figures (``epoch``, ``F``, ``gap``, ``nnz``, ...) and stops the
    run by returning something true.
checkpoint : str or path-like, default=None
    A directory that keeps the state of the run after every epoch. It belongs to one fit at a time, so searches that
    fit copies side by side cannot share one.
resume : bool, default=False
    Go on from what ``checkpoint`` holds, of the same data and settings, to the same bits as a run that was never
    broken off; where it holds nothing, start. Without it what is there is replaced."""

#: Keywords that are the method's own, by the names that other packages give them too.
OF_METHODS = {
    "average", "batch", "batch_size", "decay", "gamma", "n_o", "n_p", "random_state", "schedule", "step", "step_size", "switch"
}


def parameters(*positional, **keywords):
    """Gives a class its ``__init__``: the parameters and defaults as given, then those of every solver.

    An estimator's parameters are stored as they come and nothing else is done with them, so there is nothing to write
    by hand. The names in ``positional`` may also be given by place.
    """

    def decorate(cls):
        kinds = inspect.Parameter
        defaults = {**keywords, **{name: value for name, value in SOLVER.items() if name not in keywords}}
        kind = {name: kinds.POSITIONAL_OR_KEYWORD if name in positional else kinds.KEYWORD_ONLY for name in defaults}
        members = [kinds(name, kind[name], default=value) for name, value in defaults.items()]
        signature = inspect.Signature([kinds("self", kinds.POSITIONAL_OR_KEYWORD), *members])

        def __init__(self, *args, **kwargs):
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError as error:
                theirs = sorted(OF_METHODS.intersection(kwargs))
                advice = f"; {theirs[0]} is for the methods of obprox.solvers, 'auto' has no use for it" if theirs else ""
                raise TypeError(f"{cls.__name__}: {error}{advice}") from None
            given.apply_defaults()
            for name in defaults:
                setattr(self, name, given.arguments[name])

        __init__.__signature__ = signature
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__
        if cls.__doc__:
            for name, text in {"solver": SOLVER_DOC, "penalty": PENALTY_DOC}.items():
                cls.__doc__ = cls.__doc__.replace(f"{{{name}}}", text.replace("\n", "\n    "))
        return cls

    return decorate


#: What the penalty is on, beyond single weights.
PENALTY = {"positive": False, "bounds": None, "groups": None, "group_weights": None, "group_l1": 0.0}

PENALTY_DOC = """\
positive : bool, default=False
    No weight is negative.
bounds : (low, high), default=None
    No weight leaves its bounds, which have 0 between them: numbers, or array-likes of shape (n_features,).
groups : array-like of shape (n_features,) or 'each', default=None
    The group of each feature, by any names: features of a group are zero together, or none of them is
    (group lasso). With 'each' the weights of a feature for all classes are a group.
group_weights : {None, 'one'} or dict, default=None
    What the penalty of each group is multiplied by: None stands for the root of its number of weights, 'one' for 1; a
    dict names groups, the others have 1. A weight of 0 leaves the group unpenalised.
group_l1 : float, default=0.0
    The share of l1 in the penalty of groups: single features of a group can then be zero (sparse group lasso)."""


def penalty(estimator, n_features):
    """The core's keywords for a penalty on bounded or grouped weights."""
    given = {name: getattr(estimator, name, default) for name, default in PENALTY.items()}
    chosen = [name for name in ("positive", "bounds", "groups") if given[name] is not None and given[name] is not False]
    if len(chosen) > 1:
        raise ParameterError(f"{chosen[1]}: cannot be had together with {chosen[0]}")
    if given["groups"] is None:
        for name in ("group_weights", "group_l1"):
            if given[name] is not None and given[name] != PENALTY[name]:
                raise ParameterError(f"{name}: there are no groups, give them")
    if given["positive"]:
        return {"bounds": (np.zeros(n_features), np.full(n_features, np.inf))}
    if given["bounds"] is not None:
        try:
            low, high = given["bounds"]
        except (TypeError, ValueError):
            raise ParameterError("bounds: give two, the lower and the upper") from None
        return {"bounds": (vector(low, n_features, "bounds"), vector(high, n_features, "bounds"))}
    if given["groups"] is None:
        return {}
    if getattr(estimator, "penalty_weights", None) is not None:
        raise ParameterError("penalty_weights: groups have weights of their own, group_weights")
    return {**_groups(given["groups"], given["group_weights"], n_features), "group_l1": number("group_l1", given["group_l1"])}


def penalty_name(estimator):
    """What model files call the penalty of an estimator; None where it is on single weights."""
    if getattr(estimator, "groups", None) is not None:
        return "sparse group" if estimator.group_l1 else "group"
    return "positive" if getattr(estimator, "positive", False) else "bounds" if getattr(estimator, "bounds", None) is not None else None


def _groups(groups, weights, n_features):
    """The number of each feature's group, and the groups' weights."""
    if isinstance(groups, str):
        if groups != "each":
            raise ParameterError(f"groups: {groups!r} is neither 'each' nor a group for each feature")
        groups = np.arange(n_features)
    groups = np.asarray(groups)
    if groups.shape != (n_features,):
        raise ValueError(f"groups.shape == {groups.shape}, expected ({n_features},)!")
    names, numbers = np.unique(groups, return_inverse=True)
    found = {"groups": numbers.astype(np.uint32)}
    if isinstance(weights, dict):
        unknown = [name for name in weights if name not in names]
        if unknown:
            raise ParameterError(f"group_weights: there is no group {unknown[0]!r}")
        found["group_weights"] = np.array([float(weights.get(name, 1.0)) for name in names.tolist()])
    elif isinstance(weights, str) and weights == "one":
        found["group_weights"] = np.ones(len(names))
    elif weights is not None:
        raise ParameterError(f"group_weights: {weights!r} is none of None, 'one' or a dict")
    return found


def checkpoint(estimator, *parts):
    """The directory that keeps a piece of work, and whether to go on from it; None where nothing is to be kept."""
    if estimator.checkpoint is None:
        if estimator.resume:
            raise ParameterError("resume: there is nothing to go on from without checkpoint, the directory of it")
        return None
    try:
        return os.path.join(os.fsdecode(estimator.checkpoint), *parts), bool(estimator.resume)
    except TypeError:
        raise ParameterError(f"checkpoint: {estimator.checkpoint!r} is not the path of a directory") from None


def number(name, value):
    """A parameter that is a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name}: {value!r} is not a number") from None


def whole(name, value, least):
    """A parameter that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name}: {value!r} must be a whole number, at least {least}")
    return int(value)


def seed(random_state):
    """A number for a random state: the same one draws the same batches."""
    if random_state is None:
        return 0
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31 - 1))
    if hasattr(random_state, "integers"):
        return int(random_state.integers(2**31 - 1))
    if not isinstance(random_state, Integral):
        raise ParameterError(f"random_state: {random_state!r} cannot be used as a seed; give a whole number")
    return int(random_state) % 2**64


def threads(n_jobs):
    """How many threads ``n_jobs`` asks for; 0 is one for each core."""
    if n_jobs is None:
        # joblib limits its workers by this variable, so that they do not take each other's cores.
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return int(limit) if limit.isdigit() else 0
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning")
    cores = os.cpu_count() or 1
    # More threads than cores only take each other's place.
    return min(int(n_jobs), cores) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def weights_of_classes(class_weight, classes):
    """``class_weight`` as the core takes it: pairs of class number and weight, and whether it is 'balanced'."""
    if class_weight is None:
        return None, False
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight: {class_weight!r} is neither 'balanced' nor a dict")
        return None, True
    number = {label: at for at, label in enumerate(classes.tolist())}
    unknown = [label for label in class_weight if _plain(label) not in number]
    if unknown:
        raise ValueError(f"class_weight: {unknown[0]!r} is no class; the classes are {classes.tolist()}")
    return [(float(number[_plain(label)]), float(weight)) for label, weight in class_weight.items()], False


def _plain(label):
    return label.item() if isinstance(label, np.generic) else label
