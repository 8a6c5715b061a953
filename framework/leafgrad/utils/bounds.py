"""What reading a file may cost: time and memory in proportion to its size, whatever stands in it."""

from __future__ import annotations

from collections.abc import Hashable, Sized
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)

SHARE = 2  # elements that are copied or hashed for each byte of a file; one that was written normally needs 1 at most
FREE = 10_000  # and beside them
ALIKE = 64  # keys with one hash: -1 and -2 have, so tuples of six of them may


class Bounds:
    """Counts what is done for one file.

    Args:
        size: of the file, in bytes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.left = SHARE * size + FREE
        self.first: dict[int, Any] = {}  # by hash: the first key that had it
        self.others: dict[int, set[Any]] = {}  # and those that are not equal to that one

    def spend(self, count: int) -> None:
        """Note that so many elements, or bytes, are copied or hashed.

        Raises:
            ValueError: they are far more than the file can hold, as where it names one large thing many times.
        """
        self.left -= count
        if self.left < 0:
            raise ValueError(f"to read it takes far more than its {self.size} bytes explain")

    def copied(self, *things: Any) -> None:
        """Note that things are copied, as far as they have elements."""
        sized = (thing for thing in things if isinstance(thing, Sized) and getattr(thing, "ndim", None) != 0)
        self.spend(sum(map(len, sized)))  # those of no dimensions refuse to say their length

    def key(self, key: K) -> K:
        """A key of a dict, or an item of a set, whose parts are known to be plain.

        Strings hash by a secret, and numbers below 2**60 by their value; of tuples and complex numbers thousands can be
        made that have one hash, each of which a dict compares with all others.

        Raises:
            ValueError: there are many of one hash.
        """
        if isinstance(key, (tuple, complex)):
            self.spend(len(key) if isinstance(key, tuple) else 1)
            number = hash(key)
            if self.first.setdefault(number, key) != key:
                others = self.others.setdefault(number, set())
                others.add(key)
                if len(others) >= ALIKE:
                    raise ValueError(f"it has keys that were made to have one hash, such as {key!r:.40}")
        return key
