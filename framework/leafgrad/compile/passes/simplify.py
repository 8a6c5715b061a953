"""Replace what algebra allows by what costs less. The rules are in `rules`, a file per subject."""

from __future__ import annotations

from leafgrad.compile.graph import Graph
from leafgrad.compile.passes.rewrite import Rule, rewrite
from leafgrad.compile.passes.rules import (
    activation,
    arithmetic,
    choice,
    classes,
    layout,
    normalize,
    parts,
    product,
    reduction,
)
from leafgrad.ops.op import Op

SUBJECTS = tuple(
    s.RULES for s in (layout, arithmetic, reduction, product, parts, choice, activation, classes, normalize)
)


def collect() -> dict[Op, tuple[Rule, ...]]:
    rules: dict[Op, tuple[Rule, ...]] = {}
    for subject in SUBJECTS:
        for op, found in subject.items():
            rules[op] = rules.get(op, ()) + found
    return rules


RULES = collect()


def simplify(graph: Graph) -> Graph:
    """The graph with fewer and cheaper equations, and the same results to a few ulp."""
    return rewrite(graph, RULES, (layout.elementwise_of_expanded,))
