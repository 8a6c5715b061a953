"""Forks while other threads import: a child must not find things half done, by a thread that it has not.

A fork waits until no thread is in the middle of an import, and no thread has a lock that was told here; until the fork
is over, none begins. It never waits for the one while it holds the other, for those threads need both.
"""

from __future__ import annotations

import _imp
import importlib
import os
import sys
import time
from _thread import get_ident
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property as locked_property
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")

PATIENCE = 30.0  # seconds, since such a thread may wait for something else that the forking one holds
_NEEDED: list[str] = []
_LOCKS: WeakSet[Any] = WeakSet()
_CONTEXTS: list[Callable[[], AbstractContextManager[None]]] = []
_held: list[Any] | None = None  # what the thread that is about to fork has taken, beside the lock of imports
_entered = ExitStack()  # what it has entered
_INHERITED: list[ExitStack] = []  # what the parent had entered, which nobody leaves here


def need(*modules: str) -> None:
    """These are imported before a fork of a process that has threads."""
    _NEEDED.extend(modules)


def guard(lock: Any) -> Any:
    """A ``threading.RLock`` that is free in a child, and what it guards is whole there."""
    _LOCKS.add(lock)
    return lock


def around(context: Callable[[], AbstractContextManager[None]]) -> None:
    """Before each fork of a process that has threads one is made and entered, and left in the parent alone."""
    _CONTEXTS.append(context)


class cached_property(locked_property[T]):
    """``functools.cached_property`` without its lock, one for all objects before Python 3.12, that no child opens."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        assert self.attrname is not None
        held = vars(instance)
        return held[self.attrname] if self.attrname in held else held.setdefault(self.attrname, self.func(instance))


def _before() -> None:
    global _held, _entered
    threads = sys.modules.get("threading")  # without it there are none
    if threads is None or threads.active_count() == 1:
        return
    logging, logs = sys.modules.get("logging"), _lock_of_logging()
    owned = logs is not None and logs._is_owned()
    # Whether logging will release its lock after this fork: it has taken it for this, or will be there only then.
    due = owned or logging is None or getattr(logging.__spec__, "_initializing", False)
    if owned:
        logs.release()
    for name in _NEEDED:
        importlib.import_module(name)
    entered = ExitStack()
    for context in _CONTEXTS:
        entered.enter_context(context())
    own, end = get_ident(), time.monotonic() + PATIENCE
    while True:
        while _importing(own) and time.monotonic() < end:
            time.sleep(0.001)
        _imp.acquire_lock()  # without which no import begins
        others = [lock for lock in [_lock_of_logging()] if due and lock is not None]
        wanted = [*_LOCKS, *others]
        taken = [lock for lock in wanted if lock.acquire(blocking=False)]
        if (len(taken) == len(wanted) and not _importing(own)) or time.monotonic() >= end:
            _held, _entered = [lock for lock in taken if lock not in others], entered
            return
        _release(taken)
        time.sleep(0.001)


def _lock_of_logging() -> Any:
    """It is taken before forks, perhaps earlier than this waits; and threads that import something may need it."""
    return getattr(sys.modules.get("logging"), "_lock", None)


def _open() -> None:
    global _held
    taken, _held = _held or [], None
    _release(taken)


def _release(locks: list[Any]) -> None:
    for lock in locks:
        lock.release()
    _imp.release_lock()


def _after() -> None:
    """In the parent imports may begin again."""
    if _held is not None:
        entered = _entered  # another thread may be about to fork when the locks are open
        _open()
        entered.close()


def _after_in_child() -> None:
    """Threads that were importing exist in the parent only, and never unlock what they locked."""
    _INHERITED.append(_entered)
    if _held is not None:
        for lock in set(_LOCKS) - set(_held):
            lock._at_fork_reinit()
        _open()
        sys.modules["_frozen_importlib"]._module_locks.clear()


def _importing(thread: int) -> bool:
    """Whether other threads than this one are in the middle of an import."""
    locks = [ref() for ref in list(sys.modules["_frozen_importlib"]._module_locks.values())]
    return any(getattr(lock, "owner", None) not in (None, thread) for lock in locks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
