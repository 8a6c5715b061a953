"""Python source for a scheduled graph."""

from __future__ import annotations

import math
import re
from typing import Any

from leafgrad.compile.buffers import Allocator
from leafgrad.compile.graph import Equation, Graph, Value
from leafgrad.compile.schedule import Loop, Schedule, Stage, Whole
from leafgrad.compile.scratch import BLOCK, Form, Program, Scratch, itemsize

# Ops whose forward is one ufunc of the array namespace, which can write into a given array.
UFUNCS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "true_divide", "neg": "negative",
    "abs": "absolute", "sqrt": "sqrt", "square": "square", "exp": "exp", "expm1": "expm1", "log": "log",
    "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "maximum": "maximum", "minimum": "minimum",
    "floor": "floor", "ceil": "ceil", "reciprocal": "reciprocal", "exp2": "exp2", "log2": "log2",
    "log10": "log10", "atan2": "arctan2", "hypot": "hypot", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
SMALL = 1024  # elements below which a fresh array is as good as a buffer


def emit(graph: Graph, schedule: Schedule) -> Program:
    """The source of ``run(inputs, *scratch)``, which returns results, then effects' values, each in new memory."""
    names = {v: identifier(n) for v, n in graph.named().items()}
    space: dict[str, Any] = {}
    fresh: set[Value] = set()
    lines: list[str] = []
    scratch: list[Scratch] = []
    for i, stage in enumerate(schedule.stages):
        shared = graph, names, space, fresh
        writer = LoopWriter(stage, *shared) if isinstance(stage, Loop) else WholeWriter(stage, *shared)
        lines += writer.stage(f"scratch{i}")
        scratch.append(writer.scratch)
    order = [*graph.results, *(e.value for e in graph.effects if e.value is not None)]
    results = []
    for k, v in enumerate(order):
        results.append(names[v] if v in fresh and v not in order[:k] else f"{names[v]}.copy()")
    unpack = "".join(f"{names[v]}, " for v in graph.inputs)
    parameters = ", ".join(["inputs", *(f"scratch{i}" for i in range(len(scratch)))])
    source = [f"def run({parameters}):", *([f"    {unpack}= inputs"] if unpack else []), *lines]
    text = "\n".join([*source, f"    return [{', '.join(results)}]", ""])
    return Program(text, space, scratch, set(UFUNCS.values()))


def identifier(name: str) -> str:
    """A name that cannot meet one of the generated ones."""
    return "v_" + re.sub(r"\W", "_", name)


class Writer:
    """Writes the lines of one stage."""

    indent = "    "

    def __init__(
        self, stage: Stage, graph: Graph, names: dict[Value, str], space: dict[str, Any], fresh: set[Value]
    ) -> None:
        self.graph = graph
        self.equations: list[Equation] = stage.equations
        self.names = names
        self.space = space
        self.fresh = fresh
        self.lines: list[str] = []
        self.forms: dict[Form, str] = {}
        self.ones: dict[tuple[str, int], str] = {}
        self.allocator = Allocator(self.equations, ())
        self.scratch: Scratch

    def add(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def text(self, equation: Equation, i: int) -> str:
        """The source of the i-th input."""
        v = equation.inputs[i]
        return self.local(equation, i, v) if isinstance(v, Value) else self.constant(v)

    def local(self, equation: Equation, i: int, value: Value) -> str:
        return self.names[value]

    def axis(self, value: Value) -> int | None:
        """The batch axis of a value made in this stage."""
        return None

    def buffer(self, value: Value, axis: int | None) -> str:
        """The name of a buffer in the shape of ``value``."""
        return self.form(self.allocator.new(value, axis), value, axis)

    def form(self, index: int, value: Value, axis: int | None, turned: bool = False) -> str:
        """The name of a buffer seen in the shape of ``value``."""
        shape = tuple(0 if i == axis else n for i, n in enumerate(value.shape))
        return self.forms.setdefault((index, shape, axis, turned), f"b{index}_{len(self.forms)}")

    def into(self, equation: Equation) -> str | None:
        """Where an elementwise result goes: an input that dies here, or a buffer; None: wherever."""
        out = equation.out
        form = out.shape, out.dtype, self.axis(out)
        for v in equation.values:
            if (v.shape, v.dtype, self.axis(v)) == form and self.allocator.dying(v, equation):
                index = self.allocator.at[v]
                self.allocator.fill(out, index)
                return self.form(index, out, self.axis(out))
        return self.buffer(out, self.axis(out))

    def one(self, dtype: str, length: int) -> str:
        """The name of a vector of ones; of length 0: as long as the chunk."""
        return self.ones.setdefault((dtype, length), f"ones_{dtype}_{length or 'rows'}")

    def call(self, equation: Equation, params: dict[str, Any]) -> str:
        """A call of the op's own forward."""
        arguments = ["xp", *(self.text(equation, i) for i in range(len(equation.inputs)))]
        return f"{self.forward(equation)}({', '.join(arguments + self.keywords(params))})"

    def forward(self, equation: Equation) -> str:
        """The name of the op's own forward."""
        name = f"{equation.name}_forward"
        forward = equation.op.kernels.get("numpy", equation.op.forward)
        while self.space.setdefault(name, forward) is not forward:
            name += "_"
        return name

    def keywords(self, params: dict[str, Any]) -> list[str]:
        return [f"{k}={self.constant(v)}" for k, v in params.items()]

    def constant(self, value: Any) -> str:
        if isinstance(value, Raw):
            return value.text
        if isinstance(value, (bool, int, float, str, type(None))) and value == value and abs_finite(value):
            return repr(value)
        if isinstance(value, tuple) and all(isinstance(v, (int, str)) for v in value):
            return repr(value)
        for name, known in self.space.items():
            if known is value:
                return name
        name = f"k{len(self.space)}"
        self.space[name] = value
        return name

    def ufunc(self, equation: Equation, target: str) -> None:
        arguments = [self.text(equation, i) for i in range(len(equation.inputs))]
        if equation.name in ("maximum", "minimum"):  # NumPy wants no third position in these
            target = f"out={target}"
        self.add(f"{UFUNCS[equation.name]}({', '.join([*arguments, target])})")

    def fits_ufunc(self, equation: Equation) -> bool:
        """Whether the ufunc, given the inputs as they are, makes just the output's dtype."""
        if equation.name not in UFUNCS:
            return False
        dtypes = {v.dtype for v in equation.values}
        return len(dtypes) == 1 and (equation.out.dtype in dtypes or equation.out.dtype == "bool")


class Raw:
    """Source text where a parameter's value would stand."""

    def __init__(self, text: str) -> None:
        self.text = text


def abs_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


class WholeWriter(Writer):
    """A stage on whole arrays."""

    def __init__(self, stage: Whole, graph: Graph, names: Any, space: Any, fresh: Any) -> None:
        super().__init__(stage, graph, names, space, fresh)
        here = {v for e in stage.equations for v in e.outputs}
        later = {v for e in graph.equations if e not in set(stage.equations) for v in e.values}
        self.kept = here & (graph.kept | later)
        self.allocator = Allocator(self.equations, self.kept)

    def stage(self, scratch: str) -> list[str]:
        for equation in self.equations:
            self.write(equation)
            self.allocator.done(equation)
        self.scratch = Scratch(0, self.allocator.buffers, self.forms, self.ones)
        head = [f"    {self.scratch.unpacked}= {scratch}"] if self.scratch.unpacked else []
        return head + self.lines

    def write(self, equation: Equation) -> None:
        if equation.several or not equation.inputs:
            left = ", ".join(self.names[v] for v in equation.outputs) + ("," if equation.several else "")
            self.add(f"{left} = {self.call(equation, equation.params)}")
            return
        out = equation.out
        name = self.names[out]
        if out in self.kept and (self.fits_ufunc(equation) or equation.name == "matmul") and out.ndim:
            self.add(f"{name} = empty({out.shape!r}, {out.dtype!r})")
            self.fresh.add(out)
            self.compute(equation, name)
        elif math.prod(out.shape) >= SMALL and (self.fits_ufunc(equation) or self.plain_matmul(equation)):
            target = self.into(equation) if equation.name != "matmul" else self.buffer(out, None)
            self.add(f"{name} = {target}")
            self.compute(equation, name)
        elif self.fits_ufunc(equation):
            arguments = ", ".join(self.text(equation, i) for i in range(len(equation.inputs)))
            self.add(f"{name} = {UFUNCS[equation.name]}({arguments})")
        elif equation.name in ("sum", "sum_to") and (product := self.sum_as_product(equation)) is not None:
            self.add(f"{name} = {product}")
            self.fresh.add(out)
        elif self.fits_blocks(equation):
            self.in_blocks(equation)
        else:
            self.add(f"{name} = {self.call(equation, equation.params)}")
            if "view" in equation.op.traits and equation.inputs[0] in self.allocator.at:
                self.allocator.join(out, self.allocator.at[equation.inputs[0]])

    def plain_matmul(self, equation: Equation) -> bool:
        return equation.name == "matmul" and equation.out.ndim >= 2

    def sum_as_product(self, equation: Equation) -> str | None:
        """A sum over the first or the last dimensions as a product with ones, which is several times faster."""
        (value,), dims, ndim = equation.values, summed_dims(equation), len(equation.values[0].shape)
        if value.dtype not in ("float32", "float64") or value.dtype != equation.out.dtype:
            return None
        a, count = self.text(equation, 0), math.prod(value.shape[d] for d in dims)
        rest = math.prod(value.shape) // max(count, 1)
        if min(rest, count) < 2:
            return None
        if dims == tuple(range(ndim - len(dims), ndim)):
            product = f"matmul({a}.reshape({rest}, {count}), {self.one(value.dtype, count)})"
        elif dims == tuple(range(len(dims))):
            product = f"matmul({self.one(value.dtype, count)}, {a}.reshape({count}, {rest}))"
        else:
            return None
        return product if equation.out.shape == (rest,) else f"{product}.reshape({equation.out.shape!r})"

    def fits_blocks(self, equation: Equation) -> bool:
        """Whether a large result may be made block by block, so that what its op makes on the way stays in cache."""
        out = equation.out
        traits = equation.op.traits
        large = math.prod(out.shape) * itemsize(out.dtype) > 2 * BLOCK
        return large and "elementwise" in traits and "random" not in traits and not equation.several

    def in_blocks(self, equation: Equation) -> None:
        out, name = equation.out, self.names[equation.out]
        if out in self.kept:
            self.fresh.add(out)
            self.add(f"{name} = empty({out.shape!r}, {out.dtype!r})")
        else:
            self.add(f"{name} = {self.into(equation)}")
        arrays = "".join(f"{self.text(equation, i)}, " for i in range(len(equation.inputs)))
        arguments = ["xp", name, self.forward(equation), f"({arrays})", *self.keywords(equation.params)]
        self.add(f"in_blocks({', '.join(arguments)})")

    def compute(self, equation: Equation, target: str) -> None:
        if equation.name != "matmul":
            self.ufunc(equation, target)
            return
        a, b = self.text(equation, 0), self.text(equation, 1)
        x, y = equation.values
        if x.ndim > 2 and y.ndim == 2:  # one large product, not many small ones
            a = f"{a}.reshape({math.prod(x.shape[:-1])}, {x.shape[-1]})"
            target = f"{target}.reshape({math.prod(x.shape[:-1])}, {y.shape[-1]})"
        self.add(f"matmul({a}, {b}, {target})")


class LoopWriter(Writer):
    """A loop over chunks of the batch.

    Matrices of a chunk are kept as (features, points): products with small weights are faster that way, and
    broadcasting a row of weights runs along the points. The source sees them transposed, as the program does.
    """

    indent = "        "

    def __init__(self, stage: Loop, graph: Graph, names: Any, space: Any, fresh: Any) -> None:
        super().__init__(stage, graph, names, space, fresh)
        self.loop = stage
        self.head: list[str] = []
        self.parts = {(v, axis): f"{names[v]}_{axis}" for v, axis in stage.sliced}
        self.transposed: dict[str, str] = {}  # names that have been transposed already

    def axis(self, value: Value) -> int | None:
        return self.loop.axis.get(value)

    def local(self, equation: Equation, i: int, value: Value) -> str:
        if value in self.loop.axis:
            return f"{self.names[value]}_part" if value in self.loop.stored else self.names[value]
        axis = self.loop.reads.get((equation, i))
        return self.names[value] if axis is None else self.parts[value, axis]

    def turned(self, equation: Equation, i: int) -> str:
        """The source of the i-th input, transposed."""
        value = equation.inputs[i]
        assert isinstance(value, Value)
        name = self.local(equation, i, value)
        if value in self.loop.axis:
            if value not in self.allocator.owners or value in self.loop.stored:
                return self.transposed.get(name, f"{name}.T")
            return self.form(self.allocator.at[value], value, self.axis(value), turned=True)
        if name not in self.transposed:
            self.transposed[name] = f"{name}_T"
            inside = (equation, i) in self.loop.reads
            (self.lines if inside else self.head).append(f"{self.indent if inside else '    '}{name}_T = {name}.T")
        return self.transposed[name]

    def stage(self, scratch: str) -> list[str]:
        for v in self.loop.summed:
            self.head.append(f"    {self.names[v]} = zeros({v.shape!r}, {v.dtype!r})")
        for v, axis in self.loop.stored.items():
            self.head.append(f"    {self.names[v]} = empty({v.shape!r}, {v.dtype!r})")
            self.add(f"{self.names[v]}_part = {self.names[v]}{cut(axis)}")
        self.fresh.update(self.loop.summed, self.loop.stored)
        for (v, axis), part in self.parts.items():
            self.add(f"{part} = {self.names[v]}{cut(axis)}")
        for equation in self.loop.equations:
            self.write(equation)
            self.allocator.done(equation)
        self.scratch = Scratch(self.loop.length, self.allocator.buffers, self.forms, self.ones)
        unpacked = f"({self.scratch.unpacked})" if self.scratch.unpacked else "_"
        return [*self.head, f"    for lo, hi, {unpacked} in {scratch}:", *self.lines]

    def write(self, equation: Equation) -> None:
        out = equation.out
        found = self.loop.carried[equation]
        if found.axis is None:
            self.accumulate(equation)
        elif equation.name == "matmul":
            self.matmul(equation, found.axis)
        elif equation.name == "permute" and out.ndim == 2 and out not in self.loop.stored:
            self.permute(equation)
        elif self.fits_ufunc(equation):
            if out in self.loop.stored:
                self.ufunc(equation, f"{self.names[out]}_part")
            else:
                self.add(f"{self.names[out]} = {self.into(equation)}")
                self.ufunc(equation, self.names[out])
        else:
            self.other(equation, found.axis, found.shape_parameter)

    def matmul(self, equation: Equation, axis: int) -> None:
        out = equation.out
        a, b = self.text(equation, 0), self.text(equation, 1)
        if out in self.loop.stored:
            self.add(f"matmul({a}, {b}, {self.names[out]}_part)")
            return
        index = self.allocator.new(out, axis)
        name = self.form(index, out, axis)
        self.add(f"{self.names[out]} = {name}")
        if out.ndim == 2 and axis == 0:
            target = self.form(index, out, axis, turned=True)
            self.add(f"matmul({self.turned(equation, 1)}, {self.turned(equation, 0)}, {target})")
        else:
            self.add(f"matmul({a}, {b}, {name})")

    def permute(self, equation: Equation) -> None:
        out, (value,) = equation.out, equation.values
        source = self.text(equation, 0) if equation.params["dims"] == (0, 1) else self.turned(equation, 0)
        self.add(f"{self.names[out]} = {source}")
        self.transposed[self.names[out]] = self.text(equation, 0)
        if value in self.allocator.at:
            self.allocator.join(out, self.allocator.at[value])

    def other(self, equation: Equation, axis: int, shape_parameter: bool) -> None:
        out = equation.out
        if equation.name in ("unslice", "pad") and out not in self.loop.stored:
            name = self.names[out]
            self.add(f"{name} = {self.buffer(out, axis)}")
            self.add(f"{name}.fill({equation.params.get('value', 0)!r})")
            self.add(f"{name}[{subscript(equation.params['at'])}] = {self.text(equation, 0)}")
            return
        if equation.name == "slice":
            expression = f"{self.text(equation, 0)}[{subscript(equation.params['at'])}]"
        else:
            expression = self.expression(equation, axis, shape_parameter)
        if out in self.loop.stored:
            self.add(f"copyto({self.names[out]}_part, {expression})")
        elif equation.name == "cat":
            self.add(f"{self.names[out]} = {self.buffer(out, axis)}")
            parts = ", ".join(self.text(equation, i) for i in range(len(equation.inputs)))
            self.add(f"xp.concatenate(({parts},), {equation.params['dim']}, {self.names[out]})")
        else:
            self.add(f"{self.names[out]} = {expression}")
            source = equation.inputs[0] if equation.inputs else None
            if "view" in equation.op.traits and isinstance(source, Value) and source in self.allocator.at:
                self.allocator.join(out, self.allocator.at[source])

    def expression(self, equation: Equation, axis: int, shape_parameter: bool) -> str:
        params = dict(equation.params)
        if shape_parameter:
            shape = [("hi - lo" if i == axis else str(n)) for i, n in enumerate(equation.out.shape)]
            params["shape"] = Raw(f"({', '.join(shape)},)")
        return self.call(equation, params)

    def accumulate(self, equation: Equation) -> None:
        out = equation.out
        total, a = self.names[out], self.text(equation, 0)
        if equation.name == "matmul":
            self.add(f"{total} += matmul({a}, {self.text(equation, 1)}, {self.buffer(out, None)})")
            return
        (value,) = equation.values
        dims = summed_dims(equation)
        axis = self.loop.reads.get((equation, 0), self.axis(value))
        if value.ndim == 2 and dims == (0,) and axis == 0 and value.dtype == out.dtype:
            ones = self.one(value.dtype, 0)
            row = Value((value.shape[1],), out.dtype, out.place)
            target = self.form(self.allocator.new(row, None), row, None)
            tail = "" if out.ndim == 1 else f".reshape({out.shape!r})"
            self.add(f"{total} += matmul({self.turned(equation, 0)}, {ones}, {target}){tail}")
            return
        keep = len(out.shape) == value.ndim
        tail = "" if equation.name == "sum" or keep else f".reshape({out.shape!r})"
        self.add(f"{total} += reduce({a}, axis={dims!r}, keepdims={keep}){tail}")


def cut(axis: int) -> str:
    """The subscript of a chunk."""
    return "[" + ":, " * axis + "lo:hi]"


def subscript(at: tuple[Any, ...]) -> str:
    """A basic index as source; a range over the whole batch also fits a chunk."""
    parts = [":".join(map(str, e[: 2 if e[2] == 1 else 3])) if isinstance(e, tuple) else str(e) for e in at]
    return ", ".join([*parts, "..."])


def summed_dims(equation: Equation) -> tuple[int, ...]:
    """The dimensions that ``sum`` or ``sum_to`` adds up."""
    (value,) = equation.values
    if equation.name == "sum":
        return tuple(equation.params["dim"])
    shape = equation.params["shape"]
    extra = value.ndim - len(shape)
    return tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and value.shape[i + extra] != 1)
