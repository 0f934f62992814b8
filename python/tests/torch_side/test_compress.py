"""Networks trained in PyTorch as small files: lossless, loaded again, and served by the Rust side."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import obprox.net
from obprox.exceptions import DataError, FileMissingError, ObproxError
from obprox.torch import load_compressed, nets, save_compressed, sparsity_report

from .runs import assert_same_bits

NETS = {"small-cnn": nets.SmallCNN, "resnet18": nets.ResNet18, "mobilenet-v1": nets.MobileNetV1}


def sparse(model, density=0.1, seed=0):
    """As after a training: statistics of batches, scales of both signs, weights mostly zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.dim() >= 2:
                keep = torch.rand(tensor.shape, generator=generator) < density
                scale = (density * tensor[0].numel()) ** -0.5
                tensor.copy_(keep * scale * torch.randn(tensor.shape, generator=generator))
            elif name.endswith("running_var"):
                tensor.copy_(0.5 + torch.rand(tensor.shape, generator=generator))
            elif tensor.is_floating_point():
                tensor.add_(0.3 * torch.randn(tensor.shape, generator=generator))
    return model.eval()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "network.obz"


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("channels, side", [(3, 32), (1, 28)])
def test_served_by_rust_as_by_torch(kind, channels, side, path):
    model = sparse(NETS[kind](channels=channels, classes=7, width=0.125))
    size = save_compressed(model, path, servable=True)
    assert size == path.stat().st_size < 4 * sparsity_report(model).total.entries
    network = obprox.net.read(path)
    assert network.architecture[0] == kind and network.architecture[2:] == (0.125, channels, 7)
    images = torch.randn(9, channels, side, side, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = model(images).numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(network.scores(images), expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))
    np.testing.assert_array_equal(network.predict(images, n_jobs=1), expected.argmax(1))


def test_the_reader_on_the_page_of_the_format(path):
    page = Path(__file__).parents[3] / "crates" / "obprox-infer" / "FORMAT.md"
    reader = {}
    exec(re.search(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)[1], reader)
    # A density for each of the codings, and one tensor of nothing but zeros.
    model = sparse(nets.SmallCNN(width=0.25))
    with torch.no_grad():
        model.conv1.weight.copy_(sparse(nets.SmallCNN(width=0.25), density=0.4).conv1.weight)
        model.fc.bias.zero_()
    save_compressed(model, path, keep_channels=True)
    header, tensors = reader["read_obz"](path)
    assert {tensor["coding"] for tensor in header["tensors"]} == {"dense", "bitmap", "gaps"}
    state = {name: value for name, value in model.state_dict().items() if value.dim()}
    assert tensors.keys() == state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(tensors[name].view(np.uint32), value.numpy().view(np.uint32), err_msg=name)


@pytest.mark.parametrize("kind", NETS)
def test_loaded_to_the_same_bits(kind, path):
    model = sparse(NETS[kind](width=0.125))
    save_compressed(model, path, keep_channels=True)
    again = load_compressed(path)
    assert type(again) is type(model) and not again.training
    for (name, tensor), found in zip(model.state_dict().items(), again.state_dict().values()):
        assert name.endswith("num_batches_tracked") or torch.equal(tensor, found), name
    filled = load_compressed(path, NETS[kind](width=0.125))
    assert torch.equal(filled.conv1.weight, model.conv1.weight)


def test_channels_that_reach_nothing_are_cleared(path):
    model = sparse(nets.SmallCNN(width=0.25), density=0.9)
    with torch.no_grad():
        model.conv3.weight[:, 2] = 0
    kept = save_compressed(model, path, keep_channels=True)
    assert save_compressed(model, path) < kept
    cleared = load_compressed(path)
    assert not cleared.conv2.weight[2].any() and model.conv2.weight[2].any()
    images = torch.randn(4, 3, 16, 16)
    with torch.no_grad():
        torch.testing.assert_close(cleared(images), model(images))


class Own(nn.Module):
    """A network that obprox cannot run."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.body = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 2))
        self.register_buffer("mask", torch.tensor([[0.0, -torch.inf], [0.0, 0.0]]))
        self.register_buffer("order", torch.arange(4))
        self.gain = nn.Parameter(torch.tensor(2.5))

    def forward(self, x):
        return self.gain * self.body(self.embed(x))


def test_a_network_of_ones_own(path):
    model = sparse(Own())
    save_compressed(model, path)
    assert_same_bits(load_compressed(path, Own()), model)
    wrapped = nn.DataParallel(model)
    save_compressed(wrapped, path)
    assert_same_bits(load_compressed(path, Own()), model)
    assert_same_bits(load_compressed(path, nn.DataParallel(Own())).module, model)
    save_compressed(model.state_dict(), path)
    assert_same_bits(load_compressed(path, Own()), model)
    with pytest.raises(DataError, match="give the model to load into"):
        load_compressed(path)
    with pytest.raises(ObproxError, match="only its maker can run"):
        obprox.net.read(path)
    with pytest.raises(DataError, match="obprox cannot run this network: its parameters are of no known network"):
        save_compressed(model, path, servable=True)
    with pytest.raises(RuntimeError, match="Missing key"):
        load_compressed(path, nets.SmallCNN(width=0.125))


def test_names_of_others_are_understood(path):
    """ResNet18 with the shortcuts and the head named as many repositories have it."""
    model = sparse(nets.ResNet18(width=0.0625))

    class Other(nets.ResNet18):
        def __init__(self):
            super().__init__(width=0.0625)
            self.linear = self.fc
            del self.fc
            for stage in (self.layer2, self.layer3, self.layer4):
                stage[0].shortcut = stage[0].downsample
                del stage[0].downsample

    other = Other()
    theirs = {
        name.replace(".downsample.", ".shortcut.").replace("fc.", "linear."): tensor
        for name, tensor in model.state_dict().items()
    }
    assert theirs.keys() == other.state_dict().keys()
    save_compressed(theirs, path, servable=True, keep_channels=True)
    load_compressed(path, other)
    assert torch.equal(other.linear.weight, model.fc.weight)
    assert torch.equal(other.layer3[0].shortcut[0].weight, model.layer3[0].downsample[0].weight)


class Pooled(nets.ResNet18):
    """The names and shapes of ResNet18, and another network: one more pool."""

    def forward(self, x):
        return super().forward(nn.functional.max_pool2d(x, 2))


def test_names_alone_do_not_make_a_network(path):
    model = sparse(Pooled(width=0.125)).train()
    modes = [module.training for module in model.modules()]
    with pytest.raises(DataError, match="computes something else"):
        save_compressed(model, path, servable=True)
    assert not path.exists()
    assert [module.training for module in model.modules()] == modes
    save_compressed(model, path)
    with pytest.raises(ObproxError, match="only its maker can run"):
        obprox.net.read(path)
    assert torch.equal(load_compressed(path, Pooled(width=0.125)).conv1.weight, model.conv1.weight)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_types_are_kept_exactly(dtype, path):
    model = Own().to(dtype)
    save_compressed(model, path)
    assert_same_bits(load_compressed(path, Own().to(dtype)), model)


def test_labels_and_bytes(path):
    model = sparse(nets.SmallCNN(channels=1, classes=3, width=0.25))
    save_compressed(model, path, labels=["shirt", "coat", "bag"], preprocessing=(14, 14, [0.25], [0.5]))
    network = obprox.net.read(path)
    assert network.labels == ["shirt", "coat", "bag"]
    assert network.preprocessing == (14, 14, [0.25], [0.5])
    pixels = np.random.default_rng(0).integers(256, size=(5, 1, 14, 14), dtype=np.uint8)
    with torch.no_grad():
        expected = model((torch.from_numpy(pixels) / 255 - 0.25) / 0.5).numpy()
    np.testing.assert_allclose(network.scores(pixels), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert list(network.predict(pixels)) == [network.labels[best] for best in expected.argmax(1)]


def test_what_is_refused(path):
    model = sparse(nets.SmallCNN(width=0.125))
    with pytest.raises(DataError, match="names 2 classes where the network has 10"):
        save_compressed(model, path, labels=["a", "b"])
    with pytest.raises(DataError, match="float64 and does not fit float32 exactly"):
        save_compressed({"a": torch.tensor([0.1], dtype=torch.float64)}, path)
    with pytest.raises(DataError, match="complex64"):
        save_compressed({"a": torch.tensor([1j])}, path)
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.fc.weight[0, 0] = torch.nan
    with pytest.raises(DataError, match="fc.weight holds NaN"):
        save_compressed(broken, path)
    assert not path.exists()
    with pytest.raises(FileMissingError):
        load_compressed(path)
    save_compressed(model, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ObproxError, match="has another length than it says"):
        load_compressed(path)
    path.write_bytes(whole)
    network = obprox.net.read(path)
    with pytest.raises(DataError, match="shape"):
        network.scores(np.zeros((3, 32, 32)))
    with pytest.raises(DataError, match="1 channels for a network that takes 3"):
        network.scores(np.zeros((1, 1, 32, 32)))
    with pytest.raises(DataError, match="how its images are prepared"):
        network.scores(np.zeros((1, 3, 32, 32), np.uint8))
    assert network.scores(np.zeros((0, 3, 32, 32))).shape == (0, 10)
