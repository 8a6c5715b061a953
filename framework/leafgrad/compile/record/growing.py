"""Lists that a call appends to, such as a history of losses: what a program appends is a part of its result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any


class GrowingList(list[Any]):
    """Stands for a list while a call is recorded, and holds what that holds. All but to append is to read it.

    Attributes:
        real: the list itself, to which other threads append meanwhile, and everybody when the recording is over.
        before: what was in it.
        read: whether anybody asked what is in it, or changed more than its end.
    """

    def __init__(self, real: list[Any]) -> None:
        super().__init__(real)
        self.real, self.before = real, real[:]
        self.read = self.over = False
        self.thread = get_ident()

    @property
    def target(self) -> list[Any]:
        """What is appended to."""
        return self.real if self.over or get_ident() != self.thread else self

    def append(self, value: Any) -> None:
        """As ever."""
        list.append(self.target, value)

    def extend(self, values: Iterable[Any]) -> None:
        """As ever."""
        list.extend(self.target, values)

    def __radd__(self, other: list[Any]) -> list[Any]:
        return other + self[:]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (self[:],)

    def take(self) -> list[Any] | None:
        """What was appended. The recording is over; None if more than that was done, which the real one has now."""
        self.over = True
        held = list.__getitem__(self, slice(None))
        list.clear(self)
        count = len(self.before)
        if len(held) >= count and all(map(operator.is_, self.before, held)):
            return held[count:]
        self.real[:] = held
        return None


def reading(name: str) -> Callable[..., Any]:
    """A method of a list that asks what is in it, or changes that."""
    method = getattr(list, name)

    def read(self: GrowingList, *args: Any, **kwargs: Any) -> Any:
        self.read = True
        return method(self.real if self.over else self, *args, **kwargs)

    return read


def add_in_place(self: GrowingList, values: Iterable[Any]) -> list[Any]:
    """``self += values``."""
    self.extend(values)
    return self.target


OF_OBJECTS = frozenset(dir(object)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__"}
READING = set(dir(list)) - OF_OBJECTS - vars(GrowingList).keys() - {"__class_getitem__", "__iadd__"}
for name, method in {"__iadd__": add_in_place, **{name: reading(name) for name in READING}}.items():
    setattr(GrowingList, name, method)


class Append:
    """Appends values to a list, once, even if a signal's handler interrupts that and it is called again."""

    def __init__(self, to: list[Any], values: list[Any]) -> None:
        self.to, self.values = to, values
        self.start: int | None = None

    def __call__(self) -> None:
        if self.start is None:
            self.start = len(self.to)
        elif len(self.to) > self.start and self.to[self.start] is self.values[0]:
            return
        self.to.extend(self.values)
