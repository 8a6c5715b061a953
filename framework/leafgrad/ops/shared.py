"""Whether what the code of others returns is theirs alone to give: a constant, or a cached array, would be written.

Python counts who has an object. What nobody else has is counted as often as an object that was made for this, and is
held at the same places.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any


class Sole:
    """Is held by whoever asks, wherever what he asks about is."""

    __slots__ = ("base",)
    base: Any


def is_shared(made: Any, sole: Sole) -> bool:
    """Whether somebody else has, or may have, an array, or memory that it shows, or a tuple of some.

    Of memory that is no array, as of what NumPy is lent by another library, nobody knows who has it.
    """
    while getrefcount(made) <= getrefcount(sole):
        if getattr(made, "base", None) is None:
            return False
        if not hasattr(made.base, "base"):
            return True
        sole.base = Sole()
        made, sole = made.base, sole.base
    return True
