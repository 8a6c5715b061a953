"""The backward pass of compiled functions, and what it is handed."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_the_backward_program_is_given_arrays(executor):
    x = leafgrad.ones(3, dtype=leafgrad.float64, requires_grad=True)
    compiled = leafgrad.compile(lambda x: (x * x).sum(), executor=executor)
    compiled(x)
    y = compiled(x)
    op = y._node.op
    program, given = op.program(), []
    op.run = lambda arrays: given.extend(arrays) or program(arrays)
    (y * 2 + y.exp()).backward()  # gradients without dimensions add up to a scalar of NumPy's
    assert [type(a) for a in given] == [np.ndarray] * len(given)
    np.testing.assert_allclose(x.grad.numpy(), 2 * (2 + np.exp(3)) * np.ones(3))
