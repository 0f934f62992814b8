"""Prox-SG: proximal stochastic gradient steps."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Union

import torch
from torch import Tensor

from ._optimizer import Batch, SparseOptimizer
from ._steps import accumulate_, prox_


class ProxSG(SparseOptimizer):
    """Prox-SG: x ← S(x − α∇f(x), αλ) with S(z, t) = sign(z)·max(|z| − t, 0).

    Problem: min f(x) + λ‖x‖₁. Citation: Duchi and Singer, Efficient online and batch learning using forward backward
    splitting, 2009; Algorithm 2 of the OBProx-SG paper.

    Parameters
    ----------
    params : iterable
        Parameters, or groups of them as dicts; every option below can be set per group.
    lr : float or Tensor of no dimension
        The step size α; learning-rate schedulers may change it. A tensor spares a compiled step from being compiled
        again for every new value.
    lambda_ : float, default=1e-4
        λ, the weight of ‖x‖₁.
    weight_decay : float, default=0
        λ₂, the weight of (1/2)‖x‖₂² over the tensors of two or more dimensions, penalised or not, and over whatever else
        is penalised. It is taken implicitly: the weights are divided by 1 + αλ₂, which is stable for any step size.
    momentum : float, default=0
        Replaces the gradient by v ← momentum·v + gradient. The paper has none.
    nesterov : bool, default=False
        Nesterov's momentum: steps along gradient + momentum·v.
    penalize : bool or None, default=None
        Which tensors of the group are penalised: all (True), none (False), or those of two or more dimensions (None),
        which leaves biases and normalisation layers alone.
    foreach : bool, default=True
        Handles all tensors of a group in one call instead of one by one; the results are the same to the bit.

    Examples
    --------
    >>> import torch
    >>> from obprox.torch import ProxSG
    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = ProxSG(model.parameters(), lr=0.5, lambda_=100.0)
    >>> model(torch.ones(1, 3)).sum().backward()
    >>> optimizer.step()
    >>> model.weight.count_nonzero().item(), model.bias.count_nonzero().item()
    (0, 2)
    """

    def __init__(
        self,
        params: Any,
        lr: Union[float, Tensor] = 0.1,
        lambda_: float = 1e-4,
        *,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        nesterov: bool = False,
        penalize: Optional[bool] = None,
        foreach: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(
            params,
            dict(
                lr=lr,
                lambda_=lambda_,
                weight_decay=weight_decay,
                momentum=momentum,
                nesterov=nesterov,
                penalize=penalize,
                foreach=foreach,
                **more,
            ),
        )

    def _check(self, group: Dict[str, Any]) -> None:
        super()._check(group)
        if not 0 <= group["momentum"] < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, not {group['momentum']}")
        if group["nesterov"] and group["momentum"] == 0:
            raise ValueError("nesterov needs a momentum above 0")

    def _update(self, batch: Batch, group: Dict[str, Any]) -> None:
        directions = self._directions(batch, group)
        prox_(batch.params, directions, group["lr"], batch.l1, batch.l2, foreach=group["foreach"])

    def _directions(self, batch: Batch, group: Dict[str, Any]) -> List[Tensor]:
        """The gradients, or what momentum makes of them."""
        momentum, foreach = group["momentum"], group["foreach"]
        if momentum == 0:
            return batch.gradients
        velocities = self._state(batch, "velocity", torch.zeros_like)
        accumulate_(velocities, batch.gradients, momentum, 1.0, foreach=foreach)
        if not group["nesterov"]:
            return velocities
        directions = [gradient.clone() for gradient in batch.gradients]
        accumulate_(directions, velocities, 1.0, momentum, foreach=foreach)
        return directions
