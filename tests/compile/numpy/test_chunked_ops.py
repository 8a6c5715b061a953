"""Programs whose ops run on chunks of a batch compute what they compute on all of it."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.compile.ir.sources import Argument
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad.compile.passes import optimize
from leafgrad.compile.schedule.schedule import Loop
from leafgrad.nn import functional as F

TESTS = "compile.numpy.chunks compile.numpy.writer"

ROWS = 150
RNG = np.random.default_rng(0)


def constant(*shape):
    return leafgrad.tensor(RNG.standard_normal(shape))


KERNEL, FLAT, PLANES = constant(4, 3, 3, 2), constant(4, 3, 3), constant(3, 2, 3, 3)
CLASSES = leafgrad.tensor(RNG.integers(0, 5, (ROWS, 4)))
INDICES = leafgrad.tensor(RNG.integers(0, 6, (ROWS, 2, 4)))

# What is computed of x, the ops that run in a loop on the way, and the shape of a row of x.
FUNCTIONS = {
    "convolution": (lambda x: F.conv2d(x, KERNEL, padding=1), "convolution convolution_input", (3, 5, 6)),
    "transposed": (lambda x: F.conv_transpose2d(x, PLANES), "convolution_input convolution", (3, 5, 6)),
    "line": (lambda x: F.conv1d(x, FLAT, stride=2), "convolution convolution_input", (3, 9)),
    "max pooling": (lambda x: F.max_pool2d(x, 2), "window_max window_argmax window_place", (3, 4, 6)),
    "unfold": (lambda x: F.unfold(x, (2, 2)), "unfold fold", (2, 4, 4)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x * 2, x), "matmul amax exp", (2, 5, 4)),
    "attention of fewer queries": (
        lambda x: F.scaled_dot_product_attention(x[:, :, :4], x * 2, x, is_causal=True),
        "attention attention_gradients",
        (2, 5, 4),
    ),
    "layer norm": (lambda x: F.layer_norm(x, (4, 6)), "rsqrt", (4, 6)),
    "cumsum": (lambda x: x.cumsum(1), "cumsum", (6,)),
    "cumprod": (lambda x: x.cumprod(2), "cumprod recurrence", (3, 6)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), "logcumsumexp recurrence", (6,)),
    "roll": (lambda x: x.roll(2, 1), "slice cat", (6,)),
    "flip": (lambda x: x.flip(1, 2), "flip", (2, 6)),
    "tril": (lambda x: x.tril(), "tril", (4, 6)),
    "diagonal": (lambda x: x.diagonal(0, 1, 2), "diagonal undiagonal", (4, 6)),
    "sort": (lambda x: x.sort(1)[0], "argsort gather gather_sum", (6,)),
    "gather": (lambda x: x.gather(2, INDICES), "gather gather_sum", (2, 6)),
    "cross entropy": (lambda x: F.cross_entropy(x.mT, CLASSES, reduction="none"), "pick place", (4, 5)),
    "variance": (lambda x: x.var(1), "sum", (6,)),
    "norm": (lambda x: x.norm(3, 1), "norm", (6,)),
}


def program_of(function, x):
    def step(x):
        x = leafgrad.sin(x.detach()).detach().requires_grad_()
        y = function(leafgrad.sin(x))
        return y, *leafgrad.autograd.grad((y * y).sum(), x)

    expected = [t.detach().numpy() for t in step(x)]
    return NumpyProgram(optimize(leafgrad.trace(step, x)), rows=64), expected


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_op_and_its_gradient_in_chunks(name, dtype):
    function, ops, row = FUNCTIONS[name]
    if dtype == "float32" and "conv" in ops:
        function = {  # weights are of the dtype of x
            "convolution": lambda x: F.conv2d(x, KERNEL.float(), padding=1),
            "transposed": lambda x: F.conv_transpose2d(x, PLANES.float()),
            "line": lambda x: F.conv1d(x, FLAT.float(), stride=2),
        }[name]
    x = leafgrad.tensor(RNG.uniform(0.2, 1.4, (ROWS, *row)).astype(dtype))
    program, expected = program_of(function, x)
    looped = {e.name for s in program.schedule.stages if isinstance(s, Loop) for e in s.equations}
    assert set(ops.split()) <= looped
    tolerance = 1e-11 if dtype == "float64" else 2e-5
    inputs = [x.numpy() if v.shape == x.shape else s.tensor.numpy() for v, s in program.graph.inputs.items()]
    for got, want in zip(program(inputs), expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_gradients_of_weights_are_sums_over_chunks():
    net = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 5))
    x, y = leafgrad.randn(ROWS, 2, 4, 4), leafgrad.randint(0, 5, (ROWS,))
    params = list(net.parameters())

    def step(x, y):
        return leafgrad.autograd.grad(F.cross_entropy(net(x), y), params)

    expected = step(x, y)
    graph = optimize(leafgrad.trace(step, x, y))
    program = NumpyProgram(graph, rows=64)
    loops = [s for s in program.schedule.stages if isinstance(s, Loop)]
    (loop,) = [s for s in loops if "convolution" in {e.name for e in s.equations}]
    assert "convolution_weight" in {e.name for e in loop.equations if e.out in loop.summed}
    given = {x.shape: x, y.shape: y}
    arrays = [given[v.shape] if isinstance(s, Argument) else s.tensor for v, s in graph.inputs.items()]
    for got, want in zip(program([a.detach().numpy() for a in arrays]), expected, strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=2e-5, atol=2e-7)


def test_padding_with_infinity_in_a_chunk():
    def step(x):
        return F.pad(leafgrad.sin(x), (1, 2), value=float("-inf")).amax(1) * 2

    x = leafgrad.rand(ROWS, 4)
    program = NumpyProgram(optimize(leafgrad.trace(step, x)), rows=64)
    assert any("pad" in {e.name for e in s.equations} for s in program.schedule.stages if isinstance(s, Loop))
    np.testing.assert_allclose(program([x.numpy()])[0], step(x).numpy(), rtol=1e-6)


def test_half_precision_is_added_up_in_single():
    x = leafgrad.full((ROWS, 300), 3.0, dtype=leafgrad.float16)

    def step(x):
        return (x * 2).sum(0), (x * 2).sum()

    program = NumpyProgram(leafgrad.trace(step, x), rows=64)
    for got, want in zip(program([x.numpy()]), step(x), strict=True):
        np.testing.assert_array_equal(got, want.numpy())
