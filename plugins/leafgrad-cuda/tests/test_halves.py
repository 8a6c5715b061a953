"""float16 and bfloat16 in kernels: stored so, and added up in float32; compared with eager, and with float64."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad.compile.passes import widen
from leafgrad.errors import CompileError
from leafgrad.nn import functional as F
from leafgrad_cuda import nvrtc
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram
from leafgrad_cuda.launches import OpRun
from leafgrad_cuda.plan import CudaPlan

NAME = "cuda-emulated"
ULP = 2.0**-11  # half of float16's step, of a number
COARSER = 2**3  # how many of them are one of bfloat16's


def gradient(function):
    """The results of a function of arrays, and gradients."""

    def both(*xs):
        leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in xs]
        y = function(*leaves)
        wanted = [x for x in leaves if x.is_floating_point()]
        return y, *leafgrad.autograd.grad((y * y).sum(), wanted, materialize_grads=True)

    return both


def names(module, values):
    return dict(zip((name for name, _ in module.named_parameters()), values, strict=True))


def kinds():
    """Functions for each kind of kernel, their arguments, and by how many steps of float16 they may differ."""
    leafgrad.manual_seed(0)
    x, t = leafgrad.randn(70, 6), leafgrad.arange(70) % 6
    image, w = leafgrad.randn(3, 4, 7, 7), leafgrad.randn(4, 2, 3, 3) / 3
    yield "elements", gradient(lambda x: (x.tanh() * x.sigmoid() + 0.1 * x) / 3), (x,), 8
    yield "numbers", lambda x: (x * 0.3 + 1e-3, x > 0.7, F.leaky_relu(x, 0.01), x.to(leafgrad.int32)), (x,), 2
    yield "casts", lambda x: (x.to(leafgrad.float32) * 2.5, x.double().exp(), (x.float() * 3).half()), (x,), 4
    yield "sums", lambda x: (x.sum(0), x.sum(), x.mean(1), x.amax(1), (x / 9 + 1).prod(1)), (x,), 4
    yield "long sums", lambda x: (x.sum(), (x * x).mean()), (leafgrad.rand(40, 300),), 8
    yield "softmax", gradient(lambda x: (x * 2).softmax(1)), (x,), 16
    yield "logsumexp", lambda x: (x.logsumexp(1), x.log_softmax(1)), (x,), 8
    yield "products", gradient(lambda x, w: (x @ w.T).relu()), (x, leafgrad.randn(5, 6) / 3), 16
    yield "whole products", lambda x: (x @ x.T, x[:6].T @ x[:6]), (x[:20],), 8
    yield "tables", lambda x, t: (x[t], x.gather(1, t[:, None]), F.nll_loss(x, t)), (x, t), 4
    yield "layout", lambda x: (leafgrad.cat([x, x * 2]), F.pad(x, (1, 1)), x.T * 1), (x,), 2
    yield "convolution", gradient(lambda x, w: F.conv2d(x, w, padding=1, groups=2)), (image, w), 32
    yield "transposed", lambda x, w: (F.conv_transpose2d(x, w, groups=2, stride=2),), (image, w), 8
    yield "pooling", gradient(lambda x: F.avg_pool2d(F.max_pool2d(x, 3, 2, 1), 2)), (image,), 8
    yield "in a loop", gradient(lambda x, w: F.conv1d(x, w, padding=1)), (leafgrad.randn(70, 2, 5), w[:, :, 0]), 32
    yield "dropout", lambda x: (F.dropout(x, 0.3),), (x,), 2
    lstm = leafgrad.nn.LSTM(6, 5)
    weights = [p.detach() for p in lstm.parameters()]
    yield (
        "recurrence",
        lambda x, *ws: leafgrad.func.functional_call(lstm, names(lstm, ws), x)[0],
        (x[:, None], *weights),
        16,
    )
    yield "lines", lambda x: (x.cumsum(1),), (x,), 8


def half(x, dtype=leafgrad.float16):
    return x.to(dtype) if x.is_floating_point() else x


CASES = [pytest.param(f, a, steps, id=name) for name, f, a, steps in kinds()]


@pytest.mark.parametrize(("function", "args", "steps"), CASES)
def test_float16_is_as_good_as_eagers(function, args, steps):
    assert not compared(function, [half(a) for a in args], steps)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "args", "steps"), CASES)
def test_bfloat16_is_as_good_as_eagers(function, args, steps):
    """Ops that move elements of bfloat16, or make them of nothing, are eager's."""
    own = compared(function, [half(a, leafgrad.bfloat16) for a in args], steps * COARSER)
    assert {*own} <= {"index", "gather", "bernoulli_full", "full"}


def compared(function, given, steps):
    """Compare with eager; returns which ops run by themselves."""
    run = leafgrad.compile(function, executor=NAME)
    run(*given)
    exact = [a.double() if a.is_floating_point() else a for a in given]
    found = []
    for f, xs in ((run, given), (function, given), (function, exact)):
        leafgrad.manual_seed(3)
        found.append([t.detach().numpy() for t in f(*xs)])
    for got, eager, truth in zip(*found, strict=True):
        assert got.dtype == eager.dtype
        if eager.dtype.kind not in "fV":
            np.testing.assert_array_equal(got, eager)
            continue
        got, eager = np.float64(got), np.float64(eager)
        scale = max(np.abs(truth).max(), 1e-3)
        bound = np.maximum(np.abs(eager - truth).max(), steps * ULP * scale)
        assert np.abs(got - truth).max() <= bound
    parts = CudaProgram(run.graph, Emulated(("forward",))).plan.parts
    return [p.equation.name for p in parts if isinstance(p, OpRun)]


def same(function, x):
    """A function as one CUDA graph gives eager's numbers, to the sign of zero."""
    run = leafgrad.compile(function, executor=NAME)
    with np.errstate(all="ignore"):
        run(x)
        for got, want in zip(run(x), function(x), strict=True):
            assert got.dtype == want.dtype
            ours, theirs = (np.float64(t.numpy()) for t in (got, want))
            np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_array_equal((np.signbit(ours) != np.signbit(theirs)) & ~np.isnan(theirs), False)
    assert not any(isinstance(p, OpRun) for p in CudaProgram(run.graph, Emulated(("forward",))).plan.parts)


def test_every_bfloat16():
    x = leafgrad.tensor((np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)).bfloat16()
    same(lambda x: (x.float(), x.double(), x.half(), x.bool(), x + 1, -x, x.abs() * 0.3, x.reshape(256, 256).T * 1), x)
    same(lambda x: (x.int(), x.long(), x.sum(0)), leafgrad.arange(-90.0, 90.0).bfloat16())


def test_numbers_become_bfloat16():
    random = np.random.default_rng(0)
    bits = random.integers(0, 1 << 32, 10_000, np.uint32)
    bits[:6] = 0x7F800001, 0xFF800001, 0x7F7FFFFF, 0x7F800000, 0x80000000, 1  # two nans whose lower bits go, and ends
    doubles = [
        1 + 2.0**-8,
        1 + 2.0**-8 + 1e-12,
        1 + 2.0**-8 - 1e-12,
        *random.normal(size=500) * 10.0 ** np.arange(-250, 250),
    ]
    for numbers in (bits.view(np.float32), np.array(doubles), random.integers(-(2**62), 2**62, 500), bits > 1 << 31):
        same(lambda x: (x.bfloat16(), x.bfloat16() * 3), leafgrad.tensor(numbers))


def test_what_is_made_in_bfloat16():
    """Nothing is computed of the bits: numbers and draws are eager's."""
    x = leafgrad.randn(40, 6).bfloat16()

    def function(x):
        leafgrad.manual_seed(1)
        kinds = (F.dropout(x, 0.5), leafgrad.bernoulli(x.abs().clamp(max=1)), leafgrad.rand(9, dtype=x.dtype))
        return (
            *kinds,
            leafgrad.nan_to_num(x / 0),
            x.new_full((3,), 0.3),
            leafgrad.zeros_like(x) + x,
            x[x.new_ones(2).long()],
        )

    run = leafgrad.compile(function, executor=NAME)
    with np.errstate(all="ignore"):
        run(x)
        for got, want in zip(run(x), function(x), strict=True):
            np.testing.assert_array_equal(np.float64(got.numpy()), np.float64(want.numpy()))


def test_sums_over_a_batch_are_kept_in_float32():
    """2,048 and more ones in float16 would be 2,048."""
    x = leafgrad.ones(5000, 2).half()
    run = leafgrad.compile(lambda x: ((x * 1).sum(0), (x * x).sum(), x.T @ x), executor=NAME)
    for _ in range(2):
        columns, total, product = run(x)
    assert columns.tolist() == [5000] * 2
    assert total.item() == 10000
    assert product.tolist() == [[5000] * 2] * 2


def test_numbers_beyond_float16():
    x = leafgrad.tensor([1.0, -1.0, 0.0] * 30).half()
    run = leafgrad.compile(lambda x: (x * 70000.0, x * 60000.0 * 2, x + 1e-9, x > 70000.0), executor=NAME)
    with np.errstate(all="ignore"):
        for _ in range(2):
            got = run(x)
        for g, w in zip(got, (x * 70000.0, x * 60000.0 * 2, x + 1e-9, x > 70000.0), strict=True):
            np.testing.assert_array_equal(g.numpy(), w.numpy())


@pytest.mark.every(4)
@pytest.mark.parametrize("architecture", [75, 90])
@pytest.mark.parametrize("dtype", [leafgrad.float16, leafgrad.bfloat16], ids=str)
@pytest.mark.parametrize(("function", "args"), [pytest.param(*case.values[:2], id=case.id) for case in CASES])
def test_the_compiler_takes_halves(function, args, architecture, dtype):
    try:
        nvrtc.library()
    except CompileError:
        pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc-cu12")
    graph = widen(leafgrad.trace(function, *[half(a, dtype) for a in args]))
    text = CudaPlan(graph, 99 << 10).code()
    assert b".visible .entry lg_" in nvrtc.compiled(text, architecture)
