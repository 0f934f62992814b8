"""Networks that others wrote: torchvision's, a perceptron and a U-Net, served as PyTorch computes them."""

import numpy as np
import pytest
import torch
from torch import nn

import obprox.net
from obprox.torch import channel_groups, save_compressed, shrink

from .test_compress import sparse
from .test_graph import UNet, perceptron

models = pytest.importorskip("torchvision.models", reason="no torchvision")

#: Images that the classes are compared on.
COUNT = 1000
NAMES = [
    "resnet18",
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "mobilenet_v3_large",
    "vgg11_bn",
    "squeezenet1_1",
    "efficientnet_b0",
    "densenet121",
]


def images(count, side=32, channels=3, seed=1):
    return torch.randn(count, channels, side, side, generator=torch.Generator().manual_seed(seed))


def settled(model, side=32):
    """Normalisations that fit the random weights, so that outputs are neither nothing nor huge, and differ."""
    norms = [module for module in model.modules() if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d))]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    with torch.no_grad():
        model.train()(images(64, side, seed=2))
    return model.eval()


def build(name):
    torch.manual_seed(0)
    if name == "perceptron":
        model, side = perceptron(), 8
    elif name == "u-net":
        model, side = UNet(), 16
    else:
        # Narrower last layers where those are most of the network: what they compute is the same.
        model, side = getattr(models, name)(num_classes=20), 64 if name == "squeezenet1_1" else 32
        if name == "vgg11_bn":
            model.classifier[0], model.classifier[3] = nn.Linear(25088, 128), nn.Linear(128, 128)
            model.classifier[6] = nn.Linear(128, 20)
    return settled(alive(sparse(model, 0.3), side), side), side


def alive(model, side):
    """Without normalisation a deep network of random weights forgets its input: each layer is made to keep its size."""
    if any(isinstance(module, nn.BatchNorm2d) for module in model.modules()):
        return model
    hooks = []

    def scale(module, inputs, output):
        by = 1 / output.std().clamp(min=1e-6)
        module.weight.mul_(by)
        module.bias.mul_(by)
        return output * by

    hooks = [m.register_forward_hook(scale) for m in model.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    with torch.no_grad():
        model.eval()(images(64, side, seed=2))
    for hook in hooks:
        hook.remove()
    return model


def run(model, inputs):
    with torch.no_grad():
        return torch.cat([model(batch) for batch in inputs.split(50)])


@pytest.mark.parametrize("name", [*NAMES, "perceptron", "u-net"])
def test_outputs_and_classes_of_a_thousand_images(name, tmp_path):
    model, side = build(name)
    inputs = images(COUNT, side)
    expected = run(model, inputs)
    save_compressed(model, tmp_path / "network.obz", example=inputs[:2])
    network = obprox.net.read(tmp_path / "network.obz")
    scores = network.scores(inputs.numpy())
    found = torch.from_numpy(scores)
    scale = max(1.0, expected.abs().max().item())
    assert (found - expected).abs().max().item() <= 1e-4 * scale
    # The class, or for a U-Net that of every pixel; two that are equal but for rounding may be told either way.
    best = expected.topk(2, dim=1).values
    clear = best[:, 0] - best[:, 1] > 2e-4 * scale
    assert clear.double().mean() > 0.9
    assert torch.equal(found.argmax(1)[clear], expected.argmax(1)[clear])
    assert (expected - expected[:1]).abs().max() > 1e-2 * scale, "the images are told apart"


def half(model, example):
    """Every second group of channels made zero."""
    params = dict(model.named_parameters())
    with torch.no_grad():
        for group in channel_groups(model, example)[::2]:
            for name, row in group:
                params[name][row] = 0


@pytest.mark.parametrize("name", [*NAMES, "u-net"])
def test_half_of_the_channels_are_cut_out(name):
    model, side = build(name)
    example = images(2, side)
    half(model, example)
    small = shrink(model, example)
    count = lambda module: sum(parameter.numel() for parameter in module.parameters())
    assert count(small) < 0.75 * count(model)
    inputs = images(20, side, seed=3)
    expected, found = run(model, inputs), run(small, inputs)
    assert (found - expected).abs().max().item() <= 1e-5 * max(1.0, expected.abs().max().item())


@pytest.mark.parametrize("values", ["bf16", "int8"])
def test_rounded_weights_are_near_and_computed_with(values, tmp_path):
    model, side = build("mobilenet_v2")
    inputs = images(100, side)
    whole = save_compressed(model, tmp_path / "whole.obz", example=inputs[:2])
    size = save_compressed(model, tmp_path / "small.obz", example=inputs[:2], values=values)
    assert size < {"bf16": 0.7, "int8": 0.5}[values] * whole
    network, parameters = obprox.net.read(tmp_path / "small.obz"), dict(model.state_dict())
    for name, value in network.tensors().items():
        if name in parameters:
            exact = parameters[name].detach().numpy().copy()
            parameters[name].copy_(torch.from_numpy(np.array(value)))
            if exact.ndim < 2:
                continue
            rows = exact.reshape(len(exact), -1)
            step = {"bf16": np.abs(rows) / 256, "int8": 0.51 * np.abs(rows).max(axis=1, keepdims=True) / 127}[values]
            # Channels that do not matter are zeros in the file.
            is_near = np.abs(value.reshape(rows.shape) - rows) <= step
            assert (is_near | (value.reshape(rows.shape) == 0)).all(), name
            assert np.count_nonzero(value) > 0.8 * np.count_nonzero(exact), name
    # What a rounded network says is what PyTorch says with its weights.
    expected = run(model, inputs).numpy()
    assert np.abs(network.scores(inputs.numpy()) - expected).max() <= 1e-4 * max(1.0, np.abs(expected).max())
