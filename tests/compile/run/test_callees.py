"""What an open step calls where it breaks is compiled, too: closures, methods, lambdas and modules of the user's."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.run.callees import Callees, is_users, python_of
from leafgrad.compile.run.compiled import CompiledPart

OWN = random.Random(0)  # whose choices are not followed
SEEN = []


def network():
    leafgrad.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def closure(net, x, y):
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x, y):
        def evaluate():
            sgd.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            SEEN.append(f"{float(loss):.3f}")
            return loss

        return sgd.step(evaluate)

    return step


def lbfgs(net, x, y):
    minimizer = optim.LBFGS(net.parameters(), lr=0.1, max_iter=2)

    def step(x, y):
        def evaluate():
            minimizer.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            return loss

        SEEN.append(f"{float(minimizer.step(evaluate)):.3f}")
        return x

    return step


def expression(net, x, y):
    return lambda x, y: ((net(x) - y) ** 2).mean().sqrt() * OWN.choice((1.0, 2.0))


class Model(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, y):
        error = (self.net(x) - y) ** 2
        SEEN.append(f"{float(error.mean()):.3f}")
        return (error * error).exp().mean()


def module(net, x, y):
    return Model(net)


class Trainer:
    def __init__(self, net):
        self.model, self.adam = Model(net), optim.Adam(net.parameters())

    def evaluate(self, x, y):
        self.adam.zero_grad()
        loss = self.model(x, y)
        loss.backward()
        self.adam.step()
        return loss.detach()

    def halved(self, x):
        return x / 2


def trainer(net, x, y):
    own = Trainer(net)
    return lambda x, y: own.evaluate(x, y)


KINDS = [closure, lbfgs, expression, module, trainer]


def run(kind, compiled, calls=50):
    """Results, parameters and what was seen of some calls, and the step."""
    net = network().double()  # the steps of L-BFGS magnify rounding a thousandfold
    x, y = leafgrad.randn(5, 3, dtype=leafgrad.float64), leafgrad.randn(5, 1, dtype=leafgrad.float64)
    step = kind(net, x, y)
    step = leafgrad.compile(step, executor="numpy") if compiled else step
    SEEN.clear()
    OWN.seed(0)
    found = [step(x, y).detach().numpy() for _ in range(calls)]
    return found, [p.detach().numpy() for p in net.parameters()], [*SEEN], step


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
def test_it_does_what_it_does_uncompiled(kind, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    monkeypatch.setattr(nn.Module, "_hooks", None)  # hooks of all modules, which others had, go another way
    got, expected = run(kind, True), run(kind, False)
    for ours, theirs in zip(got[0] + got[1], expected[0] + expected[1], strict=True):
        assert leafgrad.allclose(leafgrad.from_numpy(ours), leafgrad.from_numpy(theirs), rtol=1e-8, atol=1e-10)
    assert got[2] == expected[2]
    assert "closed; 1 program" in got[3].explain()


def test_a_nested_function_runs_inside_vmap():
    weight = leafgrad.ones(3)

    def step(x):
        def energy(row):
            y = (row * weight).sin().exp().tanh()
            return y.sum() * 2

        SEEN.append(f"{float(x.sum()):.3f}")
        return leafgrad.func.vmap(energy)(x) * OWN.choice((1.0, 2.0)) + energy(x)

    compiled, x = leafgrad.compile(step), leafgrad.randn(4, 3)
    for _ in range(20):
        OWN.seed(0)
        got = compiled(x)
        OWN.seed(0)
        assert leafgrad.allclose(got, step(x))


def test_another_call_of_an_object_is_not_the_one_that_was_divided():
    class Twice:
        def __call__(self, x):
            SEEN.append(f"{float(x.sum()):.3f}")
            return (x * 2).sin().exp().tanh()

    class Thrice(Twice):
        def __call__(self, x):
            return x * 3

    twice = Twice()
    compiled = leafgrad.compile(twice)
    for _ in range(20):
        compiled(leafgrad.ones(2))
    twice.__class__ = Thrice
    assert compiled(leafgrad.ones(2)).tolist() == [3, 3]


def test_only_what_stays_is_compiled():
    callees = Callees(CompiledPart)

    def function(x):
        return x + len(SEEN)

    owner = Trainer(network())
    assert callees(function) is function
    assert callees(function).function is function
    assert callees(owner.evaluate) == owner.evaluate
    assert callees(owner.evaluate) is callees(owner.evaluate)
    assert len(callees.parts) == 2
    for f in (len, random.random, OWN.choice, leafgrad.sin, nn.Linear(1, 1), nn.Linear):
        assert callees(f) == callees(f) == f
    kept = leafgrad.ones(3)
    alive = weakref.ref(kept)
    callees(lambda kept=kept: kept)
    del kept
    gc.collect()
    assert alive() is None
    assert len(callees.parts) == 2


class Scaled:
    """Has what it does not have itself from what it calls, as many decorators do."""

    def __init__(self, function, factor):
        self.function, self.factor = function, factor

    def __getattr__(self, name):
        return getattr(self.__dict__["function"], name)

    def __call__(self, x):
        y = self.function(x) * self.factor
        SEEN.append(f"{float(y.sum()):.3f}")
        return y


def test_what_has_the_attributes_of_a_method_is_not_that_method():
    owner = Trainer(network())
    once, twice = Scaled(owner.halved, 1.0), Scaled(owner.halved, 2.0)
    step = leafgrad.compile(lambda x: once(x) - twice(x))
    assert {step(leafgrad.ones(1)).item() for _ in range(14)} == {-0.5}


def test_what_runs_when_something_is_called():
    model = Model(network())
    assert python_of(model.forward) == (Model.forward, (model,))
    assert python_of(model) == (nn.Module.__call__, (model,))
    assert python_of(len) == python_of(int) == (None, ())
    assert is_users(model)
    assert is_users(model.forward)
    assert not is_users(network())
