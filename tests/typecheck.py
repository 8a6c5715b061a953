"""Whether graphs are well formed, and every equation is what it says: of the stated shapes, dtypes and devices.

Tests ask this after each pass. It evaluates ops, so it is far too slow for anything else.
"""

from __future__ import annotations

from typing import Any

from leafgrad import backends
from leafgrad.backends.place import place
from leafgrad.compile.ir.draws import rewound
from leafgrad.compile.ir.graph import Equation, Graph
from leafgrad.compile.ir.shapes import zeros_for
from leafgrad.compile.record.events import generators_in
from leafgrad.errors import CompileError


def check(graph: Graph) -> Graph:
    """The graph itself, after checking that it is well formed; a CompileError says what is not."""
    known = set(graph.inputs)
    for equation in graph.equations:
        for value in equation.values:
            if value not in known:
                raise CompileError(f"{equation.name}, from {equation.line}: reads a value that nothing has made")
        for value in equation.outputs:
            if value in known:
                raise CompileError(f"{equation.name}, from {equation.line}: makes a value that exists already")
        known.update(equation.outputs)
    if not graph.kept <= known:
        raise CompileError("a result or an effect refers to a value that nothing has made")
    return graph


def typecheck(graph: Graph) -> Graph:
    """The graph itself, after running each of its ops on zeros of the stated shapes and dtypes.

    Raises:
        CompileError: the graph is not well formed, an op fails on zeros, or gives something else than is stated.
    """
    check(graph)
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
    backend = backends.by_device_type(kind)
    with backend.device_scope(index), rewound(generators_in(equation.params)):
        if any(equation.values):
            result = equation.op.compute(tuple(map(zeros_for, equation.inputs)), equation.params)
        else:
            result = equation.op.create(backend, equation.params)
    return result if equation.several else (result,)
