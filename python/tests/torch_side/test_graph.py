"""Any module that torch.fx can trace: served from its file as PyTorch computes it, and shrunk."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import obprox.net
from obprox.exceptions import DataError
from obprox.torch import load_compressed, save_compressed, shrink

from .test_compress import sparse


class Block(nn.Module):
    """Inverted bottleneck with squeeze and excite."""

    def __init__(self, channels, stride=1, activation=nn.SiLU):
        super().__init__()
        wide = 2 * channels
        self.expand = nn.Sequential(nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), activation())
        self.depth = nn.Sequential(
            nn.Conv2d(wide, wide, 5, stride, 2, groups=wide, bias=False), nn.BatchNorm2d(wide, eps=1e-3), activation()
        )
        self.down, self.up = nn.Conv2d(wide, 4, 1), nn.Conv2d(4, wide, 1)
        self.project = nn.Sequential(nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels))
        self.drop = nn.Dropout2d(0.2)
        self.stride = stride

    def forward(self, x):
        y = self.depth(self.expand(x))
        scale = torch.sigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(y, 1)))))
        y = self.drop(self.project(scale * y))
        return x + y if self.stride == 1 else y


class Mobile(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, 2, 3)
        self.pool = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.blocks = nn.Sequential(Block(8), Block(8, 2, nn.Hardswish), Block(8, 1, nn.ReLU6))
        self.head = nn.Sequential(nn.Linear(8, 12), nn.Hardsigmoid(), nn.Dropout(0.5), nn.Linear(12, 5))

    def forward(self, x):
        x = self.blocks(self.pool(F.gelu(self.stem(x))))
        return self.head(x.mean([2, 3]))


class Dense(nn.Module):
    """Layers that read all layers before them, batch norms before convolutions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding="same", bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(6 + 4 * at) for at in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(6 + 4 * at, 4, 3, padding=1) for at in range(3))
        self.fc = nn.Linear(18 * 4, 5)

    def forward(self, x):
        x = self.first(x)
        for norm, conv in zip(self.norms, self.convs):
            x = torch.cat([x, conv(norm(x).relu())], 1)
        x = F.avg_pool2d(x, 3, 2, 1)
        x = F.adaptive_avg_pool2d(x, (2, 2))
        return self.fc(x.view(x.size(0), -1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 10, 3, padding=2, dilation=2)
        self.three, self.out = nn.Conv2d(16, 6, 3, padding=1), nn.Conv2d(6, 2, 1)
        self.up = nn.Upsample(scale_factor=2)

    def forward(self, x):
        one = F.relu(self.one(x))
        two = F.relu(self.two(F.max_pool2d(one, 2)))
        return torch.softmax(self.out(F.relu(self.three(torch.cat((one, self.up(two)), dim=1)))), dim=1)


def perceptron():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 5))


MODULES = {"mobile": Mobile, "dense": Dense, "u-net": UNet, "perceptron": perceptron}


def images(side=8, count=3):
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(1))


def close(found, expected, tolerance=1e-5):
    expected = expected.numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("density", [1.0, 0.2])
def test_served_as_pytorch_computes_it(name, density, tmp_path):
    model = sparse(MODULES[name](), density)
    path = tmp_path / "network.obz"
    model.train()
    save_compressed(model, path, example=images())
    assert model.training
    model.eval()
    network = obprox.net.read(path)
    assert network.architecture is None and network.input_shape == (3, 8, 8)
    with torch.no_grad():
        expected = model(images(count=9))
    close(network.scores(images(count=9)), expected)
    assert network.output_shape == tuple(expected.shape[1:])
    if expected.dim() == 2:
        np.testing.assert_array_equal(network.predict(images(count=9)), expected.argmax(1).numpy())
    else:
        with pytest.raises(DataError, match="no scores of classes"):
            network.predict(images())


def test_the_file_goes_back_into_its_module(tmp_path):
    model = sparse(Mobile(), 0.3)
    save_compressed(model, tmp_path / "m.obz", example=images(), keep_channels=True)
    again = load_compressed(tmp_path / "m.obz", Mobile())
    with torch.no_grad():
        torch.testing.assert_close(again(images()), model(images()), rtol=0, atol=0)


def test_sizes_of_images_are_free_where_the_layers_are(tmp_path):
    model = sparse(Mobile(), 0.5)
    save_compressed(model, tmp_path / "m.obz", example=images(16))
    with torch.no_grad():
        close(obprox.net.read(tmp_path / "m.obz").scores(images(24)), model(images(24)))


def test_vectors(tmp_path):
    model = sparse(nn.Sequential(nn.Linear(7, 9), nn.GELU(), nn.Linear(9, 3), nn.Softmax(1)), 0.7)
    inputs = torch.randn(11, 7, generator=torch.Generator().manual_seed(2))
    save_compressed(model, tmp_path / "m.obz", example=inputs)
    network = obprox.net.read(tmp_path / "m.obz")
    with torch.no_grad():
        close(network.scores(inputs), model(inputs))
    with pytest.raises(DataError, match=r"shape \(count, length\)"):
        network.scores(images())


class Recurrent(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 4, 3), last

    def forward(self, x):
        return self.last(self.conv(x))


@pytest.mark.parametrize(
    "last, message",
    [
        (nn.Tanh(), "the operation Tanh"),
        (nn.ConvTranspose2d(4, 4, 2), "the operation ConvTranspose2d"),
        (torch.tanh, "the operation tanh"),
        (lambda x: x * 2, "an operation on 2"),
        (lambda x: x.transpose(1, 2), "the operation transpose"),
        (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), "resizing by bilinear"),
        (lambda x: torch.cat([x, x], 2), "a concatenation along dimension 2"),
        (lambda x: (x, x), "something else than one tensor"),
    ],
)
def test_what_is_not_known_is_refused_by_name(last, message, tmp_path):
    with pytest.raises(DataError, match=message):
        save_compressed(Recurrent(last), tmp_path / "m.obz", example=images())
    assert not (tmp_path / "m.obz").exists()


def kill(model, share):
    """Makes the filters of some channels zero, with what follows them."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                dead = torch.rand(module.weight.shape[0], generator=generator) < share
                module.weight[dead] = 0
            elif isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
                dead = torch.rand(module.weight.shape[0], generator=generator) < share
                module.weight[dead] = 0
                module.bias[dead] = -0.1


@pytest.mark.parametrize("name", MODULES)
def test_shrunk_modules_compute_the_same(name):
    model = sparse(MODULES[name](), 1.0)
    kill(model, 0.4)
    small = shrink(model, images())
    count = lambda module: sum(parameter.numel() for parameter in module.parameters())
    assert count(small) < count(model)
    assert not small.training
    with torch.no_grad():
        close(small(images(count=7)), model(images(count=7)))
    # It is a module as any other: it can be trained on, and shrunk again.
    small.train()
    small(images(16 if name != "perceptron" else 8)).sum().backward()
    assert count(shrink(small.eval(), images())) == count(small)
