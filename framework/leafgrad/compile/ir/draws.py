"""What a graph draws, drawn again: where a run failed, and where two runs are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from leafgrad.backends.contract import Generator
from leafgrad.compile.ir.effects import complete
from leafgrad.compile.ir.graph import Graph


class Stateful(Protocol):
    """What numbers are drawn from."""

    def get_state(self) -> Any: ...

    def set_state(self, state: Any) -> Any: ...


States = list[tuple[Stateful, Any]]


def generators(graph: Graph) -> list[Generator]:
    """What a graph draws from."""
    return list({id(p): p for e in graph.equations for p in e.params.values() if isinstance(p, Generator)}.values())


def states(drawing: Sequence[Stateful]) -> States:
    """Generators with their states."""
    return [(g, g.get_state()) for g in drawing]


def restore(before: States) -> None:
    """Give generators the states that they had, all of them, whatever the handler of a signal raises meanwhile."""
    if before:
        complete([partial(generator.set_state, state) for generator, state in before])


@contextmanager
def rewound(drawing: Sequence[Stateful]) -> Iterator[None]:
    """What is drawn within is drawn again after it."""
    before = states(drawing)
    try:
        yield
    finally:
        restore(before)
