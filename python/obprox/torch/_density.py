"""A density that was asked for: a plan over the steps of a run, and the λ of each step that keeps to it.

The same as ``optim/density.rs`` of the crate ``obprox-nn``, which tells the why.
"""

from __future__ import annotations

import math
from typing import List, NamedTuple, Sequence

import torch
from torch import Tensor


class Plan(NamedTuple):
    """Which density a run of so many steps is to end with, and when."""

    target: float
    steps: int
    #: The share of the steps after which the descent begins, where no switch to Orthant steps began it before.
    latest: float = 0.4
    #: The share of the steps after which the target is reached, and zeros are held.
    reach: float = 0.75
    #: The share of the target that every tensor keeps of its own entries, one of them at least.
    floor: float = 0.1

    def density(self, begun: int, first: float, done: int) -> float:
        """What may be left after ``done`` steps of a descent that began after ``begun``, at the density ``first``."""
        reach = self.reach * self.steps
        left = 1 - min(1.0, max(0.0, (done - begun) / (reach - begun))) if reach > begun else 0.0
        return self.target + max(0.0, first - self.target) * left**3

    def least(self, size: int) -> int:
        """How many entries a tensor of a size keeps at least."""
        return min(max(1, math.ceil(self.floor * self.target * size)), max(1, size))

    def check_sizes(self, sizes: Sequence[int]) -> None:
        """Refuses a density that leaves less than every tensor has to keep."""
        total, least = sum(sizes), sum(map(self.least, sizes))
        if total == 0:
            raise ValueError("target_density: nothing is penalised, so nothing can become zero")
        if kept(self.target, total) < least:
            raise ValueError(
                f"target_density: {self.target} leaves {kept(self.target, total)} of {total} entries, and {len(sizes)} "
                f"tensors need {least} to stay alive: ask for {least / total:.2e} or more"
            )


def kept(density: float, size: int) -> int:
    """How many of ``size`` entries a density leaves; 0.3 of 10 are 3, whatever its binary digits say."""
    return int(density * size * (1 + 1e-12))


def thresholds(sizes: Sequence[Tensor], weights: Sequence[float], least: Sequence[int], keep: int) -> List[Tensor]:
    """The least thresholds αλ, tensor by tensor, above which at most ``keep`` entries are left, and of each its least."""
    sizes = [size.flatten() for size in sizes]
    scaled = [size if weight == 1 else size * (1 / weight) for size, weight in zip(sizes, weights)]
    own: List[Tensor] = [None] * len(sizes)  # type: ignore[list-item]
    while True:
        free = [at for at, threshold in enumerate(own) if threshold is None]
        fixed = sum(int((size > threshold).sum()) for size, threshold in zip(sizes, own) if threshold is not None)
        if not free:
            return own
        common = _beyond(torch.cat([scaled[at] for at in free]), max(0, keep - fixed))
        starved = [
            at for at in free if int((scaled[at] > common).sum()) < min(least[at], int((scaled[at] > 0).sum()))
        ]
        if not starved:
            return [common * weight if mine is None else mine for mine, weight in zip(own, weights)]
        for at in starved:
            # It keeps its largest, and the others have to do with what is left.
            own[at] = _beyond(sizes[at], least[at])


def _beyond(values: Tensor, keep: int) -> Tensor:
    """The largest value that is not among the ``keep`` largest, at least 0."""
    if keep >= values.numel():
        return values.new_zeros(())
    return values.kthvalue(values.numel() - keep).values.clamp_min(0)


def project_(xs: Sequence[Tensor], sizes: Sequence[Tensor], limits: Sequence[Tensor]) -> None:
    """x ← S(x, t) where its size is above t, else 0. NaN, which is no zero, goes through."""
    for x, size, limit in zip(xs, sizes, limits):
        x.sub_(x.sign() * limit)
        x.masked_fill_(size <= limit, 0)
