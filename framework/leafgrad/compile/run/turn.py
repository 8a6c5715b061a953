"""Which thread's turn it is to do what others must not see: to record a call, or to run a program that counts.

While a call is recorded, symbolic numbers stand in the places of the numbers that it changes; and a program reads those
when it begins and writes them when it ends. So nothing is followed once a second thread calls the function: its Python
changes what it changes, as in an uncompiled one. The first call of a second thread waits until nobody sees those.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from typing import Any

from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.record.watch import COLLECTOR
from leafgrad.compile.run.following import Following

PATIENCE = 10.0  # seconds, since the other thread may wait for something that this one holds


class Occupied(Exception):
    """It is another thread's turn, or nobody is to run such programs any more."""


class Turn:
    """The turn of one thread.

    Attributes:
        lock: that it holds.
        following: what the function follows, which ends once several threads call.
        owner: whose turn it is; None for nobody's.
        caller: the thread that has called the function; None before the first call that was no hit.
    """

    def __init__(self, lock: Lock, following: Following) -> None:
        self.lock, self.following = lock, following
        self.owner: int | None = None
        self.caller: int | None = None

    def record(self, act: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What ``act()`` gives in a turn of this thread; where it is another's, what the other one gives."""
        held = self.lock.held
        if not held.acquire(blocking=False):
            return otherwise()
        try:
            self.owner = get_ident()
            with COLLECTOR.paused():  # what is made stays, and to look through all modules for garbage takes its time
                return act()
        finally:
            self.owner = None
            held.release()

    def is_new(self) -> bool:
        """Whether this is the first call of a second thread."""
        if self.caller is None:
            self.caller = get_ident()
        return not self.following.shared and self.caller != get_ident()

    def run(self, call: Any, *given: Any) -> Any:
        """What a program that leaves numbers outside gives. Raises Occupied, and nothing is done."""
        held, own = self.lock.held, get_ident()
        if call.thread != own or not held.acquire(blocking=False):
            raise Occupied
        try:
            self.owner = own
            if self.following.shared:
                raise Occupied
            return call(*given)
        finally:
            self.owner = None
            held.release()

    def share(self) -> None:
        """Several threads call from now on. Waits until the turn of another one is over."""
        self.following.shared = True
        held = self.lock.held
        if self.owner != get_ident() and held.acquire(timeout=PATIENCE):
            held.release()
        self.following.stop()
