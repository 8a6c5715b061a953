"""NumPy arrays as C sees them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from leafgrad import backends

HOST = backends.by_device_type("cpu")
DATA = object.__basicsize__  # the address of its elements is the first thing in an array object
LINE = 64


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
        types: list[Any] = [type(HOST.wrap(np.empty(0, d))) for d in dtypes]
        self.facts: tuple[tuple[Callable[[Any], Any], list[Any]], ...] = (
            (type, types),
            (attrgetter("shape"), self.shapes),
            (attrgetter("dtype"), self.dtypes),
        )

    def check(self, arrays: Sequence[Any]) -> None:
        """Raises TypeError if they are not."""
        if any(list(map(read, arrays)) != expected for read, expected in self.facts):
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
    for k, array in enumerate(arrays):
        if array is None:
            continue
        if not array.flags.c_contiguous or not array.flags.aligned:
            array = arrays[k] = array.copy("C")
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
