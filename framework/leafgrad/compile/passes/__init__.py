"""Passes: verbs that take a graph to an equal one that costs less."""

from __future__ import annotations

from collections.abc import Callable

from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.passes.factor_sums import factor_sums
from leafgrad.compile.passes.fold_constants import fold_constants
from leafgrad.compile.passes.group_elementwise import group_elementwise
from leafgrad.compile.passes.remove_dead import remove_dead
from leafgrad.compile.passes.settle_signs import settle_signs
from leafgrad.compile.passes.share_scales import share_scales
from leafgrad.compile.passes.simplify import simplify
from leafgrad.compile.passes.widen import widen

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (remove_dead, fold_constants, simplify, remove_dead, factor_sums, remove_dead)
FINISH: tuple[Pass, ...] = (share_scales, settle_signs, remove_dead, group_elementwise)
ROUNDS = 8


def optimize(graph: Graph) -> Graph:
    """The graph after `widen`, `PASSES`, one after the other until none changes it, and then once after `FINISH`.

    Results equal those of the graph as it was traced to a few units in the last place. Sums and products that a program
    says are computed in its order; in those of its derivatives a value may overflow elsewhere on the way. A graph with
    complex numbers stays as it is, but for what nobody needs.
    """
    if any(v.dtype.startswith("complex") for e in graph.equations for v in (*e.values, *e.outputs)):
        return remove_dead(graph)  # the rules are those of real numbers: the larger of two, signs, roots of squares
    idle, graph = 0, widen(graph)
    for step in PASSES * ROUNDS:
        before, graph = graph, step(graph)
        idle = idle + 1 if graph is before else 0
        if idle == len(PASSES):
            break
    for step in FINISH:
        graph = step(graph)
    return graph
