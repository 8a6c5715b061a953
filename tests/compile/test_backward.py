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
    (program, places), given = op.program((True,)), []
    op.runs[(True,)] = lambda arrays: given.extend(arrays) or program(arrays), places
    (y * 2 + y.exp()).backward()  # gradients without dimensions add up to a scalar of NumPy's
    assert [type(a) for a in given] == [np.ndarray] * len(given)
    np.testing.assert_allclose(x.grad.numpy(), 2 * (2 + np.exp(3)) * np.ones(3))


def test_only_results_that_are_differentiated_have_gradients():
    w, v = (leafgrad.ones(2, requires_grad=True) for _ in range(2))
    f = leafgrad.compile(lambda x: ((w * x).sum(), (v / x).sum(), (w * v).sum()))
    for _ in range(4):
        for chosen, expected in (((0,), ([0, 2], None)), ((1,), (None, [np.inf, 0.5])), ((0, 2), ([1, 3], [1, 1]))):
            w.grad = v.grad = None
            results = f(leafgrad.tensor([0.0, 2.0]))
            sum(results[i] for i in chosen).backward()
            for leaf, values in zip((w, v), expected, strict=True):
                assert (None if leaf.grad is None else leaf.grad.tolist()) == values


def test_a_leaf_that_is_gone_at_the_end_of_the_pass():
    weight = leafgrad.ones(3, requires_grad=True)

    def squares(x):
        return (x.detach().requires_grad_() * weight).square()

    @leafgrad.compile
    def step(x):
        weight.grad = None
        squares(x).sum().backward()
        return weight.grad * 1

    for scale in range(1, 6):
        assert step(leafgrad.ones(3) * scale).tolist() == [2.0 * scale**2] * 3
