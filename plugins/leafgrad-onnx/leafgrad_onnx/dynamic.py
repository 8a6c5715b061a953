"""Sizes that may be others: programs of several lengths become one graph.

A trace is made of concrete shapes. So the same function is traced at several lengths, and the graphs are compared node
by node: operators and attributes must be the same, and each number that differs must follow from the sizes of what is
read, by the same formula at all lengths. What follows from nothing is an error, never a number of one length.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from leafgrad.compile.ir.graph import Value
from leafgrad_onnx.errors import OnnxExporterError
from leafgrad_onnx.writer import EmittedNode, Numbers, OnnxWriter

STEPS = range(2, 9)  # by which a size may be divided and rounded down
SHIFTS = range(-16, 17)


@dataclass(frozen=True)
class Size:
    """The product of some dimensions of a value, at each of the lengths."""

    name: str
    first: int
    last: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Formula:
    """(times * product + plus) // by."""

    sizes: tuple[Size, ...]
    times: int = 1
    plus: int = 0
    by: int = 1


class Unifier:
    """One graph of several, of which the first is changed.

    Args:
        writers: of the same function at several lengths.
        given: the names of inputs with sizes that vary.
    """

    def __init__(self, writers: Sequence[OnnxWriter], given: Sequence[str]) -> None:
        self.writers = writers
        self.first = writers[0]
        self.given = given
        self.made: dict[Any, str] = {}

    def run(self) -> OnnxWriter:
        """The first graph, whose numbers follow from sizes."""
        self.check()
        places: dict[int, list[EmittedNode]] = {}
        kept = []
        for at, numbers in enumerate(zip(*[w.numbers for w in self.writers], strict=True)):
            if all(n.values == numbers[0].values for n in numbers):
                kept.append(numbers[0])
                continue
            before, self.first.main = self.first.main, places.setdefault(numbers[0].at, [])
            nodes, self.first.nodes = self.first.nodes, self.first.main
            self.first.equation = numbers[0].equation
            self.made = {}
            count = len(self.first.numbers)
            self.derive(at, numbers)
            kept += self.first.numbers[count:]
            del self.first.numbers[count:]
            self.first.main, self.first.nodes = before, nodes
        nodes = []
        for i, node in enumerate(self.first.nodes):
            nodes += [*places.get(i, ()), node]
        self.first.nodes[:] = [*nodes, *places.get(len(self.first.nodes), ())]
        self.first.numbers[:] = kept
        return self.first

    def check(self) -> None:
        """An error unless all graphs are of the same nodes."""
        for nodes in zip(*[w.nodes for w in self.writers], strict=False):
            if not all(same(node, nodes[0]) for node in nodes):
                raise refusal(self.first, nodes[0].equation, "makes other nodes", [described(n) for n in nodes])
        if len({(len(w.nodes), len(w.numbers)) for w in self.writers}) > 1:
            longest = max(self.writers, key=lambda w: len(w.nodes))
            extra = longest.nodes[min(len(longest.nodes) - 1, min(len(w.nodes) for w in self.writers))]
            raise refusal(
                self.first, extra.equation, "is not there at all lengths", [len(w.nodes) for w in self.writers]
            )
        for name, array in self.first.arrays.items():
            others = [w.arrays.get(name) for w in self.writers]
            if not all(o is not None and o.shape == array.shape and np.array_equal(o, array) for o in others):
                raise OnnxExporterError(
                    "onnx.export: dynamic_axes: a constant that the function makes differs with the lengths; make it "
                    "of ops whose sizes follow from the inputs, such as arange"
                )

    # ---- numbers ------------------------------------------------------------------------------------------------

    def derive(self, at: int, numbers: Sequence[Numbers]) -> None:
        """Nodes whose result has the name of the first of the numbers."""
        w, first = self.first, numbers[0]
        known = list(self.known(at))
        parts = []
        for values in zip(*[n.values for n in numbers], strict=True):
            part = self.element(first, values, known)
            if part is None:
                raise refusal(
                    w, first.equation, "reads numbers that do not follow from the sizes of its inputs", values
                )
            parts.append(part)
        name = parts[0] if len(parts) == 1 else w.emit("Concat", *parts, axis=0)
        if first.scalar:
            name = w.emit("Squeeze", name, w.ints([0]))
        w.emit("Identity", name)
        node = w.nodes[-1]
        w.nodes[-1] = EmittedNode(node.kind, node.inputs, (first.name,), node.attributes, node.equation)

    def element(self, first: Numbers, values: tuple[float, ...], known: Sequence[Size]) -> str | None:
        """A vector of one number that has these values at the lengths; None if nothing gives them."""
        w, dtype = self.first, first.dtype
        if all(v == values[0] for v in values):
            return w.number((values[0],), dtype, scalar=False)
        if all(math.isfinite(v) and v == int(v) for v in values):
            found = formula(tuple(map(int, values)), known)
            name = None if found is None else self.computed(found)
            return name if name is None or dtype == "int64" else w.cast(name, dtype)
        for inverse, kinds in (
            (lambda v: 1 / v, ("Reciprocal",)),
            (lambda v: v * v, ("Sqrt",)),
            (square_inverse, ("Sqrt", "Reciprocal")),
        ):
            found = formula_of(inverse, values, known)
            if found is not None:
                name = w.cast(self.computed(found), dtype)
                for kind in kinds:
                    name = w.emit(kind, name)
                return name
        return None

    def computed(self, found: Formula) -> str:
        """A vector of one int64: what a formula gives."""
        w = self.first
        name = ""
        for size in found.sizes:
            shape = w.emit("Shape", size.name, start=size.first, end=size.last)
            if size.last - size.first > 1:
                shape = w.emit("ReduceProd", shape, w.ints([0]), keepdims=1)
            name = shape if not name else w.emit("Mul", name, shape)
        for kind, number, nothing in (("Mul", found.times, 1), ("Add", found.plus, 0), ("Div", found.by, 1)):
            if number != nothing:
                name = w.emit(kind, name, w.ints([number]))
        return name

    def known(self, at: int) -> Iterator[Size]:
        """The sizes that vary, single ones first: of what the equation reads, of inputs, of all that is before it."""
        equations = [w.numbers[at].equation for w in self.writers]
        read = [
            w.names[v] for w, e in zip(self.writers[:1], equations, strict=False) if e for v in e.values if v in w.names
        ]
        before = self.before(equations[0])
        spans: dict[tuple[int, ...], Size] = {}
        for name in dict.fromkeys([*read, *self.given, *before]):
            shapes = [values[name].shape for values in self.values if name in values]
            if len(shapes) < len(self.values) or len({len(s) for s in shapes}) > 1:
                continue
            for i in range(len(shapes[0])):
                for j in range(i + 1, len(shapes[0]) + 1 if name in read else i + 2):
                    row = tuple(math.prod(s[i:j]) for s in shapes)
                    if len(set(row)) > 1:
                        spans.setdefault(row, Size(name, i, j, row))
        yield from sorted(spans.values(), key=lambda s: s.last - s.first)

    @functools.cached_property
    def values(self) -> list[dict[str, Value]]:
        """Of each graph, the values by name."""
        return [{name: v for v, name in w.names.items()} for w in self.writers]

    def before(self, equation: Any) -> list[str]:
        """The names of values that are there before an equation of the first graph."""
        found = []
        for e in self.first.graph.equations:
            if e is equation:
                break
            found += [self.first.names[v] for v in e.outputs if v in self.first.names]
        return found


def formula(values: tuple[int, ...], known: Sequence[Size]) -> Formula | None:
    """How numbers follow from sizes: the simplest way that is right at all lengths."""
    pairs = [(a, b) for i, a in enumerate(known) for b in known[i:] if a.last - a.first == 1 == b.last - b.first]
    products: list[tuple[Size, ...]] = [*((s,) for s in known), *pairs]
    rows = [(p, tuple(math.prod(k) for k in zip(*[s.values for s in p], strict=True))) for p in products]
    for sizes, row in rows:
        if row == values:
            return Formula(sizes)
    for fit in (proportional, affine, stepped):
        for sizes, row in rows:
            found = fit(values, row)
            if found is not None:
                return Formula(sizes, *found)
    return None


def proportional(values: tuple[int, ...], row: tuple[int, ...]) -> tuple[int, int, int] | None:
    """times * row // by."""
    if 0 in row:
        return None
    ratio = Fraction(values[0], row[0])
    if any(Fraction(v, r) != ratio for v, r in zip(values, row, strict=True)):
        return None
    return ratio.numerator, 0, ratio.denominator


def affine(values: tuple[int, ...], row: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(times * row + plus) // by, always whole."""
    i = next((k for k, r in enumerate(row) if r != row[0]), 0)
    if not i:
        return None
    slope = Fraction(values[i] - values[0], row[i] - row[0])
    start = values[0] - slope * row[0]
    if any(slope * r + start != v for v, r in zip(values, row, strict=True)):
        return None
    by = math.lcm(slope.denominator, start.denominator)
    return int(slope * by), int(start * by), by


def stepped(values: tuple[int, ...], row: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(row + plus) // by, rounded down."""
    for by in STEPS:
        for plus in SHIFTS:
            if all(r + plus >= 0 and (r + plus) // by == v for v, r in zip(values, row, strict=True)):
                return 1, plus, by
    return None


def square_inverse(v: float) -> float:
    return 1 / (v * v)


def formula_of(inverse: Callable[[float], float], values: tuple[float, ...], known: Sequence[Size]) -> Formula | None:
    """The formula of whole numbers of which others are a function."""
    if not all(v > 0 and math.isfinite(v) for v in values):
        return None
    whole = tuple(round(inverse(v)) for v in values)
    close = all(n > 0 and math.isclose(inverse(v), n, rel_tol=1e-12) for v, n in zip(values, whole, strict=True))
    return formula(whole, known) if close else None


# ---- comparison ---------------------------------------------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    """Whether nodes, or graphs within them, are alike but for shapes."""
    if isinstance(a, EmittedNode) and isinstance(b, EmittedNode):
        return (a.kind, a.inputs, a.outputs) == (b.kind, b.inputs, b.outputs) and same(a.attributes, b.attributes)
    if is_dataclass(a) and type(a) is type(b):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and a and isinstance(a[0], tuple):
        return [entry[:2] for entry in a] == [entry[:2] for entry in b]
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def described(node: EmittedNode) -> str:
    plain = {k: v for k, v in node.attributes.items() if not is_dataclass(v)}
    return f"{node.kind}{plain or ''}"


def refusal(w: OnnxWriter, equation: Any, why: str, at: Sequence[Any]) -> OnnxExporterError:
    """The error that names an op and its line."""
    several = ", ".join(map(str, at))
    return OnnxExporterError(
        f"onnx.export: dynamic_axes: op {equation.name!r} {why} ({several} at the lengths tried), at "
        f"{w.line(equation)}; "
        "write it with sizes of its inputs (x.shape[0]), or leave this axis out of dynamic_axes"
    )


def varying_shape(values: Sequence[Value], symbols: dict[str, tuple[int, ...]], name: str) -> list[int | str]:
    """The shape of an output: sizes, names of axes that it shares with inputs, or names of its own."""
    found: list[int | str] = []
    for d, sizes in enumerate(zip(*[v.shape for v in values], strict=True)):
        if len(set(sizes)) == 1:
            found.append(sizes[0])
        else:
            found.append(next((s for s, row in symbols.items() if row == sizes), f"{name}_dim_{d}"))
    return found
