"""What a run leaves: its certificate and its trace."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import Optional

import numpy as np


@dataclass(frozen=True)
class Certificate:
    """How good a result is, and how far it can be from the optimum at most.

    Attributes
    ----------
    status : str
        'converged', 'max_epochs', 'stalled' (rounding stands in the way), 'stopped' (by a callback) or 'diverged'.
    F, f : float
        The objective, and the mean loss in it.
    gap : float or None
        F is at most this much above its minimum; None where the loss has no dual.
    relative_gap : float or None
        The gap relative to F, which is compared with ``tol``.
    kkt : float
        The largest violation of an optimality condition.
    gradient_mapping : float
        The norm of the gradient mapping at step size 1.
    l1 : float
        The sum of the absolute weights.
    nnz : int
        Weights that are not zero, the intercept not counted.
    density : float
        The share of weights that are not zero, intercept included.
    lambda_, l2 : float
        The weights of the penalties in F, which is a mean over the rows.
    lambda_max : float or None
        The smallest ``lambda_`` that leaves every weight zero.
    seconds : float or None
        Training time, without evaluation.
    """

    status: str
    F: float
    f: float
    gap: Optional[float]
    relative_gap: Optional[float]
    kkt: float
    gradient_mapping: float
    l1: float
    nnz: int
    density: float
    lambda_: float
    l2: float
    lambda_max: Optional[float] = None
    seconds: Optional[float] = None

    def __getitem__(self, name):
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def keys(self):
        """The names of the figures, so that ``dict(certificate)`` is a dict."""
        return [field.name for field in fields(self)]

    def _repr_html_(self):
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._figures())
        return f"<table><caption>certificate: {escape(self.status)}</caption><tbody>{rows}</tbody></table>"

    def _figures(self):
        """The figures for people: name and text."""
        lines = [("status", self.status), ("F", f"{self.F:.8g}")]
        if self.gap is not None:
            lines.append(("gap", f"{self.gap:.2g} ({self.relative_gap:.2g} of F)"))
        lines += [("KKT distance", f"{self.kkt:.2g}"), ("nonzero", f"{self.nnz} ({self.density:.3%})")]
        share = f" = {self.lambda_ / self.lambda_max:.4g} λ_max" if self.lambda_max else ""
        return [*lines, ("λ", f"{self.lambda_:.6g}{share}")]


#: From bad to good: several runs together are as good as the worst of them.
_STATUSES = ["diverged", "stalled", "max_epochs", "stopped", "converged"]


def combined(certificates):
    """One certificate for several runs: their objectives add up, and so do their gaps."""
    if len(certificates) == 1:
        return certificates[0]
    column = {name: [certificate[name] for certificate in certificates] for name in certificates[0].keys()}
    add = lambda name: None if None in column[name] else sum(column[name])
    gap, scale = add("gap"), max(abs(add("F")), 1e-300)
    return Certificate(
        status=min(column["status"], key=_STATUSES.index),
        F=add("F"),
        f=add("f"),
        gap=gap,
        relative_gap=None if gap is None else gap / scale,
        kkt=max(column["kkt"]),
        gradient_mapping=float(np.linalg.norm(column["gradient_mapping"])),
        l1=add("l1"),
        nnz=add("nnz"),
        density=float(np.mean(column["density"])),
        lambda_=column["lambda_"][0],
        l2=column["l2"][0],
        lambda_max=max(column["lambda_max"]),
        seconds=add("seconds"),
    )


def columns(records):
    """A list of dicts as a dict of arrays; a figure that a record does not have is NaN."""
    names = list(dict.fromkeys(name for record in records for name in record))
    missing = lambda value: np.nan if value is None else value
    return {name: np.array([missing(record.get(name)) for record in records]) for name in names}


def table(data):
    """A dict of arrays as a DataFrame where pandas is there, else as it is."""
    try:
        import pandas
    except ImportError:
        return data
    return pandas.DataFrame(data)
