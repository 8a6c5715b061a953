"""Sums over ranges of one dimension: averages over windows, nearest neighbours, interpolation, and their transposes."""

from __future__ import annotations

import functools
from bisect import bisect_right
from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.half import total

Range = tuple[int, int]
Ranges = tuple[Range, ...]

MANY = 8  # elements in a range, or ranges that an element is in


@op("linear")
def range_sum(xp: Any, x: Any, *, ranges: Ranges, dim: int) -> Any:
    """Sums of x over ``ranges`` (start, stop) of ``dim``. (..., n, ...) -> (..., m, ...)

    Neither starts nor stops fall from one range to the next. They may overlap and leave elements out; an empty one
    gives 0.
    """
    if x.dtype == "float16":
        return range_sum.forward(xp, x.astype("float32"), ranges=ranges, dim=dim).astype("float16")
    before, (pairs, steps) = (slice(None),) * dim, _steps(ranges)
    if steps and pairs:
        (_, _, first), (_, _, second), *steps = steps
        out = x[(*before, _key(xp, first))] + x[(*before, _key(xp, second))]
    else:
        out = xp.zeros((*x.shape[:dim], len(ranges), *x.shape[dim + 1 :]), dtype=x.dtype)
        if steps is None:
            for i, (start, stop) in enumerate(ranges):
                out[(*before, i)] = total(x[(*before, slice(start, stop))], (dim,), False)
        elif steps and steps[0][0] == 1:
            (_, to, of), *steps = steps
            out[(*before, _key(xp, to))] = x[(*before, _key(xp, of))]
    sums, length = x, 1  # of so many elements from each on
    for size, to, of in steps or ():
        while length < size:
            sums = sums[(*before, slice(None, -length))] + sums[(*before, slice(length, None))]
            length *= 2
        out[(*before, _key(xp, to))] += sums[(*before, _key(xp, of))]
    return out


Places = slice | list[int]
Step = tuple[int, Places, Places]  # of how many elements, for which ranges, from where on


@functools.lru_cache(maxsize=1024)
def _steps(ranges: Ranges) -> tuple[bool, list[Step] | None]:
    """How to add up what is in the ranges, and whether the first two steps add one element to each of them.

    One element after the other; of long ranges 1, 2, 4, 8, … together, as the size of each is made of these. None where
    ranges are larger than there are many, and hardly overlap.
    """
    sizes, starts = [stop - start for start, stop in ranges], [start for start, _ in ranges]
    longest, few, steps = max(sizes, default=0), len(ranges) < max(sizes, default=0), []
    if longest > MANY and (not few or sum(sizes) > MANY * (ranges[-1][1] - starts[0])):
        for size in [1 << k for k in range(longest.bit_length())]:
            having = [i for i, n in enumerate(sizes) if n & size]
            if having:
                steps.append((size, _spaced(having), _spaced([starts[i] + sizes[i] % size for i in having])))
        return False, steps
    if few:
        return False, None
    for k in range(longest):
        having = [i for i, size in enumerate(sizes) if size > k]
        steps.append((1, _spaced(having), _spaced([starts[i] + k for i in having])))
    return min(sizes, default=0) > 1, steps


def _key(xp: Any, places: Places) -> Any:
    return places if type(places) is slice else xp.asarray(places, dtype="int64")


def _spaced(places: list[int]) -> Places:
    """Places as a slice if they are evenly spaced."""
    step = places[1] - places[0] if len(places) > 1 else 1
    if step > 0 and places == list(range(places[0], places[-1] + 1, step)):
        return slice(places[0], places[-1] + 1, step)
    return places


@functools.lru_cache(maxsize=1024)
def dual(ranges: Ranges, n: int) -> Ranges:
    """For each of n elements, the range of those ``ranges`` that it is in."""
    starts, stops = [r[0] for r in ranges], [r[1] for r in ranges]
    return tuple((bisect_right(stops, j), bisect_right(starts, j)) for j in range(n))


range_sum.vjp(
    x=lambda g, x_shape, *, ranges, dim: range_sum(g, ranges=dual(ranges, x_shape[dim]), dim=dim),
)  # fmt: skip
range_sum.batched(lambda call: call.along())
range_sum.lower("cuda", lambda c, e: c.ranged(e.params["ranges"], e.params["dim"]))
