"""Elements and slices written at indices."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad
from leafgrad.autograd import gradcheck

FUNCTIONS = {"amax": np.maximum, "amin": np.minimum, "prod": np.multiply}
REDUCED = {"prod": [3.0, 40.0], "mean": [2.0, 11 / 3], "amax": [3.0, 5.0], "amin": [1.0, 2.0]}


@pytest.mark.parametrize("reduce", REDUCED)
def test_slices_are_combined_at_an_index(reduce):
    x, index = leafgrad.tensor([[1.0, 2.0]]), leafgrad.tensor([1, 1, 0])
    source = leafgrad.tensor([[4.0, 5.0, 3.0]])
    out = x.index_reduce(1, index, source, reduce)
    assert out.tolist()[0] == pytest.approx(REDUCED[reduce])
    alone = x.index_reduce(1, leafgrad.tensor([1]), source[:, :1], reduce, include_self=False)
    assert alone.tolist() == [[1.0, 4.0]]
    inputs = (x.double().requires_grad_(), source.double().requires_grad_())
    assert gradcheck(lambda a, b: a.index_reduce(1, index, b, reduce), inputs)


def test_slices_to_combine_that_do_not_fit():
    x = leafgrad.ones(2, 3)
    for index, source, reduce in (
        (leafgrad.tensor([0]), leafgrad.ones(2, 2), "prod"),
        (leafgrad.tensor([[0]]), leafgrad.ones(2, 1), "prod"),
        (leafgrad.tensor([0]), leafgrad.ones(2, 1), "sum"),
    ):
        with pytest.raises(RuntimeError, match="index_reduce"):
            x.index_reduce(1, index, source, reduce)
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        x.index_reduce(1, leafgrad.tensor([5]), leafgrad.ones(2, 1), "prod")


def test_index_reduce_in_place():
    t = leafgrad.ones(3, 2)
    out = t.index_reduce_(0, leafgrad.tensor([0, 2, 0]), leafgrad.full((3, 2), 2.0), "prod")
    assert out is t
    assert t.tolist() == [[4, 4], [1, 1], [2, 2]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, at, value: x.masked_fill(x > 0, value),
        lambda x, at, value: x.clone().masked_fill_(x > 0, value),
        lambda x, at, value: x.index_fill(0, at, value),
        lambda x, at, value: x.index_add(0, at, x[at], alpha=value),
        lambda x, at, value: x.scatter(0, at, value),
        lambda x, at, value: x.clone().fill_(value),
        lambda x, at, value: leafgrad.full_like(x, value),
        lambda x, at, value: leafgrad.nn.functional.pad(x, (1, 0), value=value),
    ],
)
def test_numbers_beyond_all_of_float16_are_not_written(function):
    x, at = leafgrad.ones(2, dtype=leafgrad.float16), leafgrad.tensor([0])
    for value in (-1e9, 70000, 65505.0):
        with pytest.raises(RuntimeError, match=r"cannot be converted to type leafgrad\.float16 without overflow"):
            function(x, at, value)
    for value in (-math.inf, math.nan, 65504, 0.1):
        assert function(x, at, value).dtype is leafgrad.float16
    x[0] = -1e9  # where PyTorch writes what float16 makes of it
    assert x.tolist() == [-math.inf, 1]


def test_a_factor_of_integers_loses_its_decimals():
    at = leafgrad.tensor([0, 1, 0])
    for dtype, alpha, expected in (("int64", 1.5, [4, 2]), ("uint8", -1, [252, 254]), ("bool", 0.5, [True, True])):
        kind = getattr(leafgrad, dtype)
        out = leafgrad.zeros(2, dtype=kind).index_add(0, at, leafgrad.tensor([1, 2, 3]).to(kind), alpha=alpha)
        assert (out.dtype, out.tolist()) == (kind, expected)


@pytest.mark.parametrize("reduce", FUNCTIONS)
def test_many_values_are_combined(reduce):
    rng = np.random.default_rng(0)
    x, source, at = rng.uniform(0.9, 1.1, (4, 7)), rng.uniform(0.9, 1.1, (3, 4000)), rng.integers(0, 7, (3, 4000))
    source[1, 5] = np.nan
    want = x.copy()
    FUNCTIONS[reduce].at(want, (np.arange(3)[:, None], at), source)
    found = leafgrad.tensor(x).scatter_reduce(1, leafgrad.tensor(at), leafgrad.tensor(source), reduce)
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-12)
