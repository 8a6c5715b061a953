"""How items of a task go with elements of an array, by which tasks are known that can share a thread or a block."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from leafgrad.lowering.forms import Form, Root, Stride

Step = tuple[Stride, int]  # from one element to the next, and how many there are
Seen = tuple[Form, Sequence[Stride], Sequence[Step]]  # what items touch: their steps, and those of an item itself


class Walk(NamedTuple):
    """How the items of a task walk along an array.

    Attributes:
        parts: in how many equal parts at most both can be taken, so that items touch elements of their own part alone.
        first: the element of the first item, if item i touches the i-th behind it and no other; else None.
    """

    parts: int = 1
    first: int | None = None


def walks(lengths: Sequence[int], seen: Iterable[Seen]) -> dict[Root, Walk]:
    """Of each array but those of chunks.

    Args:
        lengths: which the number of an item counts through, the last fastest.
        seen: what items touch, with the steps that it takes through these, and those of an item itself.
    """
    found: dict[Root, Walk] = {}
    for form, steps, inner in seen:
        root = form.root
        if root.axis is not None:
            continue
        outer = [(int(s or 0), n) for s, n in zip(steps, lengths, strict=True) if n != 1]
        new = walk(outer, [(int(s or 0), n) for s, n in inner], root.lanes, form.offset)
        old = found.get(root, new)
        found[root] = Walk(math.gcd(old.parts, new.parts), old.first if old.first == new.first else None)
    return found


def walk(outer: Sequence[tuple[int, int]], inner: Sequence[tuple[int, int]], lanes: int, offset: int) -> Walk:
    """Of an array of ``lanes`` elements from ``offset`` on."""
    steps = [*outer, *inner]
    if offset < 0 or any(s < 0 or n == 0 for s, n in steps):
        return Walk()

    def even(room: int, k: int) -> bool:
        """Whether the first ``k`` steps go from one room to the next."""
        return all(s == room * math.prod(n for _, n in outer[j + 1 : k]) for j, (s, _) in enumerate(outer[:k]))

    first = offset if even(1, len(outer)) and not inner else None
    for k in range(len(outer), 0, -1):
        count = math.prod(n for _, n in outer[:k])
        room = lanes // count
        if lanes % count == 0 and even(room, k) and offset + sum(s * (n - 1) for s, n in steps[k:]) < room:
            return Walk(count, first)
    return Walk(1, first)
