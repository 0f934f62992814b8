"""ONNX files that are wrong or mean harm: refused in words, without large allocations."""

import resource

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="python/test-onnx runs this")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import obprox.net  # noqa: E402
from obprox.exceptions import FileError  # noqa: E402

IMAGE = (1, 3, 8, 8)


def file(nodes, tensors=(), shape=IMAGE, outputs=("y",)):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], values, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def node(op, inputs, output="y", **fields):
    return helper.make_node(op, inputs, [output], **fields)


def conv(shape=(4, 3, 3, 3), image=IMAGE, **fields):
    weight = numpy_helper.from_array(np.ones(shape, np.float32), "w")
    return file([node("Conv", ["x", "w"], **fields)], [weight], image)


def claimed(*dims):
    """A weight that says it is large, and has no values."""
    return file([node("Conv", ["x", "w"])], [onnx.TensorProto(name="w", data_type=1, dims=dims)])


def elsewhere():
    """A weight in another file."""
    model = claimed(4, 3, 3, 3)
    model.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
    return model


def chain(op, count, **fields):
    names = ["x", *(f"v{at}" for at in range(1, count)), "y"]
    inputs = (lambda name: [name] * 2) if op == "Concat" else (lambda name: [name])
    return file([node(op, inputs(one), two, **fields) for one, two in zip(names, names[1:])])


def nested(depth):
    """Conditions within conditions."""
    graph = helper.make_graph([node("Relu", ["x"], "z")], "inner", [], [])
    for _ in range(depth):
        graph = helper.make_graph([node("If", ["c"], "z", then_branch=graph)], "inner", [], [])
    return file([node("If", ["x"], then_branch=graph)])


CASES = {
    "a huge weight": (claimed(1 << 40, 3, 3, 3), "do not fill the shape"),
    "a product that overflows": (claimed(1 << 62, 1 << 62), "w is too large"),
    "a negative size": (claimed(-4, 3, 3, 3), "w has a negative size"),
    "a weight in another file": (elsewhere(), "another file"),
    "no weight": (file([node("Conv", ["x", "w"])]), "takes w|w is no constant"),
    "weights that are no numbers": (
        file([node("Conv", ["x", "w"])], [numpy_helper.from_array(np.full((4, 3, 3, 3), np.nan, np.float32), "w")]),
        "not finite",
    ),
    "a huge image": (conv(image=(1, 3, 1 << 40, 1 << 40)), "empty or too large"),
    "a kernel that is another": (conv(kernel_shape=[5, 5]), "kernel_shape .5, 5. where the weight is of 3×3"),
    "a stride of zero": (conv(strides=[0, 0]), "stride"),
    "a huge dilation": (conv(dilations=[1 << 60] * 2), "not between 1 and 4096"),
    "huge pads": (conv(pads=[1 << 40] * 4), "a padding of"),
    "groups below zero": (conv(group=-3), "group .-3. is not known"),
    "a cycle": (file([node("Add", ["x", "q"], "p"), node("Relu", ["p"], "q"), node("Relu", ["q"])]), "takes q, which no node"),
    "sizes that double": (chain("Concat", 40, axis=1), "empty or too large"),
    "graphs in graphs": (nested(30), "the operation If"),
    "two outputs": (file([node("Relu", ["x"]), node("Relu", ["y"], "z")], outputs=("y", "z")), "1 inputs and gives 2 outputs"),
    "a huge enlargement": (
        file(
            [node("Resize", ["x", "", "s"], mode="nearest")],
            [numpy_helper.from_array(np.array([1, 1, 1e9, 1e9], np.float32), "s")],
        ),
        "not between 1 and 4096",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_in_words(name, tmp_path):
    model, message = CASES[name]
    path = tmp_path / "network.onnx"
    path.write_bytes(model.SerializeToString())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FileError, match=message) as refusal:
        obprox.net.read_onnx(path)
    assert str(path) in str(refusal.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kilobytes"


def test_a_long_network_is_none_that_means_harm(tmp_path):
    path = tmp_path / "network.onnx"
    path.write_bytes(chain("Relu", 5000).SerializeToString())
    images = np.linspace(-1, 1, 192, dtype=np.float32).reshape(IMAGE)
    np.testing.assert_array_equal(obprox.net.read_onnx(path).scores(images).ravel(), images.clip(0).ravel())
