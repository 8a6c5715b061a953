"""When the numbers of a call are not followed: its code, or an error, may tell that something stands for them."""

from __future__ import annotations

from collections.abc import Sequence

from leafgrad.compile.guard.environment import Place
from leafgrad.compile.record.growing import READING
from leafgrad.compile.record.symbolic import NUMBERS, SymbolicNumber
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.watch import Codes, is_ours

CONVERSIONS = frozenset("__float__ __int__ __index__ __complex__ __len__ __length_hint__ __hash__".split())
COMMON = frozenset("__hash__ __repr__ __str__ __format__".split())  # what other objects are asked for, too
NUMERIC = {n for kind in NUMBERS for n in vars(kind) if not n.startswith("__") or n in vars(SymbolicNumber)} - COMMON
ASKING = frozenset({"type", "__class__", "TypeError"}) | NUMERIC  # one may be caught that is a symbolic number's
SLOTS = frozenset({"getattr", *(name for name in READING if name.startswith("__"))})


class Unfollowed(Exception):
    """The Python fails, or may go another way, by a symbolic number; nothing has been done."""


class NewCode(Unclosed):
    """Code of the user began that the call before did not execute, so that numbers are no longer followed."""


class Changes(Unclosed):
    """The call changes numbers or tensors in places that are guarded."""

    def __init__(self, places: Sequence[Place], what: str | None = None) -> None:
        super().__init__(what or f"it changes {places[0].path}")
        self.places = places


def asks_types(codes: Codes) -> bool:
    """Whether code of the user may see, or show to C, that a symbolic number is not of the type that it says."""
    return any(code.co_name in CONVERSIONS or not ASKING.isdisjoint(code.co_names) for code in codes.of_users())


def calls_slots(codes: Codes) -> bool:
    """Whether code of the user may call ``list.__len__`` or the like, which no subclass of list hears of."""
    return any(not SLOTS.isdisjoint(code.co_names) for code in codes.of_users())


def may_be_of_numbers(error: BaseException) -> bool:
    """Whether an error may be that of a symbolic number: C's, which it is not what it seems for, or a check of ours."""
    if isinstance(error, MemoryError):
        return False
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return isinstance(error, TypeError) or at is None or is_ours(at.tb_frame.f_code.co_filename)
