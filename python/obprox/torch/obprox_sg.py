"""OBProx-SG and OBProx-SG+: Prox-SG steps find the support, Orthant steps on its face make it sparse."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union

from torch import Tensor
from torch.nn import Module

from ._density import Plan, kept, project_, thresholds
from ._optimizer import Batch, is_penalized
from ._steps import hold_, orthant_, prox_
from .half_space import Channels
from .prox_sg import ProxSG

_SWITCH = ("n_p", "n_o", "steps_per_epoch", "target_density", "total_steps")
_COUNTS = ("steps", "epochs", "held", "begun", "reached")


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
    target_density : float or None
        The share of the penalised weights that is left in the end, at most. It is held in closed loop: the number of
        steps is known, so the share that may be left after each is planned, and λ is the least that keeps to it
        (``lambda_`` is a start only, and weighs groups against each other). The descent begins with the first Orthant
        step (``n_p=0``: with the first step of all, which trains best) or after 4/10 of the steps, and ends after 3/4 of
        them; from there on zeros are held, and the others recover without a penalty. Every tensor keeps a tenth of the
        share at least, so none dies by accident.
    total_steps : int or None
        How many steps the run has, ``epochs * len(loader)`` in most loops; ``target_density`` and ``groups`` need it.
    groups : "channels" or None
        With "channels" whole channels go as well: ``params`` is then the module itself, from whose graph they are found. A
        half-space step follows each step, as with :class:`HalfSpace`, which puts it around any other optimizer. λ is beside
        it, for single weights; with ``lambda_=0`` channels alone become zero.
    example : Tensor or None
        A batch of inputs of the module; ``groups`` needs it.
    target_group_sparsity : float or None
        The share of the channels that is zero in the end, exactly; ``groups`` needs it.

    Notes
    -----
    The counts are part of ``state_dict()``: a resumed run goes on in the middle of its phase. A step that a
    ``GradScaler`` skips is not counted.

    Examples
    --------
    >>> import torch
    >>> from obprox.torch import OBProxSG
    >>> model = torch.nn.Linear(10, 2)
    >>> optimizer = OBProxSG(model.parameters(), lr=0.1, lambda_=0.01, n_p=2, n_o=None, steps_per_epoch=3)
    >>> phases = []
    >>> for step in range(9):
    ...     optimizer.zero_grad()
    ...     model(torch.randn(4, 10)).square().mean().backward()
    ...     phases.append(optimizer.phase)
    ...     optimizer.step()
    >>> phases
    ['prox', 'prox', 'prox', 'prox', 'prox', 'prox', 'orthant', 'orthant', 'orthant']
    """

    def __init__(
        self,
        params: Any,
        lr: Union[float, Tensor] = 0.1,
        lambda_: float = 1e-4,
        *,
        n_p: Optional[int] = 5,
        n_o: Optional[int] = 5,
        steps_per_epoch: Optional[int],
        target_density: Optional[float] = None,
        total_steps: Optional[int] = None,
        groups: Optional[str] = None,
        example: Optional[Tensor] = None,
        target_group_sparsity: Optional[float] = None,
        **options: Any,
    ) -> None:
        #: The channels that go, and what the step under way started from.
        self._channels = _channels(params, groups, example, target_group_sparsity, total_steps)
        self._start: List[Tensor] = []
        params = params.parameters() if self._channels else params
        #: What a step without its λ left, until λ is taken into account for all tensors together.
        self._trials: List[Tuple[Tensor, Tensor, float]] = []
        switch = dict(n_p=n_p, n_o=n_o, steps_per_epoch=steps_per_epoch)
        target = dict(target_density=target_density, total_steps=total_steps, begun=None, reached=False)
        super().__init__(params, lr, lambda_, **switch, **target, steps=0, epochs=0, held=None, **options)
        if target_density is not None:
            self._plan().check_sizes([param.numel() for param, _ in self._penalized()])

    def __getstate__(self) -> Dict[str, Any]:
        return {**super().__getstate__(), "_channels": self._channels}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        for name, value in (("_trials", []), ("_channels", None), ("_start", [])):
            self.__dict__.setdefault(name, value)
        # A state that was saved before there were densities to hold.
        for group in self.param_groups:
            for name, value in (("target_density", None), ("total_steps", None), ("begun", None), ("reached", False)):
                group.setdefault(name, value)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Adds a group, which joins the phase that the others are in."""
        for name in _COUNTS if self.param_groups else ():
            param_group[name] = self.param_groups[0][name]
        super().add_param_group(param_group)

    def _check(self, group: Dict[str, Any]) -> None:
        super()._check(group)
        for name, least in (("n_p", 0), ("n_o", 0), ("steps_per_epoch", 1), ("total_steps", 1)):
            value = group[name]
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ValueError(f"{name} must be None or a whole number of at least {least}, not {value!r}")
        if group["n_p"] == group["n_o"] == 0:
            raise ValueError("n_p and n_o are both 0: there is no step to take")
        target, steps = group["target_density"], group["total_steps"]
        if target is not None and not (isinstance(target, (int, float)) and 0 < target < 1):
            raise ValueError(f"target_density must lie above 0 and below 1, not {target!r}")
        if target is not None and steps is None:
            raise ValueError("target_density needs total_steps, the number of steps it is to be reached in")
        first = self.param_groups[0]
        for name in _SWITCH:
            if group[name] != first[name]:
                raise ValueError(f"{name} is {first[name]} in one group, {group[name]} in another: all switch at once")

    @property
    def phase(self) -> str:
        """The kind of the next step: "prox", "orthant" or, once ``target_density`` is reached, "hold"."""
        return _phase(self.param_groups[0])

    @property
    def target_reached(self) -> bool:
        """Whether no more weights are left than ``target_density`` says."""
        return self.param_groups[0]["reached"]

    @property
    def group_sparsity(self) -> Optional[float]:
        """The share of the channels that are zero now; None without ``groups``."""
        return self._channels.sparsity if self._channels else None

    def state_dict(self) -> Dict[str, Any]:
        """What a run needs to go on; see :class:`torch.optim.Optimizer`."""
        state = super().state_dict()
        return {**state, "channels": self._channels.state_dict()} if self._channels else state

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Goes on where a run was saved."""
        state = dict(state_dict)
        channels = state.pop("channels", None)
        if (channels is None) != (self._channels is None):
            raise ValueError("groups: the state is one of an optimizer with groups, or this is one, and the other has none")
        super().load_state_dict(state)
        if self._channels:
            self._channels.load_state_dict(channels)

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

    def _before(self, group: Dict[str, Any]) -> None:
        if self._channels and group is self.param_groups[0]:
            self._start = self._channels.before()
        if group["target_density"] is not None and group["begun"] is None and _phase(group) == "orthant":
            sizes = [param.numel() for param, _ in self._penalized()]
            left = sum(int(param.count_nonzero()) for param, _ in self._penalized())
            for one in self.param_groups:
                one["begun"] = (one["steps"], left / sum(sizes))

    def _update(self, batch: Batch, group: Dict[str, Any]) -> None:
        phase, step, foreach = _phase(group), group["lr"], group["foreach"]
        directions = self._directions(batch, group)
        penalized = batch.l1 > 0
        if phase == "hold":
            if penalized:
                return hold_(batch.params, directions, step, batch.l2, foreach=foreach)
            return prox_(batch.params, directions, step, 0.0, batch.l2, foreach=foreach)
        if group["begun"] is not None and penalized:
            before = [param.clone() for param in batch.params]
            prox_(batch.params, directions, step, 0.0, batch.l2, foreach=foreach)
            for param, x in zip(batch.params, before):
                size = param.abs() if phase == "prox" else param * x.sign()
                self._trials.append((param, size, batch.l1))
            return None
        step_ = orthant_ if phase == "orthant" else prox_
        return step_(batch.params, directions, step, batch.l1, batch.l2, foreach=foreach)

    def _finish(self) -> None:
        trials, self._trials = self._trials, []
        if trials:
            self._shrink_to_plan(trials)
        if self._channels:
            start, self._start = self._start, []
            self._channels.after(start)

    def _shrink_to_plan(self, trials: List[Tuple[Tensor, Tensor, float]]) -> None:
        """Takes λ into account for all tensors together: the least that leaves as many weights as are planned."""
        group, plan = self.param_groups[0], self._plan()
        params, sizes, lambdas = zip(*trials)
        # A tensor without a gradient in this step keeps what it has, and counts.
        moved = {id(param) for param in params}
        still = [param for param, _ in self._penalized() if id(param) not in moved]
        total = sum(map(Tensor.numel, params)) + sum(map(Tensor.numel, still))
        idle = sum(int(param.count_nonzero()) for param in still)
        planned = plan.density(*group["begun"], group["steps"])
        limits = thresholds(
            sizes,
            [weight / max(lambdas) for weight in lambdas],
            [plan.least(param.numel()) for param in params],
            max(0, kept(planned, total) - idle),
        )
        project_(params, sizes, limits)
        left = sum(int(param.count_nonzero()) for param in params) + idle
        for one in self.param_groups:
            one["reached"] = left <= kept(plan.target, total)

    def _plan(self) -> Plan:
        group = self.param_groups[0]
        return Plan(group["target_density"], group["total_steps"])

    def _penalized(self) -> List[Tuple[Tensor, float]]:
        """What λ weighs on."""
        pairs = ((param, group) for group in self.param_groups for param in group["params"])
        return [
            (param, group["lambda_"]) for param, group in pairs if group["lambda_"] > 0 and is_penalized(param, group)
        ]

    def _after(self, group: Dict[str, Any]) -> None:
        group["steps"] += 1


def _channels(
    model: Any, groups: Optional[str], example: Optional[Tensor], target: Optional[float], total_steps: Optional[int]
) -> Optional[Channels]:
    """What ``groups`` asks for."""
    if groups is None:
        if example is not None or target is not None:
            raise ValueError('example and target_group_sparsity belong to groups="channels"')
        return None
    if groups != "channels":
        raise ValueError(f'groups must be "channels" or None, not {groups!r}')
    if not isinstance(model, Module):
        raise TypeError('groups="channels" finds the channels in the graph of a network: give the module, not its parameters')
    if example is None or target is None or total_steps is None:
        raise ValueError('groups="channels" needs example, target_group_sparsity and total_steps')
    return Channels(model, example, target, total_steps)


def _phase(group: Dict[str, Any]) -> str:
    """The paper's Algorithm 4, and what a density that was asked for makes of it."""
    if group["reached"]:
        return "hold"
    if group["held"] is not None:
        return group["held"]
    if group["target_density"] is not None and group["begun"] is None:
        if group["steps"] >= Plan(group["target_density"], group["total_steps"]).latest * group["total_steps"]:
            return "orthant"
    n_p, n_o, steps_per_epoch = (group[name] for name in _SWITCH[:3])
    if n_p is None:
        return "prox"
    epoch = group["epochs"] if steps_per_epoch is None else group["steps"] // steps_per_epoch
    in_cycle = epoch if n_o is None else epoch % (n_p + n_o)
    return "prox" if in_cycle < n_p else "orthant"
