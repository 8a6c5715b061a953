"""Who holds objects: the variables of functions that run, in the place of whose values others are put, and all else."""

from __future__ import annotations

import gc
import operator
import sys
from collections.abc import Callable, Sequence
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

SEEING = frozenset({"locals", "vars", "eval", "exec", "dir"})  # functions that may give a function that dict
COPIED = sys.version_info < (3, 13)  # whether f_locals is a copy, which stays with the frame


def replace_variables(frame: FrameType, function: Callable[[Any], Any], told: bool = False) -> None:
    """Give each variable of a function that runs what ``function`` makes of its value.

    Args:
        told: whether a profile function is told of the frame now, after which Python takes over what f_locals has.
    """
    variables = frame.f_locals
    found = {name: made for name, value in variables.items() if (made := function(value)) is not value}
    variables.update(found)
    if COPIED and not told and frame.f_code.co_flags & CO_OPTIMIZED:
        from ctypes import c_int, py_object, pythonapi  # seldom needed

        pythonapi.PyFrame_LocalsToFast(py_object(frame), c_int(0))
        if SEEING.isdisjoint(frame.f_code.co_names):
            variables.clear()  # which would keep what they hold until the function is over


def referrers(held: Sequence[Any]) -> list[Any]:
    """What holds any of these objects but the list that has them here, as far as the garbage collector knows.

    It is to see again what ``gc.freeze()`` has hidden from it. From Python 3.13 on it finds the tuple of its own
    arguments, too, which nothing else holds.
    """
    if not held:
        return []
    if gc.get_freeze_count():
        gc.unfreeze()
    found, lone = gc.get_referrers(*held), [object()]
    alone = sys.getrefcount(lone[0])

    def is_own(k: int) -> bool:
        r = found[k]
        same = type(r) is tuple and len(r) == len(held) and all(map(operator.is_, r, held))
        return r is held or (same and sys.getrefcount(r) <= alone + 1)

    return [found[k] for k in range(len(found)) if not is_own(k)]


def being_shown() -> list[Any]:
    """The objects of which Python makes a text now, which it must find again."""
    from ctypes import c_void_p, cast, py_object, pythonapi

    state = pythonapi.PyThreadState_GetDict
    state.restype = c_void_p  # whose reference is not ours
    return cast(c_void_p(state()), py_object).value.get("Py_Repr", [])
