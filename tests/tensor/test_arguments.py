"""Numbers of NumPy, and tensors of one number, as arguments of functions: as Python's."""

from __future__ import annotations

import numpy as np
import pytest

INTEGERS = [
    lambda t, x, n: x[None].squeeze(n(0)),
    lambda t, x, n: x[None].clone().squeeze_(n(0)),
    lambda t, x, n: t.squeeze_copy(x[None], n(0)),
    lambda t, x, n: t.movedim(x, n(0), n(1)),
    lambda t, x, n: t.moveaxis(x, (n(0),), (n(1),)),
    lambda t, x, n: t.linalg.norm(x, 2, n(1)),
    lambda t, x, n: t.linalg.norm(x, None, n(1)),
    lambda t, x, n: t.linalg.vector_norm(x, 2, n(1)),
    lambda t, x, n: t.gradient(x, dim=n(1), edge_order=1)[0],
]
NUMBERS = [
    lambda t, x, n: t.linalg.vector_norm(x, n(3)),
    lambda t, x, n: t.linalg.norm(x, n(2), 1),
    lambda t, x, n: t.linalg.matrix_norm(x, n(1)),
    lambda t, x, n: t.cdist(x, x + 1, n(3)),
    lambda t, x, n: t.renorm(x, n(2), 0, n(3)),
    lambda t, x, n: t.linalg.pinv(x, rtol=n(1)),
    lambda t, x, n: t.linalg.matrix_rank(x, n(1)),
    lambda t, x, n: t.linalg.matrix_rank(x, rtol=n(1)),
    lambda t, x, n: t.gradient(x, spacing=n(2))[0],
    lambda t, x, n: t.gradient(x, spacing=[n(2), 1])[0],
]
OPERANDS = [
    lambda t, x, n: t.where(x > 3, x, n(2)),
    lambda t, x, n: t.where(x > 3, n(2), x),
    lambda t, x, n: t.where(x > 3, n(2), n(3)),
    lambda t, x, n: t.xlogy(x, n(2)),
    lambda t, x, n: t.xlogy(n(2), x + 1),
    lambda t, x, n: t.zeros(1, dtype=t.result_type(x, n(2))),
    lambda t, x, n: t.zeros(1, dtype=t.result_type(t.tensor(1), n(2))),
]


def same(t, call, kind, plain):
    x = t.arange(12.0).reshape(3, 4)
    found, expected = call(t, x, kind), call(t, x, plain)
    assert found.dtype is expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("call", INTEGERS)
def test_dimensions(t, call):
    for kind in (np.int64, np.int32, t.tensor):
        same(t, call, kind, int)


@pytest.mark.parametrize("call", NUMBERS)
def test_numbers(t, call):
    for kind in (np.float32, np.float64, np.int64):
        same(t, call, kind, float)


@pytest.mark.parametrize("call", NUMBERS[3:5] + NUMBERS[8:9])
def test_numbers_in_tensors(t, call):
    same(t, call, lambda n: t.tensor(float(n)), float)


@pytest.mark.parametrize("call", OPERANDS)
def test_operands(t, call):
    for kind in (np.float32, np.float64):
        same(t, call, kind, float)
    for kind in (np.int64, np.int32):
        same(t, call, kind, int)


def test_what_is_no_number_is_refused(t):
    x = t.ones(3, 4)
    for call in (
        lambda: t.where(x > 3, x, "2"),
        lambda: t.linalg.vector_norm(x, np.array([2.0])),
        lambda: t.cdist(x, x, t.tensor([2.0])),
        lambda: t.movedim(x, 0.0, 1.0),
        lambda: t.gradient(x, spacing="2"),
    ):
        with pytest.raises(TypeError):
            call()
