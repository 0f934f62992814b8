"""RDA: regularised dual averaging."""

from __future__ import annotations

import math
from typing import Any, Dict, Optional

import torch

from ._optimizer import Batch, SparseOptimizer
from ._steps import accumulate_, divide_, dual_average_


class RDA(SparseOptimizer):
    """RDA: x = argmin over u of ḡ·u + λ‖u‖₁ + (γ/(2√t))‖u − c‖₂² after t gradients of mean ḡ.

    Problem: min f(x) + λ‖x‖₁. Citation: Xiao, Dual averaging methods for regularized stochastic learning and online
    optimization, 2010. There the centre c is 0; a network whose weights are all zero has no gradient to leave from, so
    here c is by default where the run starts.

    Parameters
    ----------
    params, lambda_, weight_decay, penalize, foreach
        As in :class:`ProxSG`.
    gamma : float
        γ > 0: the larger, the closer to the centre. The paper's networks have 20 and 30.
    centre : {"start", "zero"}, default="start"
        c: the weights before the first step, or zero.
    lr : float, default=1
        Only its course matters: it weighs the gradients, so that a scheduler can let the late ones count less. With
        weights α the formula has ḡ = Σαg/Σα and γ√(Σα²)/Σα in place of γ/√t, which is the same while α is constant.
    """

    def __init__(
        self,
        params: Any,
        gamma: float,
        lambda_: float = 1e-4,
        *,
        centre: str = "start",
        lr: float = 1.0,
        weight_decay: float = 0.0,
        penalize: Optional[bool] = None,
        foreach: bool = True,
    ) -> None:
        super().__init__(
            params,
            dict(
                lr=lr,
                gamma=gamma,
                lambda_=lambda_,
                weight_decay=weight_decay,
                centre=centre,
                penalize=penalize,
                foreach=foreach,
                weight_sum=0.0,
                weight_square_sum=0.0,
            ),
        )

    def _check(self, group: Dict[str, Any]) -> None:
        super()._check(group)
        if not (math.isfinite(group["gamma"]) and group["gamma"] > 0):
            raise ValueError(f"gamma must be a finite number above 0, not {group['gamma']}")
        if group["centre"] not in ("start", "zero"):
            raise ValueError(f'centre must be "start" or "zero", not {group["centre"]!r}')

    def _before(self, group: Dict[str, Any]) -> None:
        group["weight_sum"] += group["lr"]
        group["weight_square_sum"] += group["lr"] ** 2

    def _update(self, batch: Batch, group: Dict[str, Any]) -> None:
        total, square_total = group["weight_sum"], group["weight_square_sum"]
        if total == 0:
            return
        foreach = group["foreach"]
        sums = self._state(batch, "gradient_sum", torch.zeros_like)
        first_centre = torch.clone if group["centre"] == "start" else torch.zeros_like
        centres = self._state(batch, "centre", first_centre)
        accumulate_(sums, batch.gradients, 1.0, group["lr"], foreach=foreach)
        means = [gradient_sum.clone() for gradient_sum in sums]
        divide_(means, total, foreach=foreach)
        beta = group["gamma"] * math.sqrt(square_total) / total
        dual_average_(batch.params, centres, means, beta, batch.l1, batch.l2, foreach=foreach)
