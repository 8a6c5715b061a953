"""Memory for what programs return, used again once nobody has it any more.

A training step returns arrays as large as all parameters at each call. From the system these come as pages that are
mapped and cleared one by one as they are first written, which takes longer than most of what is computed into them.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import partial
from sys import getrefcount
from typing import Any
from weakref import WeakValueDictionary

from leafgrad.compile.ir.graph import itemsize
from leafgrad.ops.dispatch import EXPOSED

LARGE = 1 << 17  # bytes, from which on the C library takes memory from the system, and gives it back

Kind = tuple[tuple[int, ...], str]  # shape and dtype
Make = Callable[[tuple[int, ...], str], Any]


def _alone() -> int:
    """What `getrefcount` says of what only the variable has that it is given."""
    probe = deque[Any]([[]]).popleft()
    return getrefcount(probe)


ALONE = _alone()


class Shelf:
    """Arrays of one kind that programs returned.

    Attributes:
        most: how many are kept: twice what a call returns, for the next one may begin while these are still there.
        arrays: one that is looked at is not among them meanwhile, so that no other thread finds it.
    """

    def __init__(self) -> None:
        self.most = 0
        self.arrays: deque[Any] = deque()

    def take(self) -> Any:
        """An array that nobody else has, or None. One is left out whose memory somebody may have without the array."""
        for _ in range(len(self.arrays)):
            try:
                array = self.arrays.popleft()
            except IndexError:  # other threads are looking at the others
                return None
            if id(array) in EXPOSED:
                continue
            alone = getrefcount(array) <= ALONE
            self.arrays.append(array)
            if alone:
                return array
        return None


SHELVES: WeakValueDictionary[Kind, Shelf] = WeakValueDictionary()


class Reused:
    """Makes the arrays of a program's results, whose elements mean nothing; programs share what is free of a kind.

    Args:
        kinds: of all that one call makes.
        make: makes a new array.
    """

    def __init__(self, kinds: Iterable[Kind], make: Make) -> None:
        self.make = make
        self.shelves: dict[Kind, Shelf] = {}
        for kind, count in Counter(k for k in kinds if math.prod(k[0]) * itemsize(k[1]) >= LARGE).items():
            shelf = self.shelves[kind] = SHELVES.setdefault(kind, Shelf())
            shelf.most = max(shelf.most, 2 * count)

    def maker(self, shape: tuple[int, ...], dtype: str) -> Callable[[], Any]:
        """What makes arrays of a kind."""
        return partial(self if (shape, dtype) in self.shelves else self.make, shape, dtype)

    def __call__(self, shape: tuple[int, ...], dtype: str) -> Any:
        shelf = self.shelves.get((shape, dtype))
        if shelf is None:
            return self.make(shape, dtype)
        array = shelf.take()
        if array is None:
            array = self.make(shape, dtype)
            if array.base is None and len(shelf.arrays) < shelf.most:  # views of a view hold what owns the memory
                shelf.arrays.append(array)
        return array
