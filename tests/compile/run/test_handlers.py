"""Handlers of signals that come while a step is recorded."""

from __future__ import annotations

import math
import signal
import sys

import pytest

import leafgrad
from leafgrad.compile.run.runner import Runner

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there is no such signal here")

HANDLERS = {
    "counts": lambda s: s.update(ticks=s["ticks"] + 1),
    "sets the count back": lambda s: s.update(n=0),
    "keeps the count": lambda s: s.update(ticks=s["n"]),
    "halves the rate": lambda s: s.update(rate=s["rate"] / 2),
    "appends": lambda s: s["log"].append(s["n"]),
}


@pytest.mark.parametrize("line", range(1, 5))
@pytest.mark.parametrize("handler", HANDLERS)
def test_what_a_handler_changes_is_no_effect_of_the_step(handler, line):
    def run(wrap):
        s = {"n": 0, "ticks": 0, "rate": 0.5, "log": [], "found": []}

        def step(x):
            y = (x + 1).sin()
            s["n"] += 1
            y = y * s["n"] + s["ticks"]
            return y.sum() * s["rate"]

        def tracer(frame, event, _):
            if frame.f_code is step.__code__:
                if event == "line" and frame.f_lineno - step.__code__.co_firstlineno == line:
                    signal.raise_signal(signal.SIGALRM)
                return tracer

        wrapped = wrap(step)
        before = signal.signal(signal.SIGALRM, lambda *_: HANDLERS[handler](s))
        try:
            for i in range(15):
                sys.settrace(tracer if i < 9 else None)
                s["found"].append(round(wrapped(leafgrad.ones(2)).item(), 5))
                sys.settrace(None)
        finally:
            sys.settrace(None)
            signal.signal(signal.SIGALRM, before)
        return s

    assert run(leafgrad.compile) == run(lambda step: step)


def test_a_first_call_that_a_handler_interrupts_runs_as_compiled_and_is_not_kept(monkeypatch):
    """Else a training that a signal has stopped, and that was resumed, would come to other bits."""
    ran, count = [], {"n": 0}
    run = Runner.__call__
    monkeypatch.setattr(Runner, "__call__", lambda self, *args: ran.append(True) or run(self, *args))

    def function(x):
        return (x * count["n"]).sin().sum()

    def tracer(frame, event, _):
        if frame.f_code is function.__code__:
            signal.raise_signal(signal.SIGALRM)

    step = leafgrad.compile(function)
    before = signal.signal(signal.SIGALRM, lambda *_: count.update(n=2))
    try:
        sys.settrace(tracer)
        first = step(leafgrad.ones(3))
    finally:
        sys.settrace(None)
        signal.signal(signal.SIGALRM, before)
    assert first.item() == pytest.approx(3 * math.sin(2))
    assert len(ran) == 1
    assert not step._calls.programs
    for n in (2, 2, 3, 3):
        count["n"] = n
        assert step(leafgrad.ones(3)).item() == pytest.approx(3 * math.sin(n))
