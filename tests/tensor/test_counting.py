"""Counts, runs, choices, and running logarithms of sums: values by hand, and PyTorch's where it is installed."""

from __future__ import annotations

import math

import numpy as np
import parity
import pytest

import leafgrad
from leafgrad.autograd import gradcheck, gradgradcheck

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


def test_unique_consecutive(device):
    x = leafgrad.tensor([1, 1, 2, 2, 2, 1], device=device)
    values, inverse, counts = x.unique_consecutive(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 1, 1, 2], [2, 3, 1])
    rows, counts = leafgrad.unique_consecutive(leafgrad.tensor([[1, 1, 2], [3, 3, 3]]), return_counts=True, dim=1)
    assert (rows.tolist(), counts.tolist()) == ([[1, 2], [3, 3]], [2, 1])
    assert leafgrad.unique_consecutive(x[:0]).tolist() == []
    square = leafgrad.unique_consecutive(x.reshape(2, 3), return_inverse=True)[1]
    assert square.tolist() == [[0, 0, 1], [1, 1, 2]]


def test_combinations():
    x = leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert leafgrad.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert leafgrad.combinations(x[:2], with_replacement=True).tolist() == [[1, 1], [1, 2], [2, 2]]
    assert leafgrad.combinations(x, 4).shape == (0, 4)
    assert leafgrad.combinations(x, 0).numel() == 0
    leafgrad.combinations(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_unravel_index(device):
    at = leafgrad.tensor([[0, 7], [-1, 11]], device=device)
    found = leafgrad.unravel_index(at, (3, 4))
    assert [t.tolist() for t in found] == [[[0, 1], [2, 2]], [[0, 3], [3, 3]]]
    assert leafgrad.unravel_index(at[:1], 8)[0].tolist() == [[0, 7]]
    with pytest.raises(ValueError, match="expected indices below 6"):
        leafgrad.unravel_index(at, (2, 3))


def test_running_logarithms_of_sums(device):
    x = leafgrad.tensor([[1000.0, 1000.0, -1000.0], [-inf, 0.0, inf]], device=device)
    expected = [[1000, 1000 + math.log(2), 1000 + math.log(2)], [-inf, 0, inf]]
    assert x.logcumsumexp(1).tolist() == [pytest.approx(row) for row in expected]
    y = leafgrad.tensor(np.random.default_rng(0).uniform(-30, 30, (3, 5)), requires_grad=True)
    for dim in (0, 1):
        assert gradcheck(lambda y, dim=dim: y.logcumsumexp(dim), (y,))
        assert gradgradcheck(lambda y, dim=dim: y.logcumsumexp(dim), (y,))


def test_medians_of_what_is_not_nan(device):
    x = leafgrad.tensor([[nan, 3.0, 1.0], [nan, nan, nan], [2.0, 4.0, 3.0]], device=device)
    values, indices = x.nanmedian(1)
    np.testing.assert_array_equal(values.cpu().numpy(), [1, nan, 3])
    assert indices.tolist()[0::2] == [2, 2]
    assert leafgrad.nanmedian(x).item() == 3
    assert x.nanmedian(1, keepdim=True).values.shape == (3, 1)


def test_real_tensors_are_their_own_conjugates():
    x = leafgrad.tensor([1.0, -2.0], requires_grad=True)
    assert x.real is x
    assert x.conj() is x
    assert leafgrad.real(x) is x
    assert x is leafgrad.conj_physical(x) is x.resolve_conj()
    assert not x.is_conj()
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        leafgrad.imag(x)
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        _ = x.imag


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
