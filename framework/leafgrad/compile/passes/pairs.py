"""Complex numbers as pairs: a graph in which executors that know real numbers alone find hardly any other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.compile.ir import shapes
from leafgrad.compile.ir.graph import Equation, Graph, Value, on
from leafgrad.compile.ir.shapes import StandIn
from leafgrad.compile.passes.rewrite import Rewriter, with_inputs
from leafgrad.ops.complex import imag, join, real
from leafgrad.ops.create import full
from leafgrad.ops.op import Op
from leafgrad.ops.pairs import Pair, as_pair, beside, rule_of
from leafgrad.tensor.operators import SymbolOperators


def has_complex(values: Iterable[Value]) -> bool:
    """Whether some value is complex."""
    return any(v.dtype.startswith("complex") for v in values)


def pairs(graph: Graph) -> Graph:
    """The graph with real numbers alone wherever ops have a rule for that; itself if it has no others.

    Inputs and ends that are complex become real ones with a last dimension of size 2: real and imaginary part, as they
    lie in the memory of complex numbers.
    """
    if not has_complex(v for e in graph.equations for v in (*e.values, *e.outputs)):
        return graph
    token = modes.FLAGS.set(0)  # the ops of rules are recorded here, by nobody else
    try:
        return Pairing(graph).run()
    finally:
        modes.FLAGS.reset(token)


class Part(SymbolOperators, StandIn):
    """A real value of the graph that is built: ops on it are equations of that."""

    __slots__ = ("build", "shape", "value")

    def __init__(self, build: Rewriter, value: Value) -> None:
        self.build, self.value, self.shape = build, value, value.shape

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The equation of an op. Raises Unknown where it makes complex numbers of real ones."""
        inputs = tuple([a.value if isinstance(a, Part) else a for a in args])
        params = op.signature.bind(params)
        if any(v.place != self.place for v in inputs if isinstance(v, Value)):
            raise shapes.Unknown(f"{op.name} has inputs on several devices")
        made = shapes.foretell(op, inputs, params)
        several = isinstance(made, tuple)
        values = made if isinstance(made, tuple) else (made,)
        if has_complex(values):
            raise shapes.Unknown(f"{op.name} makes complex numbers of real ones")
        outputs = self.build.put(Equation(op, inputs, params, values, self.build.line, several))
        found = tuple([Part(self.build, v) for v in outputs])
        return found if several else found[0]


class Pairing:
    """Builds the graph.

    Attributes:
        build: what is built so far.
        parts: complex values of the old graph as Pairs of Parts.
        whole: the same as complex values of the new one, where some op reads or made them so.
        same: what became of real values.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.build = Rewriter(graph)
        self.parts: dict[Value, Pair] = {}
        self.whole: dict[Value, Value] = {}
        self.same: dict[Value, Value] = {}

    def run(self) -> Graph:
        inputs, names = {}, dict(self.graph.names)
        for value, source in self.graph.inputs.items():
            given = value
            if has_complex([value]):
                given = Value((*value.shape, 2), real_name(value), value.place)
                names[given] = names.pop(value, "")
                names = {v: name for v, name in names.items() if name}
                self.parts[value] = as_pair(Part(self.build, given))
            inputs[given] = source
        for equation in self.graph.equations:
            self.build.line = equation.line
            self.put(equation)
        results = tuple(map(self.end, self.graph.results))
        effects = tuple([on(e, self.end) for e in self.graph.effects])
        return Graph(inputs, tuple(self.build.equations), results, effects, names)

    def put(self, equation: Equation) -> None:
        """Add an equation, or what computes the same of parts."""
        if not has_complex((*equation.values, *equation.outputs)):
            inputs = tuple([self.same.get(v, v) if isinstance(v, Value) else v for v in equation.inputs])
            self.same.update(zip(equation.outputs, self.build.put(with_inputs(equation, inputs)), strict=True))
            return
        known = self.known(equation)
        if known is None:
            self.leave(equation)
            return
        for value, made in zip(equation.outputs, known, strict=True):
            if isinstance(made, Pair):
                self.parts[value] = Pair(
                    self.filled(value, made.re), None if made.im is None else self.filled(value, made.im)
                )
            else:
                self.same[value] = made.value

    def known(self, equation: Equation) -> tuple[Any, ...] | None:
        """What the rule of its op makes of parts; None where there is none, or it leaves it to the op."""
        rule = rule_of(equation.op)
        if rule is None:
            return None
        try:
            found = rule(*map(self.argument, equation.inputs), **equation.params)
        except shapes.Unknown:
            return None
        made = found if isinstance(found, tuple) else (found,)
        return made if all(map(fits, equation.outputs, made)) else None

    def argument(self, operand: Any) -> Any:
        """What a rule is given for an operand."""
        if isinstance(operand, complex):
            return Pair(operand.real, operand.imag)
        if not isinstance(operand, Value):
            return operand
        return self.pair(operand) if has_complex([operand]) else Part(self.build, self.same.get(operand, operand))

    def pair(self, value: Value) -> Pair:
        """A complex value by its parts."""
        if value not in self.parts:
            self.parts[value] = Pair(*[
                Part(self.build, self.made(value, real_name(value), op, self.whole[value])) for op in (real, imag)
            ])  # fmt: skip
        return self.parts[value]

    def leave(self, equation: Equation) -> None:
        """Add an equation as it is, on complex values."""
        inputs = tuple([self.read(v) if isinstance(v, Value) else v for v in equation.inputs])
        made = self.build.put(with_inputs(equation, inputs))
        for old, new in zip(equation.outputs, made, strict=True):
            (self.whole if has_complex([old]) else self.same)[old] = new

    def read(self, value: Value) -> Value:
        """A value as it was in the old graph."""
        if not has_complex([value]):
            return self.same.get(value, value)
        if value not in self.whole:
            pair = self.parts[value]
            inputs = tuple([self.filled(value, part).value for part in (pair.re, pair.im)])
            self.whole[value] = self.made(value, value.dtype, join, *inputs)
        return self.whole[value]

    def filled(self, value: Value, part: Any) -> Part:
        """A part of a complex value: one that is a number, or zero, as an array."""
        if isinstance(part, Part):
            return part
        kind = real_name(value)
        return Part(self.build, self.made(value, kind, full, shape=value.shape, value=part or 0.0, dtype=kind))

    def made(self, like: Value, kind: str, op: Op, /, *inputs: Value, **params: Any) -> Value:
        """What ``op`` makes, of the shape of a value."""
        out = Value(like.shape, kind, like.place)
        return self.build.put(Equation(op, inputs, params, (out,), self.build.line))[0]

    def end(self, value: Value) -> Value:
        """A result or the value of an effect: of complex ones the parts, side by side."""
        if not has_complex([value]):
            return self.same.get(value, value)
        made: Part = beside(self.pair(value))
        return made.value


def fits(value: Value, made: Any) -> bool:
    """Whether what a rule made can stand for a value."""
    if isinstance(made, Pair):
        kind, parts = real_name(value), [p for p in (made.re, made.im) if isinstance(p, Part)]
        return has_complex([value]) and all(p.value.shape == value.shape and p.value.dtype == kind for p in parts)
    return isinstance(made, Part) and made.value.shape == value.shape and made.value.dtype == value.dtype


def real_name(value: Value) -> str:
    return dtypes.BY_NAME[value.dtype].to_real().name
