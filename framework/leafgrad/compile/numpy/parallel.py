"""Loops over chunks on several threads: NumPy lets go of Python's lock inside its functions.

The chunks of a loop are dealt to groups, whose number depends on the program alone. A thread does whole groups, each
with sums of its own, which are added in the order of the groups: results have the same bits on any number of threads.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

from leafgrad.blas import one_thread
from leafgrad.compile.ir.locks import Occupied, TryLock

GROUPS = 16  # at most, and so the number of threads that one loop uses
WORK = 1 << 21  # elements that a group computes at least: about a millisecond, many times what handing it over takes
ROOM = 1 << 26  # bytes of addresses that a thread takes for itself: its stack, and BLAS's 32 MiB

Chunk = tuple[int, int, tuple[Any, ...]]
Sums = tuple[Any, ...]
Part = Callable[[Sequence[Chunk]], Sums]


def group_count(chunks: int, work: int) -> int:
    """How many groups a loop has.

    Args:
        chunks: of the loop.
        work: elements that all of its chunks compute.
    """
    return max(1, min(chunks, GROUPS, work // WORK))


def has_room(xp: Any, threads: int) -> bool:
    """Whether there is memory for so many threads. A BLAS that gets none ends the process; NumPy crashes in a loop."""
    try:
        xp.empty(threads * ROOM, dtype="uint8")
    except MemoryError:
        return False
    return True


class Crew:
    """Threads that wait for something to do. A forked child has none, and starts its own."""

    def __init__(self) -> None:
        self.orders: list[SimpleQueue[Callable[[], None]]] = []
        self.busy = TryLock()

    def member(self, k: int) -> SimpleQueue[Callable[[], None]]:
        """Where the k-th thread takes its orders."""
        while len(self.orders) <= k:
            orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
            threading.Thread(target=self.work, args=(orders,), name="leafgrad", daemon=True).start()
            self.orders.append(orders)
        return self.orders[k]

    @staticmethod
    def work(orders: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            orders.get()()

    def forget(self) -> None:
        """In a forked child: the threads are the parent's."""
        self.orders = []


CREW = Crew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CREW.forget)


class Share:
    """The groups of one thread in one run of a loop: what came of them, or the error that ended it."""

    def __init__(self, part: Part, groups: Sequence[Sequence[Chunk]]) -> None:
        self.part, self.groups = part, groups
        self.sums: list[Sums] = []
        self.error: BaseException | None = None
        self.context = contextvars.copy_context()
        self.done = threading.Semaphore(0)

    def __call__(self) -> None:
        try:
            self.context.run(self.run)
        except BaseException as error:
            self.error = error
        self.done.release()

    def run(self) -> None:
        self.sums += [self.part(group) for group in self.groups]

    def wait(self) -> None:
        """Until it is done: nobody else may use its buffers before. A signal's exception is raised then."""
        raised = None
        while True:
            try:
                self.done.acquire()
                break
            except BaseException as error:
                raised = error
        if raised is not None:
            raise raised


class Groups(NamedTuple):
    """The groups of a loop, with buffers for so many threads: the k-th of T does groups k, k + T, ..."""

    threads: int
    chunks: Sequence[Sequence[Chunk]]


def in_groups(part: Part, found: Groups) -> Sums:
    """Run a loop's groups; returns its sums.

    One loop at a time is spread over threads: those of other threads' calls, and of calls within, run on their own.
    """
    threads, groups = found
    with one_thread():
        if threads > 1:
            try:
                return added(CREW.busy.run(spread, part, groups, threads))
            except Occupied:
                pass
        return added([part(group) for group in groups])


def spread(part: Part, groups: Sequence[Sequence[Chunk]], threads: int) -> list[Sums]:
    """The sums of each group, computed on so many threads."""
    shares = [Share(part, groups[k::threads]) for k in range(threads)]
    for k, share in enumerate(shares[1:]):
        CREW.member(k).put(share)
    shares[0]()
    for share in shares[1:]:
        share.wait()
    for share in shares:
        if share.error is not None:
            raise share.error
    return [shares[i % threads].sums[i // threads] for i in range(len(groups))]


def added(found: list[Sums]) -> Sums:
    """The sums of all groups, in the memory of the first's."""
    for sums in found[1:]:
        for total, one in zip(found[0], sums, strict=True):
            total += one
    return found[0]
