"""Products of one row and a matrix."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


pytestmark = pytest.mark.usefixtures("threads")

SIZES = [(1, 5), (33, 1), (40, 7), (64, 8), (70, 9), (130, 66), (1000, 24), (3, 4100)]  # inner, columns


def products(x, w, v, wide):
    """Of a row, a vector, and a column, with a matrix as it is, transposed, and in part."""
    k = x.shape[1]
    yield from (x @ w, x @ w.t().clone().t(), x[0] @ w, w.t() @ v, w.t().clone() @ v[:, 0], x @ wide[:, ::2])
    yield from (x[:, : k // 2] @ w[: k // 2], x[:, ::2] @ w[::2], (v * 2).t() @ w, x @ wide[:, 1:])


def arrays(dtype):
    rng = np.random.default_rng(0)
    for k, n in SIZES:
        for shape in ((1, k), (k, n), (k, 1), (k, 2 * n)):
            yield leafgrad.tensor(rng.normal(size=shape), dtype=dtype)


def compare(step, given, threads=1):
    """The source of a step, after a comparison with eager. Arrays come in one vector, so that none is a batch."""
    leafgrad.set_num_threads(threads)
    shapes, x = [t.shape for t in given], leafgrad.cat([t.reshape(-1) for t in given])
    sizes = [t.numel() for t in given]

    def whole(x):
        return step([part.reshape(shape) for part, shape in zip(x.split(sizes), shapes, strict=True)])

    c = leafgrad.compile(whole, executor="native")
    for _ in range(3):
        for found, expected in zip(c(x), whole(x), strict=True):
            rtol = 1e-12 if expected.dtype == leafgrad.float64 else 1e-4
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=rtol, atol=30 * rtol)
    assert not any(word in c.explain() for word in ("NumPy:", "refused", "loop over"))
    return str(c.source())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.float64])
def test_a_row_and_a_matrix(dtype, threads):
    given = [*arrays(dtype)]

    def step(given):
        quads = [given[i : i + 4] for i in range(0, len(given), 4)]
        return [p for quad in quads for p in products(*quad)]

    source = compare(step, given, threads)
    assert "o[j] = sum over k of x[k] b[j, k]" in source
    assert "o[j] = sum over k of x[k] b[k, j]" in source


def test_nan_and_infinity_come_through():
    x, w = leafgrad.randn(1, 100), leafgrad.randn(100, 70)
    w[3, 5], w[99, 69], w[50, 0] = float("nan"), float("inf"), -float("inf")
    compare(lambda given: [given[0] @ given[1], given[0] @ given[1].t().clone().t()], [x, w])


def test_networks_are_run_row_by_row():
    leafgrad.manual_seed(0)
    net = leafgrad.nn.Sequential(leafgrad.nn.Linear(300, 200), leafgrad.nn.Tanh(), leafgrad.nn.Linear(200, 200))
    c, x = leafgrad.compile(net, executor="native"), leafgrad.randn(1, 300)
    with leafgrad.no_grad():
        for _ in range(3):
            np.testing.assert_allclose(c(x).numpy(), net(x).numpy(), rtol=1e-4, atol=1e-5)
        assert "loop over" not in c.explain()  # weights are no batch
        assert "product_f32(call" not in str(c.source())
