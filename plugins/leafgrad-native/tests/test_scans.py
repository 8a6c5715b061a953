"""Recurrent layers as C: one loop over the steps, each thread with sequences of its own."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.errors import CompileError
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


pytestmark = pytest.mark.usefixtures("threads")


def normal(*shape, dtype, grad=False):
    rng = np.random.default_rng(sum(shape))
    return leafgrad.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=grad)


def state(kind, *shape, dtype):
    parts = tuple(normal(*shape, dtype=dtype, grad=True) for _ in range(2 if kind == "LSTM" else 1))
    return parts if kind == "LSTM" else parts[0]


def flat(result):
    return [t for part in result for t in flat(part)] if isinstance(result, tuple) else [result]


def run(step, given, threads=1):
    """What a step gives as C, and eagerly."""
    leafgrad.set_num_threads(threads)
    compiled = leafgrad.compile(step, executor="native")
    want = [t.detach().numpy() for t in step(*given)]
    for _ in range(2):
        found = [t.detach().numpy() for t in compiled(*given)]
    assert "in one function" in compiled.explain()
    assert "NumPy:" not in compiled.explain()
    assert "refused" not in compiled.explain()
    return found, want


def check(step, given, rtol):
    for ours, right in zip(*run(step, given), strict=True):
        assert ours.dtype == right.dtype
        largest = abs(right).max(initial=0, where=np.isfinite(right))
        np.testing.assert_allclose(ours, right, rtol=rtol, atol=rtol * max(1.0, largest))


def trained(layer, first, wanted=lambda result: flat(result)):
    """A step that gives the outputs of a layer and the gradients of all that goes in."""
    inputs = [*layer.parameters(), *flat(first)]

    def step(x):
        results = wanted(layer(x, first))
        return *results, *leafgrad.autograd.grad(sum(t.sin().sum() for t in results), [x, *inputs], allow_unused=True)

    return lambda x: tuple(t for t in step(x) if t is not None)


SIZES = [(1, 1, 1, 1), (3, 7, 5, 17), (6, 13, 3, 33), (2, 40, 2, 6), (9, 2, 30, 70)]  # steps, batch, input, hidden


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [leafgrad.float64, leafgrad.float32])
@pytest.mark.parametrize(
    ("kind", "options"), [("RNN", {}), ("RNN", {"nonlinearity": "relu"}), ("GRU", {}), ("LSTM", {})]
)
@pytest.mark.parametrize("sizes", SIZES)
def test_layers_of_any_size(kind, options, sizes, dtype):
    steps, batch, width, hidden = sizes
    layer = getattr(nn, kind)(width, hidden, bias=steps != 3, dtype=dtype, **options)
    step = trained(layer, state(kind, 1, batch, hidden, dtype=dtype))
    check(step, [normal(steps, batch, width, dtype=dtype, grad=True)], 1e-11 if dtype == leafgrad.float64 else 2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_both_directions_of_two_layers_with_the_batch_first(kind):
    layer = getattr(nn, kind)(5, 7, 2, bidirectional=True, batch_first=True, dtype=leafgrad.float64)
    step = trained(layer, state(kind, 4, 3, 7, dtype=leafgrad.float64))
    check(step, [normal(3, 6, 5, dtype=leafgrad.float64, grad=True)], 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "count"), [(16, 32), (16, 16), (32, 16)])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_other_processors_vectors(processor, kind, width, count):
    processor(width, count)
    layer = getattr(nn, kind)(5, 21, dtype=leafgrad.float64)
    step = trained(layer, state(kind, 1, 11, 21, dtype=leafgrad.float64))
    check(step, [normal(4, 11, 5, dtype=leafgrad.float64, grad=True)], 1e-11)


def test_only_the_last_cell_is_read():
    layer = nn.LSTM(2, 19, dtype=leafgrad.float64)
    step = trained(layer, state("LSTM", 1, 3, 19, dtype=leafgrad.float64), lambda result: [result[1][1]])
    check(step, [normal(4, 3, 2, dtype=leafgrad.float64, grad=True)], 1e-11)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_nan_and_infinity_stay_in_their_sequence(kind):
    layer = getattr(nn, kind)(3, 21)
    x = normal(5, 9, 3, dtype=leafgrad.float32).numpy().copy()
    x[2, 4, 1], x[1, 7, 0] = np.nan, np.inf
    with leafgrad.no_grad():
        (ours,), (right,) = run(lambda x: (layer(x)[0],), [leafgrad.tensor(x)])
    assert not np.isfinite(right[2:, 4]).any()
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(right))
    np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_the_same_bits_with_any_number_of_threads(kind):
    layer = getattr(nn, kind)(8, 48)
    step = trained(layer, state(kind, 1, 45, 48, dtype=leafgrad.float32))
    x = normal(6, 45, 8, dtype=leafgrad.float32, grad=True)
    alone = run(step, [x])[0]
    for threads in (2, 5):
        for one, several in zip(alone, run(step, [x], threads)[0], strict=True):
            np.testing.assert_array_equal(one, several)


def moving(across="w"):
    """A new op: y_t = (w y_(t-1) + x_t) / 2, from y_0 = 0, and the sum of all of them."""

    @leafgrad.op
    def moved(xp, x, w):
        found, y = [], xp.zeros_like(x[0])
        for now in x:
            y = (y @ w + now) / 2
            found.append(y)
        return xp.stack(found), sum(found)

    moved.shape(lambda x, w: [x, x.shape[1:]])
    code = "real new = (across(0) + x(0)) / 2; y(0) = new; total += new;"
    moved.lower("native", lambda c, e: c.scan(code, ("y",), ("total",), across=across))
    return moved


def test_an_op_of_an_author():
    moved = moving()
    x, w = normal(6, 4, 11, dtype=leafgrad.float64), normal(11, 11, dtype=leafgrad.float64)
    check(lambda x: moved(x * 2, w * 0.1), [x], 1e-12)
    transposed = normal(11, 4, 6, dtype=leafgrad.float64)
    check(lambda x: moved(x.permute(2, 1, 0), w.t() * 0.1), [transposed], 1e-12)


def test_an_argument_that_there_is_not():
    moved = moving("weight")
    step = leafgrad.compile(lambda x, w: moved(x * 2, w), executor="native")
    x, w = normal(6, 4, 5, dtype=leafgrad.float64), normal(5, 5, dtype=leafgrad.float64)
    with pytest.raises(CompileError, match=r"across: expected one of x, w, got 'weight'"):
        step(x, w), step(x, w)
