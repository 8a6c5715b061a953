"""Loops on several threads: the bits of one thread, errors, signals, forks, calls at once."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import leafgrad as lg
from leafgrad.blas import ONE_THREAD
from leafgrad.compile.numpy import parallel
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad.compile.numpy.parallel import CREW, GROUPS, WORK, Groups, added, group_count, in_groups
from leafgrad.compile.passes import optimize


@pytest.fixture
def little(monkeypatch):
    """Little work is worth a group."""
    monkeypatch.setattr(parallel, "WORK", 1)


def step(x, w, v):
    hidden = (x @ w).tanh()
    return ((hidden @ v).sin() ** 2).sum(), (x.T @ hidden), hidden.sum(0), hidden * 2


def program(n, rows):
    lg.manual_seed(n)
    inputs = lg.randn(n, 3), lg.randn(3, 20), lg.randn(20, 1)
    return NumpyProgram(optimize(lg.trace(step, *inputs)), rows), [t.numpy() for t in inputs], step(*inputs)


@pytest.mark.parametrize("n", [64, 65, 200, 1000, 1999])
def test_bits_do_not_depend_on_the_number_of_threads(threads, little, n):
    made, inputs, expected = program(n, 64)
    threads(1)
    alone = made(inputs)
    for got, want in zip(alone, expected, strict=True):
        assert np.allclose(got, want.numpy(), rtol=1e-4, atol=1e-4)
    for count in (2, 3, 5, 40, 2):
        threads(count)
        made(inputs)
        (found,) = [s for s in made.rivals[1].scratch if isinstance(s, Groups)] if made.rivals else [None]
        for _ in range(11):
            assert all((a == b).all() for a, b in zip(made(inputs), alone, strict=True))
        assert made.race is None
        if found is None:
            continue
        buffers = {id(arrays[0].base) for group in found.chunks for _, _, arrays in group}
        assert len(buffers) == found.threads == min(count, -(-n // 64), GROUPS)


def test_a_signal_while_the_threads_are_compared(threads, little):
    made, inputs, expected = program(200, 64)
    threads(2)
    function = made.function

    def interrupted(*args):
        function(*args)
        raise KeyboardInterrupt

    made(inputs)
    while made.race:
        made.function = interrupted
        with pytest.raises(KeyboardInterrupt):
            made(inputs)
        made.function = function
        assert np.allclose(made(inputs)[0], expected[0].numpy(), rtol=1e-4)
    assert not made.rivals


def test_how_many_groups():
    assert [group_count(*given) for given in ((1, 10 * WORK), (8, WORK - 1), (8, 3 * WORK), (100, 100 * WORK))] == [
        1,
        1,
        3,
        GROUPS,
    ]


def marked(threads, k):
    return Groups(min(threads, k), [[(i, i + 1, ()) for i in range(j, j + 2)] for j in range(0, 2 * k, 2)])


def test_each_group_once_in_order(threads):
    threads(3)
    seen = []

    def part(chunks):
        seen.append((threading.get_ident(), [lo for lo, _, _ in chunks]))
        return (np.array([float(lo) for lo, _, _ in chunks]),)

    (total,) = in_groups(part, marked(3, 7))
    assert sorted(lows for _, lows in seen) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13]]
    assert total.tolist() == [42.0, 49.0]
    owners = {lows[0] // 2: owner for owner, lows in seen}
    assert owners[0] == owners[3] == owners[6] == threading.get_ident()
    assert len(set(owners.values())) == 3


@pytest.mark.parametrize("count", [1, 2])
def test_products_of_a_loop_have_one_thread(threads, monkeypatch, count):
    class Library:
        count = 7

        def get_num_threads(self):
            return self.count

        def set_num_threads(self, count):
            self.count = count

    threads(count)
    monkeypatch.setattr(ONE_THREAD, "libraries", [library := Library()])
    seen = []

    def part(chunks):
        seen.append(library.count)
        if chunks[0][0] > 2:
            raise ZeroDivisionError
        in_groups(lambda _: (seen.append(library.count),), marked(1, 1))
        return ()

    with pytest.raises(ZeroDivisionError):
        in_groups(part, marked(count, 3))
    assert set(seen) == {1}
    assert library.count == 7


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_an_error_in_a_part_is_that_of_the_call(threads, wrong):
    threads(3)

    def part(chunks):
        if chunks[0][0] == 2 * wrong:
            raise ZeroDivisionError(wrong)
        return ()

    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match=str(wrong)):
            in_groups(part, marked(3, 3))
    assert not CREW.busy.held._is_owned()


def test_a_signal_waits_for_the_other_threads(threads):
    threads(2)
    ended = threading.Event()

    def part(chunks):
        if chunks[0][0]:
            ended.wait(0.3)
            ended.set()
        else:
            os.kill(os.getpid(), signal.SIGINT)
        return ()

    with pytest.raises(KeyboardInterrupt):
        in_groups(part, marked(2, 2))
    assert ended.is_set()
    assert in_groups(lambda chunks: (np.ones(1),), marked(2, 2))[0] == 2


def test_calls_at_once_and_within(threads, little):
    threads(2)
    made, inputs, _ = program(640, 64)
    alone = made(inputs)
    wrong = []

    def many(own, given):
        for _ in range(20):
            if not all((a == b).all() for a, b in zip(own(given), alone, strict=True)):
                wrong.append(1)

    callers = [threading.Thread(target=many, args=program(640, 64)[:2]) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
    inner = in_groups(lambda chunks: (in_groups(lambda _: (np.ones(1),), marked(2, 2))[0],), marked(2, 2))
    assert inner[0] == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_its_own(threads, little):
    threads(2)
    made, inputs, _ = program(640, 64)
    before = made(inputs)
    child = os.fork()
    if child == 0:
        os._exit(0 if all((a == b).all() for a, b in zip(made(inputs), before, strict=True)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_sums_are_added_in_order():
    sums = [(np.array([1e8], np.float32),), (np.array([1.0], np.float32),), (np.array([-1e8], np.float32),)]
    assert added(sums)[0].tolist() == [0.0]
