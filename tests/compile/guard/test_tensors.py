"""Tensors from outside: which ones gradients are, and what those are of which a step reads no element."""

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


@pytest.mark.parametrize(
    ("read", "change"),
    [
        (lambda w: w.shape[0], lambda w: w.resize_(3)),
        (lambda w: len(w), lambda w: setattr(w, "data", leafgrad.ones(3))),
        (lambda w: w.dim(), lambda w: setattr(w, "data", leafgrad.ones(1, 2))),
        (lambda w: w.dtype is leafgrad.float32, lambda w: setattr(w, "data", w.data.double())),
        (lambda w: w.is_contiguous(), lambda w: setattr(w, "data", leafgrad.ones(4)[::2])),
        (lambda w: w.requires_grad, lambda w: w.requires_grad_()),
        (lambda w: sum(p.requires_grad for p in [w]), lambda w: w.requires_grad_()),
        (lambda w: w.is_leaf, lambda w: w.mul_(ones())),
    ],
)
def test_what_a_tensor_is_of_which_no_element_is_read(read, change):
    def found(compiler):
        w = leafgrad.ones(2)
        step = compiler(lambda x: x * 2 if read(w) in (2, 0, False) else x * 3)
        before = [step(leafgrad.ones(1)).item() for _ in range(4)]
        change(w)
        return before, [step(leafgrad.ones(1)).item() for _ in range(4)]

    assert found(leafgrad.compile) == found(lambda function: function)


def test_whose_gradients_are_asked_for_must_still_require_them():
    w, unused = ones(), ones()

    @leafgrad.compile
    def step(x):
        return leafgrad.autograd.grad((x * w).sum(), [w, unused], allow_unused=True)[0]

    for _ in range(4):
        assert step(leafgrad.ones(1)).item() == 1
    unused.requires_grad_(False)
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        step(leafgrad.ones(1))
