"""Whether a recorded call does the same as a program, which serves it, too, if with other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.keys import key_of
from leafgrad.compile.record.gradients import Pullback
from leafgrad.compile.record.trace import Traced


def adopts(traced: Traced, graph: Graph, pullbacks: Sequence[Pullback], count: int) -> bool:
    """Whether what was traced does the same as a program, and is differentiated alike. Then it gets that one."""
    own, found = traced.graph, traced.gradients
    if traced.count != count or own != graph or derivatives(found.pullbacks, own) != derivatives(pullbacks, graph):
        return False
    inputs = dict(zip(graph.inputs, own.inputs.values(), strict=True))
    at = dict(zip(own.values(), graph.values(), strict=True))
    traced.graph = replace(graph, inputs=inputs, effects=tuple([e.on(at.__getitem__) for e in own.effects]))
    found.pullbacks = [replace(q, targets=p.targets) for p, q in zip(found.pullbacks, pullbacks, strict=True)]
    return True


def derivatives(pullbacks: Sequence[Pullback], graph: Graph) -> list[Any]:
    """How results are differentiated, as often as one likes."""
    found = []
    for p in pullbacks:
        targets = [t if isinstance(t, int) else (graph.places.get(id(t)),) for t in p.targets]
        found.append((key_of((p.results, p.read, p.saved, targets, p.history), graph.numbers), p.graph))
    return found
