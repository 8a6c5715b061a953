"""Writes that can be undone: forward mode asks for values when a function has run, and takes them as they were.

A backward pass does not, and says that a value was modified, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from leafgrad import modes
from leafgrad.ops import dispatch
from leafgrad.ops.node import FREED, SEQ, Node, TensorBase, Version
from leafgrad.tensor.view import follow, written_through


class NotedWrite(NamedTuple):
    """One write: when, after how many others and which last, into which base of what raw data, and where in it.

    Attributes:
        old: the raw values that were there.
    """

    seq: int
    earlier: int
    last: int
    base: Any
    data: Any
    steps: Any
    old: Any


def all_of(out: Any, write: NotedWrite) -> Any:
    """The steps to an op's result that was written: none."""
    return () if write.data is out else None


class Writes:
    """What was written, by the version of its memory."""

    def __init__(self) -> None:
        self.log: dict[Version, list[NotedWrite]] = {}

    def note(self, x: Any, base: Any, version: Version) -> None:
        """``x``, ``base`` or a part of it, is about to be written."""
        old = dispatch.raw(x) if modes.tracer() else dispatch.copied(x._data)
        steps = () if x is base else x._view.steps
        write = NotedWrite(next(SEQ), version.count, version.seq, base, base._data, steps, old)
        self.log.setdefault(version, []).append(write)

    def undo(self, nodes: Iterable[Any]) -> None:
        """Let nodes keep what they had kept before it was written. What was written in other ways stays as it is."""
        for node in nodes:
            if not isinstance(node, Node) or node.saved is FREED:
                continue
            node.saved = tuple([self.before(s, node.seq) if isinstance(s, TensorBase) else s for s in node.saved])
            version = node.version
            if version is not None and version.seq > node.seq:
                found = self.found(version, node.seq, partial(all_of, node.out))
                if found is not None:
                    node.out, node.version = found, None

    def before(self, saved: Any, seq: int) -> Any:
        """A saved tensor as it was at ``seq``."""
        version = saved._writes
        if version is None or version.seq <= seq:
            return saved

        def steps(write: NotedWrite) -> Any:
            if saved._view is not None and saved._view.base is write.base:
                return saved._view.steps
            return () if saved is write.base or saved._data is write.data else None

        found = self.found(version, seq, steps)
        return saved if found is None else dispatch.alias(found)

    def found(self, version: Version, seq: int, steps: Callable[[NotedWrite], Any]) -> Any:
        """The raw part of a memory that ``steps`` lead to, as it was at ``seq``; None if not all writes are known."""
        since = [write for write in self.log.get(version, ()) if write.seq > seq]
        if not since or since[0].last > seq or [w.earlier for w in since] != [*range(since[0].earlier, version.count)]:
            return None
        place, base = steps(since[0]), since[0].base
        if place is None or any(w.base is not base and w.base._data is not base._data for w in since):
            return None
        value = dispatch.raw(base)
        for write in reversed(since):
            value = written_through(value, write.old, write.steps) if write.steps else write.old
        return follow(value, place)
