"""Modules with their dead channels cut out: plain PyTorch, smaller, the same outputs."""

from __future__ import annotations

import copy
import json
from typing import Any, Dict

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn import Module

from .. import _core
from ..exceptions import DataError
from .compress import _arrays, _evaluated
from .trace import Traced, trace


def shrink(model: Module, example: Tensor) -> fx.GraphModule:
    """The same network without the channels that cannot change its output.

    A channel is dead where nobody reads it, or where it is zero or another constant; layers that are added to each other
    keep a channel as long as one of them needs it. What remains is a plain module of smaller layers, dense and fast in
    any runtime; the model that was given is left as it is.

    Parameters
    ----------
    model : Module
        Any module that ``torch.fx`` can trace and obprox can run (see :func:`obprox.torch.save_compressed`).
    example : Tensor
        A batch of inputs.

    Returns
    -------
    torch.fx.GraphModule
        The outputs agree in evaluation mode, to rounding; the mode is that of the model.

    Examples
    --------
    >>> import torch
    >>> from obprox.torch import shrink
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> with torch.no_grad():
    ...     _ = model[0].weight[3:].zero_(), model[0].bias[3:].zero_()
    >>> shrink(model, torch.zeros(1, 4)).get_submodule("0")
    Linear(in_features=4, out_features=3, bias=True)
    """
    try:
        traced = trace(model, example)
        network = _core.Network.of_graph(traced.graph, _arrays(traced.tensors)).cut()
    except DataError as error:
        raise DataError(f"obprox cannot run this network: {error}") from None
    small = copy.deepcopy(traced.module)
    nodes = json.loads(network.graph())
    _set_tensors(small, nodes, network.tensors())
    _set_shapes(small, traced, nodes)
    small.train(model.training)
    try:
        found, expected = _evaluated(small, example), _evaluated(model, example)
    except RuntimeError as error:
        raise DataError(f"sizes of layers are written into the code of this module: {error}") from None
    scale = expected.abs().max().item()
    if not torch.allclose(found, expected, rtol=0, atol=1e-4 * max(scale, 1e-6)):
        raise DataError("the smaller network computes something else: sizes may be written into the code of this module")
    return small


def _set_tensors(module: Module, nodes: Any, tensors: Dict[str, np.ndarray]) -> None:
    """Puts smaller tensors in the place of those that there are, and tells the layers of their sizes."""
    for name, array in tensors.items():
        path, _, attribute = name.rpartition(".")
        owner = module.get_submodule(path)
        old = getattr(owner, attribute)
        like = old if old is not None else next(owner.parameters())
        new = torch.as_tensor(array).to(like.device, like.dtype)
        if attribute in owner._buffers:
            setattr(owner, attribute, new)
        else:
            owner.register_parameter(attribute, nn.Parameter(new, requires_grad=like.requires_grad))
    for node in nodes:
        owner = module.get_submodule(node["name"]) if node.get("name") else None
        if isinstance(owner, nn.Conv2d):
            owner.groups = node["groups"]
            owner.out_channels = owner.weight.shape[0]
            owner.in_channels = owner.weight.shape[1] * owner.groups
        elif isinstance(owner, nn.Linear):
            owner.out_features, owner.in_features = owner.weight.shape
        elif isinstance(owner, (nn.BatchNorm1d, nn.BatchNorm2d)) and owner.running_mean is not None:
            owner.num_features = owner.running_mean.shape[0]


def _set_shapes(module: fx.GraphModule, traced: Traced, nodes: Any) -> None:
    """Reshapes by numbers become reshapes by the smaller numbers."""
    by_name = {node.name: node for node in module.graph.nodes}
    for made, origin in zip(nodes, traced.origins):
        node = by_name[origin] if origin else None
        if node is None or node.op not in ("call_method", "call_function"):
            continue
        if made["op"] not in ("flatten", "reshape") or node.target in (torch.flatten, "flatten", "mean", torch.mean):
            continue
        shape = made.get("shape", [-1])
        with module.graph.inserting_before(node):
            arguments = (node.args[0], 1) if made["op"] == "flatten" else (node.args[0], (-1, *shape))
            function = torch.flatten if made["op"] == "flatten" else torch.reshape
            new = module.graph.call_function(function, arguments)
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)
    module.recompile()
