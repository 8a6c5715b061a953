"""Numbers that steps draw from Python's generator: the same as uncompiled, from the same states, in closed steps."""

from __future__ import annotations

import functools
import importlib
import random
import threading
import types
from collections import defaultdict
from random import gauss

import numpy as np
import pytest

import leafgrad as lg

CALLS = 10
GLOBAL = importlib.import_module("numpy.random")  # with the functions that share one generator


def outcome(make, wrap, between=lambda call: None):
    """What ten calls give and leave, with the state of the generator after each."""
    random.seed(5)
    GLOBAL.seed(5)
    lg.manual_seed(5)
    step = wrap(make())
    found = []
    for call in range(CALLS):
        between(call)
        try:
            y = step(lg.full((3,), call + 1.0))
            result = y.tolist() if isinstance(y, lg.Tensor) else y
        except ValueError as error:
            result = str(error)
        found.append((result, random.getstate(), GLOBAL.random()))
    return found, step


def agree(make, between=lambda call: None):
    """The compiled step, which does what the plain one does."""
    expected, _ = outcome(make, lambda f: f, between)
    found, step = outcome(make, lg.compile, between)
    for (ours, *states), (theirs, *its_states) in zip(found, expected, strict=True):
        assert ours == (theirs if isinstance(theirs, str) else pytest.approx(theirs, rel=1e-5))
        assert states == its_states
    return step


CLOSED = {
    "random": lambda: lambda x: x * random.random(),
    "uniform": lambda: lambda x: x * random.uniform(-1, b=2.0) + random.random(),
    "gauss": lambda: lambda x: x + random.gauss(0, 1) * gauss(1, sigma=2),
    "int": lambda: lambda x: x * random.randint(1, 100) + random.getrandbits(4),
    "arithmetic": lambda: lambda x: x * (2 * random.random() - 1),
    "item": lambda: lambda x: (x * random.random()).sum().item(),
    "both ways": lambda: lambda x: x if random.random() < 0.5 else -x,
    "theirs and ours": lambda: lambda x: x * random.random() + lg.rand(3),
    "a variable": lambda: (lambda draw: lambda x: x * draw())(random.random),
    "numpy.random": lambda: lambda x: x * GLOBAL.beta(0.3, 0.3) + GLOBAL.rand(),
    "passed on": lambda: (lambda normal: lambda x: x * sum(map(normal, [0.0, 1.0])))(np.random.default_rng(3).normal),
    "method": lambda: (lambda normal: lambda x: x * normal() + normal())(np.random.default_rng(3).normal),
}


@pytest.mark.parametrize("make", CLOSED.values(), ids=CLOSED)
def test_steps_that_draw_are_closed(make):
    step = agree(make)
    assert step._calls.programs
    assert "closed" in str(step.explain()).splitlines()[0]


def reseed(call):
    if call in (3, 7):
        random.seed(call)


def draw(call):
    random.gauss(0, 1)


@pytest.mark.parametrize("between", [reseed, draw])
@pytest.mark.parametrize("make", CLOSED.values(), ids=CLOSED)
def test_others_draw_and_seed_between(make, between):
    agree(make, between)


def fewer():
    return lambda x: x * random.random() if random.random() < 0.5 else x


def by_a_value():
    return lambda x: x * random.random() if x.sum().item() > 9 else x


def changing_arguments():
    state = types.SimpleNamespace(width=0.0)

    def step(x):
        state.width += 1
        return x * random.uniform(0, state.width)

    return step


def seeds():
    def step(x):
        a = random.random()
        random.seed(3)
        return x * a * random.random()

    return step


def chooses():
    return lambda x: x * random.random() * random.choice([1.0, 2.0]) * random.random()


def in_a_partial():
    draws = functools.partial(random.random)
    return lambda x: x * draws() * random.random()


def in_a_default():
    numbers = defaultdict(random.random)
    return lambda x: x * numbers[len(numbers)]


def own_generator():
    own = random.Random(3)
    return lambda x: x * own.random() + random.random()


def from_an_iterator():
    numbers = iter(random.random, 2.0)
    return lambda x: x * next(numbers)


def raises():
    def step(x):
        if random.random() < 0.3:
            raise ValueError("low")
        return x * random.random()

    return step


def keeps_the_function():
    kept = types.SimpleNamespace(draw=None)

    def step(x):
        kept.draw = random.random
        assert kept.draw is random.random
        return x * kept.draw()

    return step


OPEN = [
    fewer, by_a_value, changing_arguments, seeds, chooses, in_a_partial, in_a_default, own_generator, from_an_iterator,
    raises, keeps_the_function,
]  # fmt: skip


@pytest.mark.parametrize("make", OPEN)
@pytest.mark.parametrize("between", [lambda call: None, reseed, draw])
def test_other_ways_of_drawing_give_the_same(make, between):
    agree(make, between)


def test_a_function_that_is_replaced_is_seen(monkeypatch):
    step = lg.compile(lambda x: x * random.random())
    for _ in range(6):
        step(lg.ones(1))
    assert step._calls.programs
    monkeypatch.setattr(random, "random", lambda: 0.25)
    assert step(lg.ones(1)).item() == 0.25


def test_nothing_stands_for_the_function_after_a_call():
    real = random.random

    @lg.compile
    def step(x):
        if fails:
            raise KeyError("no")
        return x * random.random()

    for call in range(8):
        fails = call == 2
        if fails:
            with pytest.raises(KeyError):
                step(lg.ones(1))
        else:
            step(lg.ones(1))
        assert random.random is real


def test_another_thread_draws_for_itself_while_a_call_is_recorded():
    found, asks, goes_on = [], threading.Event(), threading.Event()

    def other():
        asks.wait()
        found.append(random.random())
        goes_on.set()

    def hold():
        if held:
            asks.set()
            goes_on.wait()

    @lg.compile
    def step(x):
        hold()
        return x * random.random()

    thread = threading.Thread(target=other)
    thread.start()
    for call in range(6):
        held = call == 3
        assert 0 <= step(lg.ones(1)).item() < 1
    thread.join()
    assert type(found[0]) is float


class Holder:
    """What has a generator, and may keep what comes of it."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.kept = None


def kept(o, x):
    o.kept = o.rng.normal
    return x * o.kept()


OPEN = {
    "generator": lambda o, x: x * o.rng.normal(),
    "unbound": lambda o, x: x * np.random.Generator.normal(o.rng),
    "array": lambda o, x: x * lg.tensor(o.rng.normal(size=3)),
    "integer of NumPy's": lambda o, x: x * o.rng.integers(5),
    "type": lambda o, x: x * (o.rng.normal() if type(o.rng) is np.random.Generator else 0),
    "state": lambda o, x: x * (o.rng.normal() if o.rng.bit_generator.state else 0),
    "shuffled": lambda o, x: x * float(o.rng.permutation(3)[0]) + o.rng.normal(),
    "method kept": kept,
}


@pytest.mark.parametrize("name", OPEN)
def test_what_draws_otherwise_is_open(name):
    ours, theirs = Holder(), Holder()
    step = lg.compile(functools.partial(OPEN[name], ours))
    for call in range(CALLS):
        x = lg.full((3,), call + 1.0)
        assert step(x).tolist() == pytest.approx(OPEN[name](theirs, x).tolist(), rel=1e-5)
        assert ours.rng.bit_generator.state == theirs.rng.bit_generator.state
        if ours.kept is not None:
            assert ours.kept == ours.rng.normal
    assert "open" in str(step.explain()).splitlines()[0]
