"""What a plugin's executor returns: held against the graph at each run, and against replay at a program's first."""

from __future__ import annotations

import operator
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from leafgrad import backends
from leafgrad.backends.place import place
from leafgrad.compile.ir.draws import States, generators, restore, rewound, states
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.ir.rounding import Moved, close, distance, on_host
from leafgrad.errors import CompileError
from leafgrad.ops.dispatch import copied, memory_of
from leafgrad.tensor.inplace import overlaps


class Mismatch(CompileError):
    """An executor returned what its graph does not make."""


def asked() -> bool:
    """Whether each run of a program is to be compared with replay."""
    return os.environ.get("LEAFGRAD_COMPILE") == "check"


def expected(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """What replay returns. Nothing is drawn."""
    with rewound(generators(graph)):
        return ReplayProgram(graph)(inputs)


def check_run(graph: Graph, program: Any, inputs: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """Run a program whose results must be ``right``; if they are not a Mismatch, and inputs are as they were."""
    before, start = [copied(a) for a in inputs], states(generators(graph))
    try:
        arrays: list[Any] = program(inputs)
    finally:
        written = give_back(graph, inputs, before)
    if written:
        raise Mismatch(f"it wrote into the input {written[0]}, which it must not change")
    check_kinds(graph, inputs, arrays)
    check_values(graph, inputs, start, arrays, right)
    return arrays


FACTS = operator.attrgetter("shape", "dtype", "base")


class Kinds:
    """Whether arrays are what the graph says, which is asked at each run: quick where all is well.

    Args:
        graph: what was run.
        right: arrays as they should be.
        first: what the first run returned. The second may use none of its memory again that is left, but for what is
            only written.
    """

    def __init__(self, graph: Graph, right: Sequence[Any], first: Sequence[Any]) -> None:
        self.graph = graph
        self.facts = [(type(a), (a.shape, a.dtype, None)) for a in right]
        written = graph.written
        ends = zip(graph.ends, first, strict=True)
        self.first: list[Any] = [weakref.ref(memory_of(a)) for v, a in ends if v not in written]

    def left(self) -> list[Any]:
        """Before the second run, what is left of the memory of the first: who holds it has it."""
        return [memory for ref in self.first if (memory := ref()) is not None]

    def check(self, inputs: Sequence[Any], arrays: Any, left: Sequence[Any]) -> None:
        """Raises Mismatch if they are not, or share memory, or have some that is ``left``."""
        if self.first:
            check_kinds(self.graph, inputs, arrays)
            before = set(map(id, left))
            again = next((i for i, a in enumerate(arrays) if id(memory_of(a)) in before), None)
            if again is not None:
                raise Mismatch(f"result {again} is in the memory of what an earlier run returned, expected its own")
            self.first = []
            return
        try:  # whether they surely are
            facts, own = [*zip(map(type, arrays), map(FACTS, arrays), strict=True)], set(map(id, arrays))
            if facts == self.facts and len(own) == len(facts) and own.isdisjoint(map(id, inputs)):
                return
        except (AttributeError, TypeError, ValueError):  # the base of a view, compared with None, is an array of bools
            pass
        check_kinds(self.graph, inputs, arrays)


def check_kinds(graph: Graph, inputs: Sequence[Any], arrays: Any) -> None:
    """Mismatch unless these are arrays of the graph's ends, each in memory of its own."""
    ends = graph.ends
    if not isinstance(arrays, (list, tuple)) or len(arrays) != len(ends):
        got = f"{len(arrays)}" if isinstance(arrays, (list, tuple)) else f"a {type(arrays).__name__}"
        raise Mismatch(f"it returned {got}, expected a list of {len(ends)} arrays")
    taken = {id(memory_of(a)): "an input" for a in inputs}
    for i, (value, a) in enumerate(zip(ends, arrays, strict=True)):
        try:
            got = f"{a.dtype.name} of shape {tuple(a.shape)} on {place(a)}"
        except (AttributeError, TypeError):
            got = f"a {type(a).__name__}"
        wanted = f"{value.dtype} of shape {value.shape} on {value.place}"
        if not isinstance(a, backends.by_device_type(value.place[0]).array_type):  # a scalar
            got, wanted = (
                f"a {type(a).__name__}, which is no array",
                f"an array, {wanted}; return xp.asarray(...) of it",
            )
        if got != wanted:
            raise Mismatch(f"result {i} is {got}, expected {wanted}")
        if id(memory_of(a)) in taken or overlaps(a):
            raise Mismatch(f"result {i} shares memory with {taken.get(id(memory_of(a)), 'itself')}, expected its own")
        taken[id(memory_of(a))] = f"result {i}"


def give_back(graph: Graph, inputs: Sequence[Any], before: Sequence[Any]) -> list[str]:
    """Let inputs be what they were. Returns the names of those that were not."""
    xp = backends.by_device_type("cpu").xp
    written = []
    for value, a, old in zip(graph.inputs, inputs, before, strict=True):
        if not (xp.array_equal(on_host(a), on_host(old)) or xp.array_equal(on_host(a), on_host(old), equal_nan=True)):
            a[...] = old
            written.append(str(graph.names.get(value, value)))
    return written


def check_values(
    graph: Graph, inputs: Sequence[Any], start: States, arrays: Sequence[Any], right: Sequence[Any]
) -> None:
    """Mismatch if a result differs from ``right`` by more than rounding can explain, drawing from ``start`` on."""

    @contextmanager
    def drawing() -> Iterator[None]:
        with rewound(generators(graph)):
            restore(start)
            yield

    moved = Moved(graph, inputs, drawing)
    for i, (value, ours, wanted) in enumerate(zip(graph.ends, arrays, right, strict=True)):
        if not close(ours, wanted) and not moved.explain(value, ours, wanted):
            apart = distance(on_host(ours), on_host(wanted))
            raise Mismatch(f"result {i}, {value.dtype} of shape {value.shape}, is up to {apart:.3g} from replay's")
