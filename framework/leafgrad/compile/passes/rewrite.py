"""Build a graph anew, equation by equation, with rules that give simpler values for what an equation makes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from leafgrad.compile.ir.graph import Equation, Graph, Operand, Value
from leafgrad.compile.ir.keys import key_of
from leafgrad.compile.ir.lines import Line
from leafgrad.compile.ir.shapes import Unknown, foretell, result_shape
from leafgrad.errors import CompileError
from leafgrad.forks import cached_property
from leafgrad.ops import elementwise
from leafgrad.ops.create import full
from leafgrad.ops.op import Op
from leafgrad.ops.traits import normalized

Shape = tuple[int, ...]
Rule = Callable[["Rewriter", Equation], Value | tuple[Value, ...] | None]  # of several outputs, a value for each
Rules = Mapping[Op, tuple[Rule, ...]]

DEEPEST = 40  # rules within rules; what is left is done in the next round
COMMUTATIVE = frozenset({elementwise.add, elementwise.mul})


class Rewriter:
    """A graph under construction.

    Each equation of the old graph is taken in order, its inputs replaced by what became of them; the first rule of
    its op that returns a value decides that the equation is not needed and the value is used instead. Rules make
    equations with `emit`, which are simplified in turn. Equal equations are made once, so that every rewriting
    also merges.
    """

    def __init__(self, graph: Graph, rules: Rules | None = None, general: tuple[Rule, ...] = ()) -> None:
        self.graph = graph
        self.rules = rules or {}
        self.general = general
        self.chains: dict[Op, tuple[Rule, ...]] = {}  # the rules for an op, and the general ones
        self.equations: list[Equation] = []
        self.same: dict[Value, Value] = {}
        self.makers: dict[Operand, Equation] = {}
        self.known: dict[Any, Equation] = {}
        self.line = Line("", 0)
        self.depth = 0  # of rules that emit what other rules rewrite
        self.uses = Counter(chain.from_iterable([e.values for e in graph.equations]))
        self.uses.update(graph.kept)

    def run(self) -> Graph:
        """The graph that the rules lead to."""
        same = self.same
        for equation in self.graph.equations:
            self.line, new = equation.line, equation
            if not same.keys().isdisjoint(equation.values):
                inputs = tuple([same.get(v, v) if isinstance(v, Value) else v for v in equation.inputs])
                new = with_inputs(equation, inputs)
            values = self.put(new)
            if values is not equation.outputs:
                for old, value in zip(equation.outputs, values, strict=True):
                    if value is not old:
                        same[old] = value
                        self.uses[value] += self.uses[old]
        return self.graph.with_equations(self.equations, self.same)

    @cached_property
    def readers(self) -> dict[Value, list[Equation]]:
        """The equations of the old graph that read each value."""
        return self.graph.uses()

    # ---- for rules ----------------------------------------------------------------------------------------------

    def emit(self, op: Op, *inputs: Operand, **params: Any) -> Value:
        """The value of ``op(*inputs, **params)``, simplified. At least one input is a Value."""
        if params.keys() != op.signature.parameters.keys():
            params = op.signature.bind(params)
        if op.dims is not None:
            params = normalized(op, inputs, params)
        like, *others = [v for v in inputs if isinstance(v, Value)]
        floating = like.dtype.startswith("float") or not op.converts_integers
        if op.keeps_dtype and floating and all(v.dtype == like.dtype for v in others):
            value = Value(result_shape(op, inputs, params), like.dtype, like.place)
        else:
            found = foretell(op, inputs, params)
            if isinstance(found, tuple):
                raise CompileError(f"op {op.name!r} makes several arrays: no rule can put it in the place of another")
            value = found
        return self.put(Equation(op, inputs, params, (value,), self.line))[0]

    def full(self, shape: Shape, number: float, like: Value) -> Value:
        """A value filled with ``number``, of the dtype and on the device of ``like``."""
        value = Value(shape, like.dtype, like.place)
        params = {"shape": shape, "value": number, "dtype": like.dtype}
        return self.put(Equation(full, (), params, (value,), self.line))[0]

    def derived(self, x: Operand, op: Op) -> Equation | None:
        """What makes ``x``, if that is ``op``, and neither it nor what is rewritten is what a program says itself."""
        e = self.maker(x, op)
        return e if e is not None and e.line.derived and self.line.derived else None

    def maker(self, operand: Operand, *ops: Op) -> Equation | None:
        """The equation that makes ``operand``, if it is of one of ``ops``."""
        equation = self.makers.get(operand)
        return equation if equation is not None and equation.op in ops else None

    def number(self, operand: Operand) -> bool | int | float | None:
        """The number that fills ``operand``, or that it is; None if it is no constant."""
        if not isinstance(operand, Value):
            return operand
        equation = self.maker(operand, full)
        return None if equation is None else filling(equation)

    def once(self, value: Operand) -> bool:
        """Whether the value is read by one equation only; what rules have just made counts as such."""
        return isinstance(value, Value) and self.uses[value] <= 1

    # ---- construction -------------------------------------------------------------------------------------------

    def put(self, equation: Equation) -> tuple[Value, ...]:
        """The values that stand for the equation's outputs: those of a rule, of an equal equation, or its own."""
        if self.depth < DEEPEST:
            self.depth += 1
            values = self.simpler(equation)
            self.depth -= 1
            if values is not None:
                return values
        key = key_of_result(equation)
        if key is not None:
            earlier = self.known.setdefault(key, equation)
            if earlier is not equation:
                return earlier.outputs
        self.equations.append(equation)
        for value in equation.outputs:
            self.makers[value] = equation
        return equation.outputs

    def simpler(self, equation: Equation) -> tuple[Value, ...] | None:
        """What the first rule that applies gives instead."""
        op = equation.op
        chain = self.chains.get(op)
        if chain is None:
            chain = self.chains[op] = (*self.rules.get(op, ()), *self.general)
        for rule in chain:
            depth = self.depth
            try:
                found = rule(self, equation)
            except Unknown:  # an op of the rule does not tell what it would make of these, as matmul of integers
                found, self.depth = None, depth
            if found is not None:
                values = found if isinstance(found, tuple) else (found,)
                check_same(equation, values)
                return values
        return None


def rewrite(graph: Graph, rules: Rules | None = None, general: tuple[Rule, ...] = ()) -> Graph:
    """The graph after one walk with these rules: those of each equation's op first, then the general ones."""
    return Rewriter(graph, rules, general).run()


def with_inputs(equation: Equation, inputs: tuple[Operand, ...]) -> Equation:
    """The same equation on other inputs; it makes the same values."""
    return Equation(equation.op, inputs, equation.params, equation.outputs, equation.line, equation.several)


def check_same(equation: Equation, values: tuple[Value, ...]) -> None:
    """A CompileError if ``values`` cannot stand for what the equation makes."""
    expected, got = ([(v.shape, v.dtype, v.place) for v in several] for several in (equation.outputs, values))
    if expected != got:
        ours, theirs = (", ".join(f"{t} {s} on {p}" for s, t, p in several) for several in (expected, got))
        raise CompileError(f"{equation.name}, from {equation.line}: expected {ours}, a rule gave {theirs}")


# ---- which equations are equal ----------------------------------------------------------------------------------


def key_of_result(equation: Equation) -> Any:
    """A key that equations with the same result share; None where the op is ordered."""
    op = equation.op
    if op.ordered:
        return None
    place = () if equation.values else equation.place
    inputs = [v if v.__class__ is Value else key_of(v) for v in equation.inputs]
    params = key_of(equation.params) if equation.params else None
    return op, (frozenset if op in COMMUTATIVE else tuple)(inputs), params, place


# ---- constants ---------------------------------------------------------------------------------------------------


def filling(equation: Equation) -> bool | int | float | None:
    """The number that a creating equation fills its result with, if arithmetic with it as a number is the same."""
    value = equation.params["value"]
    dtype = equation.out.dtype
    if dtype.startswith("float"):
        return value * 1.0 if isinstance(value, (int, float)) else None
    return value if dtype.startswith("int") and type(value) is int else None


def size(shape: Shape) -> int:
    return math.prod(shape)
