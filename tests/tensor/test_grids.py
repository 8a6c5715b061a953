"""gradient, histogram, vander, renorm, nanquantile and angle against NumPy; gcd and lcm in place."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad.autograd import gradcheck

x = leafgrad.randn(4, 5, dtype=leafgrad.float64, generator=leafgrad.Generator().manual_seed(0))
UNEVEN = [0.0, 1.0, 3.0, 4.0, 9.0]


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order):
    for got, want in zip(
        leafgrad.gradient(x, edge_order=edge_order), np.gradient(x.numpy(), edge_order=edge_order), strict=True
    ):
        np.testing.assert_allclose(got, want, atol=1e-14)
    (got,) = leafgrad.gradient(x, spacing=[leafgrad.tensor(UNEVEN)], dim=1, edge_order=edge_order)
    np.testing.assert_allclose(got, np.gradient(x.numpy(), UNEVEN, axis=1, edge_order=edge_order), atol=1e-14)
    (got,) = leafgrad.gradient(x, spacing=0.5, dim=-2, edge_order=edge_order)
    np.testing.assert_allclose(got, np.gradient(x.numpy(), 0.5, axis=0, edge_order=edge_order), atol=1e-14)
    assert gradcheck(lambda x: leafgrad.gradient(x, edge_order=edge_order), x.clone().requires_grad_())


def test_gradient_errors():
    with pytest.raises(RuntimeError, match=r"size must be at least edge_order\+1 = 3, got 2"):
        leafgrad.gradient(x[:2], edge_order=2)
    with pytest.raises(RuntimeError, match="one for each of 2 dimensions, got 3"):
        leafgrad.gradient(x, spacing=[1, 2, 3])
    with pytest.raises(RuntimeError, match="expected 1 or 2, got 3"):
        leafgrad.gradient(x, edge_order=3)


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


def test_vander():
    n = leafgrad.tensor([1, 2, 3])
    assert leafgrad.vander(n).tolist() == np.vander([1, 2, 3]).tolist()
    assert leafgrad.vander(n, 2, increasing=True).tolist() == np.vander([1, 2, 3], 2, increasing=True).tolist()
    rows = leafgrad.linalg.vander(leafgrad.tensor([[1, 2], [3, 4]]), N=3)
    assert rows.tolist() == [[[1, 1, 1], [1, 2, 4]], [[1, 3, 9], [1, 4, 16]]]
    with pytest.raises(RuntimeError, match="one-dimensional"):
        leafgrad.vander(x)


@pytest.mark.parametrize("p", [1, 2, 3.5, float("inf")])
def test_renorm(p):
    got = leafgrad.renorm(x, p, 1, 1.5)
    norms = np.linalg.norm(x.numpy(), p, axis=0)
    np.testing.assert_allclose(got, x.numpy() * np.where(norms > 1.5, 1.5 / (norms + 1e-7), 1), rtol=1e-12)
    assert (x.clone().renorm_(p, 1, 1.5) == got).all()
    assert gradcheck(lambda x: x.renorm(p, 1, 1.5), x.clone().requires_grad_())


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_nanquantile(dim, interpolation):
    spoilt = leafgrad.where(x > 0.5, float("nan"), x)
    q = leafgrad.tensor([0.0, 0.3, 1.0], dtype=x.dtype)
    got = spoilt.nanquantile(q, dim, interpolation=interpolation)
    np.testing.assert_allclose(got, np.nanquantile(spoilt.numpy(), q.numpy(), axis=dim, method=interpolation))
    assert leafgrad.full((2, 3), float("nan")).nanquantile(0.5, 1).isnan().all()


def test_angle():
    t = leafgrad.tensor([-1.0, 0.0, 2.0, float("nan")], requires_grad=True)
    np.testing.assert_array_equal(t.angle().detach(), np.float32([np.pi, 0, 0, np.nan]))
    assert leafgrad.angle(leafgrad.tensor([-2, 3])).tolist() == pytest.approx([np.pi, 0])


def test_divisors_in_place_and_across_dtypes():
    a, b = leafgrad.tensor([12, -18, 0]), leafgrad.tensor([8, 12, 0], dtype=leafgrad.int32)
    assert a.gcd(b).tolist() == [4, 6, 0]
    assert a.clone().gcd_(b).dtype is leafgrad.int64
    assert a.clone().lcm_(b).tolist() == [24, 36, 0]


def test_index_reduce_in_place():
    t = leafgrad.ones(3, 2)
    out = t.index_reduce_(0, leafgrad.tensor([0, 2, 0]), leafgrad.full((3, 2), 2.0), "prod")
    assert out is t
    assert t.tolist() == [[4, 4], [1, 1], [2, 2]]
