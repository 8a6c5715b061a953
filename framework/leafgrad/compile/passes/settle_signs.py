"""Put signs back into the numbers that they were taken from."""

from __future__ import annotations

from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.passes.rewrite import Rewriter, rewrite
from leafgrad.compile.passes.rules.arithmetic import times_number
from leafgrad.ops.elementwise import mul, neg


def settle_signs(graph: Graph) -> Graph:
    """The graph with -(c x) as (-c) x. `simplify` does the opposite, so this comes last."""
    return rewrite(graph, {neg: (into_number,)})


def into_number(r: Rewriter, e: Equation) -> Value | None:
    (x,) = e.inputs
    found = times_number(r, x)
    return r.emit(mul, found[0], -found[1]) if found is not None and r.once(x) else None
