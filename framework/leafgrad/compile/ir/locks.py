"""Locks that a forked child finds open: threads that hold them exist in the parent only."""

from __future__ import annotations

import os
import threading
import weakref


class Lock:
    """A lock, as ``threading.Lock``. ``with lock.held:`` takes it, which no signal can come into."""

    __slots__ = ("__weakref__", "held")

    def __init__(self) -> None:
        self.held = threading.Lock()
        LIVING.add(self)

    def acquire(self, blocking: bool = True) -> bool:
        """Take it; False if another thread has it and ``blocking`` is False."""
        return self.held.acquire(blocking)

    def release(self) -> None:
        """Give it back."""
        self.held.release()


LIVING: weakref.WeakSet[Lock] = weakref.WeakSet()


def open_all() -> None:
    """In a child: nobody has a lock any more."""
    for lock in list(LIVING):
        lock.held = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=open_all)
