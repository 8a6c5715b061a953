"""The effects of a program: their order and arrays; all happen or none, whatever signal arrives between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.compile.ir.graph import Effect, Graph, SetRequiresGrad


def complete(steps: Sequence[Callable[[], Any]]) -> None:
    """Take all steps, each of which may be taken twice; then raise what a signal's handler raised meanwhile.

    A step that fails by itself, so that it fails again, ends it at once.
    """
    at, failed, raised = 0, -1, None
    while at < len(steps):
        try:
            while at < len(steps):
                steps[at]()
                at += 1
        except BaseException as error:
            if failed == at:
                raise
            failed, raised = at, error
    if raised is not None:
        raise raised


def plan_effects(graph: Graph) -> list[tuple[Effect, int | None]]:
    """Each effect with the number of its array among what the program returns; leaves first: nodes come after them."""
    found: list[tuple[Effect, int | None]] = []
    k = len(graph.results)
    for effect in graph.effects:
        found.append((effect, None if effect.value is None else k))
        k += effect.value is not None
    return sorted(found, key=lambda planned: not isinstance(planned[0], SetRequiresGrad))
