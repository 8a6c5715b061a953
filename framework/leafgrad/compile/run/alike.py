"""Whether two recordings do the same: then one program serves both, perhaps with other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leafgrad.compile.ir.graph import Graph, on
from leafgrad.compile.ir.keys import key_of
from leafgrad.compile.record.gradients import Pullback
from leafgrad.compile.record.trace import Traced
from leafgrad.compile.run.numbers import NO_NUMBERS

if TYPE_CHECKING:
    from leafgrad.compile.run.call import Call


def adopts(traced: Traced, graph: Graph, pullbacks: Sequence[Pullback], count: int) -> bool:
    """Whether what was traced does the same as a program, and is differentiated alike. Then it gets that one."""
    own, found = traced.graph, traced.gradients
    if traced.count != count or own != graph or derivatives(found.pullbacks, own) != derivatives(pullbacks, graph):
        return False
    inputs = dict(zip(graph.inputs, own.inputs.values(), strict=True))
    at = dict(zip(own.values(), graph.values(), strict=True))
    traced.graph = replace(graph, inputs=inputs, effects=tuple([on(e, at.__getitem__) for e in own.effects]))
    found.pullbacks = [replace(q, targets=p.targets) for p, q in zip(found.pullbacks, pullbacks, strict=True)]
    return True


def derivatives(pullbacks: Sequence[Pullback], graph: Graph) -> list[Any]:
    """How results are differentiated, as often as one likes."""
    found = []
    for p in pullbacks:
        targets = [t if isinstance(t, int) else (graph.places.get(id(t)),) for t in p.targets]
        found.append((key_of((p.results, p.read, p.saved, targets, p.history), graph.numbers), p.graph))
    return found


def is_again(call: Call, other: Call) -> bool:
    """Whether a second recording gave the same program, results and effects."""
    one = call.runner is other.runner if call.lengths is None else call.lengths is other.lengths
    return one and key_of_call(call) == key_of_call(other)


def key_of_call(call: Call) -> Any:
    """Where its inputs come from and gradients go, what it returns, and what it leaves behind."""
    targets = [t for p in call.pullbacks for t in p.targets if not isinstance(t, int)]
    sources = [*call.graph.inputs.values(), *(e.source for e in call.graph.effects), *targets, *call.roots]
    places = [(id(w.container), w.key) for w in call.replaced]
    numbers = NO_NUMBERS if call.symbolic is None else call.symbolic.forms
    return key_of((sources, call.structure, call.outputs, call.aliases, call.versions, places, numbers, call.freed))
