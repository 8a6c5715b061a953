"""How long values are needed, and what may be computed in the memory of what."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence

from leafgrad.compile.graph import Equation, Graph, Value


def roots(graph: Graph) -> dict[Value, Value]:
    """For each value the one in whose memory it may lie: its own, or that of which it is a view."""
    found: dict[Value, Value] = {v: v for v in graph.inputs}
    for e in graph.equations:
        source = e.inputs[0] if "view" in e.op.traits else None
        for v in e.outputs:
            found[v] = found[source] if isinstance(source, Value) else v
    return found


def last_uses(graph: Graph) -> dict[Value, Equation]:
    """The last equation that reads each value or a view of it; kept values and those never read have none."""
    root = roots(graph)
    kept = {root[v] for v in graph.kept}
    last: dict[Value, Equation] = {}
    for e in graph.equations:
        for v in e.values:
            last[root[v]] = e
    return {v: last[r] for v, r in root.items() if r in last and r not in kept}


def in_place(graph: Graph) -> dict[Equation, Value]:
    """For each elementwise equation that can overwrite an input with its result, that input.

    The input has the shape, dtype and device of the result, is read here for the last time, and is no input of
    the program nor a view of one.
    """
    root, last = roots(graph), last_uses(graph)
    found = {}
    for e in graph.equations:
        if "elementwise" not in e.op.traits or e.several:
            continue
        for v in e.values:
            same = (v.shape, v.dtype, v.place) == (e.out.shape, e.out.dtype, e.place)
            if same and root[v] is v and v not in graph.inputs and last.get(v) is e:
                found[e] = v
                break
    return found


def nbytes(value: Value) -> int:
    return math.prod(value.shape) * itemsize(value.dtype)


@functools.cache
def itemsize(dtype: str) -> int:
    digits = re.sub(r"\D", "", dtype)
    return int(digits) // 8 if digits else 1


def peak_bytes(graph: Graph, order: Sequence[Equation] | None = None) -> int:
    """The most memory that values made by the program take at once, if its equations run in ``order``.

    Elementwise results go into the memory of an input that dies, where `in_place` allows it.
    """
    root = roots(graph)
    live = peak = 0
    made: set[Value] = set()
    left: dict[Value, int] = {root[v]: 1 for v in graph.kept}
    for e in graph.equations:
        for v in e.values:
            left[root[v]] = left.get(root[v], 0) + 1
    for e in graph.equations if order is None else order:
        new, read = [v for v in e.outputs if root[v] is v], [root[v] for v in e.values]
        for v in read:
            left[v] -= 1
        freed = {v for v in read if not left[v] and v in made}
        reuses = freed and "elementwise" in e.op.traits and any(v.shape == e.out.shape for v in freed)
        live += sum(map(nbytes, new))
        peak = max(peak, live - (nbytes(e.out) if reuses else 0))
        live -= sum(map(nbytes, freed)) + sum([nbytes(v) for v in new if not left.get(v)])
        made -= freed
        made.update([v for v in e.outputs if left.get(v)])
    return peak
