"""Open steps, whose Python runs at each call: ``explain`` says which they are and why, ``closed=True`` refuses them."""

from __future__ import annotations

import gc
import inspect
import math
import random
import time
import types
import weakref

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.errors import CompileError, TraceError

OWN = random.Random(0)  # whose choices are not followed


def draws(x):
    return x * OWN.choice((0.25, 0.5))  # this line draws


def reads_the_clock(x):
    return x + time.perf_counter()  # this line reads the clock


STATE = types.SimpleNamespace(calls="")


def tallies(x):
    STATE.calls += "|"  # this line tallies
    return x * 2


def prints(x):
    print("called")  # this line prints
    return x * 2


def reads_a_value(x):
    return x * float(x.sum())  # this line reads a value


def asks_of_a_value(x):
    if math.isfinite(x.sum().item()):  # this line asks
        return x * 2
    return x


OPEN = [draws, reads_the_clock, tallies, prints, reads_a_value, asks_of_a_value]


def line(function):
    """The number of the line that opens a step: the one with a comment."""
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, text in enumerate(lines) if "# this line" in text)


@pytest.mark.parametrize("function", OPEN, ids=lambda f: f.__name__)
def test_an_open_step_runs_and_says_why_it_is_open(function):
    step = leafgrad.compile(function)
    for _ in range(4):
        step(leafgrad.ones(3))
    text = step.explain()
    assert "open" in text
    assert f"test_open_steps.py:{line(function)}" in text


@pytest.mark.parametrize("function", OPEN, ids=lambda f: f.__name__)
def test_an_open_step_that_must_be_closed_is_an_error(function):
    step = leafgrad.compile(function, closed=True)

    def often():
        for _ in range(4):
            step(leafgrad.ones(3))

    with pytest.raises((TraceError, CompileError), match=f"test_open_steps.py:{line(function)}"):
        often()


def training_step(**options):
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    adam, o = optim.Adam(net.parameters()), types.SimpleNamespace(weight=1.0)

    @leafgrad.compile(**options)
    def step(x):
        adam.zero_grad()
        loss = o.weight * net(x).square().mean()
        loss.backward()
        adam.step()
        return loss

    return step, o


def test_a_closed_step_is_not_called_open():
    step, o = training_step()
    for o.weight in (1.0, 1.0, 2.0, 2.0, 1.0):
        step(leafgrad.ones(2, 3))
    assert "open" not in step.explain()


def test_a_step_that_must_be_closed_and_is():
    step, o = training_step(closed=True)
    for o.weight in (1.0, 1.0, 2.0, 2.0, 1.0):
        step(leafgrad.ones(2, 3))


def test_closed_works_as_a_decorator_and_with_methods():
    class Model:
        k = 2.0

        @leafgrad.compile(closed=True)
        def step(self, x):
            return x * self.k

    model = Model()
    for model.k in (1.0, 1.0, 2.0, 3.0):
        assert model.step(leafgrad.ones(1)).item() == model.k


def test_an_open_step_keeps_nothing_of_its_calls():
    seen = []

    def step(x):
        seen.append(len(seen))
        return (x * 2).sum()

    compiled = leafgrad.compile(step)
    for _ in range(8):
        x = leafgrad.ones(1000)
        kept = weakref.ref(x), weakref.ref(x._data)
        y = compiled(x)
        assert y.item() == 2000
        del x
        gc.collect()
        assert [ref() for ref in kept] == [None, None]
