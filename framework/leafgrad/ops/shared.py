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
    """Whether somebody else has an array, or memory that it shows, or a tuple of some."""
    while getrefcount(made) <= getrefcount(sole):
        if getattr(made, "base", None) is None:
            return False
        sole.base = Sole()
        made, sole = made.base, sole.base
    return True
