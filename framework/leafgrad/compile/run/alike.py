"""Whether two recorded calls do the same: what they return, how that is differentiated, and by which program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.same import Values, matching, places_of, same, same_source
from leafgrad.compile.ir.sources import Expression
from leafgrad.compile.record.gradients import Pullback
from leafgrad.compile.record.trace import Alias, Slot, Traced


def same_output(a: Any, b: Any) -> bool:
    """Whether two results are the same number, string or place of a tensor."""
    if isinstance(a, Expression) and isinstance(b, Expression):
        return a.text == b.text
    if isinstance(a, Slot) and isinstance(b, Slot):
        return a.index == b.index and a.late == b.late and same_source(a.source, b.source)
    return same(a, b)


def same_alias(a: Alias, b: Alias) -> bool:
    """Whether two results are the same view of the same memory."""
    base = a.base == b.base if isinstance(a.base, int) else same_source(a.base, b.base)
    return base and same(a.steps, b.steps) and (a.apart, a.whole) == (b.apart, b.whole)


def adopts(traced: Traced, graph: Graph, pullbacks: Sequence[Pullback], count: int) -> bool:
    """Whether what was traced does the same as a program, if with other tensors. Then it gets that one."""
    at = matching(traced.graph, graph)
    if at is None or traced.count != count or len(traced.gradients.pullbacks) != len(pullbacks):
        return False
    pairs = list(zip(traced.gradients.pullbacks, pullbacks, strict=True))
    if not all(same_pullback(p, q, at) for p, q in pairs):
        return False
    ours, theirs = places_of(traced.graph), places_of(graph)
    if any(targets_in(p, ours) != targets_in(q, theirs) for p, q in pairs):
        return False
    inputs = dict(zip(graph.inputs, traced.graph.inputs.values(), strict=True))
    effects = tuple([e.on(lambda v: at[v]) for e in traced.graph.effects])
    traced.graph = replace(graph, inputs=inputs, effects=effects)
    traced.gradients.pullbacks = [replace(q, targets=p.targets) for p, q in pairs]
    return True


def same_pullback(a: Pullback, b: Pullback, at: Values) -> bool:
    """Whether results are differentiated alike, as often as one likes."""
    return (
        (a.results, a.read) == (b.results, b.read)
        and [at[v] for v in a.saved] == b.saved
        and matching(a.graph, b.graph) is not None
        and a.history.same_as(b.history, at)
    )


def targets_in(pullback: Pullback, inputs: dict[int, int]) -> list[Any]:
    """Which results, and which inputs, gradients go to."""
    return [t if isinstance(t, int) else (inputs.get(id(t)),) for t in pullback.targets]
