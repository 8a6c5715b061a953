"""Errors that the handler of a signal raises come out of operations and compiled calls as they are."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
import threading
import warnings

import pytest

import leafgrad
from leafgrad.signals import FromHandler, held, interruptible, raised_by_handler


class Handler:
    def __call__(self, number, frame):
        raise TimeoutError("too slow")

    def method(self, number, frame):
        self(number, frame)


def function(number, frame):
    raise TimeoutError("too slow")


FORMS = {"function": function, "method": Handler().method, "object": Handler(), "partial": functools.partial(function)}


@pytest.fixture
def handled(request):
    before = signal.signal(signal.SIGALRM, FORMS[request.param])
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # Python's own, in weakref callbacks
]


@pytest.mark.parametrize("handled", FORMS, indirect=True)
def test_who_raised_it(handled):
    with pytest.raises(TimeoutError) as caught:
        signal.raise_signal(signal.SIGALRM)
    assert raised_by_handler(caught.value)
    assert raised_by_handler(KeyboardInterrupt())
    with pytest.raises(ValueError, match="own") as caught:
        raise ValueError("own")
    assert not raised_by_handler(caught.value)


@pytest.mark.parametrize("executor", [None, "numpy", "native"])
@pytest.mark.parametrize("handled", ["function"], indirect=True)
def test_a_call_that_takes_too_long(handled, executor):
    net = leafgrad.nn.Linear(128, 128)

    @leafgrad.compile(executor=executor)
    def step(x):
        for _ in range(4):
            x = net(x).tanh()
        return x.square().mean()

    x, late = leafgrad.ones(2000, 128), 0
    expected = step(x).item()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no plugin is to blame
        for n in range(60):
            try:
                handled(1e-4 * (1 + n))
                found = step(x)
                handled(0)
            except TimeoutError:
                late += 1
            else:
                assert found.item() == pytest.approx(expected, rel=1e-3)
    assert late > 5


def test_an_operation_that_is_not_compiled():
    fired, lost, x = [], 0, leafgrad.ones(4)

    def handler(number, frame):
        fired.append(1)
        raise TimeoutError("too slow")

    x.mul(x).sum()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for n in range(400):
            fired.clear()
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + n % 10))
                for _ in range(60):
                    x.mul(x).sum()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except TimeoutError:
                continue
            lost += len(fired)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not lost


# ---- stretches without handlers -----------------------------------------------------------------------------------


@pytest.fixture
def came():
    """The numbers of the signals whose handlers were called; each raises an error that tells its number."""
    found = []

    def handler(number, frame):
        found.append(number)
        raise TimeoutError(number)

    numbers = signal.SIGALRM, signal.SIGUSR1
    before = [signal.signal(number, handler) for number in numbers]
    yield found
    for number, former in zip(numbers, before, strict=True):
        signal.signal(number, former)


def test_handlers_wait_and_are_called_in_order(came):
    before, taken = signal.getsignal(signal.SIGALRM), []

    def act():
        signal.raise_signal(signal.SIGUSR1)
        held(signal.raise_signal, signal.SIGALRM)  # which is a part of it
        signal.raise_signal(signal.SIGUSR1)
        taken.append(list(came))

    with pytest.raises(TimeoutError) as caught:
        held(act)
    assert taken == [[]]
    assert came == [signal.SIGUSR1, signal.SIGALRM, signal.SIGUSR1]
    assert raised_by_handler(caught.value)
    assert caught.value.__context__.args == (signal.SIGALRM,)
    assert signal.getsignal(signal.SIGALRM) is before
    with pytest.raises(TimeoutError):
        signal.raise_signal(signal.SIGALRM)


def test_what_is_held_ends_before_a_handler_raises_whatever_it_raises_itself(came):
    def act():
        signal.raise_signal(signal.SIGALRM)
        raise LookupError("own")

    with pytest.raises(TimeoutError) as caught:
        held(act)
    assert caught.value.__context__.args == ("own",)
    assert held(len, "result") == 6


def test_what_may_take_its_time_is_interrupted(came):
    taken = []

    def act():
        signal.raise_signal(signal.SIGALRM)
        for step in (taken.append, signal.raise_signal, held):
            with pytest.raises(FromHandler) as caught:  # which passes by all that expects an Exception
                interruptible(step, *((act_within,) if step is held else (signal.SIGUSR1,)))
            taken.append(caught.value.error.args[0])
        return "done"

    def act_within():
        signal.raise_signal(signal.SIGALRM)
        taken.append("whole")

    assert held(act) == "done"
    with pytest.raises(TimeoutError):
        held(interruptible, signal.raise_signal, signal.SIGUSR1)
    assert taken == [signal.SIGALRM, signal.SIGUSR1, "whole", signal.SIGALRM]
    assert came == [signal.SIGALRM, signal.SIGUSR1, signal.SIGALRM, signal.SIGUSR1]


def test_a_handler_that_is_set_meanwhile_stays(came):
    found = []
    held(signal.signal, signal.SIGALRM, lambda number, frame: found.append(number))
    signal.raise_signal(signal.SIGALRM)
    assert found == [signal.SIGALRM]
    assert not came


def test_another_thread_has_nothing_to_hold(came):
    before, found = signal.getsignal(signal.SIGALRM), []

    def act():
        found.append(held(signal.getsignal, signal.SIGALRM))

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    assert found == [before]


def test_a_loop_hears_of_signals_that_have_waited():
    async def main():
        heard = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.set)
        held(os.kill, os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(heard.wait(), 10)

    asyncio.run(main())


def test_a_handler_may_come_at_any_call():
    """A profile function, such as that of a recording, is told of each, and within it others are called."""
    events, called = [], []

    def profile(frame, event, _):
        events.append(event)
        if len(events) == at:
            signal.raise_signal(signal.SIGALRM)

    def act():
        signal.raise_signal(signal.SIGALRM)
        return interruptible(len, called)

    before = signal.signal(signal.SIGALRM, lambda *_: held(called.append, 1))
    try:
        for at in range(1, 500):
            events.clear()
            called.clear()
            sys.setprofile(profile)
            held(act)
            sys.setprofile(None)
            if len(events) < at:
                break
            assert len(called) == 2
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGALRM, before)
    assert at > 30
