"""ONNX files that obprox writes, checked by onnx and run by onnxruntime."""

import json
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="python/test-onnx runs this")
onnxruntime = pytest.importorskip("onnxruntime", reason="python/test-onnx runs this")

import obprox.net  # noqa: E402
from obprox import _core  # noqa: E402

FIXTURES = Path(__file__).parents[3] / "crates" / "obprox-infer" / "tests" / "fixtures"


def checked(path):
    onnx.checker.check_model(onnx.load(str(path)), full_check=True)
    return path


def run(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: inputs})[0]


def close(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.onnx")))
def test_in_and_out_again(name, tmp_path):
    source = FIXTURES / f"{name}.onnx"
    network = obprox.net.read_onnx(source)
    inputs = np.random.default_rng(1).standard_normal((5, *network.input_shape)).astype(np.float32)
    expected = run(source, inputs)
    close(network.scores(inputs), expected)
    network.write_onnx(tmp_path / "again.onnx")
    close(run(checked(tmp_path / "again.onnx"), inputs), expected)


class Random:
    """A network of random layers, as nodes and tensors."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.tensors = [{"op": "input", "shape": [3, 9, 10]}], {}
        self.shapes = [(3, 9, 10)]

    def push(self, shape, op, *inputs, **fields):
        self.nodes.append({"op": op, "inputs": list(inputs), **fields})
        self.shapes.append(shape)
        return len(self.nodes) - 1

    def tensor(self, *shape, least=None):
        name = f"tensor{len(self.tensors)}"
        values = self.random.standard_normal(shape) if least is None else self.random.random(shape) + least
        # Some rows are zero, so that there is something to cut out.
        values[self.random.random(shape[0]) < 0.3] *= 0 if least is None else 1
        self.tensors[name] = (values * 0.5).astype(np.float32)
        return name

    def window(self, kernel, stride=1, padding=0, dilation=1):
        fields = {"kernel": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 4, "dilation": [dilation] * 2}
        return fields, lambda side: (side + 2 * padding - (kernel - 1) * dilation - 1) // stride + 1

    def step(self, at):
        channels, height, width = self.shapes[at]
        kind = self.random.integers(8)
        if kind <= 2:
            kernel, stride, padding, dilation = [(1, 1, 0, 1), (3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 2, 2)][self.random.integers(4)]
            outputs, groups = (int(self.random.integers(2, 8)), 1) if kind else (channels * 2, channels)
            fields, side = self.window(kernel, stride, padding, dilation)
            weight = self.tensor(outputs, channels // groups, kernel, kernel)
            at = self.push((outputs, side(height), side(width)), "conv", at, weight=weight, groups=groups, **fields)
            norm = dict(zip(("weight", "bias", "mean"), (self.tensor(outputs) for _ in range(3))))
            return self.push(self.shapes[at], "batch-norm", at, **norm, var=self.tensor(outputs, least=0.5), epsilon=1e-5)
        if kind == 3:
            names = ["relu", "relu6", "silu", "hard-swish", "hard-sigmoid", "gelu", "sigmoid"]
            return self.push(self.shapes[at], names[self.random.integers(len(names))], at)
        if kind == 4:
            fields, side = self.window(3, 1, 1)
            other = self.push(self.shapes[at], "max-pool", at, **fields)
            return self.push(self.shapes[at], ["add", "multiply"][self.random.integers(2)], at, other)
        if kind == 5:
            return self.push((2 * channels, height, width), "concat", at, at)
        if kind == 6 and height > 3 and width > 3:
            fields, side = self.window(2, 2)
            return self.push((channels, side(height), side(width)), "average-pool", at, count_padding=False, **fields)
        return self.push((channels, 2 * height, width), "upsample", at, scale=[2, 1]) if height < 9 else at


@pytest.mark.parametrize("seed", range(24))
def test_random_networks_cut_and_whole(seed, tmp_path):
    random, at = Random(seed), 0
    for _ in range(7):
        at = random.step(at)
    channels, *_ = random.shapes[at]
    pooled = random.push((channels, 1, 1), "adaptive-average-pool", at, size=[1, 1])
    flat = random.push((channels,), "flatten", pooled)
    random.push((4,), "linear", flat, weight=random.tensor(4, channels))
    whole = _core.Network.of_graph(json.dumps(random.nodes), random.tensors)
    inputs = random.random.standard_normal((3, 3, 9, 10)).astype(np.float32)
    expected = whole.scores(inputs, 1)
    for network in (whole, whole.without_dead_channels(), whole.cut()):
        network.write_onnx(tmp_path / "network.onnx")
        close(run(checked(tmp_path / "network.onnx"), inputs), expected)
