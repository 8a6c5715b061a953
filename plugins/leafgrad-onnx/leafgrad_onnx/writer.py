"""From a program that ``leafgrad.trace`` recorded to nodes of ONNX.

An op says its form by ``op.lower("onnx", rule)``. The rule is given the writer and the equation, and returns the name
of what it emits, or a tuple of names for several results:

    smooth.lower("onnx", lambda w, e: w.emit("Softsign", w(e.inputs[0])))

An op without a form is made of what it says otherwise: of its C expression, if it is elementwise, or of what the
compiler may put in its place.

Complex numbers are real ones with a last dimension of size 2. What an op does to them is mostly known from its rule for
pairs; one that has none may say its form by ``op.lower("onnx of pairs", rule)``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leafgrad.compile.ir.graph import Equation, Graph, Operand, Value
from leafgrad.compile.ir.lines import Line
from leafgrad.compile.ir.sources import Captured, Source
from leafgrad.compile.passes.pairs import has_complex
from leafgrad.compile.passes.rewrite import Rewriter
from leafgrad_onnx.errors import OnnxExporterError
from leafgrad_onnx.expression import written

Rule = Callable[["OnnxWriter", Equation], Any]
Sizes = tuple[int, ...]
HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass(eq=False)
class EmittedNode:
    """A node of ONNX, and the equation that it is part of."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    equation: Equation | None


@dataclass(eq=False)
class Numbers:
    """Python numbers that a node reads: they may follow from the sizes of inputs.

    Attributes:
        name: of the value.
        values: the numbers, in order.
        dtype: int64, or that of a scalar.
        scalar: whether the value has no dimension.
        equation: what asked for it.
        at: how many nodes there were before.
    """

    name: str
    values: tuple[float, ...]
    dtype: str
    scalar: bool
    equation: Equation | None
    at: int


@dataclass
class Subgraph:
    """Inputs, outputs and nodes of a graph inside a node (of Scan)."""

    inputs: list[tuple[str, str, Sizes]] = field(default_factory=list)  # name, dtype, shape
    outputs: list[tuple[str, str, Sizes]] = field(default_factory=list)
    nodes: list[EmittedNode] = field(default_factory=list)


class OnnxWriter:
    """Nodes for the equations of a program.

    Args:
        graph: what ``leafgrad.trace`` gave.
        names: of its inputs.
        asked: the line that asked for the export, for ops that no line of the user's asked for.

    Attributes:
        nodes: in order.
        numbers: what nodes read that Python made.
        arrays: constants, by name.
        names: of the values of the graph.
    """

    def __init__(self, graph: Graph, names: dict[Value, str], asked: Line) -> None:
        self.graph = graph
        self.asked = asked
        self.names = dict(names)
        self.taken = set(names.values())
        self.nodes: list[EmittedNode] = []
        self.main = self.nodes
        self.numbers: list[Numbers] = []
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.within: list[Any] = []  # the ops whose forms are being made of others
        self.count = 0
        self.equation: Equation | None = None

    def run(self) -> OnnxWriter:
        """Write all equations that results need."""
        for equation in needed(self.graph):
            self.write(equation)
        return self

    def write(self, equation: Equation) -> None:
        """The nodes of one equation."""
        outer = self.equation
        self.equation = equation if not self.within else outer
        made = self.form(equation)
        found = made if isinstance(made, tuple) else (made,)
        for value, name in zip(equation.outputs, found, strict=True):
            self.names[value] = name
        self.equation = outer

    def form(self, equation: Equation) -> Any:
        """The names of what an equation makes."""
        op = equation.op
        if equation.params.keys() != op.signature.parameters.keys():  # of ops without arrays
            params = op.signature.bind(equation.params)
            equation = Equation(op, equation.inputs, params, equation.outputs, equation.line, equation.several)
        left = has_complex((*equation.values, *equation.outputs))
        if left and "onnx of pairs" not in op.lowering:
            raise self.refusal(f"op {op.name!r} has no ONNX form for complex numbers", equation)
        rule = op.lowering.get("onnx of pairs" if left else "onnx")
        if rule is not None:
            made = rule(self, equation)
            if made is not None:
                return made
        if op.c is not None and len(equation.outputs) == 1:
            return written(self, equation, op.c)
        made = self.decomposed(equation)
        if made is None:
            raise self.refusal(f"op {op.name!r} has no ONNX form", equation)
        return made

    def decomposed(self, equation: Equation) -> Any:
        """An equation by the first of the op's rewrite rules that gives steps; None if there is none."""
        for rule in equation.op.rewriting:
            if equation.op not in self.within:
                found = self.steps(equation, lambda graph, rule=rule: rule(graph, equation))
                if found is not None:
                    return found
        return None

    def steps(self, equation: Equation, make: Callable[..., Any], *values: Value) -> Any:
        """The names of what ``make(graph)`` gives: values that it makes by ``graph.emit(op, *values, **params)``.

        Args:
            values: those that it reads beside the equation's.
        """
        inputs: dict[Value, Source] = dict.fromkeys((*equation.values, *values), Captured(None))
        graph = Rewriter(Graph(inputs, (equation,), equation.outputs))
        graph.line = equation.line
        made = make(graph)
        if made is None:
            return None
        self.within.append(equation.op)
        for step in graph.equations:
            self.write(step)
        self.within.pop()
        return tuple([self(v) for v in made]) if isinstance(made, tuple) else self(made)

    def refusal(self, why: str, equation: Equation | None = None) -> OnnxExporterError:
        """The error that says why something cannot be written, and where the user asked for it."""
        e = equation or self.equation
        key = "onnx of pairs" if "complex" in why else "onnx"
        hint = (
            f'; give it one by {e.name}.lower("{key}", rule), or write it with others'
            if e is not None and "no ONNX form" in why
            else ""
        )
        return OnnxExporterError(f"onnx.export: {why}, at {self.line(e)}{hint}")

    def line(self, equation: Equation | None) -> Line:
        """The line of the user's that asked for an equation."""
        if equation is None or os.path.dirname(equation.line.file) == HERE:
            return self.asked
        return equation.line

    # ---- for rules ----------------------------------------------------------------------------------------------

    def __call__(self, operand: Operand, dtype: str | None = None) -> str:
        """The name of an operand: a value, converted to ``dtype`` if it has another, or a number of that dtype."""
        if isinstance(operand, Value):
            name = self.names[operand]
            return name if dtype in (None, operand.dtype) else self.cast(name, str(dtype))
        if operand is None:
            return ""
        return self.scalar(operand, dtype or ("float32" if isinstance(operand, float) else "int64"))

    def emit(self, kind: str, *inputs: str, outputs: int = 0, **attributes: Any) -> Any:
        """Add a node; returns the name of its output, or with ``outputs`` a tuple of so many."""
        found = tuple([self.fresh() for _ in range(outputs or 1)])
        self.nodes.append(EmittedNode(kind, inputs, found, attributes, self.equation))
        return found if outputs else found[0]

    def cast(self, name: str, dtype: str) -> str:
        """A value converted to another dtype."""
        return str(self.emit("Cast", name, to=element_type(dtype, self)))

    def ints(self, values: Sequence[int]) -> str:
        """An int64 vector: a shape, starts of slices, axes."""
        return self.number(tuple(map(int, values)), "int64", scalar=False)

    def scalar(self, value: float, dtype: str) -> str:
        """A number without dimensions."""
        return self.number((value,), dtype, scalar=True)

    def number(self, values: tuple[float, ...], dtype: str, scalar: bool) -> str:
        element_type(dtype, self)
        name = self.fresh("number")
        self.numbers.append(Numbers(name, values, dtype, scalar, self.equation, len(self.main)))
        return name

    def array(self, array: np.ndarray[Any, Any]) -> str:
        """A constant."""
        name = self.fresh("constant")
        self.arrays[name] = array
        return name

    def fresh(self, stem: str = "v") -> str:
        """A name that nothing has."""
        while True:
            self.count += 1
            name = f"{stem}{self.count}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    # ---- forms that many ops share ------------------------------------------------------------------------------

    def reshape(self, name: str, shape: Sizes) -> str:
        """A value in another shape, of which 0 is a size like others."""
        return str(self.emit("Reshape", name, self.ints(shape), allowzero=int(0 in shape)))

    def expand(self, name: str, shape: Sizes) -> str:
        """A value broadcast to a shape."""
        return str(self.emit("Expand", name, self.ints(shape)))

    def filled(self, shape: Sizes, value: float, dtype: str) -> str:
        """A value of this shape, each element of which is a number."""
        return self.expand(self.scalar(value, dtype), shape)

    def reduce(self, kind: str, name: str, dims: Sizes, keepdim: bool = False) -> str:
        """A reduction over dimensions; over none it is the value itself."""
        if not dims:
            return str(self.emit("Identity", name))
        return str(self.emit(kind, name, self.ints(dims), keepdims=int(keepdim)))


def needed(graph: Graph) -> list[Equation]:
    """The equations of a program without which its results could not be."""
    wanted = set(graph.results)
    found = []
    for equation in reversed(graph.equations):
        if not wanted.isdisjoint(equation.outputs):
            wanted.update(equation.values)
            found.append(equation)
    return found[::-1]


def element_type(dtype: str, writer: OnnxWriter) -> int:
    """The number that ONNX has for a dtype."""
    from leafgrad_onnx.types import NUMBER

    if dtype not in NUMBER:
        raise writer.refusal(f"ONNX has no dtype {dtype!r}")
    return NUMBER[dtype]
