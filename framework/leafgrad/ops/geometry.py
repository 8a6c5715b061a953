"""Which dimension of a result comes from where: the one definition, for ops, vmap, the compiler and executors."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from leafgrad.ops.abstract import Shape, broadcast_shape


def index_axes(ndim: int, dims: Shape, width: int) -> tuple[int, ...]:
    """Where each dimension of the result of ``index`` comes from.

    The dimensions of the index arrays stand where the chosen ones stood if these are next to each other, else first.

    Args:
        ndim: of the array. dims: which of its dimensions are chosen from, ascending.
        width: the number of dimensions that the index arrays broadcast to.

    Returns:
        For each dimension of the result, the dimension of the array that it is; negative ones, -width to -1, are those
        of the index arrays.
    """
    kept = [d for d in range(ndim) if d not in dims]
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    return (*kept[:first], *range(-width, 0), *kept[first:])


def index_shape(shape: Shape, at: Sequence[Shape], dims: Shape) -> Shape:
    """The shape of ``index``'s result for an array of ``shape`` and index arrays of the shapes ``at``.

    Raises:
        IndexError: the index arrays do not broadcast.
    """
    try:
        common = broadcast_shape(at)
    except ValueError:
        raise IndexError(f"shape mismatch: index arrays of shapes {[list(s) for s in at]} do not broadcast") from None
    return tuple([shape[a] if a >= 0 else common[a] for a in index_axes(len(shape), dims, len(common))])


def moved(ndim: int, source: int, target: int) -> tuple[int, ...]:
    """The order of ``ndim`` dimensions in which ``source`` is at ``target``, the others as they were."""
    order = [d for d in range(ndim) if d != source]
    order.insert(target, source)
    return tuple(order)


@functools.lru_cache(maxsize=1024)
def inverse(order: Shape) -> tuple[int, ...]:
    """The permutation that undoes another one."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def window_count(n: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many windows fit on n elements, ``padding`` more on both sides together; less than 1 if none does."""
    return (n + padding - dilation * (kernel - 1) - 1) // stride + 1


def window_span(count: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """On how many elements, with that padding, so many windows fit exactly; the inverse of ``window_count``."""
    return (count - 1) * stride + dilation * (kernel - 1) + 1 - padding


def descends(strides: Sequence[float]) -> bool:
    """Whether dimensions lie in memory in their own order, with or without gaps, so that no other operand counts."""
    outer = math.inf
    for step in strides:
        if not 0 < step < outer:
            return False
        outer = step
    return True


@functools.lru_cache(maxsize=512)
def memory_order(shape: Shape, strides: tuple[Shape, ...]) -> Shape:
    """The dimensions of an elementwise result as they lie in memory, outermost first, as PyTorch has them.

    The first of the operands decides, and where its strides do not, being 0 or equal, the next.

    Args:
        strides: of each operand, 0 where it is broadcast to ``shape``.
    """
    order = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            swaps = _swaps(shape, strides, order[j], order[at])
            if swaps is None:
                continue
            if not swaps:
                break
            order[j], order[at] = order[at], order[j]
            at = j
    return tuple(reversed(order))


def _swaps(shape: Shape, strides: Sequence[Shape], inner: int, outer: int) -> bool | None:
    """Whether two dimensions are to change places; None where no operand tells."""
    for steps in strides:
        a, b = abs(steps[inner]), abs(steps[outer])
        if not a or not b:
            continue
        if a != b:
            return a > b
        if shape[inner] > shape[outer]:
            return True
    return None
