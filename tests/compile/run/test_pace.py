"""An open step runs as it is faster, compiled or not. No clock is read here: calls take as long as the tests say."""

from __future__ import annotations

import random
import sys

import pytest

import leafgrad
from leafgrad.compile.run import pace
from leafgrad.compile.run.pace import AGAIN, COLD, ROUNDS, Pace

OWN = random.Random(0)  # whose choices are not followed


class Clock:
    """A clock that stands still but where a call moves it on."""

    def __init__(self, compiled, plain):
        self.compiled, self.plain, self.now = compiled, plain, 0.0
        self.kinds = []

    def __call__(self):
        return self.now

    def take(self, function):
        """What a step does: it takes its time, and notes how it runs."""
        divided = sys._getframe(1).f_code is not function.__code__
        self.kinds.append(divided)
        self.now += self.compiled if divided else self.plain


def opened(monkeypatch, compiled, plain):
    clock = Clock(compiled, plain)
    monkeypatch.setattr(pace, "clock", clock)
    weight = leafgrad.ones(3)

    @leafgrad.compile
    def step(x):
        weight.mul_(0.5)
        number = OWN.choice((0.25, 0.5))
        clock.take(step.function)
        return (x * weight * number).sin().exp().sum()

    for _ in range(100):
        step(leafgrad.ones(3))
        if step._calls.breaks.ready and sum(map(len, step._calls.pace.timed)) >= COLD + 2 * ROUNDS:
            break
    weight.fill_(1)
    clock.kinds.clear()
    return step, clock, weight


@pytest.mark.parametrize(("compiled", "plain"), [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0)])
def test_what_is_faster_stays(monkeypatch, compiled, plain):
    step, clock, weight = opened(monkeypatch, compiled, plain)
    for _ in range(20):
        step(leafgrad.ones(3))
    assert clock.kinds == [compiled < plain] * 20
    assert weight.tolist() == [0.5**20] * 3
    how = "runs compiled" if compiled < plain else "runs uncompiled, since that is faster"
    assert how in step.explain()
    assert "calls random.Random.choice()" in step.explain()


def test_a_step_that_becomes_slow_is_timed_once_more(monkeypatch):
    step, clock, _ = opened(monkeypatch, 2.0, 1.0)
    clock.plain = 100.0
    for _ in range(40):
        step(leafgrad.ones(3))
    assert clock.kinds[0] is False
    assert clock.kinds[-5:] == [True] * 5


def test_the_choice_is_looked_at_again_ever_more_rarely():
    p, kinds = Pace(), []
    for _ in range(12 * AGAIN):
        kinds.append(p.next())
        p.note(kinds[-1], 2.0 if kinds[-1] else 1.0)
    assert sum(kinds) == 3 * (ROUNDS + COLD)
    assert kinds.index(True, ROUNDS * 2 + COLD) == ROUNDS * 2 + COLD + AGAIN


def test_one_call_that_takes_long_changes_nothing():
    p = Pace()
    for i in range(200):
        kind = p.next()
        p.note(kind, 1000.0 if i % 9 == 8 else 2.0 if kind else 1.0)
    assert not p.compiled
    assert p.seconds == (2.0, 1.0)


def test_a_step_that_raises_is_not_timed(monkeypatch):
    step, clock, _ = opened(monkeypatch, 2.0, 1.0)
    left = step._calls.pace.left
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"size|broadcast|shape"):
            step(leafgrad.ones(2, 5))
    assert step._calls.pace.left == left
    assert clock.kinds == [False] * 3


def test_always_takes_no_choice_of_the_clock(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    step, clock, _ = opened(monkeypatch, 2.0, 1.0)
    for _ in range(20):
        step(leafgrad.ones(3))
    assert clock.kinds == [True] * 20
    assert "uncompiled" not in step.explain()
    assert not step._calls.pace.timed[1]


def test_a_step_that_must_be_closed_is_never_timed(monkeypatch):
    monkeypatch.setattr(pace, "clock", lambda: pytest.fail("was timed"))
    step = leafgrad.compile(lambda x: x * 2, closed=True)
    for _ in range(5):
        step(leafgrad.ones(3))
