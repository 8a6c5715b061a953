"""How often values occur."""

from __future__ import annotations

import math

import numpy as np
import parity
import pytest

import leafgrad
from leafgrad.autograd import gradcheck
from leafgrad.errors import MissingGradientError

TESTS = "tensor.special"

nan, inf = math.nan, math.inf


def test_bincount(device):
    x = leafgrad.tensor([1, 1, 3], device=device)
    counts = x.bincount()
    assert (counts.dtype, counts.tolist()) == (leafgrad.int64, [0, 2, 0, 1])
    assert leafgrad.bincount(x, minlength=6).tolist() == [0, 2, 0, 1, 0, 0]
    weighed = leafgrad.bincount(x, leafgrad.tensor([0.5, 1.0, 2.0], device=device))
    assert (weighed.dtype, weighed.tolist()) == (leafgrad.float32, [0, 1.5, 0, 2])
    assert leafgrad.bincount(x, x).dtype is leafgrad.float64
    assert leafgrad.bincount(x[:0]).tolist() == []
    assert leafgrad.bincount(x[:0], leafgrad.ones(0, device=device), 2).dtype is leafgrad.int64


@pytest.mark.parametrize("wrong", [[-1, 2], [[1]], [0.5]])
def test_bincount_is_of_a_vector_of_counting_numbers(wrong):
    with pytest.raises(RuntimeError, match="1-d non-negative integral inputs, got"):
        leafgrad.tensor(wrong).bincount()


def test_histc(device):
    x = leafgrad.tensor([1.0, 2.0, 1.0, 3.0, -5.0, nan], device=device)
    assert x.histc(4, 0, 3).tolist() == [0, 2, 1, 1]
    assert leafgrad.histc(x[:4], 2).tolist() == [2, 2]
    assert leafgrad.histc(x[:1], 3).tolist() == [0, 1, 0]
    assert leafgrad.histc(x[:3].long(), 2, 1, 2).tolist() == [2, 1]
    with pytest.raises(RuntimeError, match="not finite"):
        leafgrad.histc(x)
    with pytest.raises(RuntimeError, match="max must be larger"):
        leafgrad.histc(x, 2, 3, 1)
    with pytest.raises(RuntimeError, match="is beyond leafgrad"):
        leafgrad.histc(x, 2, -1e308, 1e308)
    with pytest.raises(RuntimeError, match="max must be larger"):
        leafgrad.histc(leafgrad.full((2,), 3e38, device=device), 2)


def numbers(*values):
    return leafgrad.tensor(values, dtype=leafgrad.float64, requires_grad=True)


WEIGHED = {
    "bincount": lambda w: leafgrad.bincount(leafgrad.tensor([0, 1, 1]), w),
    "histogram": lambda w: leafgrad.histogram(leafgrad.tensor([0.0, 1.0, 1.5]).double(), 2, weight=w).hist,
    "density": lambda w: leafgrad.histogram(leafgrad.ones(3).double(), 2, weight=w, density=True).hist,
}


@pytest.mark.parametrize("name", WEIGHED)
def test_what_is_counted_has_a_gradient_by_the_weights(name):
    w = numbers(1.0, 2.0, 3.0)
    assert gradcheck(WEIGHED[name], (w,))
    if name != "density":
        assert leafgrad.autograd.grad((WEIGHED[name](w) ** 2).sum(), w)[0].tolist() == [2, 10, 10]


COUNTED = {
    "histogram": lambda x: leafgrad.histogram(x, 3).hist,
    "edges": lambda x: leafgrad.histogram(x, 3).bin_edges,
    "of given bins": lambda x: leafgrad.histogram(x.detach(), x).hist,
    "unique": leafgrad.unique,
    "unique slices": lambda x: leafgrad.unique(x, dim=0),
}


@pytest.mark.parametrize("transform", [False, True])
@pytest.mark.parametrize("name", COUNTED)
def test_there_is_no_gradient_by_what_is_counted_and_none_is_left_out(name, transform):
    def loss(x):
        return COUNTED[name](x).sum() + (x * x).sum()

    x = numbers(1.0, 2.0, 3.0)
    gradient = leafgrad.func.grad(loss) if transform else lambda x: leafgrad.autograd.grad(loss(x), x)
    with pytest.raises(MissingGradientError):
        gradient(x)


CALLS = {
    "bincount": lambda t, x: t.bincount(t.tensor([5, 0, 5, 2]), minlength=3),
    "histc": lambda t, x: t.histc(x, 7),
    "histc of a range": lambda t, x: t.histc(x, 5, -1, 1),
    "unique_consecutive": lambda t, x: t.unique_consecutive((x * 2).round(), return_inverse=True, return_counts=True),
    "combinations": lambda t, x: t.combinations(x[0], 3),
    "logcumsumexp": lambda t, x: t.logcumsumexp(x, -1),
    "nanmedian": lambda t, x: t.nanmedian(t.where(x > 0.5, nan, x), 1),
    "unravel_index": lambda t, x: t.unravel_index(t.tensor([3, 17]), (2, 3, 4)),
    "erfc": lambda t, x: t.erfc(x),
    "erfinv": lambda t, x: t.erfinv(x.tanh()),
    "entr": lambda t, x: t.special.entr(x.abs() + 0.1),
    "ndtr": lambda t, x: t.special.ndtr(x),
    "xlog1py": lambda t, x: t.special.xlog1py(x, x.abs()),
    "cosine_similarity": lambda t, x: t.cosine_similarity(x, x.flip(0)),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_pytorch(name):
    order = 0 if name in ("unique_consecutive",) else 2
    parity.compare(CALLS[name], np.random.default_rng(3).standard_normal((3, 4)), order=order, rtol=1e-8)


FAR = 1.75 * 2.0**127  # in float32


@pytest.mark.parametrize("bins", [1, 3, 4, 100])
@pytest.mark.parametrize("ends", [(-FAR, FAR), (0, FAR), (-FAR, 0), (-FAR / 4, FAR / 2), (0, 0)])
def test_histc_of_ends_whose_distance_is_beyond_the_dtype(ends, bins):
    x = leafgrad.tensor([1.0, -2e38, 2e38, 0.0, FAR, -FAR, 1e37])
    assert leafgrad.histc(x, bins, *ends).tolist() == leafgrad.histc(x.double(), bins, *ends).tolist()


def test_histc_of_ends_whose_distance_is_no_number():
    x = leafgrad.tensor([1.0, -1.6e308, 1.6e308], dtype=leafgrad.float64)
    assert leafgrad.histc(x, 4, -1.7e308, 1.7e308).tolist() == [1, 0, 1, 1]


x = leafgrad.randn(4, 5, dtype=leafgrad.float64, generator=leafgrad.Generator().manual_seed(0))


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("bins", [1, 4, [-1.0, 0.0, 0.5, 2.0]], ids=str)
def test_histogram(bins, density):
    edges = leafgrad.tensor(bins, dtype=x.dtype) if isinstance(bins, list) else bins
    weight = x.abs()
    for options in ({}, {"range": (-1.0, 1.0)}, {"weight": weight}):
        if isinstance(bins, list) and "range" in options:
            continue
        got = leafgrad.histogram(x, edges, density=density, **options)
        weights = {"weights": weight.numpy()} if "weight" in options else {}
        where = {"range": options["range"]} if "range" in options else {}
        want = np.histogram(x.numpy(), bins, density=density, **weights, **where)
        np.testing.assert_allclose(got.hist, want[0])
        np.testing.assert_allclose(got.bin_edges, want[1])


def test_histogram_of_nothing_and_errors():
    hist, edges = leafgrad.histogram(leafgrad.tensor([]), 2)
    assert hist.tolist() == [0, 0]
    assert edges.tolist() == [0, 0.5, 1]
    with pytest.raises(RuntimeError, match=r"expected floats, got leafgrad\.int64"):
        leafgrad.histogram(leafgrad.tensor([1]), 2)
    with pytest.raises(RuntimeError, match="bins must be > 0, got 0"):
        leafgrad.histogram(x, 0)
    with pytest.raises(RuntimeError, match=r"ascending order, got 2\.0, 1\.0"):
        leafgrad.histogram(x, 2, range=(2, 1))
