"""Half-space steps on channels: whole channels become zero, around any optimizer."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from .. import _core
from ..exceptions import DataError
from ._density import Plan
from .compress import _arrays
from .trace import trace

Group = List[Tuple[str, int]]


def channel_groups(model: Module, example: Tensor) -> List[Group]:
    """The channels that come and go together, found from the graph of a module.

    A group has the filter of a channel, its bias and its batch norm; where layers are added, multiplied or see one channel
    alone, those of all of them. Channels of the input and the output are in none.

    Parameters
    ----------
    model : Module
        Any module that ``torch.fx`` can trace and obprox can run.
    example : Tensor
        A batch of inputs.

    Returns
    -------
    list of list of (str, int)
        For each group the rows that it has: the name of a parameter, and an index of its first dimension.

    Examples
    --------
    >>> import torch
    >>> from obprox.torch import channel_groups
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU(), torch.nn.Linear(2, 3))
    >>> channel_groups(model, torch.zeros(1, 4))
    [[('0.weight', 0), ('0.bias', 0)], [('0.weight', 1), ('0.bias', 1)]]
    """
    try:
        traced = trace(model, example)
        return _core.Network.of_graph(traced.graph, _arrays(traced.tensors)).channel_groups()
    except DataError as error:
        raise DataError(f"obprox cannot run this network: {error}") from None


class _Rows(NamedTuple):
    """A parameter, and the group that each of its rows is in; −1 where it is in none."""

    param: Tensor
    groups: Tensor


class Channels:
    """The channels of a network that go while it is trained: what a step left, and what the half-space step makes of it."""

    def __init__(
        self,
        model: Module,
        example: Tensor,
        target_group_sparsity: float,
        total_steps: int,
        begin: float = 0.1,
        reach: float = 0.75,
    ) -> None:
        if not 0 < target_group_sparsity < 1:
            raise ValueError(f"target_group_sparsity must lie above 0 and below 1, not {target_group_sparsity!r}")
        if isinstance(total_steps, bool) or not isinstance(total_steps, int) or total_steps < 1:
            raise ValueError(f"total_steps must be a whole number of at least 1, not {total_steps!r}")
        if not 0 <= begin < reach <= 1:
            raise ValueError(f"begin and reach must be shares of the steps in this order, not {begin} and {reach}")
        groups = channel_groups(model, example)
        if not groups:
            raise ValueError("this network has no channels that could go")
        self.steps = 0
        self._begin = begin
        self._plan = Plan(1 - target_group_sparsity, total_steps, reach=reach)
        self._count = len(groups)
        self._target = round(target_group_sparsity * self._count)
        self._rows = _rows(model, groups)
        device = self._rows[0].param.device
        sizes = torch.zeros(self._count, device=device)
        for rows in self._rows:
            self._add(sizes, rows, torch.full_like(rows.param, 1.0))
        self._roots = sizes.sqrt()
        self._layers = _layers(groups, device)
        least = [self._plan.least(len(layer)) for layer in self._layers]
        if sum(least) > self._count - self._target:
            raise ValueError(f"target_group_sparsity: {sum(least)} of {self._count} groups keep their layers alive")
        self._least = least
        #: Groups that are zero and stay so.
        self.zero = torch.zeros(self._count, dtype=torch.bool, device=device)

    def check(self, optimizer: Optimizer) -> None:
        """Refuses an optimizer that leaves out parameters of the channels."""
        held = {id(param) for group in optimizer.param_groups for param in group["params"]}
        if any(id(rows.param) not in held for rows in self._rows):
            raise ValueError("the optimizer does not have all parameters of the channels")

    @property
    def sparsity(self) -> float:
        """The share of the groups that are zero now."""
        return int(self.zero.sum()) / self._count

    @torch.no_grad()
    def before(self) -> List[Tensor]:
        """What a step starts from."""
        return [rows.param.clone() for rows in self._rows]

    @torch.no_grad()
    def after(self, before: List[Tensor]) -> None:
        """The half-space step, after a step from there."""
        self.steps += 1
        planned = self._planned()
        factors = torch.ones(self._count, device=self.zero.device)
        if planned > int(self.zero.sum()):
            inner, norms, old = (torch.zeros_like(factors) for _ in range(3))
            for rows, x in zip(self._rows, before):
                self._add(inner, rows, rows.param * x)
                self._add(norms, rows, rows.param * rows.param)
                self._add(old, rows, x * x)
            # How far a step stays on its own side, in units of a weight.
            sizes = inner / old.sqrt().clamp_min(1e-30) / self._roots
            sizes[self.zero] = -float("inf")
            gone = self._smallest(sizes, planned)
            threshold = sizes[gone].max().clamp_min(0)
            factors = 1 - threshold * self._roots / norms.sqrt().clamp_min(1e-30)
            # What a layer keeps because it has no more is not penalised: it would be zero as well.
            factors = torch.where(sizes > threshold, factors, torch.ones_like(factors))
            self.zero |= gone
        factors[self.zero] = 0
        for rows in self._rows:
            of_rows = torch.where(rows.groups >= 0, factors[rows.groups.clamp_min(0)], torch.ones_like(factors[:1]))
            shape = (-1,) + (1,) * (rows.param.dim() - 1)
            scaled = rows.param * of_rows.to(rows.param.dtype).view(shape)
            # A zero is a zero, not the product of one and something that is none.
            rows.param.copy_(torch.where((of_rows == 0).view(shape), torch.zeros_like(scaled), scaled))

    def _planned(self) -> int:
        """How many groups are to be zero after the steps so far."""
        total = self._plan.steps
        begun = int(self._begin * total)
        if self.steps >= self._plan.reach * total or self.steps >= total:
            return self._target
        if self.steps <= begun:
            return 0
        return min(self._target, int((1 - self._plan.density(begun, 1.0, self.steps)) * self._count))

    def _smallest(self, sizes: Tensor, count: int) -> Tensor:
        """Exactly so many groups, the smallest ones, of which every layer keeps its least."""
        kept = torch.zeros_like(self.zero)
        for layer, least in zip(self._layers, self._least):
            kept[layer[sizes[layer].argsort(descending=True)[:least]]] = True
        order = sizes.masked_fill(kept, float("inf")).argsort()
        gone = torch.zeros_like(kept)
        gone[order[:count]] = True
        return gone

    def _add(self, sums: Tensor, rows: _Rows, values: Tensor) -> None:
        of_rows = values.flatten(1).sum(1) if values.dim() > 1 else values
        there = rows.groups >= 0
        sums.index_add_(0, rows.groups[there], of_rows[there].to(sums.dtype))

    def state_dict(self) -> Dict[str, Any]:
        """What a run needs to go on."""
        return {"steps": self.steps, "zero": self.zero.clone()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on where a run was saved."""
        if state["zero"].shape != self.zero.shape:
            raise ValueError(f"a state of {len(state['zero'])} groups, and there are {self._count}")
        self.steps = state["steps"]
        self.zero = state["zero"].to(self.zero.device).clone()


class HalfSpace:
    """Half-space steps around an optimizer: a share of the channels becomes exactly zero.

    Problem: min f(x) + λ Σ √n_g ‖x_g‖ over groups of channels g of n_g parameters. The optimizer underneath takes its step
    without λ, from x to z; a group that leaves the half space of its direction, ⟨z_g, x_g⟩ ≤ αλ√n_g ‖x_g‖, becomes zero and
    stays so, the others shrink by αλ√n_g along their own direction. Both with one λ, the least that makes as many groups zero
    as are planned after each step; steps before, between and after those have none, so that what is left in the end has been
    trained on f alone. Citation: Chen et al., Only Train Once: A One-Shot Neural Network Training and Pruning Framework,
    2021 (HSPG), whose λ is given, and whose steps go along the penalty's gradient at x.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Any: SGD, with or without momentum, Adam, AdamW. It has the learning rate and all that belongs to it.
    model, example
        As in :func:`channel_groups`; the optimizer must have the model's parameters.
    target_group_sparsity : float
        The share of the groups that is zero in the end, exactly (rounded to a whole number of groups).
    total_steps : int
        How many steps the run has. Channels go from step ``begin * total_steps`` on until ``reach * total_steps``; from
        there on the zeros are held, and the others train without a penalty.
    begin, reach : float, default=0.1 and 0.75

    Notes
    -----
    Every layer keeps a tenth of the share that is left, and one channel at least. The state of a run is in
    ``state_dict()`` beside that of the optimizer.

    Examples
    --------
    >>> import torch
    >>> from obprox.torch import HalfSpace, shrink
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    >>> inputs, targets = torch.randn(64, 8), torch.randint(2, (64,))
    >>> optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    >>> steps = HalfSpace(optimizer, model, inputs, target_group_sparsity=0.5, total_steps=40)
    >>> for step in range(40):
    ...     steps.zero_grad()
    ...     torch.nn.functional.cross_entropy(model(inputs), targets).backward()
    ...     steps.step()
    >>> steps.group_sparsity
    0.5
    >>> shrink(model, inputs).get_submodule("0")
    Linear(in_features=8, out_features=8, bias=True)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        model: Module,
        example: Tensor,
        *,
        target_group_sparsity: float,
        total_steps: int,
        begin: float = 0.1,
        reach: float = 0.75,
    ) -> None:
        self.optimizer = optimizer
        self._channels = Channels(model, example, target_group_sparsity, total_steps, begin, reach)
        self._channels.check(optimizer)

    @property
    def steps(self) -> int:
        """Steps taken."""
        return self._channels.steps

    @property
    def group_sparsity(self) -> float:
        """The share of the groups that are zero now."""
        return self._channels.sparsity

    def zero_grad(self, *arguments: Any, **options: Any) -> None:
        """As the optimizer's."""
        self.optimizer.zero_grad(*arguments, **options)

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """The optimizer's step, and the half-space step on the channels."""
        before = self._channels.before()
        loss = self.optimizer.step(closure)
        self._channels.after(before)
        return loss

    def state_dict(self) -> Dict[str, Any]:
        """What a run needs to go on, beside the state of the optimizer."""
        return self._channels.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes on where a run was saved."""
        self._channels.load_state_dict(state)


def _rows(model: Module, groups: List[Group]) -> List[_Rows]:
    """The group of each row, parameter by parameter."""
    params = dict(model.named_parameters())
    found: Dict[str, Tensor] = {}
    for number, group in enumerate(groups):
        for name, row in group:
            if name not in found:
                found[name] = torch.full((params[name].shape[0],), -1, dtype=torch.long, device=params[name].device)
            found[name][row] = number
    return [_Rows(params[name], rows) for name, rows in found.items()]


def _layers(groups: List[Group], device: torch.device) -> List[Tensor]:
    """The groups that share a layer with each other: those of the same parameters."""
    layers: Dict[Tuple[str, ...], List[int]] = {}
    for number, group in enumerate(groups):
        layers.setdefault(tuple(sorted({name for name, _ in group})), []).append(number)
    return [torch.tensor(layer, device=device) for layer in layers.values()]
