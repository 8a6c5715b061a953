"""Of a program that writes: which tensors must not show the memory of others when it runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.compile.guard.ancestry import Walk, collected
from leafgrad.compile.guard.environment import Environment
from leafgrad.compile.ir.graph import Graph, Write
from leafgrad.compile.ir.memory import Apart
from leafgrad.compile.ir.sources import Argument, Captured, Grad
from leafgrad.compile.record.recorder import is_exposed
from leafgrad.tensor.tensor import Tensor


def apart_of(graph: Graph, tensors: Sequence[int]) -> Apart | None:
    """A check for a program that writes: which of its tensors are captured, given or gradients, and which written."""
    written = {id(e.source) for e in graph.effects if isinstance(e, Write)}
    if not written:
        return None
    captured: list[tuple[Tensor, bool]] = []
    given: list[tuple[Callable[[Sequence[Any]], Any], bool]] = []
    for source in graph.inputs.values():
        mark = id(source) in written
        if isinstance(source, Captured):
            captured.append((source.tensor, mark))
        elif isinstance(source, Argument):
            given.append((operator.itemgetter(tensors[source.index]), mark))
        elif isinstance(source, Grad):
            given.append((gradient(source.of, tensors), mark))
    return Apart(captured, given)


def picked(walk: Walk, read: Sequence[int], leaves: Sequence[Any]) -> list[Any]:
    """Some of the arrays that nodes keep."""
    kept, _ = collected(walk, leaves)
    return [kept[i] for i in read]


def gradient(of: Argument | Captured, tensors: Sequence[int]) -> Callable[[Sequence[Any]], Any]:
    """The function that gives the ``.grad`` of a source's tensor."""
    if isinstance(of, Captured):
        tensor = of.tensor
        return lambda _: tensor._leaf.grad
    i = tensors[of.index]
    return lambda leaves: leaves[i]._leaf.grad


def shows_memory(environment: Environment) -> bool:
    """Whether the memory of a tensor may be read and written through an array of it that was read, too."""
    return any(place.kind == "array" and is_exposed(place.container) for place in environment.places)
