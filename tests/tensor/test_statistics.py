"""Quantiles, medians and distinct elements."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad


def test_unique_consecutive(device):
    x = leafgrad.tensor([1, 1, 2, 2, 2, 1], device=device)
    values, inverse, counts = x.unique_consecutive(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 1, 1, 2], [2, 3, 1])
    rows, counts = leafgrad.unique_consecutive(leafgrad.tensor([[1, 1, 2], [3, 3, 3]]), return_counts=True, dim=1)
    assert (rows.tolist(), counts.tolist()) == ([[1, 2], [3, 3]], [2, 1])
    assert leafgrad.unique_consecutive(x[:0]).tolist() == []
    square = leafgrad.unique_consecutive(x.reshape(2, 3), return_inverse=True)[1]
    assert square.tolist() == [[0, 0, 1], [1, 1, 2]]


def test_medians_of_what_is_not_nan(device):
    x = leafgrad.tensor([[math.nan, 3.0, 1.0], [math.nan, math.nan, math.nan], [2.0, 4.0, 3.0]], device=device)
    values, indices = x.nanmedian(1)
    np.testing.assert_array_equal(values.cpu().numpy(), [1, math.nan, 3])
    assert indices.tolist()[0::2] == [2, 2]
    assert leafgrad.nanmedian(x).item() == 3
    assert x.nanmedian(1, keepdim=True).values.shape == (3, 1)


x = leafgrad.randn(4, 5, dtype=leafgrad.float64, generator=leafgrad.Generator().manual_seed(0))


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_nanquantile(dim, interpolation):
    spoilt = leafgrad.where(x > 0.5, float("nan"), x)
    q = leafgrad.tensor([0.0, 0.3, 1.0], dtype=x.dtype)
    got = spoilt.nanquantile(q, dim, interpolation=interpolation)
    np.testing.assert_allclose(got, np.nanquantile(spoilt.numpy(), q.numpy(), axis=dim, method=interpolation))
    assert leafgrad.full((2, 3), float("nan")).nanquantile(0.5, 1).isnan().all()


@pytest.mark.parametrize("executor", [None, "numpy", "native"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("q", [-0.1, 1.2, float("nan")])
def test_levels_beyond_0_and_1(name, q, executor):
    def step(x, q):
        return getattr(x, name)(q)

    function = step if executor is None else leafgrad.compile(step, executor=executor)
    for _ in range(3):
        assert function(leafgrad.arange(5.0), leafgrad.tensor([0.5, 1.0])).tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match=r"q values must be in the range \[0, 1\]"):
        function(leafgrad.arange(5.0), leafgrad.tensor([0.5, q]))


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_tensor_by_the_name_of_a_dimension_is_one(t, name):
    x, function = t.tensor([[1.0, 5.0], [4.0, 2.0]]), getattr(t, name)
    expected = function(x, dim=1)
    for found in (function(x, dim=t.tensor(1)), getattr(x, name)(dim=t.tensor(1))):
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert function(x, t.tensor(1), True).values.shape == (2, 1)
    pairwise = [function(x, t.tensor(3.0)), getattr(x, name)(t.tensor(3.0)), function(input=x, other=t.tensor(3.0))]
    assert [p.shape for p in pairwise] == [x.shape] * 3
    with pytest.raises(TypeError):
        function(x, dim=t.tensor(1.0))
    with pytest.raises(TypeError):
        function(x, 1, dim=1)
