"""Compute once what is asked for twice."""

from __future__ import annotations

from leafgrad.compile.graph import Graph
from leafgrad.compile.passes.rewrite import rewrite


def merge_equal(graph: Graph) -> Graph:
    """The graph with one equation for all that have the same op, inputs and parameters.

    Parameters are compared by type and value, and by identity where values cannot tell. Sums and products are
    equal in either order. Equations that draw random numbers are never merged.
    """
    return rewrite(graph)
