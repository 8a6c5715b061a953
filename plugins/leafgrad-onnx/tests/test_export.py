"""What export writes: names, modes, derivatives, forms of users' ops, and errors that say where."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import leafgrad.onnx
import numpy as np
import onnx
import pytest

import leafgrad
from leafgrad import nn
from leafgrad_onnx import OnnxExporterError, TrainingMode, export
from leafgrad_onnx.cli import kind

EXAMPLES = Path(__file__).parents[3] / "examples"


def example(name):
    """A module of examples/."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _seed():
    leafgrad.manual_seed(0)


@pytest.fixture
def net():
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def kinds(model):
    return [n.op_type for n in model.graph.node]


def test_a_network_has_its_names(net, agrees, tmp_path):
    file = tmp_path / "net.onnx"
    made = agrees(net, leafgrad.randn(5, 3), f=file, input_names=["x"], output_names=["y"])
    assert onnx.load(file) == made
    assert [i.name for i in made.graph.input] == ["x"]
    assert [o.name for o in made.graph.output] == ["y"]
    assert [t.name for t in made.graph.initializer] == list(net.state_dict())
    assert kinds(made) == ["Gemm", "Tanh", "Gemm"]
    assert made.opset_import[0].version == 18
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("opset", [19, 21, 23])
def test_newer_opsets(net, agrees, opset):
    assert agrees(net, leafgrad.randn(5, 3), opset_version=opset).opset_import[0].version == opset


def test_names_of_arguments(agrees):
    def f(a, b, c=None, *, unused=2.0):
        return {"sum": a + b[0], "same": a, "twice": (a + b[0], c)}

    made = export(f, (leafgrad.ones(2), [leafgrad.ones(2)]), kwargs={"c": leafgrad.zeros(3)})
    assert [i.name for i in made.graph.input] == ["a", "b_0", "c"]
    assert len(made.graph.output) == 4


def test_outputs_that_are_inputs_parameters_or_each_other(net, agrees):
    agrees(lambda x: (x, net[0].weight, x, x * 2, x * 2), leafgrad.randn(2, 3))


def test_an_input_that_nothing_reads_stays_one(agrees):
    made = agrees(lambda x, y: y + 1, leafgrad.randn(2), leafgrad.randn(3))
    assert len(made.graph.input) == 2


def test_numbers_are_constants(agrees):
    made = export(lambda x, k: x * k, (leafgrad.ones(2), 3.0))
    assert [i.name for i in made.graph.input] == ["x"]


def test_modes(agrees):
    layer = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    layer[0].eval()
    x = leafgrad.randn(4, 3)
    as_is = [m.training for m in layer.modules()]
    agreed = export(layer, x)
    assert "Bernoulli" not in kinds(agreed)
    assert [m.training for m in layer.modules()] == as_is
    trained = export(layer, x, training=TrainingMode.TRAINING)
    assert "Bernoulli" in kinds(trained)
    assert "ReduceSum" in kinds(trained)  # of the batch's own variance
    assert "ReduceSum" not in kinds(export(layer, x, training=TrainingMode.PRESERVE))
    assert [m.training for m in layer.modules()] == as_is


def test_derivatives_are_in_the_graph(net, agrees):
    def residual(x):
        x = x.detach().requires_grad_()
        u = net(x)
        (slope,) = leafgrad.autograd.grad(u[:, 0].sum(), x, create_graph=True)
        (second,) = leafgrad.autograd.grad(slope[:, 1].sum(), x, create_graph=True)
        return u[:, 0] * slope[:, 0] - second[:, 1]

    agrees(residual, leafgrad.randn(5, 3))
    agrees(leafgrad.compile(residual), leafgrad.randn(5, 3), dynamic_axes={"x": {0: "points"}})


def test_a_compiled_residual_of_the_burgers_example(agrees):
    burgers = example("burgers")
    model = burgers.Burgers()

    @leafgrad.compile
    def residual(x, t):
        return burgers.residual(model, x, t)

    x, t = (leafgrad.rand(7, 1, requires_grad=True) for _ in range(2))
    made = agrees(residual, x, t, dynamic_axes={"x": {0: "n"}, "t": {0: "n"}})
    assert sizes(made)[0] == ["n", 1]


@pytest.mark.every(3)
@pytest.mark.parametrize("derivatives", ["jet", "reverse", "forward"])
def test_residuals_of_a_problem_of_leafgrad_pinn(derivatives, agrees):
    pinn = pytest.importorskip("leafgrad_pinn")
    u = pinn.Field("u", pinn.Interval("x", 0, 1), net=pinn.MLP(8, 2), boundary=pinn.Hard(0))
    equation = pinn.Interior(lambda u, x: u.xxxx + u * u.xx - leafgrad.sin(x), n=40, sampler="grid")
    system = pinn.Problem(u, [equation], derivatives=derivatives).system()

    def residual(points):
        return system(0, {"points": points})

    points = leafgrad.rand(7, 1, dtype=leafgrad.float64)
    made = agrees(residual, points, tolerance=1e-12, dynamic_axes={"points": {0: "n"}})
    for n in (1, 50):
        agrees(residual, leafgrad.rand(n, 1, dtype=leafgrad.float64), tolerance=1e-12, proto=made)


def test_a_training_step_gives_gradients(net, agrees):
    def step(x, y):
        return leafgrad.autograd.grad(nn.functional.cross_entropy(net(x), y), list(net.parameters()))

    agrees(step, leafgrad.randn(5, 3), leafgrad.randint(0, 2, (5,)))


@pytest.mark.parametrize(
    ("name", "make", "inputs"),
    [
        ("char_transformer", lambda m: m.Writer(20, 16, 2, 0.1), lambda: (leafgrad.randint(0, 20, (2, 7)),)),
        ("conv_digits", lambda m: m.network(), lambda: (leafgrad.randn(2, 1, 8, 8),)),
        ("vae", lambda m: m.VAE().encoder, lambda: (leafgrad.rand(3, 64),)),
        ("vae", lambda m: m.VAE().decoder, lambda: (leafgrad.randn(3, 2),)),
        ("sine_lstm", lambda m: m.Predictor(6), lambda: (leafgrad.randn(2, 9).double(),)),
        ("burgers", lambda m: m.Burgers(), lambda: (leafgrad.rand(5, 1), leafgrad.rand(5, 1))),
    ],
)
def test_models_of_the_examples(name, make, inputs, agrees):
    model = make(example(name))
    with leafgrad.no_grad():
        agrees(model, *inputs())


def test_recurrent_layers_of_any_length(agrees):
    layer = nn.LSTM(3, 4, batch_first=True)
    with leafgrad.no_grad():
        agrees(lambda x: layer(x), leafgrad.randn(2, 6, 3), dynamic_axes={"x": {0: "batch", 1: "time"}})


def test_long_attention(agrees):
    q = leafgrad.randn(1, 2, 33, 4)
    mask = leafgrad.rand(33, 33) > 0.3
    attend = nn.functional.scaled_dot_product_attention
    agrees(lambda q, mask: attend(q, q, q, attn_mask=mask), q, mask)
    agrees(lambda q: attend(q, q, q, is_causal=True), q, dynamic_axes={"q": {2: "time"}})


# ---- other lengths --------------------------------------------------------------------------------------------------


def sizes(model):
    return [[d.dim_param or d.dim_value for d in o.type.tensor_type.shape.dim] for o in model.graph.output]


@pytest.mark.parametrize(
    ("function", "shape", "axes"),
    [
        (lambda x: x.reshape(x.shape[0], -1).flatten(), (4, 3, 2), {0: "n", 2: "m"}),
        (lambda x: x * x.shape[0] / (x.shape[0] - 1) ** 0.5 + x.sum() / x.numel(), (5, 3), {0: "n"}),
        (lambda x: x[::2].sum() + x[:-1].sum(0) + x[x.shape[0] // 2] + x[-1], (5, 3), {0: "n"}),
        (lambda x: x + leafgrad.arange(x.shape[0]).unsqueeze(1) + leafgrad.eye(x.shape[0])[:, :1], (5, 3), {0: "n"}),
        (lambda x: x.std(0) + x.softmax(0) + x.cumsum(0) + x.flip(0) + x.roll(1, 0), (5, 3), {0: "n"}),
        (lambda x: nn.functional.avg_pool1d(x, 3, 2), (2, 3, 11), {0: "n", 2: "length"}),
        (lambda x: leafgrad.cat([x, x[:1]]).tril() @ x.T[:, :2], (4, 4), {0: "n"}),
    ],
)  # fmt: skip
def test_lengths_that_follow(function, shape, axes, agrees):
    x = leafgrad.randn(*shape)
    made = agrees(function, x, input_names=["x"], dynamic_axes={"x": axes})
    for k in (0, 1, 8, 30):
        other = leafgrad.randn(*[n + k * (d + 1) if d in axes else n for d, n in enumerate(shape)])
        agrees(function, other, proto=made)


def test_a_network_of_convolutions_takes_other_images(agrees):
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, 2, 1), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )
    axes = {"input": {0: "batch", 2: "height", 3: "width"}}
    made = agrees(net, leafgrad.randn(2, 3, 12, 14), dynamic_axes=axes)
    assert sizes(made) == [["batch", 2]]


def test_axes_of_one_name_are_equally_long(agrees):
    x, y = leafgrad.randn(4, 3), leafgrad.randn(4, 3)
    agrees(lambda x, y: x * y, x, y, dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    with pytest.raises(OnnxExporterError, match="does not run at other lengths"):
        export(lambda x, y: x * y, (x, y), dynamic_axes={"x": {0: "n"}, "y": {0: "m"}})
    with pytest.raises(ValueError, match="'n' is 4 and 3"):
        export(lambda x, y: x * y, (x, y), dynamic_axes={"x": {0: "n"}, "y": {1: "n"}})


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x.shape[0] > 7 else -x,  # another graph
        lambda x: x * (x.shape[0] ** 3 % 11),  # a number that follows from no formula
        lambda x: x + leafgrad.tensor(list(range(x.shape[0]))).unsqueeze(1),  # another constant
        lambda x: x.reshape(5, 3) * 2,
    ],
)
def test_what_follows_no_length_is_an_error(function):
    with pytest.raises(OnnxExporterError, match="dynamic_axes"):
        export(function, leafgrad.randn(5, 3), dynamic_axes={"x": {0: "n"}})


def test_a_length_at_which_the_file_would_be_wrong_is_an_error():
    def f(x):
        return x + (1.0 if x.shape[0] == 1 else 0.0)

    with pytest.raises(OnnxExporterError, match="not what the function returns"):
        export(f, leafgrad.randn(5, 3), dynamic_axes={"x": {0: "n"}})


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: (x, x * 2) if x.shape[0] > 1 else (x,), "the function returns 1 tensors, and the file 2"),
        (lambda x: x[1:].argmax(0) if x.shape[0] > 1 else x.argmax(0), "the file does not run, .*ArgMax failed"),
    ],
)
def test_a_length_at_which_the_file_would_fail_is_an_error(function, words):
    with pytest.raises(OnnxExporterError, match=words):
        export(function, leafgrad.randn(5, 3), dynamic_axes={"x": {0: "n"}})


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_sinc_are_sums_of_series_near_0(order, agrees):
    def f(x):
        x = x.detach().requires_grad_()
        y = leafgrad.sinc(x)
        for _ in range(order):
            (y,) = leafgrad.autograd.grad(y.sum(), x, create_graph=True)
        return y

    agrees(f, leafgrad.cat([leafgrad.linspace(-3, 3, 41), leafgrad.tensor([1e-6, 1e-3, 0.05])]))


# ---- forms and errors -----------------------------------------------------------------------------------------------


def test_a_users_op_has_a_form_by_its_c_or_by_its_rule(agrees):
    @leafgrad.op("elementwise", "float", c="x > 0 ? x / (1 + x) : expm1(x) * scale")
    def bent(xp, x, *, scale):
        return xp.where(x > 0, x / (1 + x), xp.expm1(x) * scale)

    @leafgrad.op
    def turned(xp, x):
        return x[::-1].copy()

    agrees(lambda x: bent(x, scale=2.0), leafgrad.randn(4, 3))
    with pytest.raises(OnnxExporterError, match=r"op 'turned' has no ONNX form, at test_export.py:\d+: .*turned\(x\)"):
        export(lambda x: turned(x), leafgrad.randn(4))
    turned.lower("onnx", lambda w, e: w.emit("Slice", w(e.inputs[0]), *map(w.ints, ([-1], [-(1 << 62)], [0], [-1]))))
    agrees(lambda x: turned(x), leafgrad.randn(4))


def test_what_cannot_be_written_names_op_and_line():
    with pytest.raises(OnnxExporterError, match=r"op 'cholesky' has no ONNX form, at test_export.py:\d+"):
        export(lambda x: leafgrad.linalg.cholesky(x), leafgrad.eye(3))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"opset_version": 17}, OnnxExporterError, "18 to 23, got 17"),
        ({"input_names": ["a", "b"]}, ValueError, "expected 1 input_names"),
        ({"output_names": ["a", "b"]}, ValueError, "expected 1 output_names"),
        ({"input_names": ["a"], "output_names": ["a"]}, ValueError, "different input_names"),
        ({"input_names": "a"}, TypeError, "expected a list of names"),
        ({"dynamic_axes": {"z": {0: "n"}}}, ValueError, "no input or output 'z'"),
        ({"dynamic_axes": {"input": {2: "n"}}}, ValueError, "has 2 axes, got axis 2"),
        ({"training": True}, TypeError, "expected a TrainingMode"),
        ({"export_params": False}, NotImplementedError, "always True"),
        ({"input_name": "x"}, TypeError, "unexpected keyword argument 'input_name'"),
    ],
)  # fmt: skip
def test_wrong_arguments(net, options, error, message):
    with pytest.raises(error, match=message):
        export(net, leafgrad.randn(5, 3), **options)


def test_a_function_that_returns_no_tensor():
    with pytest.raises(OnnxExporterError, match="returns tensors"):
        export(lambda x: 3.0, leafgrad.ones(2))


def test_a_failed_export_leaves_the_file(net, tmp_path):
    file = tmp_path / "net.onnx"
    export(net, leafgrad.randn(5, 3), file)
    before = file.read_bytes()
    with pytest.raises(OnnxExporterError):
        export(lambda x: leafgrad.linalg.inv(x), leafgrad.eye(3), file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_it_is_known_that_a_function_is_exported():
    seen = []
    export(lambda x: seen.append(leafgrad.onnx.is_in_onnx_export()) or x * 2, leafgrad.ones(2))
    assert seen == [True]
    assert not leafgrad.onnx.is_in_onnx_export()


def test_writes_in_place(agrees):
    def written(x):
        y = x * 2
        y[0] = 5
        y[1:, ::2].mul_(3)
        y.T[1] += x[:, 0]
        y.diagonal().copy_(leafgrad.arange(3.0))
        return y

    agrees(written, leafgrad.randn(4, 3), dynamic_axes={"x": {0: "n"}})


def test_random_numbers_are_drawn_by_the_runtime():
    made = export(lambda x: x + leafgrad.rand(3) + leafgrad.randn(3), leafgrad.ones(3))
    assert {"RandomUniformLike", "RandomNormalLike"} <= {*kinds(made)}


def test_dtypes_stay(agrees):
    for dtype in (leafgrad.float32, leafgrad.float64, leafgrad.float16):
        made = agrees(lambda x: (x * 2).tanh().sum(0), leafgrad.randn(3, 4).to(dtype), tolerance=1e-2)
        assert made.graph.output[0].type.tensor_type.elem_type == onnx.helper.np_dtype_to_tensor_dtype(
            np.dtype(str(dtype).rpartition(".")[2])
        )


# ---- complex numbers ----------------------------------------------------------------------------------------------


class Turned(nn.Module):
    """A complex layer, and how long what it gives is."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2, dtype=leafgrad.complex64)

    def forward(self, z):
        z = leafgrad.tanh(self.linear(z))
        return z * 1j, z.abs(), (z @ z.mH).sum()


def test_complex_numbers_are_pairs_in_the_file(agrees):
    model, axes = Turned(), {"z": {-2: "n"}}
    proto = agrees(model, leafgrad.randn(5, 3, dtype=leafgrad.complex64), dynamic_axes=axes)
    assert [kind(i) for i in (*proto.graph.input, *proto.graph.output)] == [
        "float32[n, 3, 2]", "float32[n, 2, 2]", "float32[n, 2]", "float32[2]"
    ]  # fmt: skip
    assert [list(t.dims) for t in proto.graph.initializer] == [[2, 3, 2], [2, 2]]
    agrees(model, leafgrad.randn(8, 3, dtype=leafgrad.complex64), proto=proto)


def test_derivatives_by_complex_numbers_leave(agrees):
    factor = leafgrad.randn(3, dtype=leafgrad.complex64)

    def slopes(z):
        z = z.detach().requires_grad_()
        (first,) = leafgrad.autograd.grad((leafgrad.sin(z * factor).abs() ** 2).sum(), z, create_graph=True)
        return first, leafgrad.autograd.grad((first.abs() ** 2).sum(), z)[0]

    agrees(slopes, leafgrad.randn(4, 3, dtype=leafgrad.complex64), tolerance=1e-4)


@pytest.mark.every(2)
@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfft"])
def test_fourier_transforms_and_their_gradients_leave(name, norm, opset, agrees):
    transform = getattr(pytest.importorskip("leafgrad_fft"), name)

    def call(x):
        x = x.detach().requires_grad_()
        y = transform(x, norm=norm)
        return y, leafgrad.autograd.grad((y.abs() ** 2 * y.real).sum(), x)[0]

    for n in (5, 6):
        x = leafgrad.randn(3, 2, n, dtype=leafgrad.float32 if name == "rfftn" else leafgrad.complex64)
        axes = {"x": {0: "n"}} if name == "hfft" else None
        agrees(call, x, tolerance=1e-4, opset_version=opset, dynamic_axes=axes)


def test_a_fourier_neural_operator_leaves(agrees):
    net = pytest.importorskip("leafgrad_fft").FNO(1, 2, modes=(4, 3), width=6, depth=2)
    agrees(net, leafgrad.randn(2, 1, 12, 11), tolerance=1e-4)


@pytest.mark.parametrize("call", [leafgrad.linalg.inv, lambda z: z**1.5, leafgrad.asin])
def test_what_has_no_rule_for_pairs_is_refused(call):
    with pytest.raises(OnnxExporterError, match=r"op '\w+' has no ONNX form for complex numbers, at test_export.py"):
        export(lambda z: call(z * 2).real, leafgrad.randn(3, 3, dtype=leafgrad.complex64))


def test_results_in_the_memory_of_each_other_are_no_further_outputs(agrees):
    def twice(x):
        y = x.exp()
        return y, y, y[0], x, x[1:]

    assert len(agrees(twice, leafgrad.randn(3, 2)).graph.output) == 5
