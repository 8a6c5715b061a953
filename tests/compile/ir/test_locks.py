"""A forked child runs what the parent compiled, whatever other threads of the parent were doing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

import leafgrad
from leafgrad.compile.ir.locks import Lock, Occupied, TryLock

CHILD = """
import os, signal, sys, threading
import leafgrad
from leafgrad import nn, optim

def trained(noisy):
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.Adam(net.parameters())
    log = []
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        if noisy:
            log.append(1)
        return loss
    return leafgrad.compile(step)

x = leafgrad.ones(50, 3)
steps = [trained(False), trained(True)]
for step in steps:
    for _ in range(5):
        step(x)
running = True
def work(step):
    while running:
        step(x)
threads = [threading.Thread(target=work, args=(step,), daemon=True) for step in steps]
for t in threads:
    t.start()
bad = 0
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if not child:
        signal.alarm(20)
        fresh = trained(False)
        for step in (*steps, fresh):
            for _ in range(4):
                step(x)
        leafgrad.rand(3)
        os._exit(0)
    bad += os.waitpid(child, 0)[1] != 0
running = False
os._exit(bad)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.times(4, 200)
def test_children_run_compiled_steps(count):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILD), str(count)]
    assert subprocess.run(command, timeout=500, check=False).returncode == 0


def in_another_thread(act):
    """What it gives there, or the exception that it raises."""
    found = []

    def run():
        try:
            found.append(act())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_nobody_waits_for_a_lock_that_is_only_tried():
    lock = TryLock()
    assert lock.run(max, 2, 3) == in_another_thread(lambda: lock.run(max, 2, 3)) == 3
    assert isinstance(lock.run(in_another_thread, lambda: lock.run(max, 2, 3)), Occupied)
    with pytest.raises(Occupied):
        lock.run(lock.run, max, 2, 3)
    with pytest.raises(ZeroDivisionError):
        lock.run(divmod, 1, 0)
    assert in_another_thread(lambda: lock.run(max, 2, 3)) == 3


@pytest.mark.parametrize("times", [1, 2])
def test_a_lock_that_an_interrupt_left_taken_is_taken_anew(times):
    """It comes when the lock is taken and nobody knows that yet, or when it is given back in part."""
    lock = TryLock()
    for _ in range(times):
        lock.held.acquire()
    assert isinstance(in_another_thread(lambda: lock.run(max, 2, 3)), Occupied)
    assert lock.run(max, 2, 3) == 3
    assert in_another_thread(lambda: lock.run(max, 2, 3)) == 3


@pytest.mark.parametrize("kind", [Lock, TryLock])
def test_a_lock_that_was_left_taken_is_free_after_the_next_run(kind):
    """From Python 3.14 on ``with lock:`` may leave it so."""
    lock = kind()
    lock.held.acquire()
    with pytest.raises(ZeroDivisionError):
        lock.run(divmod, 1, 0)
    assert in_another_thread(lambda: lock.held.acquire(blocking=False)) is True


def test_a_thread_may_take_its_lock_again():
    lock = Lock()

    def inner():
        assert lock.run(max, 2, 3) == 3
        return in_another_thread(lambda: lock.held.acquire(blocking=False))

    assert lock.run(inner) is False
    assert in_another_thread(lambda: lock.held.acquire(blocking=False)) is True


def test_a_step_that_counts_is_compiled_after_such_an_interrupt():
    """It was not, so that the next interrupt left a part of what it does."""
    held = {"count": 0}

    def step(x):
        held["count"] += 1
        return x * 2

    compiled, x = leafgrad.compile(step), leafgrad.ones(3)
    for _ in range(6):
        compiled(x)
    before = compiled._calls.programs[0].hits
    compiled._calls.lock.held.acquire()
    compiled(x)
    assert compiled._calls.programs[0].hits == before + 1
    assert held["count"] == 7
