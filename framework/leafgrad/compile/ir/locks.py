"""Locks that a forked child finds open: threads that hold them exist in the parent only."""

from __future__ import annotations

import os
import threading
import weakref
from _thread import get_ident
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Occupied(Exception):
    """Another thread has a lock, or this one further out; nothing was done."""


class Lock:
    """A lock that a thread may take again while it has it, and that no exception of a signal leaves taken.

    Attributes:
        inside: the thread that runs with it; None for nobody.
    """

    __slots__ = ("__weakref__", "held", "inside")

    held: Any
    inside: int | None

    def __init__(self) -> None:
        self.held, self.inside = threading.RLock(), None
        LIVING.add(self)

    def run(self, act: Callable[..., T], *given: Any) -> T:
        """``act(*given)``, with the lock.

        From Python 3.14 on the exception may come when ``with`` has taken it, and does not know that yet.
        """
        held, own = self.held, get_ident()
        if self.inside == own:
            return act(*given)
        try:
            with held:
                self.inside = own
                try:
                    return act(*given)
                finally:
                    self.inside = None
        finally:
            while held._is_owned():
                held.release()


class TryLock(Lock):
    """A lock that nobody waits for: who comes while it is taken does something else."""

    __slots__ = ()

    def run(self, act: Callable[..., T], *given: Any) -> T:
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
        lock.held = threading.RLock()
        lock.inside = None if lock.inside != get_ident() else lock.inside


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=open_all)
