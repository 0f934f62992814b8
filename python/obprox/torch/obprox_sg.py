"""OBProx-SG and OBProx-SG+: Prox-SG steps find the support, Orthant steps on its face make it sparse."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ._optimizer import Batch
from ._steps import orthant_, prox_
from .prox_sg import ProxSG

_SWITCH = ("n_p", "n_o", "steps_per_epoch")
_COUNTS = ("steps", "epochs", "held")


class OBProxSG(ProxSG):
    """OBProx-SG: N_P epochs of Prox-SG steps, N_O epochs of Orthant steps, and again.

    Problem: min f(x) + λ‖x‖₁. An Orthant step is x ← Proj(x − α(∇f(x) + λ sign x)), which sets to zero every entry
    that would change its sign, and leaves zero what is zero. Citation: Chen et al., Orthant Based Proximal Stochastic
    Gradient Method for ℓ1-Regularized Optimization, 2020, Algorithms 1 to 4.

    Parameters
    ----------
    params, lr, lambda_, weight_decay, momentum, nesterov, penalize, foreach
        As in :class:`ProxSG`.
    n_p : int or None, default=5
        N_P, how many epochs of Prox-SG steps come first; None: until :meth:`switch_to` is called.
    n_o : int or None, default=5
        N_O, how many epochs of Orthant steps follow before it begins again; None: for ever, which is OBProx-SG+.
    steps_per_epoch : int or None
        How many steps make an epoch, ``len(loader)`` in most loops; 1 makes ``n_p`` and ``n_o`` count steps. With None
        an epoch ends where the loop calls :meth:`epoch_end`, which suits epochs of varying length, and steps that are
        skipped or accumulated. It has no default: an optimizer that waits for an epoch that never ends would never
        switch.

    Notes
    -----
    The counts are part of ``state_dict()``: a resumed run goes on in the middle of its phase. A step that a
    ``GradScaler`` skips is not counted.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 0.1,
        lambda_: float = 1e-4,
        *,
        n_p: Optional[int] = 5,
        n_o: Optional[int] = 5,
        steps_per_epoch: Optional[int],
        **options: Any,
    ) -> None:
        switch = dict(n_p=n_p, n_o=n_o, steps_per_epoch=steps_per_epoch)
        super().__init__(params, lr, lambda_, **switch, steps=0, epochs=0, held=None, **options)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Adds a group, which joins the phase that the others are in."""
        for name in _COUNTS if self.param_groups else ():
            param_group[name] = self.param_groups[0][name]
        super().add_param_group(param_group)

    def _check(self, group: Dict[str, Any]) -> None:
        super()._check(group)
        for name, least in (("n_p", 0), ("n_o", 0), ("steps_per_epoch", 1)):
            value = group[name]
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ValueError(f"{name} must be None or a whole number of at least {least}, not {value!r}")
        if group["n_p"] == group["n_o"] == 0:
            raise ValueError("n_p and n_o are both 0: there is no step to take")
        first = self.param_groups[0]
        for name in _SWITCH:
            if group[name] != first[name]:
                raise ValueError(f"{name} is {first[name]} in one group, {group[name]} in another: all switch at once")

    @property
    def phase(self) -> str:
        """The kind of the next step: "prox" or "orthant"."""
        return _phase(self.param_groups[0])

    def epoch_end(self) -> None:
        """Tells that an epoch is over; for ``steps_per_epoch=None`` only, else the optimizer knows."""
        if self.param_groups[0]["steps_per_epoch"] is not None:
            raise RuntimeError("steps_per_epoch tells the epochs; to call epoch_end(), build with steps_per_epoch=None")
        for group in self.param_groups:
            group["epochs"] += 1

    def switch_to(self, phase: Optional[str]) -> None:
        """Holds "prox" or "orthant" from the next step on, whatever the counts say; None lets them decide again.

        The paper's advice is to switch once the loss or the validation accuracy is acceptable: give ``n_p=None`` and
        call ``switch_to("orthant")`` when it is.
        """
        if phase not in ("prox", "orthant", None):
            raise ValueError(f'phase must be "prox", "orthant" or None, not {phase!r}')
        for group in self.param_groups:
            group["held"] = phase

    def _update(self, batch: Batch, group: Dict[str, Any]) -> None:
        step_ = orthant_ if _phase(group) == "orthant" else prox_
        directions = self._directions(batch, group)
        step_(batch.params, directions, group["lr"], batch.l1, batch.l2, foreach=group["foreach"])

    def _after(self, group: Dict[str, Any]) -> None:
        group["steps"] += 1


def _phase(group: Dict[str, Any]) -> str:
    """The paper's Algorithm 4."""
    if group["held"] is not None:
        return group["held"]
    n_p, n_o, steps_per_epoch = (group[name] for name in _SWITCH)
    if n_p is None:
        return "prox"
    epoch = group["epochs"] if steps_per_epoch is None else group["steps"] // steps_per_epoch
    in_cycle = epoch if n_o is None else epoch % (n_p + n_o)
    return "prox" if in_cycle < n_p else "orthant"
