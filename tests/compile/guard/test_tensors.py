"""Which tensors gradients are: one for several parameters, or one that something else holds, and not so any more."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import nn


def ones():
    return nn.Parameter(leafgrad.ones(1))


def accumulates(a, b, buffer):
    (a * 2 + b * 10).sum().backward()
    return a.grad + b.grad


def reads(a, b, buffer):
    return a.grad * 10 + b.grad


def compares(a, b, buffer):
    return leafgrad.ones(1) * (2 if a.grad is b.grad else 3 if a.grad is buffer else 4)


def writes(a, b, buffer):
    buffer.mul_(0.5)
    return a.grad + buffer + b.grad


@pytest.mark.parametrize("function", [accumulates, reads, compares, writes])
@pytest.mark.parametrize("first", ["apart", "shared", "held", "view"])
def test_gradients_that_become_others(function, first):
    def trained(function):
        a, b, buffer = ones(), ones(), leafgrad.ones(1)
        states = {
            "apart": lambda: (leafgrad.ones(1), leafgrad.ones(1)),
            "shared": lambda: (one := leafgrad.ones(1), one),
            "held": lambda: (buffer, leafgrad.ones(1)),
            "view": lambda: (buffer[:], leafgrad.ones(1)),
        }
        found = []
        for state in (first, "apart", "shared", "view", "apart", "held", first):
            a.grad, b.grad = states[state]()
            for _ in range(4):
                found.append((function(a, b, buffer).tolist(), a.grad.tolist(), b.grad.tolist(), buffer.tolist()))
        return found

    assert trained(leafgrad.compile(lambda *given: function(*given))) == trained(function)
