"""Several threads that call one compiled function find outside what they would if it were not compiled."""

from __future__ import annotations

import threading
import time

import pytest

import leafgrad
from leafgrad.compile.ir.locks import TryLock
from leafgrad.compile.run import turn
from leafgrad.compile.run.closing import Attempt
from leafgrad.compile.run.followed import Followed
from leafgrad.compile.run.following import Following

EXECUTORS = ["replay", "numpy", "native"]


def nothing():
    pass


def in_threads(*acts):
    failures = []

    def guarded(act):
        try:
            act()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", ["count", "append"])
def test_a_program_that_counted_for_one_thread_loses_nothing_of_several(executor, kind):
    held = {"count": 0, "list": []}

    def step(x):
        y = (x @ x @ x).sum()
        if kind == "count":
            held["count"] += 1
        else:
            held["list"].append(y)
        return y

    compiled, x = leafgrad.compile(step, executor=executor), leafgrad.ones(150, 150)
    for _ in range(8):
        compiled(x)
    assert compiled.explain().summary.startswith(f"{step.__qualname__}: closed")

    def call():
        for _ in range(60):
            compiled(x)

    in_threads(call, call, call)
    assert (held["count"], len(held["list"])) == ((188, 0) if kind == "count" else (0, 188))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_second_thread_does_not_meet_what_stands_for_numbers_while_a_call_is_recorded(executor):
    held, inside, seen = {"count": 0}, threading.Event(), []

    def step(x, between=nothing):
        held["count"] += 1
        between()
        return (x * 2).sum()

    def pause():
        inside.set()
        threading.Event().wait(0.1)  # the other thread calls meanwhile

    compiled, x = leafgrad.compile(step, executor=executor), leafgrad.ones(3)
    for _ in range(6):
        compiled(x)
    assert compiled.explain().summary.startswith(f"{step.__qualname__}: closed")

    def other():
        inside.wait()
        compiled(x)
        seen.append(type(held["count"]))

    thread = threading.Thread(target=other)
    thread.start()
    compiled(x, pause)
    thread.join()
    assert held["count"] == 8
    assert seen == [int]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_threads_that_begin_at_once_keep_what_each_counts(executor):
    for _ in range(5):
        held = {}

        def step(x, key, held=held):
            held[key] = held.get(key, 0) + 1
            return (x * 2).sum()

        compiled, x = leafgrad.compile(step, executor=executor), leafgrad.ones(3)

        def call(key, compiled=compiled, x=x):
            for _ in range(30):
                assert compiled(x, key) == 6

        in_threads(*[lambda key=key: call(key) for key in range(3)])
        assert held == {0: 30, 1: 30, 2: 30}


def test_a_thread_that_holds_what_the_other_waits_for_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(turn, "PATIENCE", 0.2)
    inside, done, held = threading.Event(), threading.Event(), {"count": 0}

    def step(x, between=nothing):
        held["count"] += 1
        between()
        return x * 2

    def pause():
        inside.set()
        assert done.wait(20)

    compiled, x = leafgrad.compile(step), leafgrad.ones(3)
    for _ in range(6):
        compiled(x)

    def other():
        inside.wait()
        compiled(x)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    compiled(x, pause)
    thread.join()
    assert done.is_set()


def test_a_child_does_not_wait_for_a_thread_that_only_its_parent_has():
    own = turn.Turn(TryLock(), Following())
    own.lock.inside = -1  # whose turn it was at the fork, after which the lock is a new one
    begin = time.monotonic()
    own.share()
    assert time.monotonic() - begin < turn.PATIENCE / 2


def test_a_third_thread_waits_with_the_second(monkeypatch):
    """It ran meanwhile, and what it counted was overwritten by the call that was recorded."""
    held, close, enter = {"count": 0}, Attempt.close, Followed.__enter__

    def step(x):
        held["count"] += 1
        return x * 2

    compiled, x = leafgrad.compile(step), leafgrad.ones(3)
    for _ in range(6):
        compiled(x)
    others = [threading.Thread(target=compiled, args=(x,)) for _ in range(3)]

    def start(thread):
        thread.start()
        thread.join(0.2)

    def slow_enter(followed):
        enter(followed)
        if threading.current_thread() is threading.main_thread():
            for thread in others[:2]:
                start(thread)

    def slow_close(*given):
        if threading.current_thread() is threading.main_thread():
            start(others[2])
        return close(*given)

    monkeypatch.setattr(Attempt, "close", slow_close)
    monkeypatch.setattr(Followed, "__enter__", slow_enter)
    compiled(leafgrad.ones(4))
    for thread in others:
        thread.join()
    assert held["count"] == 10
