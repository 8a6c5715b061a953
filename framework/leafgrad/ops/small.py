"""Small arrays of NumPy's, where a call costs more than its arithmetic: numbers as arrays, and sums as products.

A product with ones takes a third of a reduction. Where each element gets the sum of its row, what follows need not
broadcast, which NumPy takes three times as long for.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

SMALL = 4096  # elements of an array for which memory costs less than a call


@functools.lru_cache(maxsize=256)
def known(xp: Any, value: float, dtype: Any) -> Any:
    """A number as an array, which takes half the time of a number of Python's where the others are small."""
    found = xp.array(value, dtype)
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=128)
def repeated(xp: Any, shape: tuple[int, ...], value: float, dtype: Any) -> Any:
    """An array of one number, to multiply others by: their sums or, with one over a count, their means."""
    found = xp.full(shape, value, dtype)
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=256)
def summing(
    xp: Any, shape: tuple[int, ...], dtype: Any, dim: int | tuple[int, ...] | None, by: float = 1
) -> Callable[[Any], Any]:
    """What adds up an array of float32 or float64, with elements, over ``dim``, which is kept, multiplied ``by``."""
    n = shape[-1]
    if n * math.prod(shape) <= SMALL and dim in (len(shape) - 1, (len(shape) - 1,)):
        return operator.methodcaller("dot", repeated(xp, (n, n), by, dtype))  # each element gets the sum of its row
    total, factor = functools.partial(xp.add.reduce, axis=dim, keepdims=True), known(xp, by, dtype)
    return total if by == 1 else lambda x: total(x) * factor


Adding = Callable[[Any], Any]


@functools.lru_cache(maxsize=1024)
def adding(
    xp: Any, shape: tuple[int, ...], dtype: Any, dim: int | tuple[int, ...] | None, keepdim: bool = False
) -> Adding | None:
    """What adds up a small array over ``dim``, which are the last, the leading, or all of its dimensions; else None.

    It is one of float32 or float64 with more than one element.
    """
    size, ndim = math.prod(shape), len(shape)
    if dtype.char not in "fd" or not 1 < size <= SMALL or dim == ():  # the product of -0.0 with 1 is no sum
        return None
    gone = tuple(range(ndim)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    if gone == (ndim - 1,) and ndim > 1:
        return operator.methodcaller("dot", repeated(xp, (shape[-1], 1)[: 1 + keepdim], 1, dtype))
    lead = len(gone)
    if not ndim or gone != tuple(range(lead)):
        return None
    n, rest = math.prod(shape[:lead]), shape[lead:]
    dot, rows = repeated(xp, (n,) if rest else (1, n), 1, dtype).dot, (n, size // n) if rest else n
    if ndim == 2 and lead == 1 and not keepdim:
        found: Adding = dot
        return found
    target = (1,) * lead * keepdim + rest
    return lambda x: dot(x.reshape(rows)).reshape(target)


@functools.lru_cache(maxsize=1024)
def adding_to(xp: Any, wide: tuple[int, ...], dtype: Any, shape: tuple[int, ...]) -> Adding | None:
    """What adds up a small array of the shape ``wide`` over its leading dimensions, where they lead to ``shape``."""
    lead = len(wide) - len(shape)
    return adding(xp, wide, dtype, tuple(range(lead))) if lead > 0 and wide[lead:] == shape else None
