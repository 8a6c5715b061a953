"""From equations to kernels: views become strides, neighbours over one shape become one loop."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leafgrad.compile.graph import Equation, Value
from leafgrad.compile.schedule import Loop
from leafgrad_native import expressions, forms, joins, lookups
from leafgrad_native.forms import Form, Root
from leafgrad_native.kernels import Copy, Draw, Kernel, Load, Nest, Normalize, Product, Reduce, Select, Store, roots

LIGHT = ("add", "sub", "mul", "neg", "square")  # computed again rather than stored, from one array
LARGEST_NEST = 48  # equations in one loop; beyond it, compilers spend their time on registers
VIEWS = ("reshape", "permute", "expand", "slice", "flip")
REDUCTIONS = ("sum", "sum_to", "mean", "prod", "amax", "amin")
OTHERS = ("cat", "pack", "unpack", "unslice", "pad", "matmul", "softmax", "log_softmax", "logsumexp", "pick", "place")
CONSTANTS = ("constant", "arange", "linspace", "logspace", "eye", "triangle")  # made once, with the program
# What fills all of a root, or sees another's.
FIXED = (*VIEWS, "unpack", "unslice", "pad", "full", "zeros", "coins", *CONSTANTS)
FLOATS = expressions.FLOATS


def fits(equation: Equation) -> bool:
    """Whether the equation can be lowered to C."""
    values = [*equation.values, *equation.outputs]
    if not values or any(v.dtype not in expressions.C_TYPES or 0 in v.shape for v in values):
        return False
    if any(v.place[0] != "cpu" for v in values) or goes_beyond(equation):
        return False
    name = equation.name
    if name in ("full", "zeros", *CONSTANTS):
        return True
    if name == "coins":
        return equation.out.dtype in FLOATS
    if name in VIEWS or name in ("unpack", "unslice"):
        return True
    if name in joins.OPS:
        return len({v.dtype for v in values}) == 1 and all(isinstance(v, Value) for v in equation.inputs)
    if name == "pad":
        return isinstance(equation.params.get("value", 0), (int, float))
    if name in ("pick", "place"):
        return values[1].dtype == "int64"
    if name in lookups.OPS:
        return lookups.fits(equation)
    if name in REDUCTIONS or name in OTHERS:
        return all(v.dtype == values[0].dtype for v in values) and values[0].dtype in FLOATS
    return ("elementwise" in equation.op.traits or name in ("to_dtype", "new_full")) and expressions.fits(equation)


def goes_beyond(equation: Equation) -> bool:
    """Whether it runs along dimension 0 of an array without dimensions: what that means, the op alone knows."""
    dim = equation.params.get("dim", equation.params.get("dims", ()))
    return bool(equation.values) and not equation.values[0].ndim and dim not in ((), None)


class Lowering:
    """Turns the equations of one stage into kernels.

    Args:
        whole: the forms of all whole values so far; a stage on whole arrays adds its own.
        loop: the loop whose chunks the kernels work on; None for a stage on whole arrays.

    Attributes:
        kernels: in order.
        sums: of a loop, the accumulator of each sum over the batch.
    """

    def __init__(self, whole: dict[Value, Form], loop: Loop | None = None) -> None:
        self.whole = whole
        self.loop = loop
        self.made: dict[Value, Form] = whole if loop is None else {}
        self.loads: dict[tuple[Value, int], Form] = {}
        self.first: list[Kernel] = []
        self.kernels: list[Kernel] = []
        self.time: dict[Value, float] = {}  # after which kernel a value exists; a view a little later
        self.youngest: dict[tuple[forms.Shape, int | None], tuple[int, Nest]] = {}
        self.sums: dict[Value, Root] = {}
        self.light: dict[Value, Equation] = {}
        self.placed: dict[Value, Form] = {}

    def run(self, equations: Sequence[Equation], kept: set[Value]) -> None:
        """Lower ``equations``; those of their results that are ``kept`` are read by others."""
        self.light = self.cheap(equations, kept)
        self.placed = self.places(equations, kept)
        for equation in equations:
            if equation.outputs[0] not in self.light:
                self.lower(equation)
        if self.loop is not None:
            for v in self.loop.stored:
                self.kernels.append(Store(self.maker(v), (self.made[v],), self.whole[v]))
        read = {r for k in self.kernels for r in roots(k.inputs)} | set(roots(self.made[v] for v in kept))
        for kernel in self.kernels:
            if isinstance(kernel, Nest):
                kernel.needed = {v for v, f in kernel.writes.items() if f.root in read}
        self.kernels = [*self.first, *self.kernels]

    def places(self, equations: Sequence[Equation], kept: set[Value]) -> dict[Value, Form]:
        """Where parts of joins lie that are made, or loaded, here for no one else to keep."""
        made = {v: e for e in equations for v in e.outputs}
        sums = set(self.loop.summed) if self.loop is not None else set()

        def free(join: Equation, i: int) -> bool:
            value = join.inputs[i]
            assert isinstance(value, Value)
            if value in made:
                return made[value].name not in FIXED and value not in kept and value not in sums
            return self.loop is not None and self.loop.reads.get((join, i)) == self.axis(join.out)

        return joins.places(equations, self.axis, free)

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
                part = forms.full(Root(value.shape, value.dtype, axis))
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

    # ---- equations --------------------------------------------------------------------------------------------

    def lower(self, equation: Equation) -> None:
        name = equation.name
        if name in VIEWS or name == "unpack":
            self.view(equation)
        elif name in joins.OPS:
            self.join(equation)
        elif name in ("unslice", "pad"):
            out = self.new(equation.out)
            target = forms.part(out, equation.params["at"])
            assert target is not None
            fill = equation.params.get("value", 0) if name == "pad" else 0
            self.add(Copy(equation, self.operands(equation), target, fill), equation.out)
        elif name in ("full", "zeros"):
            out = self.new(equation.out)
            self.add(Copy(equation, (), out, equation.params.get("value", 0)), equation.out)
        elif name in CONSTANTS:
            self.made[equation.out] = forms.of(equation.out)
        elif name == "coins":
            self.add(Draw(equation, (), self.new(equation.out)), equation.out)
        elif name in REDUCTIONS:
            self.reduce(equation)
        elif name == "matmul":
            self.product(equation)
        elif name in ("softmax", "log_softmax", "logsumexp"):
            dim = equation.params["dim"]
            dims = dim if isinstance(dim, tuple) else (dim,)
            self.add(Normalize(equation, self.operands(equation), self.new(equation.out), dims), equation.out)
        elif name in ("pick", "place"):
            self.add(
                Select(equation, self.operands(equation), self.new(equation.out), equation.params["dim"]), equation.out
            )
        elif name in lookups.OPS:
            found = {v: self.operand(equation, i) for i, v in enumerate(equation.inputs) if isinstance(v, Value)}
            self.add(lookups.lookup(equation, found, self.new(equation.out)), equation.out)
        else:
            self.elementwise(equation)

    def elementwise(self, equation: Equation) -> None:
        """Into the youngest nest over this shape that exists after all that the equation reads, or a new one."""
        out = equation.out
        key = out.shape, self.axis(out)
        at, nest = self.youngest.get(key, (-1, None))
        inputs = self.sources([v for v in equation.values if equation.name != "new_full"])
        ready = max((self.time.get(v, -1) for v in inputs), default=-1)
        if nest is None or ready > at or len(nest.equations) >= LARGEST_NEST or not self.meets(nest, inputs):
            at, nest = len(self.kernels), Nest(out.shape, self.axis(out))
            self.youngest[key] = at, nest
            self.kernels.append(nest)
        self.put(nest, equation)
        nest.writes[out] = self.new(out)
        self.time[out] = at

    def put(self, nest: Nest, equation: Equation) -> None:
        """Into a nest, after what it reads: arrays, results of the nest, and cheap values, which are computed again."""
        for i, v in enumerate(equation.inputs):
            if not isinstance(v, Value) or v in nest.writes or v in nest.again or equation.name == "new_full":
                continue
            if v in self.light:
                self.put(nest, self.light[v])
                nest.again.add(v)
            else:
                nest.reads[equation, i] = self.operand(equation, i)
        nest.equations.append(equation)

    def cheap(self, equations: Sequence[Equation], kept: set[Value]) -> dict[Value, Equation]:
        """Values that only loops over their own shape read, and that follow from one array by little arithmetic."""
        readers: dict[Value, list[Equation]] = {}
        for e in equations:
            for v in e.values:
                readers.setdefault(v, []).append(e)
        stored = kept | set(self.loop.stored if self.loop is not None else ())
        found: dict[Value, Equation] = {}
        for e in equations:
            out = e.out
            arrays = {v for v in e.values if v.shape == out.shape}
            if (
                e.name in LIGHT
                and out not in stored
                and len(arrays) == 1
                and len(list(e.values)) - sum(v in arrays for v in e.values) == 0
                and all(self.joins(r) and r.out.shape == out.shape for r in readers.get(out, ()))
            ):
                found[out] = e
        return found

    def joins(self, equation: Equation) -> bool:
        """Whether the equation is computed in a nest."""
        name = equation.name
        return name not in (*VIEWS, *REDUCTIONS, *OTHERS, *lookups.OPS, *CONSTANTS, "full", "zeros", "new_full")

    def sources(self, values: Sequence[Value]) -> list[Value]:
        """The arrays from which ``values`` are computed, through cheap ones."""
        found: list[Value] = []
        for v in values:
            found += self.sources(list(self.light[v].values)) if v in self.light else [v]
        return found

    def meets(self, nest: Nest, inputs: Sequence[Value]) -> bool:
        """Whether the nest makes or reads some of the inputs, so that joining it saves a load."""
        mine = {v for e in nest.equations for v in (*e.values, *e.outputs)}
        return any(v in mine for v in inputs)

    def view(self, equation: Equation) -> None:
        (x,) = self.operands(equation)
        (value,) = equation.values
        found = self.seen(equation, x)
        self.time.update(dict.fromkeys(equation.outputs, self.time.get(value, -1) + 0.5))
        if found is not None:
            self.made.update(zip(equation.outputs, found, strict=True))
            return
        ordered = forms.full(Root(x.shape, x.root.dtype, x.axis))  # elements that do not lie in order: in order first
        self.add(Copy(equation, (x,), ordered), *equation.outputs)
        found = self.seen(equation, ordered)
        assert found is not None
        self.made.update(zip(equation.outputs, found, strict=True))

    def seen(self, equation: Equation, x: Form) -> list[Form] | None:
        """What the outputs of an op on layouts are, as views of ``x``; None if they are none."""
        params = equation.params
        found: Form | None
        match equation.name:
            case "permute":
                found = forms.permute(x, params["dims"])
            case "expand":
                found = forms.expand(x, equation.out.shape)
            case "slice":
                found = forms.part(x, params["at"])
            case "flip":
                found = forms.flip(x, params["dims"])
            case "unpack":
                parts, start = [], 0
                for v in equation.outputs:
                    size = math.prod(v.shape)
                    cut = forms.part(x, ((start, start + size, 1),))
                    shaped = None if cut is None else forms.reshape(cut, v.shape, None)
                    if shaped is None:
                        return None
                    parts.append(shaped)
                    start += size
                return parts
            case _:
                found = forms.reshape(x, equation.out.shape, self.axis(equation.out))
        return None if found is None else [found]

    def join(self, equation: Equation) -> None:
        """Copies of the parts that were not made in their place."""
        out = self.new(equation.out)
        self.time[equation.out] = max(self.time.get(v, -1) for v in equation.values) + 0.5
        for x, target in zip(self.operands(equation), joins.parts(equation, out), strict=True):
            if x != target:
                self.add(Copy(equation, (x,), target), equation.out)

    def reduce(self, equation: Equation) -> None:
        (x,) = self.operands(equation)
        out = equation.out
        if equation.name == "sum_to":
            extra = len(x.shape) - len(out.shape)
            dims = tuple(range(extra)) + tuple(
                i + extra for i, n in enumerate(out.shape) if n == 1 and x.shape[i + extra] != 1
            )
        else:
            dims = tuple(equation.params["dim"])
        total = x.axis is not None and x.axis in dims
        target = self.accumulator(out) if total else self.new(out)
        self.add(Reduce(equation, (x,), target, dims, total), out)

    def product(self, equation: Equation) -> None:
        a, b = self.operands(equation)
        total = a.axis is not None and a.axis == len(a.shape) - 1 and len(a.shape) > 1
        target = self.accumulator(equation.out) if total else self.new(equation.out)
        self.add(Product(equation, (a, b), target, total), equation.out)

    def accumulator(self, value: Value) -> Form:
        form = forms.of(value)
        self.sums[value] = form.root
        return form
