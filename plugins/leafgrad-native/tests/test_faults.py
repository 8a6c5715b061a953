"""Signals during long calls of C: acted on at once, and nothing is half written."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import signal
import threading
import time

import pytest

import leafgrad
from leafgrad.utils import Interrupts
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
DEPTH = 80  # of error functions, which C computes and NumPy does not


@leafgrad.op("elementwise", "float", c="x + 0 * " + "erf(" * DEPTH + "x" + ")" * DEPTH)
def slow(xp, x):
    return x * 1


def many_points(x):
    """A loop over chunks."""
    y = slow(x) + x.sum(1, keepdim=True)
    for _ in range(8):
        y = (y * 2 - x).tanh()
    return y


def whole_array(x):
    """One loop nest."""
    return slow(x) * 2


def transposed(x):
    """A nest of several loops."""
    return slow(x.T) + x.sum()


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """NumPy would take long."""
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "0")


@pytest.fixture(params=[2, pytest.param(1, marks=pytest.mark.slow)])
def threads(request):
    before = leafgrad.get_num_threads()
    leafgrad.set_num_threads(request.param)
    yield request.param
    leafgrad.set_num_threads(before)


class Step:
    """A compiled step that writes, how long its threads compute, and what it wrote at the first call."""

    def __init__(self, function, points):
        # of one sign, so that the mean does not cancel: how far rounding takes one that does is found in ten seconds
        self.x = leafgrad.linspace(0.1, 1, points * 4, dtype=leafgrad.float64).reshape(points, 4)
        self.total = total = leafgrad.zeros(1, dtype=leafgrad.float64)

        @leafgrad.compile(executor="native")
        def step(x):
            y = function(x)
            total.add_(y.mean())
            return y

        self.step = step
        few = self.x[: points // 20].clone()
        for x in (few, few, self.x, self.x, self.x):  # one that is for one number of points is built at its second call
            total.zero_()
            start = time.process_time()
            self.result = step(x)
            self.seconds = time.process_time() - start
        self.written = total.item()
        total.zero_()
        gc.collect()  # Python loses a Ctrl-C that comes while it finalizes what earlier tests left

    def check(self):
        """A call that nothing disturbs is as it was."""
        self.total.zero_()
        assert leafgrad.equal(self.step(self.x), self.result)
        assert self.total.item() == self.written


prepared = functools.cache(Step)


def step_of(function, points):
    """A step that is made once, since its first calls take seconds of the processors; its total is 0."""
    step = prepared(function, points)
    step.total.zero_()
    return step


@pytest.fixture
def handle():
    """Sets the handler of SIGALRM, which comes after so many seconds."""
    before = signal.getsignal(signal.SIGALRM)

    def after(seconds, handler, again=0.0):
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds, again)

    yield after
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def interrupted(handle):
    """Calls a function and interrupts it after so many seconds."""

    def call(function, seconds):
        handle(seconds, signal.default_int_handler)
        function()

    return call


@pytest.mark.times(1, 20)
@pytest.mark.parametrize(
    "function", [many_points, *[pytest.param(f, marks=pytest.mark.slow) for f in (whole_array, transposed)]]
)
def test_ctrl_c(function, threads, interrupted, count, tried):
    step = step_of(function, 200_000 * threads)
    assert step.seconds > 0.2 * threads
    spent = []  # computing before and after the signal; a busy machine delays the clock
    for n in range(count):
        start = time.process_time()
        with pytest.raises(KeyboardInterrupt):
            interrupted(lambda: step.step(step.x), 0.001 + 0.1 * n / count)
        spent.append(time.process_time() - start)
        assert step.total.item() == 0
    step.check()
    assert max(spent) < min(0.3 * threads, step.seconds), spent
    tried("Ctrl-C in a long call of C", count, "raised within 0.3 s, and nothing is written")


def test_a_handler_that_raises_nothing(threads, handle):
    """The call goes on, and knows nothing of it."""
    step = step_of(many_points, 200_000 * threads)
    came = []
    handle(0.01, lambda *_: came.append(time.process_time()), again=0.01)
    step.check()
    signal.setitimer(signal.ITIMER_REAL, 0)
    apart = [b - a for a, b in itertools.pairwise(came)]
    assert len(came) > 2
    assert max(apart) < 0.2 * threads


def test_a_handler_that_compiles_and_runs(threads, handle):
    """C within C: each call looks for itself."""
    step = step_of(many_points, 200_000 * threads)
    inner = leafgrad.compile(lambda x: ((x * 2).tanh() + x).sum(), executor="native")
    x = leafgrad.ones(3000)
    expected, found = [inner(x).item() for _ in range(3)], []
    handle(0.01, lambda *_: found.append(inner(x).item()))
    step.check()
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert found
    assert set(found) == {expected[-1]}


def test_other_threads_go_on(interrupted):
    """Python hands signals to the main thread; a call in another one ends when it ends."""
    step, results, done = step_of(whole_array, 200_000), [], threading.Event()
    thread = threading.Thread(target=lambda: (results.append(step.step(step.x)), done.set()))
    thread.start()
    start = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        interrupted(done.wait, 0.05)
    assert time.process_time() - start < 0.3 * leafgrad.get_num_threads()
    assert not results
    done.wait()
    assert leafgrad.equal(results[0], step.result)
    assert step.total.item() == step.written


def test_a_training_ends_after_the_step(handle):
    """`Interrupts` only remembers: the step in which the signals come is done."""
    step = step_of(many_points, 400_000)
    with Interrupts() as interrupts:
        handle(0.02, lambda *_: os.kill(os.getpid(), signal.SIGINT), again=0.05)
        step.check()
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert interrupts.received is signal.SIGINT
