"""The variables of functions that run, in the place of whose values others are put."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def replace_variables(frame: FrameType, function: Callable[[Any], Any]) -> None:
    """Give each variable of a function that runs what ``function`` makes of its value."""
    variables = frame.f_locals
    found = {name: made for name, value in variables.items() if (made := function(value)) is not value}
    variables.update(found)
    if found and sys.version_info < (3, 13):  # where that is a copy
        from ctypes import c_int, py_object, pythonapi  # seldom needed

        pythonapi.PyFrame_LocalsToFast(py_object(frame), c_int(0))
