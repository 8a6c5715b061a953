"""Programs reduce tensors without dimensions, without elements, or with one, as eager does."""

from __future__ import annotations

import pytest
from reduction_table import SHAPES, compare

import leafgrad
from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.numpy.executor import NumpyProgram


@pytest.mark.every(2)
@pytest.mark.parametrize("program", [NumpyProgram, ReplayProgram])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small_reductions_are_as_in_eager(shape, dtype, program):
    assert not compare(shape, dtype, program)


@pytest.mark.parametrize("loss", [lambda y: y.mean(), lambda y: y.sum() / 0.0])
def test_the_gradient_of_a_mean_of_nothing_is_zero(loss):
    """Infinity times each of no rows, and not times their sum."""
    w = leafgrad.ones(3, 4, requires_grad=True)
    run = leafgrad.compile(lambda x: leafgrad.autograd.grad(loss(x @ w), w)[0], executor="replay")
    for _ in range(2):
        assert run(leafgrad.ones(0, 3)).tolist() == [[0.0] * 4] * 3


def test_a_sum_of_no_rows_is_zero_whatever_they_are_multiplied_by():
    x, row = leafgrad.ones(0, 3), leafgrad.tensor([float("nan"), float("inf"), 1.0])
    run = leafgrad.compile(lambda x, row: ((x * row).sum(0), x.T @ (x * row), (x.sum(1, keepdim=True) * row).sum(0)))
    for _ in range(2):
        a, b, c = run(x, row)
        assert a.tolist() == c.tolist() == [0.0] * 3
        assert b.tolist() == [[0.0] * 3] * 3
