"""Pictures of paths and runs, with matplotlib."""

from __future__ import annotations

import numpy as np


def _axes(ax):
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=(7, 4.2))[1]


def plot_path(path, *, ax=None, label=8):
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
    """
    ax = _axes(ax)
    coefs = np.atleast_3d(path.coefs) if path.coefs.ndim == 3 else path.coefs[None]
    last = coefs[..., -1]
    named = set(np.argsort(-np.abs(last), axis=None)[:label].tolist())
    for flat in np.flatnonzero(np.abs(coefs).max(axis=-1)):
        output, feature = np.unravel_index(flat, last.shape)
        known = flat in named and last[output, feature] != 0
        (line,) = ax.plot(path.alphas, coefs[output, feature], lw=1.4 if known else 0.7, alpha=1.0 if known else 0.45)
        if known:
            name = feature if path.feature_names is None else path.feature_names[feature]
            text = f"{name}" if len(coefs) == 1 else f"{name} · {path.classes[output]}"
            place = (path.alphas[-1], last[output, feature])
            ax.annotate(text, place, xytext=(4, 0), textcoords="offset points", va="center", color=line.get_color(), fontsize=8)
    ax.axhline(0, color="0.7", lw=0.8)
    ax.set(xscale="log", xlabel="alpha", ylabel="weight", title="The path: from all zeros to many weights")
    ax.invert_xaxis()
    return ax


def plot_trace(estimator, *, ax=None):
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
    ax.legend(frameon=False)
    return ax


def plot_density(path_or_estimator, *, ax=None):
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
        ax.set(xlabel="epoch", title="Weights that are not zero" + (", Orthant epochs shaded" if "orthant" in phase else ""))
    ax.set_ylabel("nonzero weights")
    ax.set_ylim(bottom=0)
    return ax
