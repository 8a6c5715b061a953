"""Scale a factor once instead of each product that it is in."""

from __future__ import annotations

from collections import Counter

from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.passes.rewrite import Rewriter, rewrite, size
from leafgrad.compile.passes.rules.arithmetic import scaled
from leafgrad.ops.elementwise import mul

Key = tuple[Value, float]


def share_scales(graph: Graph) -> Graph:
    """The graph with c (x y), c (z y), ... as x (c y), z (c y), ...: the scaled y is made once.

    Where y is smaller than the product, that pays for one product already.
    """
    readers, kept = graph.uses(), graph.kept
    wanted: Counter[Key] = Counter()

    def product(r: Rewriter, e: Equation) -> tuple[tuple[Value, ...], float] | None:
        """The factors of an elementwise product that nothing else reads, and the number by which ``e`` scales it."""
        found = scaled(r, e)
        inner = None if found is None else r.derived(found[0], mul)
        if found is None or inner is None or found[0] in kept or len(readers.get(found[0], ())) > 1:
            return None
        factors = tuple(inner.values)
        return (factors, found[1]) if len(factors) == 2 else None

    def count(r: Rewriter, e: Equation) -> None:
        if (found := product(r, e)) is not None:
            wanted.update({(v, found[1]) for v in found[0]})

    def share(r: Rewriter, e: Equation) -> Value | None:
        found = product(r, e)
        if found is None:
            return None
        (x, y), c = found
        y, x = sorted((x, y), key=lambda v: (size(v.shape), -wanted[v, c]))
        if size(y.shape) == size(e.out.shape) and wanted[y, c] < 2:
            return None
        return r.emit(mul, x, r.emit(mul, y, c))

    rewrite(graph, {mul: (count,)})
    return rewrite(graph, {mul: (share,)}) if wanted else graph
