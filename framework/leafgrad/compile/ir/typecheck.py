"""Is every equation of a graph what it says: does its op give the shapes, dtypes and devices that are stated?

Tests run this after each pass. It evaluates ops, so it is far too slow for anything else.
"""

from __future__ import annotations

from typing import Any

from leafgrad import backends
from leafgrad.backends import Generator
from leafgrad.backends.place import place
from leafgrad.compile.ir.graph import Equation, Graph
from leafgrad.compile.ir.shapes import zeros_for
from leafgrad.errors import CompileError


def typecheck(graph: Graph) -> Graph:
    """The graph itself, after running each of its ops on zeros of the stated shapes and dtypes.

    Raises:
        CompileError: the graph is not well formed, an op fails on zeros, or gives something else than is stated.
    """
    graph.check()
    for equation in graph.equations:
        try:
            made = run_on_zeros(equation)
        except Exception as error:
            raise CompileError(f"{equation.name}, from {equation.line}: fails on zeros: {error}") from error
        for stated, array in zip(equation.outputs, made, strict=True):
            found = tuple(array.shape), array.dtype.name, place(array)
            if found != (stated.shape, stated.dtype, stated.place):
                raise CompileError(
                    f"{equation.name}, from {equation.line}: states {stated.dtype} {stated.shape} on {stated.place}, "
                    f"gives {found[1]} {found[0]} on {found[2]}"
                )
    return graph


def run_on_zeros(equation: Equation) -> tuple[Any, ...]:
    """The arrays that the equation makes of zeros. Generators are left as they were."""
    kind, index = equation.place
    states = {p: p.get_state() for p in equation.params.values() if isinstance(p, Generator)}
    backend = backends.by_device_type(kind)
    try:
        with backend.device_scope(index):
            if any(equation.values):
                result = equation.op.compute(tuple(map(zeros_for, equation.inputs)), equation.params)
            else:
                result = equation.op.create(backend, equation.params)
    finally:
        for generator, state in states.items():
            generator.set_state(state)
    return result if equation.several else (result,)
