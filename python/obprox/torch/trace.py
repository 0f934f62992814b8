"""A PyTorch module as a graph of obprox: what ``torch.fx`` traces, operation by operation.

Every operation is one short function of the table at the end; what is not in it is refused by name.
"""

from __future__ import annotations

import json
import operator
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, fx, nn
from torch.nn import Module
from torch.nn import functional as F

from ..exceptions import DataError


class Traced(NamedTuple):
    """What is computed of an example, and by which tensors."""

    #: The nodes as JSON, as files hold them.
    graph: str
    #: The tensors that they take, by their names in the state_dict.
    tensors: Dict[str, Tensor]
    #: Where the nodes of the graph come from: a name of ``torch.fx`` for each, None where it is of our own making.
    origins: List[Optional[str]]
    module: fx.GraphModule


def trace(model: Module, example: Tensor) -> Traced:
    """Traces a module on an example (a batch of inputs) in evaluation mode; its mode is left as it was."""
    training = {module: module.training for module in model.modules()}
    try:
        model.eval()
        try:
            module = fx.symbolic_trace(model)
        except Exception as error:
            raise DataError(f"torch.fx cannot trace this module: {error}") from error
        first = next(model.parameters(), example)
        results = _Results(module)
        with torch.no_grad():
            results.run(example.to(first.device, first.dtype))
    finally:
        for one, mode in training.items():
            one.training = mode
    graph = _Graph(module, results.results, example)
    return Traced(json.dumps(graph.nodes), graph.tensors, graph.origins, module)


class _Results(fx.Interpreter):
    """Runs a traced module and keeps what every node made: shapes of tensors, anything else as it is."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.results: Dict[fx.Node, Any] = {}

    def run_node(self, node: fx.Node) -> Any:
        result = super().run_node(node)
        self.results[node] = tuple(result.shape) if isinstance(result, Tensor) else _Plain(result)
        return result


class _Plain(NamedTuple):
    """A result that is no tensor."""

    value: Any


class _Graph:
    """The nodes of obprox, built in the order of the trace."""

    def __init__(self, module: fx.GraphModule, results: Dict[fx.Node, Any], example: Tensor) -> None:
        self.module, self.results = module, results
        self.batch = example.shape[0]
        self.modules = dict(module.named_modules())
        self.state = module.state_dict()
        self.nodes: List[Dict[str, Any]] = []
        self.origins: List[Optional[str]] = []
        self.tensors: Dict[str, Tensor] = {}
        self.values: Dict[fx.Node, int] = {}
        self.current: Optional[fx.Node] = None
        for node in module.graph.nodes:
            self.current = node
            self._add(node)

    def _add(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            if self.nodes:
                if node.users:
                    raise DataError("it takes more than one input")
                return
            shape = self.results[node]
            self.values[node] = self.push("input", [], shape=list(shape[1:]))
        elif node.op == "output":
            (result,) = node.args
            if not isinstance(result, fx.Node) or result not in self.values:
                raise DataError("it returns something else than one tensor")
            if self.values[result] != len(self.nodes) - 1:
                self._keep_until(self.values[result])
        elif isinstance(self.results[node], _Plain) or node.op == "get_attr":
            return  # sizes and other plain numbers are known from the example; tensors are taken by who reads them
        else:
            self.values[node] = self._operation(node)

    def _keep_until(self, last: int) -> None:
        """Drops what comes after the output: nobody reads it."""
        del self.nodes[last + 1 :], self.origins[last + 1 :]

    def _operation(self, node: fx.Node) -> int:
        if node.op == "call_module":
            module = self.modules[node.target]
            kind, known = type(module).__name__, _MODULES.get(type(module))
            if known is not None:
                return known(self, node, module)
        else:
            target = node.target
            kind = target if isinstance(target, str) else getattr(target, "__name__", str(target))
            known = _METHODS.get(target) if node.op == "call_method" else _FUNCTIONS.get(target, _BY_NAME.get(kind))
            if known is not None:
                return known(self, node)
        raise DataError(f"the operation {kind} ({node.name}) is not known")

    def refuse(self, what: str) -> DataError:
        return DataError(f"{what} ({self.current.name if self.current else '?'}) is not known")

    def push(self, op: str, inputs: List[int], name: str = "", **attributes: Any) -> int:
        node: Dict[str, Any] = {"op": op, **{key: value for key, value in attributes.items() if value is not None}}
        if name:
            node["name"] = name
        if inputs:
            node["inputs"] = inputs
        self.nodes.append(node)
        self.origins.append(self.current.name if self.current is not None else None)
        return len(self.nodes) - 1

    def value(self, argument: Any) -> int:
        """The value of an argument that must be computed."""
        if isinstance(argument, fx.Node) and argument in self.values:
            return self.values[argument]
        raise self.refuse(f"an operation on {argument!r}")

    def plain(self, argument: Any) -> Any:
        """An argument that is no tensor, as it was for the example."""
        if isinstance(argument, fx.Node):
            result = self.results[argument]
            return result.value if isinstance(result, _Plain) else result
        if isinstance(argument, (list, tuple)):
            return type(argument)(self.plain(one) for one in argument)
        return argument

    def shape(self, node: Any) -> Tuple[int, ...]:
        return self.results[node]

    def tensor(self, name: str) -> str:
        """A tensor of the module, now among those of the graph."""
        self.tensors[name] = self.state[name]
        return name

    def layer(self, node: fx.Node, module: Module, what: str) -> Optional[str]:
        """A parameter of a module by its full name; None where the module has none."""
        return None if getattr(module, what) is None else self.tensor(f"{node.target}.{what}")

    def attribute(self, argument: Any) -> Optional[str]:
        """A parameter that a function is given."""
        if argument is None:
            return None
        if isinstance(argument, fx.Node) and argument.op == "get_attr" and argument.target in self.state:
            return self.tensor(argument.target)
        raise self.refuse("a weight that is computed")


def _pair(value: Any) -> List[int]:
    return list(value) if isinstance(value, (list, tuple)) else [int(value)] * 2


def _window(kernel: Any, stride: Any, padding: Any, dilation: Any = 1) -> Dict[str, List[int]]:
    kernel, dilation = _pair(kernel), _pair(dilation)
    stride = kernel if stride is None or stride == [] else _pair(stride)
    if padding == "same":
        reach = [(kernel[axis] - 1) * dilation[axis] for axis in (0, 1)]
        before = [reach[axis] // 2 for axis in (0, 1)]
        around = before + [reach[axis] - before[axis] for axis in (0, 1)]
    else:
        around = _pair(0 if padding == "valid" else padding) * 2
    return {"kernel": kernel, "stride": stride, "padding": around, "dilation": dilation}


def _arguments(graph: _Graph, node: fx.Node, names: str, **defaults: Any) -> List[Any]:
    """The arguments of a call after the first one, by position or by name."""
    listed = names.split()
    given = dict(zip(listed, node.args[1:]), **node.kwargs)
    return [given.get(name, defaults.get(name)) for name in listed]


# Modules.


def _conv(graph: _Graph, node: fx.Node, module: Any) -> int:
    if module.padding_mode != "zeros":
        raise graph.refuse(f"a padding by {module.padding_mode}")
    window = _window(module.kernel_size, module.stride, module.padding, module.dilation)
    weight, bias = graph.layer(node, module, "weight"), graph.layer(node, module, "bias")
    name = str(node.target)
    return graph.push(
        "conv", [graph.value(node.args[0])], name, weight=weight, bias=bias, groups=module.groups, **window
    )


def _linear(graph: _Graph, node: fx.Node, module: Any) -> int:
    weight, bias = graph.layer(node, module, "weight"), graph.layer(node, module, "bias")
    return graph.push("linear", [graph.value(node.args[0])], str(node.target), weight=weight, bias=bias)


def _batch_norm(graph: _Graph, node: fx.Node, module: Any) -> int:
    if module.running_mean is None:
        raise graph.refuse("a batch norm without running statistics")
    names = {ours: graph.layer(node, module, theirs) for ours, theirs in _NORM.items()}
    return graph.push("batch-norm", [graph.value(node.args[0])], str(node.target), epsilon=module.eps, **names)


_NORM = {"weight": "weight", "bias": "bias", "mean": "running_mean", "var": "running_var"}


def _plain_module(op: str) -> Callable[[_Graph, fx.Node, Any], int]:
    return lambda graph, node, _: graph.push(op, [graph.value(node.args[0])])


def _gelu_module(graph: _Graph, node: fx.Node, module: Any) -> int:
    return _gelu_by(graph, node, getattr(module, "approximate", "none"))


def _gelu_by(graph: _Graph, node: fx.Node, approximate: Any) -> int:
    if approximate not in (None, "none"):
        raise graph.refuse(f"GELU by {approximate}")
    return graph.push("gelu", [graph.value(node.args[0])])


def _identity(graph: _Graph, node: fx.Node, *_: Any) -> int:
    return graph.value(node.args[0])


def _max_pool_module(graph: _Graph, node: fx.Node, module: Any) -> int:
    if module.return_indices:
        raise graph.refuse("a max pool that returns indices")
    window = _window(module.kernel_size, module.stride, module.padding, module.dilation)
    return graph.push("max-pool", [graph.value(node.args[0])], ceil=module.ceil_mode, **window)


def _average_pool_module(graph: _Graph, node: fx.Node, module: Any) -> int:
    return _average_pool_by(
        graph,
        node,
        _window(module.kernel_size, module.stride, module.padding),
        module.ceil_mode,
        module.count_include_pad,
        module.divisor_override,
    )


def _average_pool_by(graph: _Graph, node: fx.Node, window: Any, ceil: Any, count: Any, divisor: Any) -> int:
    if divisor is not None:
        raise graph.refuse("an average pool with a divisor of its own")
    return graph.push(
        "average-pool", [graph.value(node.args[0])], ceil=bool(ceil), count_padding=bool(count), **window
    )


def _adaptive_pool(graph: _Graph, node: fx.Node, *_: Any) -> int:
    return graph.push("adaptive-average-pool", [graph.value(node.args[0])], size=list(graph.shape(node)[2:]))


def _upsample(graph: _Graph, node: fx.Node, module: Any = None) -> int:
    mode = module.mode if module is not None else node.kwargs.get("mode", "nearest")
    before, after = graph.shape(node.args[0]), graph.shape(node)
    if mode != "nearest" or len(before) != 4 or any(new % old for old, new in zip(before[2:], after[2:])):
        raise graph.refuse(f"resizing by {mode} from {before} to {after}")
    scale = [new // old for old, new in zip(before[2:], after[2:])]
    return graph.push("upsample", [graph.value(node.args[0])], scale=scale)


def _softmax_module(graph: _Graph, node: fx.Node, module: Any) -> int:
    return _softmax_by(graph, node, module.dim)


def _softmax_by(graph: _Graph, node: fx.Node, dim: Any) -> int:
    if dim not in (1, 1 - len(graph.shape(node))):
        raise graph.refuse(f"a softmax along dimension {dim}")
    return graph.push("softmax", [graph.value(node.args[0])])


# Functions and methods.


def _plain(op: str) -> Callable[[_Graph, fx.Node], int]:
    return lambda graph, node: graph.push(op, [graph.value(node.args[0])])


def _gelu(graph: _Graph, node: fx.Node) -> int:
    return _gelu_by(graph, node, node.kwargs.get("approximate"))


def _softmax(graph: _Graph, node: fx.Node) -> int:
    return _softmax_by(graph, node, _arguments(graph, node, "dim")[0])


def _pair_of(op: str) -> Callable[[_Graph, fx.Node], int]:
    def build(graph: _Graph, node: fx.Node) -> int:
        if node.kwargs:
            raise graph.refuse(f"{op} with {', '.join(node.kwargs)}")
        return graph.push(op, [graph.value(argument) for argument in node.args[:2]])

    return build


def _concat(graph: _Graph, node: fx.Node) -> int:
    values, dim = node.args[0], _arguments(graph, node, "dim", dim=0)[0]
    if dim not in (1, 1 - len(graph.shape(node))) or not isinstance(values, (list, tuple)):
        raise graph.refuse(f"a concatenation along dimension {dim}")
    return graph.push("concat", [graph.value(value) for value in values])


def _reshape(graph: _Graph, node: fx.Node, *_: Any) -> int:
    batch, *shape = graph.shape(node)
    if batch != graph.batch or graph.shape(node.args[0])[0] != batch:
        raise graph.refuse(f"a reshape of the batch to {graph.shape(node)}")
    value = graph.value(node.args[0])
    if len(shape) == 1:
        return graph.push("flatten", [value])
    return graph.push("reshape", [value], shape=shape)


def _mean(graph: _Graph, node: fx.Node) -> int:
    dims, _ = _arguments(graph, node, "dim keepdim")
    before, after = graph.shape(node.args[0]), graph.shape(node)
    if len(before) != 4 or not isinstance(dims, (list, tuple)) or sorted(dim % 4 for dim in dims) != [2, 3]:
        raise graph.refuse(f"a mean over dimensions {dims}")
    value = graph.push("adaptive-average-pool", [graph.value(node.args[0])], size=[1, 1])
    return value if len(after) == 4 else graph.push("flatten", [value])


def _max_pool(graph: _Graph, node: fx.Node) -> int:
    names = "kernel_size stride padding dilation ceil_mode return_indices"
    kernel, stride, padding, dilation, ceil, indices = graph.plain(
        _arguments(graph, node, names, padding=0, dilation=1, ceil_mode=False)
    )
    if indices:
        raise graph.refuse("a max pool that returns indices")
    window = _window(kernel, stride, padding, dilation)
    return graph.push("max-pool", [graph.value(node.args[0])], ceil=bool(ceil), **window)


def _average_pool(graph: _Graph, node: fx.Node) -> int:
    names = "kernel_size stride padding ceil_mode count_include_pad divisor_override"
    defaults = {"padding": 0, "ceil_mode": False, "count_include_pad": True}
    kernel, stride, padding, ceil, count, divisor = graph.plain(_arguments(graph, node, names, **defaults))
    return _average_pool_by(graph, node, _window(kernel, stride, padding), ceil, count, divisor)


def _linear_function(graph: _Graph, node: fx.Node) -> int:
    weight, bias = _arguments(graph, node, "weight bias")
    value = graph.value(node.args[0])
    return graph.push("linear", [value], weight=graph.attribute(weight), bias=graph.attribute(bias))


def _conv_function(graph: _Graph, node: fx.Node) -> int:
    names = "weight bias stride padding dilation groups"
    defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    weight, bias, *rest = _arguments(graph, node, names, **defaults)
    stride, padding, dilation, groups = graph.plain(rest)
    name = graph.attribute(weight)
    window = _window(list(graph.tensors[name].shape[2:]), stride, padding, dilation) if name else {}
    value = graph.value(node.args[0])
    return graph.push("conv", [value], weight=name, bias=graph.attribute(bias), groups=groups, **window)


_MODULES: Dict[type, Callable[[_Graph, fx.Node, Any], int]] = {
    nn.Conv2d: _conv,
    nn.Linear: _linear,
    nn.BatchNorm1d: _batch_norm,
    nn.BatchNorm2d: _batch_norm,
    nn.ReLU: _plain_module("relu"),
    nn.ReLU6: _plain_module("relu6"),
    nn.SiLU: _plain_module("silu"),
    nn.Hardswish: _plain_module("hard-swish"),
    nn.Hardsigmoid: _plain_module("hard-sigmoid"),
    nn.Sigmoid: _plain_module("sigmoid"),
    nn.GELU: _gelu_module,
    nn.MaxPool2d: _max_pool_module,
    nn.AvgPool2d: _average_pool_module,
    nn.AdaptiveAvgPool2d: _adaptive_pool,
    nn.Upsample: _upsample,
    nn.UpsamplingNearest2d: _upsample,
    nn.Flatten: _reshape,
    nn.Unflatten: _reshape,
    nn.Softmax: _softmax_module,
    nn.Softmax2d: lambda graph, node, _: _softmax_by(graph, node, 1),
    nn.Identity: _identity,
    nn.Dropout: _identity,
    nn.Dropout1d: _identity,
    nn.Dropout2d: _identity,
}

_FUNCTIONS: Dict[Any, Callable[[_Graph, fx.Node], int]] = {
    F.linear: _linear_function,
    F.conv2d: _conv_function,
    F.relu: _plain("relu"),
    F.relu_: _plain("relu"),
    torch.relu: _plain("relu"),
    torch.relu_: _plain("relu"),
    F.relu6: _plain("relu6"),
    F.silu: _plain("silu"),
    F.hardswish: _plain("hard-swish"),
    F.hardsigmoid: _plain("hard-sigmoid"),
    F.sigmoid: _plain("sigmoid"),
    torch.sigmoid: _plain("sigmoid"),
    F.gelu: _gelu,
    F.softmax: _softmax,
    torch.softmax: _softmax,
    operator.add: _pair_of("add"),
    operator.iadd: _pair_of("add"),
    torch.add: _pair_of("add"),
    operator.mul: _pair_of("multiply"),
    operator.imul: _pair_of("multiply"),
    torch.mul: _pair_of("multiply"),
    torch.cat: _concat,
    torch.flatten: _reshape,
    torch.reshape: _reshape,
    torch.squeeze: _reshape,
    torch.unsqueeze: _reshape,
    torch.mean: _mean,
    F.max_pool2d: _max_pool,
    torch.max_pool2d: _max_pool,
    F.avg_pool2d: _average_pool,
    F.adaptive_avg_pool2d: _adaptive_pool,
    F.interpolate: _upsample,
    F.dropout: _identity,
    F.dropout2d: _identity,
}

#: Functions that libraries keep out of the trace, by name, and that do nothing in evaluation mode.
_BY_NAME: Dict[str, Callable[[_Graph, fx.Node], int]] = {
    "stochastic_depth": _identity,
    "boolean_dispatch": _max_pool,
    "_max_pool2d": _max_pool,
}

_METHODS: Dict[str, Callable[[_Graph, fx.Node], int]] = {
    "relu": _plain("relu"),
    "relu_": _plain("relu"),
    "sigmoid": _plain("sigmoid"),
    "softmax": _softmax,
    "add": _pair_of("add"),
    "add_": _pair_of("add"),
    "mul": _pair_of("multiply"),
    "mul_": _pair_of("multiply"),
    "flatten": _reshape,
    "view": _reshape,
    "reshape": _reshape,
    "squeeze": _reshape,
    "unsqueeze": _reshape,
    "mean": _mean,
    "contiguous": _identity,
    "clone": _identity,
}
