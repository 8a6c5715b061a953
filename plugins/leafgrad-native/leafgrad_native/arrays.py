"""NumPy arrays as C sees them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

DATA = object.__basicsize__  # the address of its elements is the first thing in an array object
LINE = 64


def aligned(size: int) -> Any:
    """So many bytes, on the boundary of a cache line."""
    block = np.empty(size + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    return block[start : start + size]


def point(table: Any, arrays: list[Any]) -> None:
    """Write the addresses of ``arrays`` into ``table``; those that C cannot walk in order are replaced by copies."""
    for k, array in enumerate(arrays):
        if array is None:
            continue
        if not array.flags.c_contiguous or not array.flags.aligned:
            array = arrays[k] = np.ascontiguousarray(array).copy()
        table[k] = address(array)


def through_object(array: Any) -> int:
    """The address of the first element, read from the array object itself."""
    return ctypes.c_void_p.from_address(id(array) + DATA).value or 0


def through_interface(array: Any) -> int:
    """The same through NumPy's public door, which costs a dict."""
    found: int = array.__array_interface__["data"][0]
    return found


def trusted(samples: Sequence[Any]) -> bool:
    """Whether array objects are laid out as CPython's NumPy has them."""
    return all(through_object(a) == through_interface(a) for a in samples)


_SAMPLES = [np.arange(7.0), np.arange(7.0)[3:], np.zeros((2, 3), np.float32), np.array(1.5)]
address = through_object if trusted(_SAMPLES) else through_interface
