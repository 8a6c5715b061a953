"""Calls of compiled functions that fail: what they have done, and what they leave behind."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import leafgrad
from leafgrad.errors import TraceError

TRIES = 8
ROOM = os.path.dirname(leafgrad.compile.__code__.co_filename) + os.sep


class Scarce:
    """An op that fails when it is asked to."""

    def __init__(self):
        self.error = None
        xp = leafgrad.backends.by_device_type("cpu").xp
        roll = xp.roll

        def failing(x, shift):
            if self.error is not None and x.size > 1:  # not where a recording asks for dtypes
                raise self.error
            return roll(x, shift)

        self.put = lambda monkeypatch: monkeypatch.setattr(xp, "roll", failing)

        @leafgrad.op("elementwise")
        def same(xp, x):
            return xp.roll(x, 0)

        same.vjp(x=lambda g: g)
        self.op = same


@pytest.fixture
def scarce(monkeypatch):
    made = Scarce()
    made.put(monkeypatch)
    return made


@pytest.mark.parametrize("calls", [1, 2, 3, 8])
def test_a_call_without_memory_leaves_python_as_before(scarce, calls):
    """Its draws, its lists and its counts, while it is recorded and when it is closed."""
    history, total, count = [], leafgrad.zeros(1), 0

    @leafgrad.compile(executor="numpy")
    def step(x):
        nonlocal count
        loss = scarce.op(x * random.random()).sum()
        total.add_(loss)
        history.append(loss.item())
        count += 1

    for _ in range(calls):
        step(leafgrad.ones(3))
    before = random.getstate(), total.item(), history[:], count
    scarce.error = MemoryError("no more of it")
    with pytest.raises(MemoryError, match="no more of it"):
        step(leafgrad.ones(3))
    assert (random.getstate(), total.item(), history, count) == before
    scarce.error = None
    step(leafgrad.ones(3))
    assert count == len(history) == calls + 1
    assert total.item() == pytest.approx(sum(history))


EDITS = {
    "list": (lambda: [3, 1, 2], [list.pop, list.reverse, list.clear, lambda h: h.insert(0, 5), lambda h: h.pop(0)]),
    "deque": (lambda: deque([3, 1, 2]), [deque.popleft, deque.clear, lambda h: h.append(5), lambda h: h.rotate(1)]),
    "dict": (lambda: {"a": 1, "b": 2}, [dict.clear, lambda h: h.pop("a"), lambda h: h.update(a=h.pop("a"), c=2)]),
    "ordered": (lambda: OrderedDict(a=1, b=2), [OrderedDict.clear, lambda h: h.move_to_end("a"), lambda h: h.pop("a")]),
    "counter": (lambda: Counter(a=1, b=2), [Counter.clear, lambda h: h.update("c"), lambda h: h.pop("a")]),
    "default": (lambda: defaultdict(list, a=1), [lambda h: h["b"], lambda h: h.pop("a")]),
}


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("name", EDITS)
def test_a_call_without_memory_leaves_containers_as_before(name, read, scarce):
    make, edits = EDITS[name]
    for edit in edits:
        held = make()

        @leafgrad.compile(executor="numpy")
        def step(x, changes, held=held, edit=edit):
            if changes:
                edit(held)
            if read:
                len(held)
            return scarce.op(x * 2).sum()

        for _ in range(3):
            step(leafgrad.ones(3), False)
        scarce.error = MemoryError("no more of it")
        with pytest.raises(MemoryError, match="no more of it"):
            step(leafgrad.ones(3), True)
        scarce.error = None
        before = make()
        assert list(held) == list(before)
        assert held == before


def test_a_call_without_memory_leaves_a_list_that_grew_as_before(scarce):
    held = [3, 1, 2]

    @leafgrad.compile(executor="numpy")
    def step(x, pops):
        held.append(5)
        if pops:
            held.pop(0)
        return scarce.op(x * 2).sum()

    for _ in range(4):
        step(leafgrad.ones(3), False)
    before = held[:]
    scarce.error = MemoryError("no more of it")
    with pytest.raises(MemoryError, match="no more of it"):
        step(leafgrad.ones(3), True)
    assert held == before


@pytest.mark.parametrize("error", [MemoryError("no more"), ValueError("no"), KeyboardInterrupt()], ids=repr)
def test_an_optimizer_outlives_a_first_step_that_fails(scarce, error):
    w = leafgrad.ones(3, requires_grad=True)
    adam = leafgrad.optim.Adam([w], lr=0.1)

    def step():
        adam.zero_grad()
        scarce.op(w).square().sum().backward()
        adam.step()

    compiled = leafgrad.compile(step)
    scarce.error = error
    with pytest.raises((type(error), RuntimeError)):
        compiled()
    scarce.error = None
    assert not adam.state
    for _ in range(4):
        compiled()
    assert adam.state[w]["step"].item() == 4
    assert w.tolist() == pytest.approx([0.6] * 3, abs=0.01)


def test_a_trace_leaves_an_optimizer_as_it_was():
    w = leafgrad.ones(3, requires_grad=True)
    adam = leafgrad.optim.Adam([w], lr=0.1)

    def step():
        w.square().sum().backward()
        adam.step()

    with pytest.raises(TraceError, match="such as an optimizer's, has to exist before"):
        leafgrad.trace(step)
    assert not adam.state
    step()
    assert w.tolist() == pytest.approx([0.9] * 3)


def test_what_a_failed_call_kept_says_so(monkeypatch):
    kept = leafgrad.ones(3, 3)

    @leafgrad.compile(executor="numpy")
    def step():
        nonlocal kept
        kept = kept.cumsum(0)

    def failing(*args, **kwargs):
        raise MemoryError("no more of it")

    monkeypatch.setattr(leafgrad.backends.by_device_type("cpu").xp, "cumsum", failing)
    with pytest.raises(MemoryError):
        step()
    with pytest.raises(TraceError, match=r"made this tensor failed before it was computed: MemoryError: .*no more"):
        kept.tolist()


def test_a_tensor_kept_for_the_next_call_outlives_an_op_that_raises():
    hidden = leafgrad.eye(2)

    @leafgrad.compile(executor="numpy")
    def step(x):
        nonlocal hidden
        hidden = leafgrad.linalg.inv(x) + hidden / 2

    for _ in range(5):
        step(leafgrad.eye(2))
    assert "closed" in step.explain()
    before = hidden.tolist()
    with pytest.raises(leafgrad.linalg.LinAlgError):
        step(leafgrad.zeros(2, 2))
    assert hidden.tolist() == before
    step(leafgrad.eye(2))
    assert hidden.tolist() == [[1 + before[0][0] / 2, 0], [0, 1 + before[1][1] / 2]]


@pytest.mark.parametrize("inside", [False, True])
def test_what_code_that_was_not_run_before_does_is_done_once(inside):
    """The call fails, and a number that is followed may be why: it runs again only if nothing is done yet."""
    count, kept, seen = {"n": 0}, [], leafgrad.zeros(1)

    def note():
        count["n"] += 1
        kept.append(count["n"])
        seen.add_(1)
        if inside:
            raise LookupError

    @leafgrad.compile
    def step(x, n):
        if n > 3:
            note()
            raise LookupError
        return x * n

    for n in range(8):
        if n > 3:
            with pytest.raises(LookupError):
                step(leafgrad.ones(1), n)
        else:
            assert step(leafgrad.ones(1), n).item() == n
    assert (count["n"], kept, seen.item()) == (4, [1, 2, 3, 4], 4.0)


def test_what_is_done_to_something_unknown_is_done_once():
    """Nobody can tell whether the call that fails has changed it, so no number is followed, which may be why."""
    seen = type("Seen", (dict,), {})()

    @leafgrad.compile
    def step(x, n):
        seen[len(seen)] = n
        if n % 3 == 1:
            raise LookupError
        return x * n

    for n in range(8):
        with pytest.raises(LookupError) if n % 3 == 1 else nullcontext():
            step(leafgrad.ones(1), n)
    assert [*seen.values()] == [*range(8)]


def test_code_that_was_not_run_before_may_need_the_number_itself():
    table = ["a", "b", "c", "d", "e", "f"]

    def scale(n):
        return float(len(bytes(n)) + len(table[n]))

    step = leafgrad.compile(lambda x, n: x * scale(n) if n > 3 else x * n)
    assert [step(leafgrad.ones(1), n).item() for n in range(6)] == [0.0, 1.0, 2.0, 3.0, 5.0, 6.0]


# ---- handlers of signals ------------------------------------------------------------------------------------------


class Interrupter:
    """Sends a signal when the ``at``-th function in the compiler's source begins."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename.startswith(ROOM):
            self.count += 1
            if self.count == self.at:
                signal.raise_signal(signal.SIGALRM)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there is no such signal here")
@pytest.mark.parametrize("calls", [0, 1, 2])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_a_signal_leaves_nothing_that_stands_for_something(kind, calls):
    """It may arrive anywhere while a call is recorded and examined, and its error comes out as it is."""
    state, w = {}, leafgrad.ones(2)

    def step(x):
        y = x * w
        state["n"] = state["n"] + 1
        state["h"] = (y * 0.5).detach()
        return y.sum() * state["n"]

    def compiled():
        state.update(n=0, h=leafgrad.zeros(2))
        made = leafgrad.compile(step, executor="numpy")
        for i in range(calls):
            made(leafgrad.ones(2) + i)
        return made

    def handler(number, frame):
        raise kind("deadline")

    for _ in range(2):  # the first time, more is done
        made = compiled()
        with Interrupter(0) as all_of_them:
            made(leafgrad.ones(2))
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for k in range(TRIES):
            made = compiled()
            with pytest.raises(kind, match="deadline"), Interrupter(1 + k * all_of_them.count // TRIES):
                made(leafgrad.ones(2) * 3)
            assert gc.isenabled()
            assert signal.getsignal(signal.SIGALRM) is handler
            n, held = state["n"], state["h"].tolist()
            assert (n - calls, held) in [(0, [calls / 2] * 2), (1, [calls / 2] * 2), (1, [1.5] * 2)]
            assert [made(leafgrad.ones(2)).item() for _ in range(3)] == [2 * n + 2, 2 * n + 4, 2 * n + 6]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_error_that_the_step_raises_is_no_reason_to_run_it_again():
    class Stop(Exception):
        """Raised by the step."""

    def run(wrap):
        batches, found = iter(range(100)), []

        def step(x, k, stops):
            for first in batches:  # of whose place nothing tells
                batch = first
                break
            y = x * k
            if stops:
                raise Stop
            return y * batch

        called = wrap(step)
        for k in range(9):
            try:
                found.append(called(leafgrad.ones(1), k + 1, k in (2, 6)).item())
            except Stop:
                found.append("stopped")
        return found

    assert run(leafgrad.compile) == run(lambda step: step)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there is no such signal here")
@pytest.mark.parametrize("executor", ["numpy", "replay", None])
def test_a_handler_calls_the_step_that_it_interrupts(executor, scarce, monkeypatch):
    """Its program's buffers are in use, and nobody else would give them back."""
    coming, found, xp = [], [], leafgrad.backends.by_device_type("cpu").xp
    roll = xp.roll

    def telling(x, shift):
        if coming and x.size > 1:
            coming.pop()
            signal.raise_signal(signal.SIGALRM)
        return roll(x, shift)

    monkeypatch.setattr(xp, "roll", telling)
    w = leafgrad.ones(2, requires_grad=True)

    @leafgrad.compile(executor=executor, closed=True)
    def step(x):
        loss = (scarce.op((x * w).exp() * leafgrad.rand(2)) * x).square().sum()
        (slope,) = leafgrad.autograd.grad(loss, w)
        return slope

    def result(x):
        leafgrad.manual_seed(3)
        return step(x).tolist()

    xs = [leafgrad.ones(2), 3 * leafgrad.ones(2)]
    expected = [result(x) for x in xs for _ in range(4)][3::4]
    before = signal.signal(signal.SIGALRM, lambda *_: found.append(result(xs[1])))
    try:
        coming.append(True)
        assert result(xs[0]) == pytest.approx(expected[0])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert found == [pytest.approx(expected[1])]


@leafgrad.op("elementwise", "float")
def grown(xp, x):
    """exp(x), which refuses what is large, though nothing says that it does."""
    if (x > 100).any():
        raise ValueError("too large")
    return xp.exp(x)


grown.vjp(x=lambda g, out: g * out)


def caught(s, x, op):
    s.w.mul_(2.0)
    try:
        s.n = op(x).sum().item()
    except RuntimeError:
        s.n = -1.0
    s.w.add_(1.0)
    return s.w * s.n


FAILING = {
    "writes before": lambda s, x, op: (s.w.mul_(2.0), op(x))[1],
    "writes before and after": lambda s, x, op: (s.w.mul_(2.0), op(x), s.w.add_(1.0), setattr(s, "n", s.n + 1))[1],
    "a backward pass": lambda s, x, op: (s.w.mul_(2.0), op(s.p * x).sum().backward(), setattr(s, "n", s.n + 1))[0],
    "a value that is left before": lambda s, x, op: (setattr(s, "n", (s.w * x).sum().item()), op(x))[1],
    "an object before": lambda s, x, op: (s.said.append(s.n), setattr(s, "n", s.n + 1), op(x), s.said.append("end"))[2],
    "caught": caught,
}


@pytest.mark.parametrize("at", [0, 1, 2, 5])
@pytest.mark.parametrize("op", ["grown", "exp where NumPy raises"])
@pytest.mark.parametrize("way", FAILING)
def test_an_op_that_does_not_say_that_it_fails_fails_in_its_place(way, op, at):
    function = grown if op == "grown" else leafgrad.exp

    def found(compiler):
        s = SimpleNamespace(w=leafgrad.ones(3), p=leafgrad.nn.Parameter(leafgrad.ones(3)), n=0.0, said=[])
        step, seen = compiler(lambda x: FAILING[way](s, x, function)), []
        for k in range(7):
            try:
                step(leafgrad.ones(3) * (1000.0 if k == at else 1.0))
            except RuntimeError:
                seen.append(-1)
            grad = [] if s.p.grad is None else s.p.grad.tolist()
            seen += [len(s.said), *s.w.tolist(), *grad, s.n]
        return seen

    with np.errstate(over="ignore" if op == "grown" else "raise"):
        assert found(leafgrad.compile) == pytest.approx(found(lambda step: step))
