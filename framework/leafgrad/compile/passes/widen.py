"""Make the rounding of bfloat16 part of the program: between its inputs and results, numbers are float32."""

from __future__ import annotations

from typing import Any

from leafgrad.compile.ir.graph import Equation, Graph, Operand, Value
from leafgrad.compile.ir.lines import Line
from leafgrad.ops import narrow
from leafgrad.ops.convert import nearest_bfloat16, to_dtype

WIDE = "float32"


def widen(graph: Graph) -> Graph:
    """The graph with ops on float32 in the place of those on bfloat16, and each of their results rounded.

    The numbers are those of eager execution. Ops that are about bfloat16 itself stay, as do those that draw numbers.
    """
    values = (*graph.inputs, *(v for e in graph.equations for v in e.outputs))
    return Widening(graph).run() if any(v.dtype == narrow.NAME for v in values) else graph


class Widening:
    """A graph on its way to float32; ``wide`` has what stands for a value of bfloat16."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.equations: list[Equation] = []
        self.wide: dict[Value, Value] = {}

    def run(self) -> Graph:
        for equation in self.graph.equations:
            if self.stays(equation):
                self.equations.append(equation)
            else:
                self.replace(equation)
        return self.graph.with_equations(self.equations)

    def stays(self, equation: Equation) -> bool:
        op, values = equation.op, (*equation.values, *equation.outputs)
        return (
            op is to_dtype
            or not equation.values
            or "random" in op.traits
            or narrow.NAME in op.kernels
            or all(v.dtype != narrow.NAME for v in values)
        )

    def replace(self, equation: Equation) -> None:
        line = equation.line
        inputs = tuple([self.operand(equation, v) for v in equation.inputs])
        outputs = tuple([like(v) if v.dtype == narrow.NAME else v for v in equation.outputs])
        params = {k: WIDE if v == narrow.NAME else v for k, v in equation.params.items()}
        self.equations.append(Equation(equation.op, inputs, params, outputs, line, equation.several))
        for old, new in zip(equation.outputs, outputs, strict=True):
            if new is not old:
                self.wide[old] = rounded = like(old)
                self.equations.append(Equation(nearest_bfloat16, (new,), {}, (rounded,), line))
                self.convert(rounded, old, line)

    def operand(self, equation: Equation, v: Operand) -> Operand:
        if not isinstance(v, Value):
            return narrow.narrowed(equation.op, v)
        if v.dtype != narrow.NAME:
            return v
        if v not in self.wide:
            self.wide[v] = like(v)
            self.convert(v, self.wide[v], equation.line)
        return self.wide[v]

    def convert(self, source: Value, target: Value, line: Line) -> None:
        params: dict[str, Any] = {"dtype": target.dtype, "source": source.dtype}
        self.equations.append(Equation(to_dtype, (source,), params, (target,), line))


def like(value: Value) -> Value:
    """A new value of the same shape, in float32."""
    return Value(value.shape, WIDE, value.place)
