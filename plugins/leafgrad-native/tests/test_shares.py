"""Kernels on whole arrays are shared by threads: the same bits for any number of them."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import leafgrad
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

THREADS = (1, 2, 3, 5)


pytestmark = pytest.mark.usefixtures("threads")


def normal(*shape):
    rng = np.random.default_rng(sum(shape))
    return leafgrad.tensor(rng.normal(size=shape).astype("float32"))


def arrays(results):
    return [t.detach().numpy().copy() for t in results]


def check(step, *given):
    """Run on several numbers of threads, compare with eager; how many kernels they share."""
    c = leafgrad.compile(step, executor="native")
    c(*given)
    want = arrays(step(*given))
    found = []
    for count in THREADS:
        leafgrad.set_num_threads(count)
        found.append(arrays(c(*given)))
    for k, right in enumerate(want):
        np.testing.assert_allclose(found[0][k], right, rtol=2e-4, atol=2e-4)
        assert {f[k].tobytes() for f in found} == {found[0][k].tobytes()}
    assert "refused" not in c.explain()
    return len(re.findall(r"lg_share\(call, share\d+", c.source()))


def test_elementwise_copies_and_joins():
    def step(x, y):
        z = (x * y).tanh()
        return z, x.permute(2, 0, 1).contiguous(), leafgrad.cat([x, x * 2], 1), leafgrad.full((50, 4001), 2.0)

    assert check(step, normal(33, 50, 101), normal(50, 1)) >= 4


@pytest.mark.parametrize("shape", [(3, 60_001), (60_001, 3), (17, 100, 107), (2, 2, 50_003)])
def test_reductions(shape):
    def step(x):
        ends = range(x.ndim)
        return [f(d) for d in ends for f in (x.sum, x.mean, x.amax, x.logsumexp, x.softmax, x.cumsum)]

    assert check(step, normal(*shape)) >= 4


def test_products():
    def step(a, b, q, r):
        a, b = a[0], b[0]  # a first axis of 64 and more would be a batch
        return a @ b, b.T @ a.T, q @ r, (q.transpose(1, 2) @ q) * 2, a[:, ::2] @ b[::2]

    assert check(step, normal(1, 301, 77), normal(1, 77, 65), normal(21, 40, 33), normal(21, 33, 40)) == 5


def test_a_share_can_stop_the_program():
    x = normal(40, 5000)
    x[39, 7] = 1e6  # an angle that C leaves to NumPy
    check(lambda x: [(x * 3).sin(), x.cos().sum(1)], x)


def test_little_work_is_not_shared():
    assert check(lambda x: [(x * 2).exp(), x.sum(0)], normal(30, 40)) == 0


def test_nan_and_infinity_stay_where_they_are():
    x = normal(30, 5000)
    x[1, 2], x[3, 4] = float("nan"), float("inf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        check(lambda x: [(x * 2).exp(), x.sum(0), x.amax(1), x.softmax(1), x @ x.T], x)
