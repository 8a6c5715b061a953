"""Drop equations whose results nothing reads."""

from __future__ import annotations

from leafgrad.compile.ir.graph import Equation, Graph


def remove_dead(graph: Graph) -> Graph:
    """The graph without equations that neither a result nor an effect needs, and that do nothing else."""
    needed = graph.kept
    live: list[Equation] = []
    for equation in reversed(graph.equations):
        if equation.must_run or not needed.isdisjoint(equation.outputs):
            live.append(equation)
            needed.update(equation.values)
    live.reverse()
    return graph.with_equations(live)
