"""Locks that a forked child finds open: threads that hold them exist in the parent only."""

from __future__ import annotations

import os
import threading
import weakref
from _thread import get_ident
from collections.abc import Callable
from typing import Any


class Lock:
    """A lock, as ``threading.Lock``. ``with lock.held:`` takes it, which no signal can come into."""

    __slots__ = ("__weakref__", "held")
    make: Callable[[], Any] = threading.Lock

    def __init__(self) -> None:
        self.held = type(self).make()
        LIVING.add(self)


class Occupied(Exception):
    """Another thread has a lock, or this one further out; nothing was done."""


class TryLock(Lock):
    """A lock that nobody waits for: who comes while it is taken does something else.

    Attributes:
        inside: the thread that runs with it; None for nobody.
    """

    __slots__ = ("inside",)
    make = threading.RLock

    def __init__(self) -> None:
        super().__init__()
        self.inside: int | None = None

    def run(self, act: Callable[..., Any], *given: Any) -> Any:
        """``act(*given)``, with the lock. Raises Occupied.

        A signal's exception may come when it is taken and that is not known yet, or before it is given back. Then it
        is this thread's, which may take it again.
        """
        held, own = self.held, get_ident()
        if self.inside == own or not held.acquire(blocking=False):
            raise Occupied
        self.inside = own
        try:
            return act(*given)
        finally:
            self.inside = None
            while held._is_owned():
                held.release()


LIVING: weakref.WeakSet[Lock] = weakref.WeakSet()


def open_all() -> None:
    """In a child: nobody has a lock any more."""
    for lock in list(LIVING):
        lock.held = type(lock).make()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=open_all)
