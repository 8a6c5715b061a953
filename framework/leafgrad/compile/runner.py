"""An optimized graph with the executor's program for it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from leafgrad.compile import executor
from leafgrad.compile.graph import Graph


class Runner:
    """What runs a graph. One call runs at a time.

    Attributes:
        before: how many equations the graph had.
        graph: the optimized graph.
        program: the executor's program.
    """

    def __init__(self, graph: Graph, name: str | None) -> None:
        from leafgrad.compile.passes import optimize  # many small modules, which only those who compile need

        self.name = name
        self.before = len(graph)
        self.graph = optimize(graph)
        self.program = executor.build(self.graph, name)
        self.lock = threading.Lock()
        LIVING.add(self)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The arrays of results and effects' values."""
        with self.lock:
            try:
                return self.program(inputs)
            except Exception as error:
                raise executor.explain_failure(self.name, self.graph, inputs, error) from error


LIVING: weakref.WeakSet[Runner] = weakref.WeakSet()


def unlock() -> None:
    """Another thread of the parent may have held a lock, which nobody gives back in the child."""
    for runner in list(LIVING):
        runner.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=unlock)
