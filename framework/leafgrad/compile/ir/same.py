"""Whether two programs do the same with their inputs: which objects stand for the values does not matter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from leafgrad.compile.ir.graph import Graph, Value
from leafgrad.compile.ir.lengths import Length
from leafgrad.compile.ir.sources import Argument, Captured, Expression, Grad, KeptArray, Source

Values = Mapping[Value, Value]  # of one graph, for each the one in its place in another


def same(a: Any, b: Any, at: Values | None = None) -> bool:
    """Whether two parameters or numbers are the same to an op: the same type, and equal to the sign of zero."""
    if at is not None and type(a) is Value:
        return at.get(a) is b
    if at is None and a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(v, w, at) for v, w in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k], at) for k, v in a.items())
    if a is b:
        return True
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, slice):
        return same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return isinstance(a, (bool, int, str, bytes, Length)) and bool(a == b)


def same_source(a: Any, b: Any) -> bool:
    """Whether two inputs come from the same place."""
    if type(a) is not type(b):
        return False
    match a:
        case Argument(index) | KeptArray(index):
            return bool(index == b.index)
        case Captured(tensor):
            return tensor is b.tensor
        case Grad(of):
            return same_source(of, b.of)
        case Expression(text):
            return bool(text == b.text)
    return a is b


def matching(a: Graph, b: Graph) -> Values | None:
    """The values of ``b`` that stand in the places of those of ``a``; None if they do not do the same with inputs."""
    if any(len(x) != len(y) for x, y in ((a.inputs, b.inputs), (a, b), (a.results, b.results), (a.effects, b.effects))):
        return None
    at: dict[Value, Value] = {}
    if not take(at, a.inputs, b.inputs) or not all(map(same_kind, a.inputs.values(), b.inputs.values())):
        return None
    for e, f in zip(a.equations, b.equations, strict=True):
        if e.op is not f.op or not same(e.inputs, f.inputs, at) or not same(e.params, f.params):
            return None
        if not take(at, e.outputs, f.outputs):
            return None
    places = places_of(a), places_of(b)
    for effect, other in zip(a.effects, b.effects, strict=True):
        if type(effect) is not type(other) or not same(effect.value, other.value, at):
            return None
        if places[0].get(id(effect.source)) != places[1].get(id(other.source)):
            return None
    return at if same(a.results, b.results, at) else None


def take(at: dict[Value, Value], ours: Any, theirs: Any) -> bool:
    """Let values stand in the places of others. Whether they are alike."""
    if len(ours) != len(theirs):
        return False
    at.update(zip(ours, theirs, strict=True))
    return all((v.shape, v.dtype, v.place) == (at[v].shape, at[v].dtype, at[v].place) for v in ours)


def same_kind(a: Source, b: Source) -> bool:
    """Whether two inputs may be exchanged: what the graph behind tensors keeps is told apart by its place there."""
    return same_source(a, b) if isinstance(a, KeptArray) or isinstance(b, KeptArray) else True


def places_of(graph: Graph) -> dict[int, int]:
    """Which input of a graph a source is, by its id."""
    return {id(source): i for i, source in enumerate(graph.inputs.values())}
