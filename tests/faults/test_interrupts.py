"""Ctrl-C at any moment of a compiled step: all of its effects are there or none, and the next step works."""

from __future__ import annotations

import functools
import os
import random
import signal
import time

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.batching.pytree import flatten

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


class Kept:
    """A training whose step leaves a state of many kinds: what it drew from, appended, counted and put elsewhere."""

    def __init__(self):
        lg.manual_seed(3)
        random.seed(3)
        self.net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(0.3), nn.Linear(5, 1))
        self.adam = lg.optim.Adam(self.net.parameters(), lr=0.01)
        self.x, history, count, hidden, mean = lg.randn(8, 4), [], 0, lg.zeros(8, 5), lg.zeros(1)
        net, adam = self.net, self.adam

        @lg.compile
        def step(x):
            nonlocal count, hidden
            adam.zero_grad()
            hidden = (hidden.detach() / 2 + net[0](x * random.gauss(1, 0.1))).tanh()
            loss = (net(x) + hidden.mean() + lg.rand(8, 1)).square().mean()
            loss.backward()
            adam.step()
            mean.mul_(0.9)
            mean.data = mean + loss.detach()
            history.append(loss.item())
            count += 1

        self.step, self.outside = step, lambda: (history, count, hidden, mean)

    def state(self):
        parts = [*self.outside(), self.net.state_dict(), self.adam.state_dict(), lg.get_rng_state(), random.getstate()]
        return [leaf.tolist() if isinstance(leaf, lg.Tensor) else leaf for leaf in flatten(parts)[0]]


@pytest.mark.times(100, 3000)
def test_a_state_of_many_kinds_is_that_before_or_after(alarm, count, tried):
    """After each interrupt it is, in all its bits, one of those of a training that nobody interrupts."""
    whole, kept, chance, interrupted = Kept(), Kept(), random.Random(1), 0
    state = random.getstate(), lg.get_rng_state()

    def go_to(state):
        random.setstate(state[0])
        lg.set_rng_state(state[1])

    def of_whole():
        nonlocal state
        other = random.getstate(), lg.get_rng_state()
        go_to(state)
        whole.step(whole.x)
        state, found = (random.getstate(), lg.get_rng_state()), whole.state()
        go_to(other)
        return found

    fastest = float("inf")
    for _ in range(BEFORE):
        start = time.perf_counter()
        kept.step(kept.x)
        fastest = min(fastest, time.perf_counter() - start)
        before = of_whole()
    assert kept.state() == before
    after = of_whole()
    for _ in range(count):
        try:
            alarm(chance.uniform(1e-6, 1.5 * fastest))
            kept.step(kept.x)
            alarm(0)
        except KeyboardInterrupt:
            interrupted += 1
        found = kept.state()
        assert found in (before, after)
        if found == after:
            before, after = after, of_whole()
    assert "closed" in kept.step.explain()
    assert interrupted > count / 10
    fault = "Ctrl-C at a random moment of a step that draws, appends and counts"
    tried(fault, interrupted, "all of its effects are there or none")


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
        signal.setitimer(signal.ITIMER_REAL, 5e-4, 5e-4)
        found = [step(x) for _ in range(4)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(remembers.received) > 20
    assert "1 program, traced again 0 times" in step.explain().splitlines()[0]
    assert all(lg.equal(y, expected) for y in found)
