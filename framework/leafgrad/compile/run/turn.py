"""Which thread's turn it is to do what others must not see: to record a call, or to run a program that counts.

While a call is recorded, symbolic numbers stand in the places of the numbers that it changes; and a program reads those
when it begins and writes them when it ends. So nothing is followed once a second thread calls the function: its Python
changes what it changes, as in an uncompiled one. The first call of a second thread waits until nobody sees those.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from typing import Any

from leafgrad.compile.ir.locks import Occupied, TryLock
from leafgrad.compile.record.watch import COLLECTOR
from leafgrad.compile.run.following import Following
from leafgrad.signals import held

PATIENCE = 10.0  # seconds, since the other thread may wait for something that this one holds


class Turn:
    """The turn of one thread.

    Attributes:
        lock: that it holds.
        following: what the function follows, which ends once several threads call.
        caller: the thread that has called the function; None before the first call that was no hit.
        alone: whether no other one has, or each still waits.
    """

    def __init__(self, lock: TryLock, following: Following) -> None:
        self.lock, self.following = lock, following
        self.caller: int | None = None
        self.alone = True

    def record(self, act: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What ``act()`` gives in a turn of this thread; where it is another's, what the other one gives.

        No handler of a signal runs before all is settled, but in the code that may take its time.
        """
        try:
            return held(self.lock.run, undisturbed, act)
        except Occupied:
            return otherwise()

    def is_new(self) -> bool:
        """Whether this is the first call of a second thread, or of more while that one waits."""
        if self.caller is None:
            self.caller = get_ident()
        return self.alone and self.caller != get_ident()

    def share(self) -> None:
        """Several threads call from now on. Waits until the turn of another one is over."""
        self.following.shared = True
        held = self.lock.held
        if self.lock.inside != get_ident() and held.acquire(timeout=PATIENCE):
            held.release()
        self.following.stop()
        self.alone = False


def undisturbed(act: Callable[[], Any]) -> Any:
    """What ``act()`` gives. What it makes stays, and to look through all modules for garbage takes its time."""
    with COLLECTOR:
        return act()
