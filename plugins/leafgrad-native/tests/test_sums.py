"""Sums over a batch that are added to each other share one accumulator; rows become points in square blocks."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad_native.compiler import NoCompiler, compiler

TESTS = "lowering.sums"

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def normal(*shape, dtype=leafgrad.float64, grad=False):
    rng = np.random.default_rng(sum(shape))
    return leafgrad.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=grad)


def check(step, *given, rtol=1e-11):
    """Run twice as C, compare with eager; how many accumulators the loop has."""
    c = leafgrad.compile(step, executor="native")
    c(*given)
    want = step(*given)
    for _ in range(2):
        for ours, right in zip(c(*given), want, strict=True):
            right = right.detach().numpy()
            largest = abs(right).max(initial=0, where=np.isfinite(right))
            np.testing.assert_allclose(ours.detach().numpy(), right, rtol=rtol, atol=rtol * largest)
    assert "NumPy:" not in c.explain()
    assert "refused" not in c.explain()
    return sum(len(s.lowering.sums) for s in c._calls.runner().program.plan.segments)


def test_a_weight_that_is_used_at_each_step_has_one_accumulator():
    w, b = normal(6, 6, grad=True), normal(6, grad=True)

    def step(x):
        h = x
        for _ in range(5):
            h = leafgrad.tanh(h @ w + b)
        return leafgrad.autograd.grad((h * h).sum(), [w, b])

    assert check(step, normal(200, 6)) == 2  # the loss is not asked for


def test_a_sum_that_is_a_result_too_keeps_its_own():
    x, y = normal(130, 4), normal(130, 4)

    def step(x, y):
        a, b = x.exp().sum(0), y.tanh().sum(0)
        return a + b, a

    assert check(step, x, y) == 2


def test_a_sum_that_is_read_again_keeps_its_own():
    def step(x, y):
        a, b = x.exp().sum(0), y.tanh().sum(0)
        return a + b, a * 2

    assert check(step, normal(130, 4), normal(130, 4)) == 2


def test_a_sum_added_to_itself_counts_twice():
    def step(x, y):
        a = x.exp().sum(0)
        return a + a, (y.exp() * x).sum(0)

    check(step, normal(130, 4), normal(130, 4))


def test_sums_that_broadcast_stay_apart():
    def step(x, y):
        return (x.exp().sum(0) + y.tanh().sum(), (x * y).sum(0))

    assert check(step, normal(130, 4), normal(130, 4)) == 3


def test_sums_of_two_dtypes_stay_apart():
    def step(x, y):
        return (x.exp().sum(0) + y.tanh().sum(0), (x * y).sum(0))

    assert check(step, normal(130, 4), normal(130, 4, dtype=leafgrad.float32), rtol=1e-5) == 3


def test_the_sum_of_joined_sums_goes_into_a_later_loop():
    def step(x, y):
        total = x.exp().sum(0) + y.tanh().sum(0) + (x * y).sum(0)
        return (x * total).tanh(), total

    check(step, normal(130, 4), normal(130, 4))


def test_nan_and_infinity_of_one_part_reach_the_sum():
    def step(x, y):
        return x.exp().sum(0) + y.tanh().sum(0), x.tanh().sum(0) + (x * y).sum(0)

    x, y = normal(130, 4), normal(130, 4)
    x[3, 1], x[5, 2] = float("nan"), float("inf")
    check(step, x, y)


@pytest.mark.every(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [64, 79])
def test_rows_become_points_and_points_rows(dtype, n):
    def step(*given):
        return [y for x in given for y in ((x.exp() * 2).tanh(), (x.transpose(1, 2) * 3 + 1).exp())]

    given = [normal(n, 3, width, dtype=getattr(leafgrad, dtype)) for width in (7, 8, 9, 16, 17, 33)]
    given += [normal(n, 33, 3, dtype=getattr(leafgrad, dtype)).transpose(1, 2)]
    check(step, *given, rtol=1e-5 if dtype == "float32" else 1e-11)
