"""float16 in ops: stored in 16 bits, added up in float32 and rounded once; and which numbers it holds."""

from __future__ import annotations

import math
import struct
from typing import Any

LARGEST = 65504.0


def accumulator(dtype: Any) -> Any:
    """The dtype in which numbers of a dtype are added up: ones in float16 would stop at 2048."""
    return "float32" if dtype == "float16" else dtype


def total(x: Any, dim: int | tuple[int, ...] | None, keepdim: bool) -> Any:
    """The sum of an array, float16 added up in float32."""
    if x.dtype == "float16":
        return x.sum(axis=dim, keepdims=keepdim, dtype="float32").astype("float16")
    return x.sum(axis=dim, keepdims=keepdim)


def nearest(number: float) -> float:
    """The float16 that is nearest to a number."""
    try:
        return float(struct.unpack("e", struct.pack("e", float(number)))[0])
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def holds(number: Any) -> bool:
    """Whether float16 holds a number as it is."""
    return not isinstance(number, complex) and nearest(number) == number
