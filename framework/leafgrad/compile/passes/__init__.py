"""Passes: verbs that take a graph to an equal one that costs less."""

from __future__ import annotations

from collections.abc import Callable

from leafgrad.compile.graph import Graph
from leafgrad.compile.passes.factor_sums import factor_sums
from leafgrad.compile.passes.fold_constants import fold_constants
from leafgrad.compile.passes.group_elementwise import group_elementwise
from leafgrad.compile.passes.merge_equal import merge_equal
from leafgrad.compile.passes.remove_dead import remove_dead
from leafgrad.compile.passes.settle_signs import settle_signs
from leafgrad.compile.passes.share_scales import share_scales
from leafgrad.compile.passes.simplify import simplify

__all__ = [
    "FINISH",
    "PASSES",
    "factor_sums",
    "fold_constants",
    "group_elementwise",
    "merge_equal",
    "optimize",
    "remove_dead",
    "settle_signs",
    "share_scales",
    "simplify",
]

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (
    remove_dead,
    merge_equal,
    fold_constants,
    simplify,
    remove_dead,
    factor_sums,
    remove_dead,
    share_scales,
    remove_dead,
)
FINISH: tuple[Pass, ...] = (settle_signs, remove_dead, group_elementwise)
ROUNDS = 8


def optimize(graph: Graph) -> Graph:
    """The graph after `PASSES`, in rounds until nothing changes, and then once after `FINISH`.

    Results equal those of the graph as it was traced to a few units in the last place; where a value overflows or is
    nan on the way, it may do so elsewhere.
    """
    for _ in range(ROUNDS):
        before = graph.equations
        for step in PASSES:
            graph = step(graph)
        if unchanged(before, graph.equations):
            break
    for step in FINISH:
        graph = step(graph)
    return graph


def unchanged(before: tuple[object, ...], after: tuple[object, ...]) -> bool:
    return len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))
