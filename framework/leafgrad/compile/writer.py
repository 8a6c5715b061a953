"""Lines of Python for the equations of one stage: what whole arrays and chunks have in common."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import backends
from leafgrad.compile.buffers import Allocator
from leafgrad.compile.graph import Equation, Graph, Value, expression, kind
from leafgrad.compile.schedule import Stage
from leafgrad.compile.scratch import Form, Scratch

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
COLUMN = 56  # where comments begin


class Text:
    """What the stages of a program's source share.

    Attributes:
        names: the variable of each value: numbered, so that no two values have the same, whatever they are called.
        spoken: what comments call them.
        space: what the source refers to, by name.
        fresh: values whose variables are memory of their own.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        values = (*graph.inputs, *(v for e in graph.equations for v in e.outputs))
        self.names = {v: f"v{i}" for i, v in enumerate(values)}
        self.spoken = graph.named()
        self.space: dict[str, Any] = {}
        self.fresh: set[Value] = set()


class Writer:
    """Writes the lines of one stage."""

    indent = "    "

    def __init__(self, stage: Stage, text: Text) -> None:
        self.graph = text.graph
        self.equations: list[Equation] = stage.equations
        self.names = text.names
        self.spoken = text.spoken
        self.space = text.space
        self.fresh = text.fresh
        self.lines: list[str] = []
        self.forms: dict[Form, str] = {}
        self.ones: dict[tuple[str, int], str] = {}
        self.allocator = Allocator(self.equations, ())
        self.scratch: Scratch

    def add(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def write_all(self) -> None:
        """The lines of all equations; the last one of each tells in a comment which it is."""
        for equation in self.equations:
            before = len(self.lines)
            self.write(equation)
            self.allocator.done(equation)
            if len(self.lines) > before:
                left = ", ".join(f"{self.spoken[v]}: {kind(v)}" for v in equation.outputs)
                text = f"{left} = {expression(equation, self.spoken)}"
                self.lines[-1] = comment(f"{self.lines[-1]:<{COLUMN}}  ", text)

    def write(self, equation: Equation) -> None:
        """The lines of an equation."""
        raise NotImplementedError

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
        if spelled(value) or (type(value) is tuple and all(map(spelled, value))):
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
        if len(dtypes) != 1 or equation.out.dtype not in {*dtypes, "bool"}:
            return False
        xp = backends.by_device_type("cpu").xp
        try:
            made = getattr(xp, UFUNCS[equation.name])(
                *[xp.empty(0, v.dtype) if isinstance(v, Value) else v for v in equation.inputs]
            )
        except (TypeError, OverflowError):
            return False
        return bool(made.dtype.name == equation.out.dtype)


class Raw:
    """Source text where a parameter's value would stand."""

    def __init__(self, text: str) -> None:
        self.text = text


def spelled(value: Any) -> bool:
    """Whether a value is what Python reads its repr as."""
    return type(value) in (bool, int, str, type(None)) or (type(value) is float and math.isfinite(value))


def comment(code: str, text: str) -> str:
    """A line of source with a comment, which nothing in the text ends."""
    return f"{code}# {''.join(c if c.isprintable() else ' ' for c in text)}"


def summed_dims(equation: Equation) -> tuple[int, ...]:
    """The dimensions that ``sum`` or ``sum_to`` adds up."""
    (value,) = equation.values
    if equation.name == "sum":
        return tuple(equation.params["dim"])
    shape = equation.params["shape"]
    extra = value.ndim - len(shape)
    return tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and value.shape[i + extra] != 1)
