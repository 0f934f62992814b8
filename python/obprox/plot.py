"""Pictures of paths and runs, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._path import Path


def _axes(ax):
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=(7, 4.2))[1]


def plot_path(path: Path, *, ax: Any = None, label: int = 8) -> Any:
    """Draw the weights of a path against the strength of the penalty.

    Parameters
    ----------
    path : Path
        What :func:`obprox.path` returned.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.
    label : int, default=8
        Name so many of the largest weights at the end of the path.

    Returns
    -------
    ax : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> import obprox
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> ax = obprox.plot_path(obprox.path(X, X[:, 0] - X[:, 1]))
    >>> ax.get_xlabel(), len(ax.texts)
    ('alpha', 2)
    """
    ax = _axes(ax)
    coefs = np.atleast_3d(path.coefs) if path.coefs.ndim == 3 else path.coefs[None]
    last = coefs[..., -1]
    named = set(np.argsort(-np.abs(last), axis=None)[:label].tolist())
    labels: list = []
    for flat in np.flatnonzero(np.abs(coefs).max(axis=-1)):
        output, feature = np.unravel_index(flat, last.shape)
        known = flat in named and last[output, feature] != 0
        (line,) = ax.plot(path.alphas, coefs[output, feature], lw=1.4 if known else 0.7, alpha=1.0 if known else 0.45)
        if known:
            name = feature if path.feature_names is None else path.feature_names[feature]
            text = f"{name}" if path.classes is None or len(coefs) == 1 else f"{name} · {path.classes[output]}"
            labels.append((last[output, feature], text, line.get_color()))
    ax.axhline(0, color="0.7", lw=0.8)
    labels.sort(key=lambda one: one[0])
    heights = _apart([height for height, _, _ in labels], 0.035 * np.ptp(ax.get_ylim()))
    for height, (_, text, color) in zip(heights, labels):
        place = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
        ax.annotate(text, (path.alphas[-1], height), color=color, fontsize=8, **place)
    ax.set(xscale="log", xlabel="alpha", ylabel="weight", title="The path: from all zeros to many weights")
    ax.invert_xaxis()
    return ax


def _apart(heights, least):
    """Rising heights moved as little as needed to be so far apart: those that touch share their mean."""
    groups: list = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _lowest(groups[-1], least) < _lowest(groups[-2], least) + len(groups[-2]) * least:
            upper = groups.pop()
            groups[-1] += upper
    return [_lowest(group, least) + at * least for group in groups for at in range(len(group))]


def _lowest(group, least):
    """Where the lowest of a group lies that is spread around its mean."""
    return np.mean(group) - least * (len(group) - 1) / 2


def plot_trace(estimator: Any, *, ax: Any = None) -> Any:
    """Draw how the objective and the duality gap fell during a fit.

    Parameters
    ----------
    estimator : object
        A fitted estimator, or its ``trace_``.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> import obprox
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> model = obprox.Lasso(alpha=0.1).fit(X, X[:, 0] - X[:, 1])
    >>> obprox.plot_trace(model).get_title()
    'What was left to win'
    """
    ax = _axes(ax)
    trace = getattr(estimator, "trace_", estimator)
    epoch, objective, gap = (np.asarray(trace[name], dtype=float) for name in ("epoch", "F", "gap"))
    # F less the best that is proved to be possible, which is what is left to win.
    floor = np.nanmax(objective - gap) if np.isfinite(gap).any() else np.nanmin(objective)
    above = np.maximum(objective - floor, np.finfo(float).tiny)
    ax.semilogy(epoch, above, marker="o", ms=3, label="F − best lower bound")
    if np.isfinite(gap).any():
        ax.semilogy(epoch, np.maximum(gap, np.finfo(float).tiny), marker="s", ms=3, label="duality gap")
    ax.set(xlabel="epoch", ylabel="above the optimum, at most", title="What was left to win")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    return ax


def plot_density(path_or_estimator: Any, *, ax: Any = None) -> Any:
    """Draw how many weights are not zero: along a path, or during a fit.

    Parameters
    ----------
    path_or_estimator : Path or object
        What :func:`obprox.path` returned, a fitted estimator, or its ``trace_``.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    ax : matplotlib Axes
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> import obprox
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> ax = obprox.plot_density(obprox.path(X, X[:, 0] - X[:, 1]))
    >>> ax.get_ylabel()
    'nonzero weights'
    """
    ax = _axes(ax)
    if hasattr(path_or_estimator, "alphas") and hasattr(path_or_estimator, "table"):
        table = path_or_estimator.table
        ax.step(path_or_estimator.alphas, np.asarray(table["nnz"]), where="mid")
        ax.set(xscale="log", xlabel="alpha", title="Weights that are not zero, along the path")
        ax.invert_xaxis()
    else:
        trace = getattr(path_or_estimator, "trace_", path_or_estimator)
        epoch, nnz, phase = (np.asarray(trace[name]) for name in ("epoch", "nnz", "phase"))
        ax.plot(epoch, nnz, marker="o", ms=3)
        for start in epoch[phase == "orthant"]:
            ax.axvspan(start - 1, start, color="tab:orange", alpha=0.12, lw=0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="epoch", title="Weights that are not zero" + (", Orthant epochs shaded" if "orthant" in phase else ""))
    ax.set_ylabel("nonzero weights")
    ax.set_ylim(bottom=0)
    return ax
