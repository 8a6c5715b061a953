"""Errors that the handler of a signal raises come out of operations and compiled calls as they are."""

from __future__ import annotations

import signal
import warnings

import pytest

import leafgrad
from leafgrad.signals import raised_by_handler


class Handler:
    def __call__(self, number, frame):
        raise TimeoutError("too slow")

    def method(self, number, frame):
        self(number, frame)


def function(number, frame):
    raise TimeoutError("too slow")


FORMS = {"function": function, "method": Handler().method, "object": Handler()}


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
