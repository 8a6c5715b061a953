"""What stands for a number where one of Python's is wanted: NumPy's, and of ints whatever has ``__index__``."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable
from typing import Any, Final

from leafgrad import modes

CATEGORY: Final = {bool: 0, int: 1, float: 2, complex: 3}


def as_int(value: Any) -> int | None:
    """What stands for an int, as NumPy's integers and tensors of one integer do, as an int; None for all else.

    True and False stand for none.
    """
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    if getattr(getattr(value, "dtype", None), "kind", "") == "b":  # NumPy before 2.3 takes these for 0 and 1
        return None
    try:
        return operator.index(value) if hasattr(type(value), "__index__") else None
    except TypeError:
        return None


def as_ints(value: Any) -> Any:
    """``value``, or a tuple of it where it stands for one int."""
    return value if (one := as_int(value)) is None else (one,)


def as_flag(value: Any) -> Any:
    """NumPy's True or False as Python's; anything else as it is."""
    known = isinstance(value, (bool, int, float, str)) or not hasattr(value, "ndim")
    return value if known or type(found := as_number(value)) is not bool else found


def as_number(value: Any) -> Any:
    """A number, as NumPy's are, as one of Python's; None for all else. One that a recording follows stays."""
    if type(value) in CATEGORY:
        return value
    kind: Any = value.__class__
    if kind in CATEGORY:  # a number that a recording follows
        return value if modes.tracer() else kind(value)
    if isinstance(value, numbers.Number) and hasattr(value, "item"):
        return value.item()
    if getattr(value, "ndim", None) == 0 and not isinstance(value, Iterable) and type(value.item()) is bool:
        return value.item()  # NumPy's, which is no Number
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, complex):
        return complex(value)
    return None
