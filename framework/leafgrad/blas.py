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
from collections.abc import Sequence
from contextlib import ExitStack
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
    """Wait until each other thread has been outside of products; for half a minute at most.

    As long as this one keeps the interpreter to itself, a thread that comes out of one waits for it, and does not run.
    That is for a while, then for twice as long: products may take longer than the while, and others must go on.
    """
    own, tasks = threading.get_native_id(), [thread.native_id for thread in threading.enumerate()]
    with ExitStack() as files:
        states = [State(files, task) for task in tasks if task != own]
        end, span = time.monotonic() + forks.PATIENCE, 2 * QUIET
        while time.monotonic() < end and not are_quiet(states, span):
            time.sleep(QUIET / 10)
            span *= 2


def are_quiet(states: Sequence[State], span: float) -> bool:
    """Whether within ``span`` seconds there are QUIET ones in which no thread runs but this one."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(span)
    try:
        quiet = time.monotonic()
        end = quiet + span
        while (now := time.monotonic()) < end:
            if any(state.is_running() for state in states):
                quiet = now
            elif now - quiet >= QUIET:
                return True
        return False
    finally:
        sys.setswitchinterval(interval)


class State:
    """Whether a thread is on a processor, or waits for one: to know it, the interpreter is not given away."""

    def __init__(self, files: ExitStack, task: int | None) -> None:
        from ctypes import PyDLL, c_long, c_size_t, create_string_buffer

        self.file: int | None = None
        try:
            self.file = os.open(f"/proc/self/task/{task}/stat", os.O_RDONLY)
        except OSError:  # it has ended, or there is no such folder
            return
        files.callback(os.close, self.file)
        self.text = create_string_buffer(256)
        self.size, self.place = c_size_t(len(self.text)), c_long(0)
        self.read = PyDLL(None).pread

    def is_running(self) -> bool:
        if self.file is None or self.read(self.file, self.text, self.size, self.place) <= 0:
            return False
        return self.text.value.rpartition(b")")[2].split()[0] in b"RD"


if hasattr(os, "register_at_fork"):
    forks.around(around_fork)
