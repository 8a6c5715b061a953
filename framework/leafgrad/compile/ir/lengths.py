"""Programs for batches of any length: graphs in whose shapes and parameters a Length stands for a size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from leafgrad.compile.ir.graph import Equation, Graph, Operand, Value, on
from leafgrad.compile.ir.keys import ProgramPart


@dataclass(frozen=True, slots=True)
class Length(ProgramPart):
    """A size that may be another one at the next call, by an expression in what the call is given."""

    text: str

    def __repr__(self) -> str:
        return self.text


def resized(graph: Graph, change: Callable[[Any], Any], at: dict[Value, Value] | None = None) -> Graph:
    """The graph with other sizes: ``change`` gives what becomes of each, and of other numbers among parameters.

    ``at`` is told what becomes of each value.
    """
    at = {} if at is None else at

    def value(v: Value) -> Value:
        shape = tuple(map(change, v.shape))
        found = at[v] = v if all(map(is_same, shape, v.shape)) else Value(shape, v.dtype, v.place)
        return found

    def operand(x: Operand) -> Any:
        return at[x] if isinstance(x, Value) else change(x)

    def equation(e: Equation) -> Equation:
        inputs, outputs = tuple(map(operand, e.inputs)), tuple(map(value, e.outputs))
        params = {name: changed(part, change) for name, part in e.params.items()}
        if all(map(is_same, (*inputs, *outputs, *params.values()), (*e.inputs, *e.outputs, *e.params.values()))):
            return e
        return Equation(e.op, inputs, params, outputs, e.line, e.several)

    inputs = {value(v): source for v, source in graph.inputs.items()}
    equations = tuple(map(equation, graph.equations))
    effects = tuple([on(e, at.__getitem__) for e in graph.effects])
    names = {at[v]: name for v, name in graph.names.items() if v in at}
    results = tuple([at[v] for v in graph.results])
    return replace(graph, inputs=inputs, equations=equations, results=results, effects=effects, names=names)


def is_same(new: Any, old: Any) -> bool:
    return new is old


def changed(part: Any, change: Callable[[Any], Any]) -> Any:
    """A parameter, or part of one, in which each number is changed; itself if none is."""
    if isinstance(part, (tuple, list)):
        parts = [changed(p, change) for p in part]
        if all(map(is_same, parts, part)):
            return part
        return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)
    if type(part) is dict:
        items = {key: changed(p, change) for key, p in part.items()}
        return part if all(map(is_same, items.values(), part.values())) else items
    if type(part) is slice:
        ends = [change(p) for p in (part.start, part.stop, part.step)]
        return part if all(map(is_same, ends, (part.start, part.stop, part.step))) else slice(*ends)
    return change(part)


def lengths_in(graph: Graph) -> list[Length]:
    """Those in a graph, again and again."""
    found: list[Length] = []

    def note(part: Any) -> Any:
        if type(part) is Length:
            found.append(part)
        return part

    resized(graph, note)
    return found
