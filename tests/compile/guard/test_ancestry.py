"""Backward passes of a compiled step through what was computed before it: which graphs are one program's."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import leafgrad
from leafgrad import nn

CALLS = 12


class Training:
    """A network whose forward pass and whose other half of the step are two functions."""

    def __init__(self, compiles):
        leafgrad.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
        self.adam = leafgrad.optim.Adam(self.net.parameters(), lr=0.1)
        compiled = leafgrad.compile if compiles else lambda f: f
        self.forward, self.eager, self.rest = compiled(self.net.forward), self.net.forward, compiled(self.backward)

    def backward(self, out, y):
        self.adam.zero_grad()
        loss = ((out - y) ** 2).mean()
        loss.backward()
        self.adam.step()
        return loss


def usual(training, i, x, y):
    return training.rest(training.forward(x), y)


def uncompiled(training, i, x, y):
    return training.rest(training.eager(x), y)


def scaled(training, i, x, y):
    return training.rest(training.forward(x) * (2.0 if i % 2 else -0.0), y)


def longer(training, i, x, y):
    out = training.forward(x)
    for _ in range(i % 3):
        out = out.sin()
    return training.rest(out, y)


def hooked(training, i, x, y):
    out = training.forward(x)
    if i % 4 == 3:
        out.register_hook(lambda g: 2 * g)
    return training.rest(out, y)


def retained(training, i, x, y):
    out = training.forward(x)
    if i % 4 == 3:
        out.retain_grad()
    loss = training.rest(out, y)
    return loss + out.grad.sum() if i % 4 == 3 else loss


def frozen(training, i, x, y):
    training.net[0].weight.requires_grad_(i % 4 != 3)
    return training.rest(training.forward(x), y)


def replaced(training, i, x, y):
    if i == 8:
        training.net[2] = nn.Linear(4, 1).double()
    return training.rest(training.forward(x), y)


def masked(training, i, x, y):
    out = training.forward(x)
    keep = (x[:, 0] > (0.0 if i % 4 == 3 else -10.0))[:, None]
    return training.rest(out[keep.expand_as(out)], y[keep])


KINDS = [usual, uncompiled, scaled, longer, hooked, retained, frozen, replaced, masked]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_whose_backward_goes_through_an_earlier_graph(kind):
    found = []
    for compiles in (True, False):
        training, draws = Training(compiles), np.random.default_rng(0)
        losses = []
        for i in range(CALLS):
            x, y = leafgrad.tensor(draws.normal(size=(5, 3))), leafgrad.tensor(draws.normal(size=(5, 1)))
            losses.append(kind(training, i, x, y).item())
        found.append([*losses, *(v for p in training.net.parameters() for v in p.flatten().tolist())])
    np.testing.assert_allclose(*found, rtol=1e-10)


@pytest.mark.parametrize("kind", [usual, uncompiled])
def test_it_is_closed(kind):
    training = Training(True)
    for i in range(5):
        kind(training, i, leafgrad.ones(5, 3).double(), leafgrad.zeros(5, 1).double())
    assert "closed; 1 program" in training.rest.explain().summary
    assert any("grad_fn" in str(guard) for guard in training.rest.explain().guards)


def test_the_graph_is_freed_once():
    training = Training(True)
    x, y = leafgrad.ones(5, 3).double(), leafgrad.zeros(5, 1).double()
    for _ in range(6):
        out = training.forward(x)
        training.rest(out, y)
        with pytest.raises(RuntimeError, match="second time"):
            training.rest(out, y)


def test_what_was_written_since_is_an_error():
    training = Training(True)
    x, y = leafgrad.ones(5, 3).double(), leafgrad.zeros(5, 1).double()
    for i in range(8):
        out = training.eager(x)
        if i == 6:
            with leafgrad.no_grad():
                training.net[2].weight.mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                training.rest(out, y)
        else:
            training.rest(out, y)


def through_an_argument(compiles):
    """Gradients through a graph that kept the memory of an argument, which the step writes before."""
    weight, found = leafgrad.ones(3, requires_grad=True), []

    def step(out, m):
        m.mul_(2)
        return leafgrad.autograd.grad(out.sum(), weight)[0]

    step = leafgrad.compile(step) if compiles else step
    for shared in (True,) * CALLS + (False,) * CALLS + (True,) * CALLS:
        m = leafgrad.ones(3)
        found.append(step(weight * (m.data if shared else m.clone()), m).tolist())
    return found


def between_two_passes(compiles):
    """The same between two passes through one graph."""
    weight, found = leafgrad.ones(3, requires_grad=True), []

    def step(out, m):
        first = leafgrad.autograd.grad(out.sum(), weight, retain_graph=True)[0]
        m.mul_(2)
        return first + leafgrad.autograd.grad(out.sum(), weight)[0]

    step = leafgrad.compile(step) if compiles else step
    for _ in range(CALLS):
        m = leafgrad.ones(3)
        found.append(step(weight * m.data, m).tolist())
    return found


def after_it_was_freed(compiles):
    """A second pass is refused all the same."""
    weight, found = leafgrad.ones(3, requires_grad=True), []

    def step(out, m):
        first = leafgrad.autograd.grad(out.sum(), weight)[0]
        m.mul_(2)
        with pytest.raises(RuntimeError, match="second time"):
            leafgrad.autograd.grad(out.sum(), weight)
        return first

    step = leafgrad.compile(step) if compiles else step
    for _ in range(CALLS):
        m = leafgrad.ones(3)
        found.append(step(weight * m.data, m).tolist())
    return found


def by_an_optimizer(compiles):
    """The memory is that of a parameter, which a step of its optimizer changes."""
    weight, scale, found = leafgrad.ones(3, requires_grad=True), leafgrad.ones(3, requires_grad=True), []
    sgd = leafgrad.optim.SGD([scale], lr=0.5)

    def step(out):
        sgd.zero_grad()
        scale.sum().backward()
        sgd.step()
        return leafgrad.autograd.grad(out.sum(), weight)[0]

    step = leafgrad.compile(step) if compiles else step
    for _ in range(CALLS):
        found.append(step(weight * scale.data).tolist())
    return found


@pytest.mark.parametrize("training", [through_an_argument, between_two_passes, after_it_was_freed, by_an_optimizer])
def test_memory_that_the_graph_kept_is_written_before(training):
    assert training(True) == training(False)


def test_nothing_keeps_what_a_graph_kept():
    training = Training(True)
    x, y = leafgrad.ones(5, 3).double(), leafgrad.zeros(5, 1).double()
    kept = []
    for _ in range(5):
        out = training.forward(x)
        kept += [weakref.ref(array) for array, tensor in out._node.saved if tensor is None]
        training.rest(out, y)
        del out
    gc.collect()
    assert kept
    assert not any(ref() is not None for ref in kept)


def test_numbers_that_changed_are_symbols_in_a_graph_behind():
    x, w = leafgrad.rand(4).double() + 0.5, leafgrad.rand(4, requires_grad=True).double()

    def forward(k):
        return (x * w * k).pow(k) / k

    def rest(out):
        return leafgrad.autograd.grad((out * out).sum(), w)[0]

    first, second = leafgrad.compile(forward, closed=True), leafgrad.compile(rest)
    for i in range(12):
        k = 0.5 + i / 10
        assert leafgrad.allclose(second(first(k)), rest(forward(k)))
    assert second.explain().summary.endswith("closed; 1 program, traced again 0 times")
