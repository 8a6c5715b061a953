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
    before = (slice(None),) * dim
    longest = max([stop - start for start, stop in ranges], default=0)
    out = xp.zeros((*x.shape[:dim], len(ranges), *x.shape[dim + 1 :]), dtype=x.dtype)
    if len(ranges) < longest:
        for i, (start, stop) in enumerate(ranges):
            out[(*before, i)] = total(x[(*before, slice(start, stop))], (dim,), False)
        return out
    for k in range(longest):  # the first element of all ranges, the second of all that have one, ...
        to, of = _keys(xp, ranges, k)
        if k == 0:
            out[(*before, to)] = x[(*before, of)]
        else:
            out[(*before, to)] += x[(*before, of)]
    return out


def _keys(xp: Any, ranges: Ranges, k: int) -> tuple[Any, Any]:
    """Which ranges have an element k, and which elements these are: slices, or arrays."""
    to, of = _places(ranges, k)
    return (
        to if type(to) is slice else xp.asarray(to, dtype="int64"),
        of if type(of) is slice else xp.asarray(of, dtype="int64"),
    )


@functools.lru_cache(maxsize=1024)
def _places(ranges: Ranges, k: int) -> tuple[slice | list[int], slice | list[int]]:
    having = [i for i, (start, stop) in enumerate(ranges) if stop - start > k]
    return _spaced(having), _spaced([ranges[i][0] + k for i in having])


def _spaced(places: list[int]) -> slice | list[int]:
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
