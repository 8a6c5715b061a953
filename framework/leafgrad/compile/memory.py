"""Which arrays show the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad import backends


def owner(array: Any) -> Any:
    """The array whose memory ``array`` shows: itself, or what it is a view of."""
    while hasattr(array.base, "dtype"):
        array = array.base
    return array


def overlap(a: Any, b: Any) -> bool:
    """Whether the stretches of memory from first to last element of two arrays meet."""
    if owner(a) is not owner(b):
        return False
    return bool(backends.backend_of(a).xp.may_share_memory(a, b))


def separate(arrays: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """``arrays``, with copies of those that share memory with an input or an earlier one."""
    taken = {id(owner(a)) for a in inputs}
    found = []
    for a in arrays:
        if id(owner(a)) in taken:
            a = a.copy()
        taken.add(id(owner(a)))
        found.append(a)
    return found
