"""NumPy arrays as C sees them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any

import numpy as np

from leafgrad import backends
from leafgrad_native import pool

HOST = backends.by_device_type("cpu")
DATA = object.__basicsize__  # the address of its elements is the first thing in an array object
FLAGS = DATA + 6 * ctypes.sizeof(ctypes.c_void_p)  # behind how many dimensions, lengths, strides, base and dtype
LINE = 64
SHAPE, DTYPE = attrgetter("shape"), attrgetter("dtype")


def aligned(size: int) -> Any:
    """So many bytes, on the boundary of a cache line."""
    block = np.empty(size + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    return block[start : start + size]


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of any dtype that tensors have, in the class that they have it in."""
    return HOST.wrap(np.empty(shape, dtype))


class Expected:
    """What arrays must be whose memory C reads, since C would read beside others without noticing.

    Args:
        names: of the arrays, for the error.
        shapes: of each.
        dtypes: of each.
        giver: who hands them over, for the error.
    """

    def __init__(
        self, names: Sequence[str], shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], giver: str
    ) -> None:
        self.names = list(names)
        self.shapes = list(shapes)
        self.dtypes = list(map(np.dtype, dtypes))
        self.giver = giver
        self.facts = [
            (type(HOST.wrap(np.empty(0, d))), shape, d) for shape, d in zip(self.shapes, self.dtypes, strict=True)
        ]

    def check(self, arrays: Sequence[Any]) -> None:
        """Raises TypeError if they are not."""
        try:
            if [*zip(map(type, arrays), map(SHAPE, arrays), map(DTYPE, arrays), strict=True)] == self.facts:
                return
        except AttributeError:  # of what is no array
            pass
        self.check_each(arrays)

    def check_each(self, arrays: Sequence[Any]) -> None:
        """The same with an error that names the array."""
        if len(arrays) != len(self.names):
            raise TypeError(f"{self.giver} gave {len(arrays)} arrays, expected {len(self.names)}")
        for a, name, shape, dtype in zip(arrays, self.names, self.shapes, self.dtypes, strict=True):
            if not isinstance(a, np.ndarray):
                raise TypeError(
                    f"{self.giver} gave a {type(a).__name__} for {name}, expected an array of NumPy's, {dtype} of "
                    f"shape {shape}: make it one with numpy.asarray"
                )
            if (a.shape, a.dtype) != (shape, dtype):
                raise TypeError(
                    f"{self.giver} gave {a.dtype} of shape {a.shape} for {name}, expected {dtype} of shape {shape} as "
                    "when the program was made; it must not depend on values"
                )


def point(table: Any, arrays: list[Any]) -> None:
    """Write the addresses of ``arrays`` into ``table``; those that C cannot walk in order are replaced by copies."""
    k, first = 0, through_objects if trusted() else through_interface
    while (k := first(table, arrays, k)) < len(arrays):
        arrays[k] = arrays[k].copy("C")


through_objects: Callable[[Any, list[Any], int], int] = partial(pool.point, data=DATA, flags=FLAGS)
"""The number of the first array that C cannot walk; addresses of those before it, read from array objects."""


def through_interface(table: Any, arrays: list[Any], first: int) -> int:
    """The same through NumPy's public door, which costs a dict for each array."""
    for k in range(first, len(arrays)):
        array = arrays[k]
        if array is None:
            continue
        if not array.flags.c_contiguous or not array.flags.aligned:
            return k
        table[k] = array.__array_interface__["data"][0]
    return len(arrays)


@cache
def trusted() -> bool:
    """Whether array objects are laid out as CPython's NumPy has them."""
    if np.ndarray.__basicsize__ < FLAGS + ctypes.sizeof(ctypes.c_int):
        return False
    odd = np.zeros(17, np.uint8)[1:].view(np.float64)
    samples = [np.arange(7.0), np.arange(7.0)[3:], None, np.zeros((2, 3), np.float32), np.array(1.5), np.ones((0, 2))]
    samples += [odd, np.arange(7)[::2], np.ones((2, 3)).T]
    tables = [(ctypes.c_void_p * len(samples))() for _ in range(2)]
    for first in range(len(samples)):
        ends = [read(t, samples, first) for read, t in zip((through_objects, through_interface), tables, strict=True)]
        if ends[0] != ends[1] or list(tables[0]) != list(tables[1]):
            return False
    return True
