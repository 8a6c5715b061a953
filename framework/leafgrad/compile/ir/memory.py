"""Which arrays show the same memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import backends
from leafgrad.ops.dispatch import EXPOSED, copied, memory_of
from leafgrad.tensor.inplace import overlaps


def overlap(a: Any, b: Any) -> bool:
    """Whether the stretches of memory from first to last element of two arrays meet."""
    if memory_of(a) is not memory_of(b):
        return False
    return bool(backends.backend_of(a).xp.may_share_memory(a, b))


def is_exposed(array: Any) -> bool:
    """Whether others may hold the memory of a raw array."""
    return bool(EXPOSED) and id(memory_of(array)) in EXPOSED


def unshared(arrays: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """``arrays``, with copies of those that share memory with an input, an earlier one, or among their elements."""
    taken = {id(memory_of(a)) for a in inputs}
    found = []
    for a in arrays:
        if id(memory_of(a)) in taken or overlaps(a):
            a = copied(a)
        taken.add(id(memory_of(a)))
        found.append(a)
    return found


def laid_out(array: Any, strides: tuple[int, ...] | None) -> Any:
    """An array with these strides, in bytes and not negative, or for None in C order; itself if it lies like that."""
    if strides is None:
        return array if array.flags.c_contiguous else array.copy()
    if array.strides == strides or min(strides) < 0:
        return array
    backend = backends.backend_of(array)
    end = sum((n - 1) * step for n, step in zip(array.shape, strides, strict=True))
    with backend.device_scope(backend.device_index(array)):
        memory = backend.xp.empty(end // array.itemsize + 1, dtype=array.dtype)
        out = backend.strided(memory, array.shape, strides)
        out[...] = array
    return out


ARRAY = operator.attrgetter("_data")
Owned = dict[int, list[tuple[Any, bool]]]  # by id of the owner: arrays, each with whether it is written


class Apart:
    """Checks that memory which a program writes is reached through one tensor only.

    Args:
        captured: tensors from outside, each with whether it is written.
        given: the function of a call's leaves that gives further arrays.
        written: whether each of these is written.
    """

    def __init__(
        self, captured: Sequence[tuple[Any, bool]], given: Callable[[Sequence[Any]], list[Any]], written: Sequence[bool]
    ) -> None:
        self.tensors, self.marks = [t for t, _ in captured], [marked for _, marked in captured]
        self.given, self.written = given, written
        self.seen: tuple[list[Any], Owned] = ([], {})  # the captured arrays of the last check, and all by owner

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Whether it is so now."""
        arrays = [*map(ARRAY, self.tensors)]
        before, owned = self.seen
        if len(before) != len(arrays) or not all(map(operator.is_, arrays, before)):
            owned = {}
            for array, written in zip(arrays, self.marks, strict=True):
                if not enter(owned, array, written):
                    return False
            self.seen = arrays, owned
        own: Owned = {}
        for array, written in zip(self.given(leaves), self.written, strict=True):
            if array.base is None and id(array) not in owned and id(array) not in own:
                own[id(array)] = [(array, written)]
            elif not (free(owned, array, written) and enter(own, array, written)):
                return False
        return True


def enter(owned: Owned, array: Any, written: bool) -> bool:
    """Add an array to those known; False if it meets one of them where either is written."""
    found = free(owned, array, written)
    owned.setdefault(id(memory_of(array)), []).append((array, written))
    return found


def free(owned: Owned, array: Any, written: bool) -> bool:
    """Whether no array of ``owned``, by owner, meets ``array`` where either is written."""
    group = owned.get(id(memory_of(array)))
    return group is None or not any((written or w) and overlap(array, other) for other, w in group)
