"""Sums over ranges of one dimension: averages over windows, nearest neighbours, interpolation, and their transposes."""

from __future__ import annotations

import functools
from bisect import bisect_right
from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.half import total

Range = tuple[int, int]
Ranges = tuple[Range, ...]


@op("linear")
def range_sum(xp: Any, x: Any, *, ranges: Ranges, dim: int) -> Any:
    """Sums of x over ``ranges`` (start, stop) of ``dim``. (..., n, ...) -> (..., m, ...)

    Neither starts nor stops fall from one range to the next. They may overlap and leave elements out; an empty one
    gives 0.
    """
    if x.dtype == "float16":
        return range_sum.forward(xp, x.astype("float32"), ranges=ranges, dim=dim).astype("float16")
    before, (shortest, steps) = (slice(None),) * dim, _steps(ranges)
    if steps and shortest > 1:  # all have a first and a second element
        (_, first), (_, second), *steps = steps
        out = x[(*before, _key(xp, first))] + x[(*before, _key(xp, second))]
    else:
        out = xp.zeros((*x.shape[:dim], len(ranges), *x.shape[dim + 1 :]), dtype=x.dtype)
        if steps is None:
            for i, (start, stop) in enumerate(ranges):
                out[(*before, i)] = total(x[(*before, slice(start, stop))], (dim,), False)
        elif steps:
            (to, of), *steps = steps
            out[(*before, _key(xp, to))] = x[(*before, _key(xp, of))]
    for to, of in steps or ():
        out[(*before, _key(xp, to))] += x[(*before, _key(xp, of))]
    return out


Places = slice | list[int]


@functools.lru_cache(maxsize=1024)
def _steps(ranges: Ranges) -> tuple[int, list[tuple[Places, Places]] | None]:
    """The size of the smallest range; and which have a first element, a second, …, and which elements these are.

    None where ranges are larger than there are many.
    """
    sizes, steps = [stop - start for start, stop in ranges], []
    if len(ranges) < max(sizes, default=0):
        return min(sizes), None
    for k in range(max(sizes, default=0)):
        having = [i for i, size in enumerate(sizes) if size > k]
        steps.append((_spaced(having), _spaced([ranges[i][0] + k for i in having])))
    return min(sizes, default=0), steps


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
