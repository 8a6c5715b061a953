"""Where the inputs of a recorded program come from: captured tensors are found again, and all are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad.batching.pytree import flatten
from leafgrad.compile.guard.conditions import facts
from leafgrad.compile.guard.environment import Environment, GivenPlaces
from leafgrad.compile.guard.objects import NOTHING_GIVEN
from leafgrad.compile.guard.walk import look
from leafgrad.compile.ir.graph import Graph, Value
from leafgrad.compile.ir.sources import Argument, Captured, Grad, KeptArray
from leafgrad.compile.record.trace import Traced, trace_call
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.watch import Watch, watching
from leafgrad.compile.run.paths import named_tuples, paths_of, roots
from leafgrad.tensor.tensor import Tensor


def read_by(
    traced: Traced,
    watch: Watch,
    starts: Sequence[tuple[Any, str]],
    environment: Environment,
    given: GivenPlaces = NOTHING_GIVEN,
) -> Environment:
    """What the call read, in which all tensors that it captured must be found."""
    leaves = set(map(id, traced.ancestors.leaves))  # which guards of that graph find
    lost = [t for t in traced.captured if id(t) not in environment.tensors.keys() | leaves]
    if lost:
        environment = look(starts, watch.codes, given, everything=True)
        lost = [t for t in lost if id(t) not in environment.tensors]
    if lost:
        value = next(
            (v for v, s in traced.graph.inputs.items() if isinstance(s, Captured) and s.tensor is lost[0]), None
        )
        line = next((e.line for e in traced.graph.equations if value in e.inputs), None)
        raise Unclosed(
            f"it uses a tensor, {facts(lost[0])}{f', at {line}' if line else ''}, that is reached neither through its "
            "arguments nor through variables, attributes, lists or dicts"
        )
    return environment


def graph_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
    """The program of a call, which does nothing to its tensors."""
    leaves, _ = flatten((args, kwargs))
    paths = paths_of(function, args, kwargs)
    watch = Watch()
    with watching(watch):
        found = trace_call(function, args, kwargs)
    environment = Environment()
    if found.captured:
        starts = roots(function, leaves, paths, named_tuples((args, kwargs)))
        environment = read_by(found, watch, starts, look(starts, watch.codes))
    name_inputs(found, leaves, paths, environment)
    return found.graph


def name_inputs(traced: Traced, leaves: Sequence[Any], paths: Sequence[str], environment: Environment) -> None:
    """Name the graph's inputs after where they come from."""
    arguments = [path for leaf, path in zip(leaves, paths, strict=True) if isinstance(leaf, Tensor)]
    names: dict[Value, str] = traced.graph.names
    for value, source in traced.graph.inputs.items():
        owner, end = (source.of, ".grad") if isinstance(source, Grad) else (source, "")
        if isinstance(owner, Captured):
            names[value] = environment.tensors.get(id(owner.tensor), "captured") + end
        elif isinstance(owner, Argument):
            names[value] = arguments[owner.index] + end
        else:
            names[value] = f"{'kept' if isinstance(owner, KeptArray) else 'number'}{len(names)}"
