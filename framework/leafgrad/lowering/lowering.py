"""From equations to kernels: views become strides, neighbours over one shape become one loop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.compile.schedule.schedule import Loop
from leafgrad.lowering import expressions, forms, joins
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Copy, Kernel, Load, Nest, Store, roots
from leafgrad.lowering.pattern import Pattern
from leafgrad.lowering.patterns import Elementwise, Join

LARGEST_NEST = 48  # equations in one loop; beyond it, compilers spend their time on registers
LONGEST = 12  # equations that wait for one which reads them


class Lowering:
    """Turns the equations of one stage into kernels.

    Args:
        patterns: how each equation is lowered.
        whole: the forms of all whole values so far; a stage on whole arrays adds its own.
        loop: the loop whose chunks the kernels work on; None for a stage on whole arrays.
        ends: for each sum over its batch, the value that the accumulator holds after the loop.

    Attributes:
        kernels: in order.
        sums: of a loop, the accumulators of these values.
    """

    def __init__(
        self,
        patterns: Mapping[Equation, Pattern | None],
        whole: dict[Value, Form],
        loop: Loop | None,
        ends: Mapping[Value, Value],
    ) -> None:
        self.patterns = patterns
        self.whole = whole
        self.loop = loop
        self.ends = ends
        self.made: dict[Value, Form] = whole if loop is None else {}
        self.loads: dict[tuple[Value, int], Form] = {}
        self.first: list[Kernel] = []
        self.kernels: list[Kernel] = []
        self.time: dict[Value, float] = {}  # after which kernel a value exists; a view a little later
        self.youngest: dict[tuple[forms.Shape, int | None], tuple[int, Nest]] = {}
        self.sums: dict[Value, Root] = {}
        self.light: dict[Value, tuple[Equation, expressions.Body]] = {}
        self.placed: dict[Value, Form] = {}

    def run(self, equations: Sequence[Equation], kept: set[Value]) -> None:
        """Lower ``equations``; those of their results that are ``kept`` are read by others."""
        equations = self.singles_first(equations)
        self.light = self.cheap(equations, kept)
        self.placed = self.places(equations, kept)
        for equation in equations:
            pattern = self.patterns[equation]
            if equation.outputs[0] not in self.light and pattern is not None:
                pattern.lower(self, equation)
        if self.loop is not None:
            for v in self.loop.stored:
                self.kernels.append(Store(self.maker(v), (self.made[v],), self.whole[v]))
        read = {r for k in self.kernels for r in roots(k.inputs)} | set(roots(self.made[v] for v in kept))
        for kernel in self.kernels:
            if isinstance(kernel, Nest):
                kernel.needed = {v for v, f in kernel.writes.items() if f.root in read}
        self.kernels = [*self.first, *self.kernels]

    def singles_first(self, equations: Sequence[Equation]) -> list[Equation]:
        """Single elements that need no array of this stage come before all else: between two loops they part them."""
        if self.loop is not None:
            return list(equations)
        made = {v for e in equations for v in e.outputs}
        first: dict[Value, Equation] = {}
        for e in equations:
            if self.joins(e) and single(e.out) and all(v in first or (v not in made and single(v)) for v in e.values):
                first[e.out] = e
        return [*first.values(), *(e for e in equations if e.outputs[0] not in first)]

    def places(self, equations: Sequence[Equation], kept: set[Value]) -> dict[Value, Form]:
        """Where parts of joins lie that are made, or loaded, here for no one else to keep."""
        made = {v: e for e in equations for v in e.outputs}
        sums = set(self.loop.summed) if self.loop is not None else set()

        def free(join: Equation, i: int) -> bool:
            value = join.inputs[i]
            assert isinstance(value, Value)
            if value in made:
                pattern = self.patterns[made[value]]
                return pattern is not None and not pattern.fixed and value not in kept and value not in sums
            return self.loop is not None and self.loop.reads.get((join, i)) == self.axis(join.out)

        found = {e: p.dim for e in equations if isinstance(p := self.patterns[e], Join)}
        return joins.places(found, self.axis, free)

    def maker(self, value: Value) -> Equation:
        assert self.loop is not None
        return next(e for e in self.loop.equations if value in e.outputs)

    # ---- operands ---------------------------------------------------------------------------------------------

    def axis(self, value: Value) -> int | None:
        return None if self.loop is None else self.loop.axis.get(value)

    def operand(self, equation: Equation, i: int) -> Form:
        """The form of the i-th input."""
        value = equation.inputs[i]
        assert isinstance(value, Value)
        if value in self.made:
            return self.made[value]
        axis = None if self.loop is None else self.loop.reads.get((equation, i))
        if axis is None:
            return self.whole[value]
        if (value, axis) not in self.loads:
            whole = self.whole[value]
            part = self.placed.get(value)
            if part is None or part.axis != axis:
                part = full(Root(value.shape, value.dtype, axis))
            self.loads[value, axis] = part
            self.first.append(Load(equation, (whole,), part))
        return self.loads[value, axis]

    def operands(self, equation: Equation) -> tuple[Form, ...]:
        return tuple(self.operand(equation, i) for i, v in enumerate(equation.inputs) if isinstance(v, Value))

    def new(self, value: Value) -> Form:
        """The form of a value that a kernel makes."""
        form = self.made[value] = self.placed.get(value) or forms.of(value, self.axis(value))
        return form

    def add(self, kernel: Kernel, *values: Value) -> None:
        self.time.update(dict.fromkeys(values, len(self.kernels)))
        self.kernels.append(kernel)

    # ---- for patterns -----------------------------------------------------------------------------------------

    def elementwise(self, equation: Equation, body: expressions.Body) -> None:
        """Into the youngest nest over this shape that exists after all that the equation reads, or a new one."""
        out = equation.out
        key = out.shape, self.axis(out)
        at, nest = self.youngest.get(key, (-1, None))
        inputs = self.sources(equation.values if body.arrays else ())
        ready = max((self.time.get(v, -1) for v in inputs), default=-1)
        if nest is None or ready > at or len(nest.equations) >= LARGEST_NEST or not self.meets(nest, inputs):
            at, nest = len(self.kernels), Nest(out.shape, self.axis(out))
            self.youngest[key] = at, nest
            self.kernels.append(nest)
        self.put(nest, equation, body)
        nest.writes[out] = self.new(out)
        self.time[out] = at

    def put(self, nest: Nest, equation: Equation, body: expressions.Body) -> None:
        """Into a nest, after what it reads: arrays, results of the nest, and cheap values, which are computed again."""
        for i, v in enumerate(equation.inputs):
            if not isinstance(v, Value) or v in nest.writes or v in nest.again or not body.arrays:
                continue
            if v in self.light:
                self.put(nest, *self.light[v])
                nest.again.add(v)
            else:
                nest.reads[equation, i] = self.operand(equation, i)
        nest.equations.append(equation)
        nest.bodies[equation] = body

    def cheap(self, equations: Sequence[Equation], kept: set[Value]) -> dict[Value, tuple[Equation, expressions.Body]]:
        """Values that only loops over their own shape read, and that follow from one array and single elements.

        Either one equation reads them, or they are so little arithmetic that each loop computes them again.
        """
        readers: dict[Value, set[Equation]] = {}
        for e in equations:
            for v in e.values:
                readers.setdefault(v, set()).add(e)
        stored = kept | set(self.loop.stored if self.loop is not None else ())
        found: dict[Value, tuple[Equation, expressions.Body]] = {}
        length: dict[Value, int] = {}  # of the chain of such values that ends here
        again: set[Value] = set()
        for e in equations:
            out, pattern = e.outputs[0], self.patterns[e]
            arrays = {v for v in e.values if v.shape == out.shape}
            if (
                not isinstance(pattern, Elementwise)
                or not self.joins(e)
                or out in stored
                or len(arrays) != 1
                or not all(v in arrays or single(v) for v in e.values)
                or not all(self.joins(r) and r.out.shape == out.shape for r in readers.get(out, ()))
            ):
                continue
            (source,) = arrays
            length[out] = length.get(source, 0) + 1
            if pattern.body.light and (source not in found or source in again):
                again.add(out)
            elif len(readers.get(out, ())) != 1 or length[out] > LONGEST:
                length[out] = 0
                continue
            found[out] = e, pattern.body
        return found

    def joins(self, equation: Equation) -> bool:
        """Whether the equation is computed in a nest, from its arrays."""
        pattern = self.patterns[equation]
        return isinstance(pattern, Elementwise) and pattern.body.arrays

    def sources(self, values: Sequence[Value]) -> list[Value]:
        """The arrays from which ``values`` are computed, through cheap ones."""
        found: list[Value] = []
        for v in values:
            found += self.sources(self.light[v][0].values) if v in self.light else [v]
        return found

    def meets(self, nest: Nest, inputs: Sequence[Value]) -> bool:
        """Whether the nest makes or reads some of the inputs, so that joining it saves a load."""
        mine = {v for e in nest.equations for v in (*e.values, *e.outputs)}
        return any(v in mine for v in inputs)

    def join(self, equation: Equation, dim: int | None) -> None:
        """Copies of the parts that were not made in their place."""
        out = self.new(equation.out)
        self.time[equation.out] = max(self.time.get(v, -1) for v in equation.values) + 0.5
        for x, target in zip(self.operands(equation), joins.parts(equation, dim, out), strict=True):
            if x != target:
                self.add(Copy(equation, (x,), target), equation.out)

    def ordered(self, equation: Equation, x: Form) -> Form:
        """A copy of an input with its elements in order."""
        copy = full(Root(x.shape, x.root.dtype, x.axis))
        self.add(Copy(equation, (x,), copy), *equation.outputs)
        return copy

    def accumulator(self, value: Value) -> Form:
        end = self.ends[value]
        return full(self.sums.setdefault(end, Root(end.shape, expressions.held(end.dtype))))


def single(value: Value) -> bool:
    """Whether it has one element."""
    return math.prod(value.shape) == 1
