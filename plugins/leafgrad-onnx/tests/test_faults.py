"""Files that are damaged, or made to do harm: one kind of error, little memory, no hang."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import leafgrad
from leafgrad import nn
from leafgrad_onnx import OnnxLoadError, export, files
from leafgrad_onnx.module import from_proto
from leafgrad_onnx.operators import OPERATORS

SIZES = (0, 1, -1, 2, 3, 7, 100, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 62, -(1 << 62))
MOST = 64 << 20  # bytes of memory that a file of some kilobytes may take


def models():
    """Valid models, with inputs for them."""
    leafgrad.manual_seed(0)
    lstm = nn.LSTM(3, 4)
    images = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))
    cases = [
        (nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)), leafgrad.randn(5, 3)),
        (images, leafgrad.randn(2, 3, 8, 8)),
        (lambda x: lstm(x)[0], leafgrad.randn(6, 2, 3)),
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), leafgrad.randn(2, 5, 8)),
        (lambda x: x[:, ::2].expand(3, 5, 2).sum(0).cumsum(1) + leafgrad.arange(2), leafgrad.randn(5, 4)),
    ]
    with leafgrad.no_grad():
        return [(export(function, x), x) for function, x in cases]


def changed(model, rng):
    """The bytes of a copy with one to four faults."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(rng.choice([1, 1, 2, 4])):
        rng.choice(FAULTS)(copy, copy.graph, rng.choice(list(copy.graph.node)), rng)
    data = bytearray(copy.SerializeToString())
    if rng.random() < 0.25:
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
    return bytes(data)


def an_attribute(model, graph, node, rng):
    for a in rng.sample(list(node.attribute), min(1, len(node.attribute))):
        if a.ints:
            a.ints[rng.randrange(len(a.ints))] = rng.choice(SIZES)
        elif a.HasField("i"):
            a.i = rng.choice(SIZES)
        elif a.HasField("t") and a.t.dims:
            a.t.dims[rng.randrange(len(a.t.dims))] = rng.choice(SIZES)


def a_shape(model, graph, node, rng):
    for t in rng.sample(list(graph.initializer), min(1, len(graph.initializer))):
        t.dims.append(rng.choice(SIZES))
        t.dims[rng.randrange(len(t.dims))] = rng.choice(SIZES)


def a_dtype(model, graph, node, rng):
    for t in rng.sample(list(graph.initializer), min(1, len(graph.initializer))):
        t.data_type = rng.randrange(30)


def an_operator(model, graph, node, rng):
    node.op_type = rng.choice([*sorted(OPERATORS), "Foo"])


def an_input(model, graph, node, rng):
    if node.input:
        names = [name for n in graph.node for name in n.output]
        node.input[rng.randrange(len(node.input))] = rng.choice([*names, "", "zz"])


def fewer_inputs(model, graph, node, rng):
    if node.input:
        del node.input[rng.randrange(len(node.input))]


def an_output(model, graph, node, rng):
    node.output.append(rng.choice(["q", "", node.output[0]]))


def no_attributes(model, graph, node, rng):
    del node.attribute[:]


def an_opset(model, graph, node, rng):
    model.opset_import[0].version = rng.choice([0, -1, 1, 5, 9, 11, 13, 17, 23, 28, 29, 1000])


def a_number(model, graph, node, rng):
    """In a constant that is a shape, say."""
    tensors = [a.t for n in graph.node if n.op_type == "Constant" for a in n.attribute]
    whole = [t for t in tensors if t.data_type == onnx.TensorProto.INT64 and t.raw_data]
    for t in rng.sample(whole, min(1, len(whole))):
        array = np.frombuffer(t.raw_data, "int64").copy()
        array[rng.randrange(array.size)] = rng.choice(SIZES)
        t.raw_data = array.tobytes()


def another_attribute(model, graph, node, rng):
    name = rng.choice(["axis", "axes", "pads", "strides", "foo", "body", "to", "perm", "kernel_shape", "group"])
    node.attribute.append(helper.make_attribute(name, rng.choice([5, -3, 1 << 40, [1, 2], [1 << 40] * 4, "x"])))


def data_elsewhere(model, graph, node, rng):
    for t in rng.sample(list(graph.initializer), min(1, len(graph.initializer))):
        t.data_location = onnx.TensorProto.EXTERNAL
        location = rng.choice(["../../etc/passwd", "/etc/passwd", "x.bin", "", ".", "a\0b"])
        for key, value in (("location", location), ("offset", rng.choice(SIZES)), ("length", rng.choice(SIZES))):
            entry = t.external_data.add()
            entry.key, entry.value = key, str(value)


def a_node_twice(model, graph, node, rng):
    graph.node.append(node)


FAULTS = (
    an_attribute, a_shape, a_dtype, an_operator, an_input, fewer_inputs, an_output, no_attributes, an_opset,
    a_number, another_attribute, data_elsewhere, a_node_twice,
)  # fmt: skip


@pytest.mark.times(150, 4000)
def test_damaged_files_are_one_kind_of_error(count, tried, tmp_path):
    rng, valid, refused = random.Random(count), models(), 0
    tracemalloc.start()
    try:
        for _ in range(count):
            model, x = rng.choice(valid)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                loaded = from_proto(files.parse(changed(model, rng), "damaged"), str(tmp_path))
                loaded(x)
            except OnnxLoadError:
                refused += 1
            except TypeError as error:
                if "expected" not in str(error):  # as of inputs that the file now says otherwise
                    raise
            assert tracemalloc.get_traced_memory()[1] - before < MOST
    finally:
        tracemalloc.stop()
    assert refused > count / 4
    tried("an ONNX file is changed at random", count, "it loads, or OnnxLoadError")


@pytest.mark.times(60, 1000)
def test_sizes_that_files_claim_take_no_memory(count, tried):
    rng = random.Random(count)
    tracemalloc.start()
    try:
        for _ in range(count):
            kind = rng.choice(["ConstantOfShape", "Expand", "Tile", "Reshape", "Range"])
            inputs = {"ConstantOfShape": ["s"], "Range": ["zero", "s", "one"]}.get(kind, ["x", "s"])
            sizes = rng.choice(SIZES) if kind == "Range" else rng.choices(SIZES, k=rng.choice([1, 2, 2, 3]))
            initializers = [
                numpy_helper.from_array(np.array(a, "int64"), n) for n, a in (("s", sizes), ("zero", 0), ("one", 1))
            ]
            infos = [[helper.make_tensor_value_info(name, 1, None)] for name in ("x", "y")]
            graph = helper.make_graph([helper.make_node(kind, inputs, ["y"])], "g", *infos, initializers)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
            try:
                result = from_proto(model)(leafgrad.ones(2, 3))
            except OnnxLoadError:
                assert tracemalloc.get_traced_memory()[1] < MOST
            else:
                assert result.numel() <= 1 << 29
                del result
            tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    tried("an ONNX file asks for values of absurd sizes", count, "OnnxLoadError, before memory is taken")
