"""What load makes of a file: a Module that runs, trains and compiles; and what it refuses."""

from __future__ import annotations

import leafgrad.onnx
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import leafgrad
from leafgrad import nn
from leafgrad_onnx import OnnxLoadError, export, load
from leafgrad_onnx.module import from_proto

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model(nodes, initializers=(), opset=18, outputs=("y",), inputs=("x",), **options):
    """A model of nodes, with inputs of any shape."""
    return helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(name, FLOAT, None) for name in inputs],
            [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
            [numpy_helper.from_array(np.asarray(a), name) for name, a in initializers],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        **options,
    )


@pytest.fixture
def net(tmp_path):
    leafgrad.manual_seed(0)
    made = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)).eval()
    export(made, leafgrad.randn(5, 3), tmp_path / "net.onnx", dynamic_axes={"input": {0: "batch"}})
    return made


def test_it_runs_under_its_names(net, tmp_path):
    loaded = leafgrad.onnx.load(tmp_path / "net.onnx")
    x = leafgrad.randn(9, 3)
    assert (loaded(x) - net(x)).abs().max() < 1e-6
    assert (loaded(input=x) - net(x)).abs().max() < 1e-6
    assert loaded.input_names == ["input"]
    assert loaded.output_names == ["output"]
    assert loaded.opset_version == 18
    state, own = loaded.state_dict(), net.state_dict()
    assert {*state} == {*own} - {"1.num_batches_tracked"}
    assert all((state[name] == own[name]).all() for name in state)
    assert "nodes=" in repr(loaded)


def test_it_trains(net, tmp_path):
    loaded = load(tmp_path / "net.onnx")
    x = leafgrad.randn(64, 3)
    y = x[:, :2] * 2
    optimizer = leafgrad.optim.Adam(loaded.parameters(), lr=0.02)
    before = nn.functional.mse_loss(loaded(x), y).item()
    for _ in range(50):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(loaded(x), y)
        loss.backward()
        optimizer.step()
    assert loss.item() < before / 4


def test_its_gradients_are_the_models(net, tmp_path):
    loaded, x = load(tmp_path / "net.onnx"), leafgrad.randn(5, 3)
    loaded(x).square().sum().backward()
    net(x).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert (loaded.get_parameter(name).grad - parameter.grad).abs().max() < 1e-5


def test_it_compiles(net, tmp_path):
    loaded = load(tmp_path / "net.onnx")
    compiled = leafgrad.compile(loaded, closed=True)
    for _ in range(3):
        x = leafgrad.randn(5, 3)
        assert (compiled(x) - net(x)).abs().max() < 1e-6


def test_attention_compiles_closed():
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), leafgrad.randn(2, 5, 8)
    compiled = leafgrad.compile(from_proto(export(layer, x)), closed=True)
    for _ in range(3):
        assert (compiled(x) - layer(x)).abs().max() < 1e-5


def test_it_leaves_again(net, tmp_path):
    loaded, x = load(tmp_path / "net.onnx"), leafgrad.randn(5, 3)
    again = from_proto(export(loaded, x, input_names=["input"], dynamic_axes={"input": {0: "batch"}}))
    assert list(again.state_dict()) == list(loaded.state_dict())
    for n in (1, 5, 17):
        x = leafgrad.randn(n, 3)
        assert (again(x) - net(x)).abs().max() < 1e-6


def test_what_a_node_reads_as_numbers_is_no_parameter():
    m = model(
        [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest")],
        [("scales", np.array([1, 1, 2, 2], "float32"))],
    )
    loaded = from_proto(m)
    assert list(loaded.parameters()) == []
    assert leafgrad.compile(loaded)(leafgrad.ones(1, 1, 2, 2)).shape == (1, 1, 4, 4)


def test_names_that_are_no_names_of_python():
    weights = [("a.b", np.ones(2, "float32")), ("a", np.ones(2, "float32")), ("forward", np.ones(2, "float32"))]
    weights += [("x/y:0", np.ones(2, "float32")), ("a..c", np.ones(2, "float32"))]
    names = [name for name, _ in weights]
    loaded = from_proto(model([helper.make_node("Sum", ["x", *names], ["y"])], weights))
    assert len(list(loaded.parameters())) == 5
    assert loaded(leafgrad.zeros(2)).tolist() == [5, 5]


def test_control_flow_and_functions():
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(kind, ["x"], ["z"])], name, [], [helper.make_tensor_value_info("z", FLOAT, None)]
        )
        for name, kind in (("then", "Neg"), ("else", "Abs"))
    }
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], **branches),
    ]
    loaded = from_proto(model(nodes, [("zero", np.float32(0))]))
    assert loaded(leafgrad.tensor([1.0, 2.0])).tolist() == [-1, -2]
    assert loaded(leafgrad.tensor([-1.0, -2.0])).tolist() == [1, 2]
    twice = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 18)]
    )
    m = model([helper.make_node("Twice", ["x"], ["y"], domain="mine")], functions=[twice])
    m.opset_import.append(helper.make_opsetid("mine", 1))
    assert from_proto(m)(leafgrad.ones(2)).tolist() == [2, 2]


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_a_newer_opset():
    with pytest.raises(OnnxLoadError, match="an opset of 1 to 28, got 99"):
        from_proto(model([helper.make_node("Neg", ["x"], ["y"])], opset=99))


def test_unknown_operators_are_all_named():
    nodes = [helper.make_node("NonMaxSuppression", ["x"], ["z"]), helper.make_node("Foo", ["z"], ["y"], domain="bar")]
    with pytest.raises(OnnxLoadError, match=r"NonMaxSuppression.*bar\.Foo|bar\.Foo.*NonMax|Foo, NonMax"):
        from_proto(model(nodes))


@pytest.mark.parametrize("data", [b"", b"no model", b"\x08\x07" * 9, bytes(range(256))])
def test_no_model(data, tmp_path):
    file = tmp_path / "a.onnx"
    file.write_bytes(data)
    with pytest.raises(OnnxLoadError, match="no ONNX file"):
        load(file)


def external(location, offset="0", length="8"):
    m = model([helper.make_node("Add", ["x", "w"], ["y"])], [("w", np.ones(2, "float32"))])
    w = m.graph.initializer[0]
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        entry = w.external_data.add()
        entry.key, entry.value = key, value
    return m


def test_data_beside_the_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.array([0, 3, 4], "float32").tobytes())
    onnx.save(external("w.bin", "4"), tmp_path / "a.onnx")
    assert load(tmp_path / "a.onnx")(leafgrad.ones(2)).tolist() == [4, 5]


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "", ".", "link", "a\0b"])
def test_data_outside_of_the_folder(location, tmp_path):
    (tmp_path / "secret").write_bytes(bytes(8))
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OnnxLoadError, match="outside of the folder"):
        from_proto(external(location), str(folder))


@pytest.mark.parametrize(("offset", "length"), [("4", "8"), ("-4", "8"), ("0", "4"), ("0", "1e9"), (str(1 << 62), "8")])
def test_data_that_are_not_there(offset, length, tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(8))
    with pytest.raises(OnnxLoadError, match=r"needs 8 bytes|no place"):
        from_proto(external("w.bin", offset, length), str(tmp_path))


@pytest.mark.parametrize("dims", [[1 << 40, 1 << 20], [3], [-1], [0], []])
def test_tensors_that_claim_another_size(dims):
    m = model([helper.make_node("Add", ["x", "w"], ["y"])], [("w", np.ones(2, "float32"))])
    m.graph.initializer[0].ClearField("dims")
    m.graph.initializer[0].dims.extend(dims)
    with pytest.raises(OnnxLoadError, match=r"tensor 'w' (of shape .* needs|has the shape)"):
        from_proto(m)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("ConstantOfShape", [1 << 40]),
        ("Expand", [1 << 20, 1 << 20, 2]),
        ("Tile", [1 << 40]),
        ("ConstantOfShape", [-1]),
        ("ConstantOfShape", [1 << 62, 1 << 62]),
    ],
)  # fmt: skip
def test_huge_values_are_refused_before_memory_is_taken(kind, sizes):
    inputs = ["s"] if kind == "ConstantOfShape" else ["x", "s"]
    loaded = from_proto(model([helper.make_node(kind, inputs, ["y"])], [("s", np.array(sizes, "int64"))]))
    with pytest.raises(OnnxLoadError, match=r"more than the .* that a file may ask for|without negative sizes"):
        loaded(leafgrad.ones(2))


def test_huge_results_of_small_inputs():
    loaded = from_proto(model([helper.make_node("Add", ["x", "z"], ["y"])], inputs=("x", "z")))
    with pytest.raises(OnnxLoadError, match="may ask for"):
        loaded(leafgrad.ones(1 << 16, 1), leafgrad.ones(1 << 16))


@pytest.mark.parametrize(
    ("node", "place"),
    [
        (helper.make_node("Concat", ["a"] * 1000, ["y"], axis=0), (1 << 20, 1)),
        (helper.make_node("GatherND", ["b", "i"], ["y"]), (1 << 20, 1)),
        (helper.make_node("Einsum", ["a", "a"], ["y"], equation="ij,kl->ik"), (1 << 20, 1)),
    ],
    ids=lambda part: getattr(part, "op_type", ""),
)
def test_small_files_do_not_ask_for_large_results(node, place):
    nodes = [
        helper.make_node("Expand", ["x", "many"], ["a"]), helper.make_node("Reshape", ["a", "row"], ["b"]),
        helper.make_node("Expand", ["zero", "many"], ["i"]), node,
    ]  # fmt: skip
    numbers = {"many": place, "row": (1, -1), "zero": (0,)}
    loaded = from_proto(model(nodes, [(name, np.array(n, "int64")) for name, n in numbers.items()]))
    with pytest.raises(OnnxLoadError, match="may ask for"):
        loaded(leafgrad.ones(1))


def test_what_a_loop_keeps_of_its_steps_is_not_too_large():
    ends = [helper.make_tensor_value_info(name, BOOL if name in "ce" else FLOAT, None) for name in "cvewr"]
    steps = [("Identity", ["c"], ["e"]), ("Identity", ["v"], ["w"]), ("Expand", ["v", "many"], ["r"])]
    body = helper.make_graph(
        [helper.make_node(*step) for step in steps], "body",
        [helper.make_tensor_value_info("i", INT64, []), *ends[:2]], ends[2:],
    )  # fmt: skip
    numbers = [("count", np.array(600)), ("many", np.array([1 << 20]))]
    loaded = from_proto(model([helper.make_node("Loop", ["count", "", "x"], ["z", "y"], body=body)], numbers))
    with pytest.raises(OnnxLoadError, match="may ask for"):
        loaded(leafgrad.ones(1))


@pytest.mark.parametrize("kind", ["COMPLEX64", "STRING", "UINT16"])
def test_inputs_of_other_dtypes_are_refused(kind):
    m = model([helper.make_node("Identity", ["x"], ["y"])])
    m.graph.input[0].type.tensor_type.elem_type = TensorProto.DataType.Value(kind)
    with pytest.raises(OnnxLoadError, match=f"the input 'x': expected a dtype of .*, got {kind}"):
        from_proto(m)


def test_nodes_out_of_order():
    with pytest.raises(OnnxLoadError, match="reads 'z', which nothing before it makes"):
        from_proto(model([helper.make_node("Neg", ["z"], ["y"])]))
    with pytest.raises(OnnxLoadError, match="makes 'x', which exists already"):
        from_proto(model([helper.make_node("Neg", ["x"], ["x"])], outputs=("x",)))


def test_a_node_that_fails_is_named():
    loaded = from_proto(model([helper.make_node("MatMul", ["x", "x"], ["y"], name="product")]))
    with pytest.raises(OnnxLoadError, match="product: MatMul failed"):
        loaded(leafgrad.ones(2, 3))


def test_wrong_inputs(net, tmp_path):
    loaded = load(tmp_path / "net.onnx")
    for args, message in (
        ((), "input is missing"),
        ((leafgrad.ones(2, 3),) * 2, "expected the inputs"),
        ((leafgrad.ones(2, 4),), r"expected the shape \[None, 3\]"),
        ((leafgrad.ones(2, 3).double(),), "expected float32"),
        ((np.ones((2, 3), "float32"),), "expected a tensor"),
    ):
        with pytest.raises(TypeError, match=message):
            loaded(*args)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [("Affine", lambda x, a, b: a * x + b), ("ScaledTanh", lambda x, a, b: a * np.tanh(b * x))],
)
@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.5), (2.0, 0.0), (0.5, 2.0)])
def test_activations_of_recurrent_layers_take_zeros_for_what_they_are(activation, expected, alpha, beta):
    node = helper.make_node(
        "RNN", ["x", "w", "r"], ["y"], hidden_size=1, activations=[activation], activation_alpha=[alpha],
        activation_beta=[beta],
    )  # fmt: skip
    loaded = from_proto(model([node], [("w", np.ones((1, 1, 1), "f")), ("r", np.zeros((1, 1, 1), "f"))]))
    x = leafgrad.tensor([[[-1.0]], [[0.25]], [[3.0]]])
    np.testing.assert_allclose(
        loaded(x).detach().numpy().ravel(), expected(x.numpy().ravel(), alpha, beta), rtol=1e-6, atol=1e-7
    )
