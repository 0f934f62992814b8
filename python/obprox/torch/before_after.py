"""A module and what it became, in one table: what they hold, what they compute, and how long they take."""

from __future__ import annotations

import time
from typing import List, NamedTuple, Tuple

import torch
from torch import Tensor
from torch.nn import Module

from .. import _core
from ..exceptions import DataError
from .compress import _arrays, _evaluated
from .trace import trace


class BeforeAfter(NamedTuple):
    """What :func:`before_after` found; as text a table.

    Attributes
    ----------
    rows : list of (str, float, float)
        What was counted or measured, before and after: parameters, weights that are not zero, multiply-adds of one input,
        bytes of all tensors, seconds for one input and for each of a batch.
    """

    rows: List[Tuple[str, float, float]]

    def __str__(self) -> str:
        cells = [("", "before", "after", "of before")]
        for what, before, after in self.rows:
            texts = [f"{1e3 * value:.3g} ms" if "input" in what else f"{value:,.0f}" for value in (before, after)]
            cells.append((what, *texts, f"{after / before:.1%}" if before else ""))
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]
        return "\n".join([lines[0], "─" * (sum(widths) + 6), *lines[1:]])

    __repr__ = __str__


def before_after(before: Module, after: Module, example: Tensor, *, repeats: int = 5) -> BeforeAfter:
    """Sizes, multiply-adds and times of a module and of what :func:`obprox.torch.shrink` made of it.

    Parameters
    ----------
    before, after : Module
        Modules that ``torch.fx`` can trace and obprox can run (see :func:`obprox.torch.save_compressed`).
    example : Tensor
        A batch of inputs. PyTorch runs its first one alone, then all of it, the two modules in turn.
    repeats : int, default=5
        How often; the shortest time counts.

    Returns
    -------
    BeforeAfter

    Examples
    --------
    >>> import torch
    >>> from obprox.torch import before_after, shrink
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> with torch.no_grad():
    ...     _ = model[0].weight[4:].zero_(), model[0].bias[4:].zero_()
    >>> images = torch.zeros(16, 4)
    >>> table = before_after(model, shrink(model, images), images)
    >>> for what, before, after in table.rows[:4]:
    ...     print(what, before, after)
    parameters 58 30
    weights not zero 32 24
    multiply-adds 48 24
    bytes 232 120
    """
    if len(example) == 0 or repeats < 1:
        raise ValueError("before_after needs one input and one repeat at least")
    rows = list(zip(_COUNTED, _counts(before, example), _counts(after, example)))
    for what, inputs in (("one input", example[:1]), ("each input of a batch", example)):
        shortest = [float("inf")] * 2
        for _ in range(repeats):
            for at, module in enumerate((before, after)):
                start = time.perf_counter()
                _evaluated(module, inputs)
                shortest[at] = min(shortest[at], (time.perf_counter() - start) / len(inputs))
        rows.append((what, *shortest))
    return BeforeAfter(rows)


_COUNTED = ("parameters", "weights not zero", "multiply-adds", "bytes")


def _counts(module: Module, example: Tensor) -> Tuple[int, int, int, int]:
    """What a module holds and computes, in the order of ``_COUNTED``."""
    try:
        traced = trace(module, example)
        network = _core.Network.of_graph(traced.graph, _arrays(traced.tensors))
        multiply_adds = network.multiply_adds()
    except DataError as error:
        raise DataError(f"obprox cannot run this network: {error}") from None
    params = list(module.parameters())
    nonzero = sum(int(torch.count_nonzero(param)) for param in params if param.dim() >= 2)
    tensors = [*params, *module.buffers()]
    held = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return sum(param.numel() for param in params), nonzero, multiply_adds, held
