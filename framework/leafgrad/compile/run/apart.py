"""Of a program that writes: which tensors must not show the memory of others when it runs."""

from __future__ import annotations

from leafgrad.compile.guard.environment import Environment
from leafgrad.compile.guard.guards import Guards
from leafgrad.compile.ir.graph import Graph, Write
from leafgrad.compile.ir.memory import Apart
from leafgrad.compile.ir.sources import Captured, Expression, KeptArray
from leafgrad.compile.record.recorder import is_exposed


def apart_of(graph: Graph, guards: Guards) -> Apart | None:
    """A check for a program that writes: of its tensors, and of what it reads of the graph behind them."""
    written = {id(e.source) for e in graph.effects if isinstance(e, Write)}
    if not written:
        return None
    sources = [source for source in graph.inputs.values() if not isinstance(source, Expression)]
    captured = [(source.tensor, id(source) in written) for source in sources if isinstance(source, Captured)]
    others = [source for source in sources if not isinstance(source, Captured)]
    behind = any(isinstance(source, KeptArray) for source in others)
    kept = [f"kept, _ = {guards.name(guards.behind)}(leaves)"] * behind
    found = f"return [{', '.join([guards.array_of(source, guards.given) for source in others])}]"
    return Apart(captured, guards.function("leaves", [*kept, found]), [id(source) in written for source in others])


def shows_memory(environment: Environment) -> bool:
    """Whether the memory of a tensor may be read and written through an array of it that was read, too."""
    return any(place.kind == "array" and is_exposed(place.container) for place in environment.places)
