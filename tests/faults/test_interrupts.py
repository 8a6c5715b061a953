"""Ctrl-C at any moment of a compiled step: all of its effects are there or none, and the next step works."""

from __future__ import annotations

import functools
import os
import random
import signal
import time

import pytest

import leafgrad as lg

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # Python's own, in weakref callbacks
]


@pytest.fixture
def alarm():
    """Raises KeyboardInterrupt after so many seconds; never with 0."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_saving_leaves_one_file_at_most_and_no_descriptor(alarm, tmp_path, tried):
    path, chance, interrupted = tmp_path / "w.safetensors", random.Random(2), 0
    states = [{"n": n, "w": lg.full((30_000,), float(n))} for n in range(5)]
    lg.save(states[0], path)
    before = len(os.listdir("/dev/fd"))
    for n in range(200):
        try:
            alarm(chance.uniform(1e-5, 2e-3))
            lg.save(states[n % 5], path)
            alarm(0)
        except KeyboardInterrupt:
            interrupted += 1
        found = lg.load(path)
        assert found["w"].unique().tolist() == [found["n"]]
        assert len(os.listdir(tmp_path)) <= 2
    assert interrupted > 10
    lg.save(1, path)
    assert os.listdir(tmp_path) == [path.name]
    assert len(os.listdir("/dev/fd")) == before
    tried(
        "Ctrl-C at a random moment of saving", interrupted, "the file is whole, and the next save removes what was left"
    )


BEFORE = 21  # calls before the interrupted ones


class Step:
    """A compiled step that adds n + 1 to its n-th tensor, interrupted at random moments."""

    def __init__(self, alarm, between):
        self.made, self.x, self.alarm = [lg.zeros(50, 3) for _ in range(4)], lg.ones(50, 3), alarm

        @lg.compile
        def step(x):
            for n, t in enumerate(self.made):
                t.add_(x * (n + 1))
            between(self.made[0])
            return x * 2

        self.step = step
        self.fastest = float("inf")
        for _ in range(BEFORE):
            self.call()

    def call(self):
        start = time.perf_counter()
        self.step(self.x)
        self.fastest = min(self.fastest, time.perf_counter() - start)

    def done(self):
        """How often each tensor was written, all of it."""
        (values,) = zip(*[t.unique().tolist() for t in self.made], strict=True)
        return [value / (n + 1) for n, value in enumerate(values)]

    def interrupted(self, chance):
        """Call it; whether it was interrupted."""
        try:
            self.alarm(chance.uniform(1e-6, 2 * self.fastest))
            self.call()
            self.alarm(0)
        except KeyboardInterrupt:
            return True
        return False


@pytest.mark.times(400, 20_000)
def test_effects_of_a_program_are_all_there_or_none(alarm, count, tried):
    step, chance, interrupted, done = Step(alarm, lambda t: None), random.Random(0), 0, BEFORE
    for _ in range(count):
        interrupted += step.interrupted(chance)
        found = step.done()
        assert found in ([done] * 4, [done + 1] * 4)
        done = found[0]
    assert interrupted > count / 10
    step.step(step.x)
    assert step.done() == [done + 1] * 4
    tried("Ctrl-C at a random moment of a compiled step", interrupted, "all of its effects are there or none")


@pytest.mark.times(200, 5000)
def test_an_open_step_is_interrupted_where_eager_mode_would_be(alarm, count, tried):
    """What it wrote before is written."""
    log = []
    step, chance, interrupted, done = Step(alarm, lambda t: log.append(t.sum().item())), random.Random(0), 0, BEFORE
    for _ in range(count):
        interrupted += step.interrupted(chance)
        found = step.done()
        assert found in [[done + 1] * n + [done] * (4 - n) for n in range(5)]
        done = found[0]
        for n, t in enumerate(step.made):
            t.fill_(done * (n + 1))
    assert interrupted > count / 10
    step.step(step.x)
    assert step.done() == [done + 1] * 4
    assert log[-1] == 150 * (done + 1)
    tried("Ctrl-C at a random moment of an open step", interrupted, "what was written before it stays, and no more")


class Remembers:
    """Handlers that change nothing of a step's, in each form that a handler takes."""

    def __init__(self):
        self.received = []
        self.forms = {
            "method": self.remember,
            "partial": functools.partial(self.__class__.remember, self),
            "object": self,
            "lambda": lambda *given: self.received.append(given[0]),
        }

    def remember(self, number, frame):
        self.received.append(self.named(number, frame))

    __call__ = remember

    def named(self, number, frame):
        return signal.Signals(number), str(frame), time.time()


@pytest.mark.parametrize("form", ["method", "partial", "object", "lambda"])
def test_a_handler_is_no_part_of_the_step_that_it_interrupts(form):
    """Signals come some hundred times while the step is recorded; it is closed, and gives the same bits."""
    remembers, x, w = Remembers(), lg.rand(20, 3), lg.ones(3)

    def function(x):
        for n in range(200):
            x = (x * w + n / 200).sin() if n % 2 else x + w / (n + 1)
        return x

    step = lg.compile(function)
    expected = lg.compile(function)(x)
    before = signal.signal(signal.SIGALRM, remembers.forms[form])
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        found = [step(x) for _ in range(4)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(remembers.received) > 20
    assert "1 program, traced again 0 times" in step.explain().splitlines()[0]
    assert all(lg.equal(y, expected) for y in found)
