"""Running sums, differences, integrals; and what is put together of a few others."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import leafgrad
from leafgrad.autograd import gradcheck, gradgradcheck

RNG = np.random.default_rng(0)


A, B, PROBABILITIES = RNG.standard_normal((3, 5)), RNG.standard_normal((3, 5)), RNG.uniform(0.1, 0.9, (3, 5))


X, COUNTS = np.sort(RNG.standard_normal(5)), np.array([1, 2, 3, 2, 7])


ODD = np.array([1.0, math.inf, -math.inf, math.nan])


CASES = {
    "diff": (lambda a: leafgrad.diff(a), np.diff, [A]),
    "diff, second, along rows": (lambda a: leafgrad.diff(a, 2, 0), lambda a: np.diff(a, 2, 0), [A]),
    "diff, prepended": (lambda a, b: leafgrad.diff(a, prepend=b), lambda a, b: np.diff(a, prepend=b), [A, B]),
    "diff, of bool": (lambda a: leafgrad.diff(a > 2), lambda a: np.diff(a > 2), [COUNTS]),
    "trapezoid": (leafgrad.trapezoid, np.trapezoid, [A]),
    "trapezoid, of samples": (leafgrad.trapezoid, np.trapezoid, [A, X]),
    "trapezoid, along rows": (
        lambda a, x: leafgrad.trapezoid(a, x, dim=0),
        lambda a, x: np.trapezoid(a, x, axis=0),
        [A, B],
    ),
    "trapz": (lambda a: leafgrad.trapz(a, dx=0.3), lambda a: np.trapezoid(a, dx=0.3), [A]),
    "cumulative_trapezoid": (
        leafgrad.cumulative_trapezoid,
        lambda a, x: np.cumsum((a[:, 1:] + a[:, :-1]) / 2 * np.diff(x), 1),
        [A, X],
    ),
    "logit": (leafgrad.logit, lambda p: np.log(p / (1 - p)), [PROBABILITIES]),
    "logaddexp2": (leafgrad.logaddexp2, np.logaddexp2, [A, B]),
    "ldexp": (leafgrad.ldexp, np.ldexp, [A, COUNTS]),
    "isin": (leafgrad.isin, np.isin, [COUNTS, np.array([3, 2])]),
    "isin, of none": (leafgrad.isin, np.isin, [COUNTS, np.array([], int)]),
    "isin, inverted": (lambda n: leafgrad.isin(n, 2, invert=True), lambda n: n != 2, [COUNTS]),
    "isposinf": (leafgrad.isposinf, np.isposinf, [ODD]),
    "isneginf": (leafgrad.isneginf, np.isneginf, [ODD]),
    "isreal": (leafgrad.isreal, np.isreal, [ODD]),
    "cov": (leafgrad.cov, np.cov, [A]),
    "cov, weighted": (
        lambda a, n, w: leafgrad.cov(a, fweights=n, aweights=w),
        lambda a, n, w: np.cov(a, fweights=n, aweights=w),
        [A, COUNTS, PROBABILITIES[0]],
    ),
    "cov, of a variable": (leafgrad.cov, np.cov, [X]),
    "cov, of a row": (leafgrad.cov, np.cov, [A[:1]]),
    "corrcoef, of a row": (leafgrad.corrcoef, np.corrcoef, [A[:1]]),
    "cov, uncorrected": (lambda a: a.cov(correction=0), lambda a: np.cov(a, ddof=0), [A]),
    "corrcoef": (leafgrad.corrcoef, np.corrcoef, [A]),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name, device):
    ours, reference, arrays = CASES[name]
    found = ours(*[leafgrad.tensor(a, device=device) for a in arrays])
    expected = np.asarray(reference(*arrays))
    assert found.device == device
    assert found.dtype is leafgrad.from_numpy(expected.reshape(-1)).dtype
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", "diff trapezoid cumulative_trapezoid logit logaddexp2 cov corrcoef".split())
def test_gradients(name):
    ours, _, arrays = CASES[name]
    inputs = [leafgrad.tensor(a, requires_grad=True) for a in arrays]
    assert gradcheck(ours, inputs)
    assert gradgradcheck(ours, inputs)


def test_limits_of_dtypes():
    for ours, theirs in (
        (leafgrad.float16, np.float16),
        (leafgrad.float32, np.float32),
        (leafgrad.float64, np.float64),
    ):
        found, expected = leafgrad.finfo(ours), np.finfo(theirs)
        for name in ("bits", "eps", "max", "min", "tiny"):
            assert getattr(found, name) == float(getattr(expected, name)), name
    assert leafgrad.finfo().eps == 2**-23
    for ours, theirs in ((leafgrad.uint8, np.uint8), (leafgrad.int8, np.int8), (leafgrad.int64, np.int64)):
        found, expected = leafgrad.iinfo(ours), np.iinfo(theirs)
        assert (found.bits, found.min, found.max) == (expected.bits, expected.min, expected.max)
    with pytest.raises(TypeError, match=r"finfo.*floating.*int64.*iinfo"):
        leafgrad.finfo(leafgrad.int64)
    with pytest.raises(TypeError, match=r"iinfo.*integer.*float32.*finfo"):
        leafgrad.iinfo(leafgrad.float32)


def test_what_types_make():
    assert leafgrad.result_type(leafgrad.tensor(1), 2.0) is leafgrad.float32
    assert leafgrad.can_cast(leafgrad.int64, leafgrad.float16)
    assert not leafgrad.can_cast(leafgrad.float16, leafgrad.int64)


def test_public_functions_can_be_pickled():
    for function in (leafgrad.sum, leafgrad.diff, leafgrad.nn.functional.relu, leafgrad.linalg.inv):
        assert pickle.loads(pickle.dumps(function)) is function


def test_a_copy_for_numpy_of_any_tensor(device):
    x = leafgrad.tensor([1.0, 2.0], device=device, requires_grad=True)
    assert x.numpy(force=True).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("weights", [{"fweights": [1, -2]}, {"fweights": [1.0, 2.0]}, {"aweights": [1, 2]}])
def test_weights_of_covariances_that_are_none(weights):
    with pytest.raises(RuntimeError, match=r"cannot be negative|dtype but got"):
        leafgrad.cov(leafgrad.ones(2), **{name: leafgrad.tensor(values) for name, values in weights.items()})


def test_no_differences_are_the_input_itself():
    x = leafgrad.tensor([1, 2, 4])
    assert x.diff(0, prepend=x, append=x).tolist() == x.tolist()


def test_running_logarithms_of_sums(device):
    x = leafgrad.tensor([[1000.0, 1000.0, -1000.0], [-math.inf, 0.0, math.inf]], device=device)
    expected = [[1000, 1000 + math.log(2), 1000 + math.log(2)], [-math.inf, 0, math.inf]]
    assert x.logcumsumexp(1).tolist() == [pytest.approx(row) for row in expected]
    y = leafgrad.tensor(np.random.default_rng(0).uniform(-30, 30, (3, 5)), requires_grad=True)
    for dim in (0, 1):
        assert gradcheck(lambda y, dim=dim: y.logcumsumexp(dim), (y,))
        assert gradgradcheck(lambda y, dim=dim: y.logcumsumexp(dim), (y,))


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


def test_a_gradient_beside_a_point_is_not_of_the_point_itself():
    odd = leafgrad.tensor([1.0, math.nan, 2.0, 5.0, 7.0])
    assert str(leafgrad.gradient(odd)[0].tolist()) == "[nan, 0.5, nan, 2.5, 2.0]"
    assert str(leafgrad.gradient(odd, spacing=0.5, edge_order=2)[0].tolist()) == "[nan, 1.0, nan, 5.0, 3.0]"
    odd[1] = math.inf
    assert leafgrad.gradient(odd, spacing=[2], edge_order=2)[0].tolist() == [math.inf, 0.25, -math.inf, 1.25, 0.75]
    assert leafgrad.gradient(odd, spacing=0.0)[0][3] == math.inf


def test_a_gradient_is_of_the_dtype_of_values_coordinates_and_spacing():
    values, places = leafgrad.tensor([1.0, 2.0, 4.0, 9.0]), [1.0, 2.0, 3.0, 5.0]
    (got,) = leafgrad.gradient(values, spacing=[leafgrad.tensor(places, dtype=leafgrad.float64)])
    assert got.dtype is leafgrad.float64
    np.testing.assert_allclose(got, np.gradient(values.double().numpy(), places), rtol=1e-14)
    assert leafgrad.gradient(values, spacing=1j)[0].tolist() == [-1j, -1.5j, -3.5j, -5j]
    assert leafgrad.gradient(values, spacing=[leafgrad.tensor(places) * 1j])[0][-1] == -2.5j


@pytest.mark.parametrize("spacing", [1, [leafgrad.arange(4) + 2**40]])
def test_a_gradient_of_large_integers_is_exact(spacing):
    (got,) = leafgrad.gradient(leafgrad.tensor([0, 1, 4, 9]) + 2**40, spacing=spacing)
    assert (got.dtype, got.tolist()) == (leafgrad.float32, [1.0, 2.0, 4.0, 5.0])
    small = leafgrad.tensor([200, 100, 0], dtype=leafgrad.uint8)
    assert leafgrad.gradient(small)[0].tolist() == [-100.0, -100.0, -100.0]


def test_gradient_errors():
    with pytest.raises(RuntimeError, match=r"size must be at least edge_order\+1 = 3, got 2"):
        leafgrad.gradient(x[:2], edge_order=2)
    with pytest.raises(RuntimeError, match="one for each of 2 dimensions, got 3"):
        leafgrad.gradient(x, spacing=[1, 2, 3])
    with pytest.raises(RuntimeError, match="expected 1 or 2, got 3"):
        leafgrad.gradient(x, edge_order=3)


def test_a_gradient_along_a_dimension_twice_is_refused():
    with pytest.raises(RuntimeError, match=r"appears multiple times in the list of dims, \[1, -1\]"):
        leafgrad.gradient(leafgrad.ones(3, 3), dim=[1, -1])
