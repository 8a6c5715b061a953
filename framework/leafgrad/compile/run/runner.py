"""An optimized graph with the executor's program for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.run import executor


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
        self.lock = Lock()

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The arrays of results and effects' values."""
        with self.lock.held:
            try:
                return self.program(inputs)
            except Exception as error:
                raise executor.explain_failure(self.name, self.graph, inputs, error) from error
