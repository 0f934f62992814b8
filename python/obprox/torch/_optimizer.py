"""What the optimizers share: parameter groups, which weights are penalised, and the pass over them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch
from torch import Tensor
from torch.optim import Optimizer


#: Entries from which on a batch is full where memory is the processor's: what a step keeps on the way then stays in the
#: cache. Elsewhere a call costs more than memory does, and a batch takes all there is.
_FULL = 1 << 17


@dataclass
class Batch:
    """Parameters of one group that take the same step together: same penalty, device and type."""

    l1: float
    l2: float
    params: List[Tensor] = field(default_factory=list)
    gradients: List[Tensor] = field(default_factory=list)
    entries: int = 0

    def add(self, param: Tensor) -> None:
        """Adds a parameter, which has a gradient."""
        self.params.append(param)
        self.gradients.append(param.grad)
        self.entries += param.numel()

    def is_full(self) -> bool:
        """Whether the next parameter belongs into another batch."""
        return self.entries >= _FULL and self.params[0].device.type == "cpu"


class SparseOptimizer(Optimizer):
    """An optimizer of f(x) + λ‖x‖₁ + (λ₂/2)‖x‖₂²: λ weighs on what is penalised, λ₂ on that and on every tensor of two or
    more dimensions.

    All that a run needs to go on is in the parameter groups and the state of each parameter, and so in
    ``state_dict()``: a resumed run takes the same steps to the bit.
    """

    def __init__(self, params: Any, defaults: Dict[str, Any]) -> None:
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Adds a group; see :class:`torch.optim.Optimizer`."""
        super().add_param_group(param_group)
        try:
            self._check(self.param_groups[-1])
        except Exception:
            del self.param_groups[-1]
            raise

    def _check(self, group: Dict[str, Any]) -> None:
        """Refuses what cannot be optimised, before a first step is taken."""
        for name in ("lr", "lambda_", "weight_decay"):
            value = group[name]
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, not {value}")
        if group["penalize"] not in (None, True, False):
            raise ValueError(
                "penalize must be True (all tensors of the group), False (none) or None (those of two or more "
                f"dimensions), not {group['penalize']!r}"
            )
        for param in group["params"]:
            if not param.is_floating_point():
                raise TypeError(f"{type(self).__name__} optimises real weights, not {param.dtype}")

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Takes one step along the gradients at hand, or along those of ``closure``, whose value it returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._refuse_sparse_gradients()
        for group in self.param_groups:
            self._before(group)
            for batch in self._batches(group):
                self._update(batch, group)
            self._after(group)
        self._finish()
        return loss

    def _refuse_sparse_gradients(self) -> None:
        for group in self.param_groups:
            if any(param.grad is not None and param.grad.is_sparse for param in group["params"]):
                raise RuntimeError(
                    f"{type(self).__name__} shrinks every weight in every step, so it takes no sparse gradients: "
                    "build the embedding with sparse=False"
                )

    def _before(self, group: Dict[str, Any]) -> None:
        """What happens to a group before its parameters move."""

    def _update(self, batch: Batch, group: Dict[str, Any]) -> None:
        """Moves the parameters of a batch: what makes a method."""
        raise NotImplementedError

    def _after(self, group: Dict[str, Any]) -> None:
        """What happens to a group after its parameters moved."""

    def _finish(self) -> None:
        """What happens once all groups have moved."""

    def _batches(self, group: Dict[str, Any]) -> Iterator[Batch]:
        """The parameters of a group that have a gradient."""
        batches: Dict[Any, Batch] = {}
        for param in group["params"]:
            if param.grad is None:
                continue
            penalized, decayed = is_penalized(param, group), is_decayed(param, group)
            key = (penalized, decayed, param.device, param.dtype)
            if key not in batches:
                batches[key] = Batch(group["lambda_"] if penalized else 0.0, group["weight_decay"] if decayed else 0.0)
            batches[key].add(param)
            if batches[key].is_full():
                yield batches.pop(key)
        yield from batches.values()

    def _state(self, batch: Batch, name: str, first: Callable[[Tensor], Tensor]) -> List[Tensor]:
        """The tensors kept under a name for the parameters of a batch; ``first`` makes those that are not there yet."""
        for param in batch.params:
            if name not in self.state[param]:
                self.state[param][name] = first(param)
        return [self.state[param][name] for param in batch.params]

    @torch.no_grad()
    def penalty(self) -> float:
        """λ‖x‖₁ + (λ₂/2)‖x‖₂² over the weights that they hold for: the loss plus this is the objective F."""
        total = 0.0
        for group in self.param_groups:
            for param in group["params"]:
                if is_penalized(param, group):
                    total += group["lambda_"] * param.abs().sum(dtype=torch.float64).item()
                if is_decayed(param, group):
                    total += 0.5 * group["weight_decay"] * param.square().sum(dtype=torch.float64).item()
        return total


def is_penalized(param: Tensor, group: Dict[str, Any]) -> bool:
    """Whether a parameter is penalised: as its group says, else where it has two or more dimensions."""
    return param.dim() >= 2 if group["penalize"] is None else group["penalize"]


def is_decayed(param: Tensor, group: Dict[str, Any]) -> bool:
    """Whether weight decay holds for a parameter: where it is penalised or has two or more dimensions."""
    return param.dim() >= 2 or is_penalized(param, group)
