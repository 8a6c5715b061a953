"""How many threads BLAS takes, whichever thread asks. Forks in the middle of products: tests/faults/test_fork.py."""

from __future__ import annotations

import gc
import threading
import time

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
    end = time.monotonic() + 20 * blas.QUIET
    monkeypatch.setattr(blas, "other_places", lambda: {1: ("frame", 7)})
    monkeypatch.setattr(blas, "is_running", lambda task: time.monotonic() < end)
    blas.wait_for_products()
    assert time.monotonic() > end
