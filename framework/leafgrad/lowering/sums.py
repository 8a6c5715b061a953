"""Sums over a batch that are only added to each other: one accumulator for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.lowering.expressions import FLOATS
from leafgrad.lowering.pattern import Pattern
from leafgrad.lowering.patterns import Elementwise


def joined(
    summed: Iterable[Value],
    equations: Iterable[Equation],
    patterns: Mapping[Equation, Pattern | None],
    free: set[Value],
) -> tuple[dict[Value, Value], list[Equation]]:
    """What the accumulator of each sum holds after the loop, and the additions that are done with it.

    Args:
        summed: the sums of one loop.
        equations: among which their additions are, in order.
        patterns: how equations are lowered.
        free: the values that one equation reads, and nobody else.
    """
    parts = {v: [v] for v in summed}
    additions: list[Equation] = []
    for e in equations:
        if not adds(patterns[e], e):
            continue
        x, y = e.values
        if x is not y and all(v in parts and v in free and v.shape == e.out.shape for v in (x, y)):
            parts[e.out] = parts.pop(x) + parts.pop(y)
            additions.append(e)
    return {part: end for end, found in parts.items() for part in found}, additions


def adds(pattern: Pattern | None, e: Equation) -> bool:
    """Whether it is the sum of two arrays of one dtype."""
    return (
        isinstance(pattern, Elementwise)
        and pattern.body.text == "x + y"
        and e.out.dtype in FLOATS
        and len(list(e.values)) == 2
        and all(v.dtype == e.out.dtype for v in e.values)
    )
