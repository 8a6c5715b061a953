"""Small arrays are added up as products: to the same numbers, and each row for itself."""

import itertools

import numpy as np
import pytest

import leafgrad as lg
from leafgrad.nn import functional as F
from leafgrad.ops.small import SMALL, known, repeated, summing
from leafgrad.ops.softmax import softmax

SHAPES = [(1,), (5,), (3, 4), (1, 1), (63, 7), (2, 3, 4), (4, 1, 5), (40, 40), (70, 60), (2, 2, 2, 9)]
DTYPES = ["float32", "float64"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(shape, dtype):
    x = np.random.default_rng(0).normal(3, 1, shape).astype(dtype)
    for dim in [*range(x.ndim), (x.ndim - 1,), tuple(range(x.ndim)), (0,)]:
        found = summing(np, shape, x.dtype, dim)(x)
        expected = x.astype("float64").sum(dim, keepdims=True)
        assert found.dtype == dtype
        close = 1e-5 if dtype == "float32" else 1e-14
        np.testing.assert_allclose(found + 0 * x, expected + 0 * x, rtol=close)
        np.testing.assert_allclose(summing(np, shape, x.dtype, dim, 0.3)(x) + 0 * x, 0.3 * expected + 0 * x, rtol=close)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_and_rows_are_remembered_and_cannot_be_written(dtype):
    for a in (known(np, 2.5, np.dtype(dtype)), repeated(np, (2, 3), 0.5, np.dtype(dtype))):
        assert a.dtype == dtype
        assert not a.flags.writeable
    assert known(np, 2.5, np.dtype(dtype)) is known(np, 2.5, np.dtype(dtype))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("function", [lambda x: lg.softmax(x, 1), lambda x: F.layer_norm(x, (6,))])
def test_a_row_is_not_touched_by_what_another_has(function, wrong):
    x = np.random.default_rng(1).normal(size=(5, 6))
    clean = function(lg.tensor(x)).numpy().copy()
    x[2, 3] = wrong
    found = function(lg.tensor(x)).numpy()
    rest = [0, 1, 3, 4]
    np.testing.assert_array_equal(found[rest], clean[rest])
    assert np.isnan(found[2]).all() or wrong == -np.inf


@pytest.mark.parametrize("shape", [(2, 4), (100, 64)])
@pytest.mark.parametrize("eps", [None, "1e-5", b"1"])
def test_eps_must_be_a_number_for_arrays_of_any_size(shape, eps):
    with pytest.raises(TypeError, match="'eps'"):
        F.layer_norm(lg.ones(shape), shape[1:], eps=eps)


@pytest.mark.parametrize("value", [0.1, 1000.0, -33.0])
def test_equal_elements_are_normalized_to_zeros(value):
    for width in (1, 2, 3, 7, 10, 33, 64):
        x = lg.full((4, width), value)
        assert F.layer_norm(x, (width,)).abs().max() < 1e-3


def test_both_sides_of_the_limit_agree():
    rng = np.random.default_rng(2)
    for rows, width, dtype in itertools.product((1, 2, 64), (SMALL // 128, 64, 65), DTYPES):
        x = rng.normal(2, 5, (rows, width)).astype(dtype)
        close = {"rtol": 2e-5 if dtype == "float32" else 1e-13, "atol": 1e-6 if dtype == "float32" else 1e-14}
        np.testing.assert_allclose(softmax(x, dim=1), softmax.forward(np, x.astype("float64"), dim=1), **close)
        target = rng.integers(0, width, rows)
        loss = F.cross_entropy(lg.tensor(x), lg.tensor(target)).item()
        wide = x.astype("float64")
        expected = (
            np.log(np.exp(wide - wide.max(1, keepdims=True)).sum(1)) + wide.max(1) - wide[range(rows), target]
        ).mean()
        assert loss == pytest.approx(expected, rel=1e-5)
