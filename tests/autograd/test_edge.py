"""Edges, which stand for tensors that are gone."""

from __future__ import annotations

import pytest


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def test_an_edge_stands_for_a_tensor_that_is_gone(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z, edge = (y * y).sum(), t.autograd.graph.get_gradient_edge(y)
    assert (edge.node is y.grad_fn, edge.output_nr) == (True, 0)
    del y
    assert t.autograd.grad(z, edge, retain_graph=True)[0].tolist() == [4.0, 8.0]
    (g,) = t.autograd.grad(edge, x, grad_outputs=t.tensor([1.0, 3.0], dtype=t.float64), retain_graph=True)
    assert g.tolist() == [2.0, 6.0]
    t.autograd.backward(edge, t.ones(2, dtype=t.float64))
    assert x.grad.tolist() == [2.0, 2.0]


def test_the_edge_of_a_leaf_and_of_a_constant(t):
    x = leaf(t, 1.0, 2.0)
    edge = t.autograd.graph.get_gradient_edge(x)
    assert t.autograd.grad((x * 2).sum(), edge)[0].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="does not require grad"):
        t.autograd.graph.get_gradient_edge(t.ones(1))


def test_the_edge_of_a_second_output(t):
    class Pair(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + 2 * h

    a, b = Pair.apply(leaf(t, 1.0, 2.0))
    edge = t.autograd.graph.get_gradient_edge(b)
    assert edge.output_nr == 1
    assert t.autograd.grad((a * b).sum(), edge)[0].tolist() == [1.0, 2.0]
