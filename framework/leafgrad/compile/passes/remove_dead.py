"""Drop equations whose results nothing reads."""

from __future__ import annotations

from leafgrad.compile.graph import Equation, Graph


def remove_dead(graph: Graph) -> Graph:
    """The graph without equations that neither a result nor an effect needs.

    Ordered ops stay: a draw advances the generator, and other processes wait for a collective.
    """
    needed = graph.kept
    live: list[Equation] = []
    for equation in reversed(graph.equations):
        if equation.op.ordered or not needed.isdisjoint(equation.outputs):
            live.append(equation)
            needed.update(equation.values)
    live.reverse()
    return graph.with_equations(live)
