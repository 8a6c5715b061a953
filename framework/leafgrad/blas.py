"""How many threads BLAS takes for a product of NumPy's matrices: one in loops that have several, and one across forks.

OpenBLAS holds a lock for as long as it shares a product among threads, and ends these threads before a fork. A fork in
the middle of a product of another thread would wait for them for ever, or leave the child a lock that nobody opens.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from leafgrad import forks

QUIET = 0.005  # seconds in which no thread runs that may be in a product


class OneThread:
    """Whoever holds this process to products of one thread: the first sets that, and the last one takes it back.

    Holders are known by weak references, so that one that a signal's exception ended in the middle of beginning, or of
    ending, is none any more once it is gone.
    """

    def __init__(self) -> None:
        self.libraries: Sequence[Any] | None = None
        self.before: list[tuple[Any, int]] = []  # how many threads libraries had
        self.holders: list[weakref.ref[one_thread]] = []
        self.lock = forks.guard(threading.RLock())

    def begin(self, holder: weakref.ref[one_thread]) -> None:
        with self.lock:
            if not self.holders:
                known = [library for library, _ in self.before]  # where the last end was not reached
                counts = [(library, library.get_num_threads()) for library in self.found() if library not in known]
                self.before += [(library, count) for library, count in counts if count != 1]
                for library, _ in self.before:
                    allow(library, 1)
            self.holders.append(holder)

    def end(self, holder: weakref.ref[one_thread]) -> None:
        with self.lock:
            self.holders = [other for other in self.holders if other is not holder]
            if not self.holders:
                for library, count in self.before:
                    allow(library, count)
                self.before = []

    def found(self) -> Sequence[Any]:
        """The libraries of this process, looked for once."""
        if self.libraries is None:
            from threadpoolctl import ThreadpoolController

            self.libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        return self.libraries


class one_thread:
    """Within it products of matrices take one thread."""

    __slots__ = ("__weakref__", "held")

    def __enter__(self) -> None:
        self.held = weakref.ref(self, ONE_THREAD.end)
        ONE_THREAD.begin(self.held)

    def __exit__(self, *error: object) -> None:
        ONE_THREAD.end(self.held)
        del self.held  # and what is called when this is gone


def allow(library: Any, count: int) -> None:
    """Products take so many threads, whichever thread it was that set another number."""
    if hasattr(library, "clear_controlling_thread"):  # the first thread that sets it is the only one that may
        library.clear_controlling_thread(force=True)
    library.set_num_threads(count)
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)


ONE_THREAD = OneThread()


class around_fork(one_thread):
    """Around a fork: products take one thread, and those that other threads began with several are over."""

    __slots__ = ()

    def __enter__(self) -> None:
        ONE_THREAD.libraries = None  # others may have been loaded since, SciPy's say
        super().__enter__()
        if ONE_THREAD.before:
            wait_for_products()


def wait_for_products() -> None:
    """Wait until each other thread has gone on, or sleeps; for half a minute at most."""
    places, tasks = other_places(), {thread.ident: thread.native_id for thread in threading.enumerate()}
    quiet = time.monotonic()
    end = quiet + forks.PATIENCE
    while places and time.monotonic() < min(end, quiet + QUIET):
        time.sleep(QUIET / 10)
        now = other_places()
        places = {thread: place for thread, place in places.items() if now.get(thread) == place}
        if any(is_running(tasks.get(thread)) for thread in places):
            quiet = time.monotonic()


def other_places() -> Mapping[int, tuple[FrameType, int]]:
    """Where each other thread is."""
    own = threading.get_ident()
    return {ident: (frame, frame.f_lasti) for ident, frame in sys._current_frames().items() if ident != own}


def is_running(task: int | None) -> bool:
    """Whether a thread is on a processor, or waits for one."""
    try:
        with open(f"/proc/self/task/{task}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] in "RD"
    except OSError:
        return False


if hasattr(os, "register_at_fork"):
    forks.around(around_fork)
