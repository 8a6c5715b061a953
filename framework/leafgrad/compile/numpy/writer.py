"""Lines of Python for the equations of one stage: what whole arrays and chunks have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad import backends
from leafgrad.compile.ir.agreement import is_checked, is_foreign
from leafgrad.compile.ir.extent import Extent, present
from leafgrad.compile.ir.graph import Equation, Graph, Value, expression, itemsize, kind
from leafgrad.compile.ir.shapes import one
from leafgrad.compile.numpy.scratch import BLOCK, Form, Scratch
from leafgrad.compile.schedule.buffers import Allocator
from leafgrad.compile.schedule.schedule import Stage
from leafgrad.errors import CompileError
from leafgrad.ops.narrow import NAME

COLUMN = 56  # where comments begin


class Text:
    """What the stages of a program's source share.

    Attributes:
        names: the variable of each value: numbered, so that no two values have the same, whatever they are called.
        spoken: what comments call them.
        space: what the source refers to, by name.
        ufuncs: the functions of the array namespace that are called by name.
        fresh: values whose variables are memory of their own.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        values = (*graph.inputs, *(v for e in graph.equations for v in e.outputs))
        self.names = {v: f"v{i}" for i, v in enumerate(values)}
        self.spoken = graph.named()
        self.space: dict[str, Any] = {}
        self.ufuncs: set[str] = set()
        self.fresh: set[Value] = set()


class NumpyWriter:
    """Writes the lines of one stage. It is what rules by ``op.lower("numpy", rule)`` are given, with an equation.

    A rule returns the source of an expression for the result, in terms of ``text(equation, i)``, of ``constant(value)``
    and of the array namespace ``xp``; what one of the methods for this returns; or None: the forward is called.
    """

    indent = "    "

    def __init__(self, stage: Stage, text: Text) -> None:
        self.graph = text.graph
        self.equations: list[Equation] = stage.equations
        self.names = text.names
        self.spoken = text.spoken
        self.space = text.space
        self.ufuncs = text.ufuncs
        self.fresh = text.fresh
        self.lines: list[str] = []
        self.forms: dict[Form, str] = {}
        self.ones: dict[tuple[str, int, bool], str] = {}
        self.columns: set[Value] = set()  # values whose last dimension comes first in memory
        self.allocator = Allocator(self.equations, ())
        self.scratch: Scratch

    def add(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def arrays(self, length: int) -> tuple[Scratch, str]:
        """The scratch memory of the stage, and the names by which its source unpacks that."""
        names = "".join(f"{n}, " for n in (*self.forms.values(), *self.ones.values()))
        return Scratch(length, self.allocator.buffers, [*self.forms], [*self.ones]), names

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

    def lowered(self, equation: Equation) -> bool:
        """Write the equation as its op's rule for this executor says; whether there is one that does."""
        rule = equation.op.lowering.get("numpy")
        made = None if rule is None else rule(self, equation)
        if isinstance(made, str):
            self.assign(equation, made)
        elif made is not None and not isinstance(made, bool):
            raise CompileError(
                f"op {equation.name!r}, lower rule for 'numpy' from {equation.op.origins.get('lower numpy')}: expected "
                f"the source of an expression, what a method of the writer returns, or None, got {made!r}"
            )
        return bool(made)

    # ---- what rules may return: source of an expression, True if lines are written already, or None to leave it ---

    def product(self, equation: Equation) -> str | bool | None:
        """A matrix product."""
        return None

    def contraction(self, equation: Equation) -> str | bool | None:
        """x^T y of the two arguments, where all dimensions but the last are rows."""
        return None

    def total(self, equation: Equation, dims: tuple[int, ...]) -> str | bool | None:
        """The sum of the one input over ``dims``, in the shape of the result."""
        return None

    def permuted(self, equation: Equation) -> str | bool | None:
        """The one input with its dimensions as ``dims`` says."""
        return None

    def part(self, equation: Equation) -> str | bool | None:
        """The part of the one input that the basic index ``at`` chooses."""
        return None

    def placed(self, equation: Equation, fill: float) -> str | bool | None:
        """An array full of ``fill``, but for the one input where the basic index ``at`` chooses."""
        return None

    def joined(self, equation: Equation, flat: bool = False) -> str | bool | None:
        """The inputs one after the other along ``dim``, or all elements of each if ``flat``."""
        return None

    def divided(self, equation: Equation, shapes: Sequence[tuple[int, ...]]) -> str | bool | None:
        """The one input, a vector, in parts of these shapes."""
        return None

    # ---- names --------------------------------------------------------------------------------------------------

    def assign(self, equation: Equation, made: str) -> None:
        """Keep what an expression makes as the result of an equation."""
        raise NotImplementedError

    def local(self, equation: Equation, i: int, value: Value) -> str:
        return self.names[value]

    def axis(self, value: Value) -> int | None:
        """The batch axis of a value made in this stage."""
        return None

    def buffer(self, value: Value, axis: int | None) -> str:
        """The name of a buffer in the shape of ``value``."""
        return self.form(self.allocator.new(value, axis), value, axis)

    def empty(self, value: Value) -> str:
        """The source of a new array for ``value``."""
        self.fresh.add(value)
        return f"empty({value.shape!r}, {value.dtype!r})"

    def form(self, index: int, value: Value, axis: int | None, turned: bool = False) -> str:
        """The name of a buffer seen in the shape of ``value``."""
        shape = tuple(0 if i == axis else n for i, n in enumerate(value.shape))
        key = Form(index, shape, axis, value in self.columns, turned)
        return self.forms.setdefault(key, f"b{index}_{len(self.forms)}")

    def into(self, equation: Equation) -> str:
        """Where an elementwise result goes: an input that dies here, or a buffer."""
        out = equation.out
        form = out.shape, out.dtype, self.axis(out), out in self.columns
        for v in equation.values:
            if (v.shape, v.dtype, self.axis(v), v in self.columns) == form and self.allocator.dying(v, equation):
                index = self.allocator.at[v]
                self.allocator.fill(out, index)
                return self.form(index, out, self.axis(out))
        return self.buffer(out, self.axis(out))

    def one(self, dtype: str, length: int, each: bool = False) -> str:
        """The name of a vector of so many ones; ``each``: for each row of the chunk."""
        return self.ones.setdefault((dtype, length, each), f"ones_{dtype}_{len(self.ones)}")

    def call(self, equation: Equation, params: dict[str, Any], rows: int | None = None) -> str:
        """A call of the op's own forward; results have the batch on axis ``rows``, if not None."""
        arguments = ["xp", *(self.text(equation, i) for i in range(len(equation.inputs)))]
        made = f"{self.forward(equation)}({', '.join(arguments + self.keywords(params))})"
        if not is_checked(equation.op):
            return made
        kinds = [f"{self.shape(v, rows)}, {self.constant(dtype(v))}" for v in equation.outputs]
        what = f"[{', '.join(f'({k})' for k in kinds)}]" if equation.several else kinds[0]
        return f"agree{'_all' * equation.several}({made}, {self.constant(equation.op)}, {what})"

    def shape(self, value: Value, rows: int | None) -> str:
        """The source of a shape, that of a chunk's if the batch is on axis ``rows``."""
        sizes = ["hi - lo" if i == rows else str(n) for i, n in enumerate(value.shape)]
        return f"({''.join(f'{n}, ' for n in sizes)})"

    def forward(self, equation: Equation) -> str:
        """The name of the op's own forward."""
        name = f"{equation.name}_forward"
        forward = equation.op.kernels.get("numpy", equation.op.forward)
        if stored(equation) or is_foreign(equation.op):  # which is watched as it first runs
            first = next(iter((*equation.values, *equation.outputs)))
            kind = type(one(first.place, first.dtype, 0))
            forward, _ = equation.op.table.get(kind) or equation.op.resolve(kind)
        while self.space.setdefault(name, forward) is not forward:
            name += "_"
        return name

    def keywords(self, params: dict[str, Any]) -> list[str]:
        return [f"{k}={self.constant(v)}" for k, v in params.items()]

    def constant(self, value: Any) -> str:
        if isinstance(value, RawText):
            return value.text
        if has_source(value) or (type(value) is tuple and all(map(has_source, value))):
            return repr(value)
        for name, known in self.space.items():
            if known is value:
                return name
        name = f"k{len(self.space)}"
        self.space[name] = value
        return name

    def ufunc(self, equation: Equation, target: str | None) -> str:
        """A call of the ufunc that the op's forward is; into ``target``, unless None."""
        name = equation.op.ufunc
        assert name is not None
        self.ufuncs.add(name)
        arguments = [self.text(equation, i) for i in range(len(equation.inputs))]
        if target is not None:
            xp = backends.by_device_type("cpu").xp
            by_name = getattr(xp, name) in (xp.maximum, xp.minimum)  # NumPy wants no third position in these
            arguments.append(f"out={target}" if by_name else target)
        return f"{name}({', '.join(arguments)})"

    def fits_ufunc(self, equation: Equation) -> bool:
        """Whether the ufunc, given the inputs as they are, makes just the output's dtype."""
        name = equation.op.ufunc
        if name is None:
            return False
        dtypes = {v.dtype for v in equation.values}
        if len(dtypes) != 1 or equation.out.dtype not in {*dtypes, "bool"}:
            return False
        xp = backends.by_device_type("cpu").xp
        if not hasattr(xp, name):
            raise CompileError(f"op {equation.name!r}: expected ufunc= to name a function of NumPy, got {name!r}")
        try:
            made = getattr(xp, name)(
                *[xp.empty(0, v.dtype) if isinstance(v, Value) else present(v) for v in equation.inputs]
            )
        except (TypeError, OverflowError):
            return False
        return bool(made.dtype.name == equation.out.dtype)

    def fits_blocks(self, equation: Equation, elements: int) -> bool:
        """Whether so large a result may be made block by block, so that what its op makes on the way stays in cache."""
        traits = equation.op.traits
        large = elements * itemsize(equation.out.dtype) > 2 * BLOCK
        return large and "elementwise" in traits and "random" not in traits and not equation.several

    def in_blocks(self, equation: Equation, target: str) -> str:
        """A call that writes the result of an elementwise op into ``target``."""
        arrays = "".join(f"{self.text(equation, i)}, " for i in range(len(equation.inputs)))
        arguments = ["xp", target, self.forward(equation), f"({arrays})", *self.keywords(equation.params)]
        return f"in_blocks({', '.join(arguments)})"


def stored(equation: Equation) -> bool:
    """Whether some array of the equation is bfloat16, of which the op's own forward makes float32 and back."""
    return any(v.dtype == NAME for v in (*equation.values, *equation.outputs))


def dtype(value: Value) -> Any:
    """The array library's own, which compares quickly."""
    return backends.by_device_type("cpu").xp.dtype(value.dtype)


class RawText:
    """Source text where a parameter's value would stand."""

    def __init__(self, text: str) -> None:
        self.text = text


def has_source(value: Any) -> bool:
    """Whether a value is what Python reads its repr as."""
    return type(value) in (bool, int, str, type(None), Extent) or (type(value) is float and math.isfinite(value))


def comment(code: str, text: str) -> str:
    """A line of source with a comment, which nothing in the text ends."""
    return f"{code}# {''.join(c if c.isprintable() else ' ' for c in text)}"
