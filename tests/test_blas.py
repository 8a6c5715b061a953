"""How many threads BLAS takes, whichever thread asks. Forks in the middle of products: tests/faults/test_fork.py."""

from __future__ import annotations

import gc
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from leafgrad import blas


def counts():
    return {library.get_num_threads() for library in blas.ONE_THREAD.found()}


def elsewhere(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def test_one_thread_whichever_thread_asks():
    seen = []

    def ask():
        with blas.one_thread():
            seen.append(counts())

    with threadpool_limits(2, user_api="blas"):
        ask()
        elsewhere(ask)
        elsewhere(ask)
        assert counts() == {2}
    assert seen == [{1}] * 3


def test_the_last_of_several_gives_the_threads_back():
    other = blas.one_thread()
    with threadpool_limits(2, user_api="blas"):
        with blas.one_thread():
            elsewhere(other.__enter__)
        assert counts() == {1}
        elsewhere(other.__exit__)
        assert counts() == {2}


@pytest.mark.parametrize("at", [1, 2])
def test_an_exception_of_a_signal_leaves_nobody_behind(monkeypatch, at):
    """It comes when the number of threads is set, or set back."""
    usual = blas.allow

    def interrupted(library, count):
        if count != at:
            usual(library, count)
            return
        monkeypatch.undo()
        raise KeyboardInterrupt

    def product():
        with blas.one_thread():
            return counts()

    with threadpool_limits(2, user_api="blas"):
        monkeypatch.setattr(blas, "allow", interrupted)
        with pytest.raises(KeyboardInterrupt):
            product()
        gc.collect()
        assert counts() == {2}
        assert product() == {1}
        assert counts() == {2}


def test_a_user_may_set_the_number_again():
    with threadpool_limits(2, user_api="blas"):
        elsewhere(lambda: blas.allow(blas.ONE_THREAD.found()[0], 1))
        with threadpool_limits(2, user_api="blas"):
            assert counts() == {2}


def test_a_thread_that_sleeps_is_not_waited_for():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    begin = time.monotonic()
    blas.wait_for_products()
    done.set()
    thread.join()
    assert time.monotonic() - begin < blas.forks.PATIENCE / 2


def test_a_thread_that_stays_in_a_call_is_waited_for(monkeypatch):
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    end = time.monotonic() + 20 * blas.QUIET
    monkeypatch.setattr(blas.State, "is_running", lambda self: time.monotonic() < end)
    blas.wait_for_products()
    done.set()
    thread.join()
    assert time.monotonic() > end


def test_one_product_after_another_is_not_waited_for_for_ever():
    done, matrix, interval = threading.Event(), np.ones((200, 200)), sys.getswitchinterval()

    def multiply():
        while not done.is_set():
            matrix @ matrix

    threads = [threading.Thread(target=multiply) for _ in range(2)]
    for thread in threads:
        thread.start()
    begin = time.monotonic()
    for _ in range(3):
        blas.wait_for_products()
    taken = time.monotonic() - begin
    done.set()
    for thread in threads:
        thread.join()
    assert taken < blas.forks.PATIENCE / 2
    assert sys.getswitchinterval() == interval
