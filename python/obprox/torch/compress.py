"""Networks as small files: zeros left out, every other weight kept to the bit unless it is asked to be rounded.

The format is that of ``obprox net compress`` (crates/obprox-infer/FORMAT.md). Networks that obprox can run — those of
:mod:`obprox.torch.nets`, and with an example any that ``torch.fx`` can trace — are served from the file by ``obprox net
infer`` and :mod:`obprox.net`; any other network is stored just as small and loaded again into its own class.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from .. import _core
from ..exceptions import DataError, ObproxError
from . import nets
from .trace import trace

Path = Union[str, "os.PathLike[str]"]
Preparation = Tuple[int, int, Sequence[float], Sequence[float]]

_CLASSES = {"small-cnn": nets.SmallCNN, "resnet18": nets.ResNet18, "mobilenet-v1": nets.MobileNetV1}


def save_compressed(
    model: Union[Module, Mapping[str, Tensor]],
    path: Path,
    *,
    example: Optional[Tensor] = None,
    labels: Sequence[str] = (),
    preprocessing: Optional[Preparation] = None,
    keep_channels: bool = False,
    servable: Optional[bool] = None,
    values: str = "f32",
) -> int:
    """Writes a network, or its ``state_dict``, as a compressed sparse file; the file appears whole or not at all.

    Parameters
    ----------
    model : Module or state_dict
        What is stored must fit float32 exactly, as float32, float16 and bfloat16 do.
    path : path-like
        By custom it ends in ``.obz``.
    example : Tensor, optional
        A batch of inputs. With it any module can be served that ``torch.fx`` can trace: its graph goes into the file,
        and what obprox cannot compute is refused by the name of the operation. Without it, networks of
        :mod:`obprox.torch.nets` are known by their names and shapes.
    labels : sequence of str, optional
        Names of the classes, for who serves the file.
    preprocessing : (height, width, mean, std), optional
        How images are prepared, for who serves the file: resized, then (x/255 − mean)/std in each channel.
    keep_channels : bool, default=False
        Leaves channels as they are that cannot reach the output. By default they are cleared, as
        ``obprox net compress`` does, which makes the file smaller and the output the same but for rounding.
    servable : bool, optional
        True refuses a network that obprox cannot run; False writes the bare tensors, whatever the network; None does
        what is possible. A ``Module`` that looks like a network of obprox is run on a few random images to see that it
        computes the same; a ``state_dict`` is taken at its names and shapes.
    values : {"f32", "bf16", "int8"}, default="f32"
        What tensors of two or more dimensions are rounded to: nothing, bfloat16, or whole numbers from −127 to 127 of a
        scale for each row of the first dimension. :func:`obprox.net.read` tells by its scores what that costs.

    Returns
    -------
    int
        The size of the file in bytes.

    Examples
    --------
    >>> import os, tempfile
    >>> import torch
    >>> from obprox.torch import load_compressed, save_compressed
    >>> model = torch.nn.Linear(1000, 10)
    >>> with torch.no_grad():
    ...     _ = model.weight[:, 20:].zero_()
    >>> path = os.path.join(tempfile.mkdtemp(), "network.obz")
    >>> save_compressed(model, path) < 40_000 / 20  # a dense file has four bytes a weight
    True
    >>> again = load_compressed(path, torch.nn.Linear(1000, 10))
    >>> torch.equal(again.weight, model.weight)
    True
    """
    if example is not None:
        network = _of_graph(model, example, preprocessing, labels).rounded(values)
        return (network if keep_channels else network.without_dead_channels()).write(path)
    tensors = _arrays(model.state_dict() if isinstance(model, Module) else model)
    if servable is not False:
        try:
            network = _core.Network(tensors, preprocessing, list(labels))
            if isinstance(model, Module):
                _check_outputs(model, network)
            network = network.rounded(values)
            return (network if keep_channels else network.without_dead_channels()).write(path)
        except DataError as error:
            if servable or labels or preprocessing:
                raise DataError(f"obprox cannot run this network: {error}") from None
    return _core.write_tensors(path, tensors, values)


def load_compressed(path: Path, model: Optional[Module] = None) -> Module:
    """Reads a network from a compressed file, written here or by ``obprox net compress``.

    Parameters
    ----------
    path : path-like
    model : Module, optional
        The network to load into; every tensor of it must be in the file, and the other way round. Without it, one of
        :mod:`obprox.torch.nets` is built as the file says.

    Returns
    -------
    Module
        The model, in evaluation mode.

    Examples
    --------
    >>> import os, tempfile
    >>> from obprox.torch import load_compressed, nets, save_compressed
    >>> path = os.path.join(tempfile.mkdtemp(), "network.obz")
    >>> size = save_compressed(nets.SmallCNN(channels=1, classes=3, width=0.25), path)
    >>> type(load_compressed(path)).__name__
    'SmallCNN'
    """
    tensors, name_of = _core.read_tensors(path), _core.plain_name
    network = _known(path)
    if model is None:
        if network is None or network.architecture is None:
            raise DataError(f"{os.fspath(path)} holds none of obprox.torch.nets: give the model to load into")
        kind, _, width, channels, classes = network.architecture
        model = _CLASSES[kind](channels, classes, width)
    elif network is not None:
        # The model may know its parameters by other names than the network that it was recognised as.
        name_of = network.parameter_name
    own = model.state_dict()
    names = {name: name_of(name) for name in own}
    state = {name: own[name] for name, stored in names.items() if stored is None}
    state.update((name, tensors.pop(stored)) for name, stored in names.items() if stored in tensors)
    # What is left over has no place in the model; load_state_dict says so, and what is missing.
    state.update(tensors)
    model.load_state_dict({name: torch.as_tensor(value) for name, value in state.items()})
    return model.eval()


def _of_graph(
    model: Any, example: Tensor, preprocessing: Optional[Preparation], labels: Sequence[str]
) -> _core.Network:
    """The network that a module is, seen to compute the same of the example."""
    if not isinstance(model, Module):
        raise DataError("an example goes with a module, not with a state_dict")
    try:
        traced = trace(model, example)
        network = _core.Network.of_graph(traced.graph, _arrays(traced.tensors), preprocessing, list(labels))
    except DataError as error:
        raise DataError(f"obprox cannot run this network: {error}") from None
    expected = _evaluated(model, example)
    found = torch.from_numpy(network.scores(example.detach().float().cpu().contiguous().numpy(), 0))
    _check_close(found, expected, model, "the graph of this network")
    return network


def _known(path: Path) -> Optional[_core.Network]:
    """The network of a sound file, where it is one that obprox can run."""
    try:
        return _core.Network.read(path)
    except ObproxError:
        return None


def _arrays(state: Mapping[str, Tensor]) -> Dict[str, np.ndarray]:
    """The tensors as float32, under their names without wrappers."""
    arrays = {}
    for given, tensor in state.items():
        name = _core.plain_name(given)
        if name is None:
            continue
        tensor = tensor.detach().cpu()
        single = tensor.real.float() if tensor.is_complex() else tensor.float()
        if not ((single.to(tensor.dtype) == tensor) | tensor.isnan()).all():
            raise DataError(f"{given} is {tensor.dtype} and does not fit float32 exactly: save model.float()")
        if single.isnan().any():
            raise DataError(f"{given} holds NaN: the training has diverged")
        arrays[name] = single.contiguous().numpy()
    return arrays


def _check_outputs(model: Module, network: _core.Network) -> None:
    """Refuses a model that has the names and shapes of a known network and computes something else."""
    channels = network.input_shape[0]
    height, width = network.preprocessing[:2] if network.preprocessing else (32, 32)
    images = torch.randn(2, channels, height, width, generator=torch.Generator().manual_seed(0))
    try:
        expected = _evaluated(model, images)
    except Exception as error:
        raise DataError(f"it takes no images of {channels}×{height}×{width} ({error})") from None
    found = torch.from_numpy(network.scores(images.numpy(), 0))
    _check_close(found, expected, model, f"it has the names of {network!r} but")


def _check_close(found: Tensor, expected: Tensor, model: Module, who: str) -> None:
    # The sums are in another order, and those of a narrow type coarse.
    tolerance = 0.01 if next(model.parameters()).element_size() >= 4 else 0.1
    scale = expected.abs().max().item()
    if found.shape != expected.shape or not torch.allclose(found, expected, rtol=0, atol=tolerance * scale):
        raise DataError(f"{who} computes something else")


def _evaluated(model: Module, images: Tensor) -> Tensor:
    """The scores of a model in evaluation mode; its mode is left as it was."""
    first = next(model.parameters())
    training = {module: module.training for module in model.modules()}
    try:
        with torch.no_grad():
            return model.eval()(images.to(first.device, first.dtype)).float().cpu()
    finally:
        for module, mode in training.items():
            module.training = mode
