"""Python source for a loop over chunks of a batch."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.compile.numpy.writer import NumpyWriter, RawText, Text
from leafgrad.compile.passes.rewrite import size
from leafgrad.compile.schedule.axes import Carried
from leafgrad.compile.schedule.schedule import Loop
from leafgrad.ops.matmul import matmul

FEW = 64  # rows that a chunk has at least


class LoopWriter(NumpyWriter):
    """A loop over chunks of the batch: a function of some of them, which returns their sums.

    Matrices of a chunk are kept as (features, points), and so is what follows from products with a matrix that all
    points share, however many dimensions the points have: these products are one, and faster that way, and broadcasting
    a row of weights runs along the points. The source sees the features last, as the program does.
    """

    indent = "            "

    def __init__(self, stage: Loop, text: Text) -> None:
        super().__init__(stage, text)
        self.loop = stage
        self.head: list[str] = []
        self.parts = {(v, axis): f"{self.names[v]}_{axis}" for v, axis in stage.sliced}
        self.transposed: dict[str, str] = {}  # names that have been transposed already
        for equation in self.equations:
            if self.by_columns(equation):
                self.columns.update(equation.outputs)

    def by_columns(self, equation: Equation) -> bool:
        """Whether the result is kept as columns: as its largest argument is, where it is not a product."""
        out, axis = equation.out, self.loop.carried[equation].axis
        if axis is None or axis == out.ndim - 1:
            return False
        if out.ndim == 2 or (equation.op is matmul and self.shared(equation, 1)):
            return True
        largest = max((v for v in equation.values if v in self.loop.axis), key=lambda v: size(v.shape), default=None)
        if largest is None or ("view" in equation.op.traits and largest.shape[-1] != out.shape[-1]):
            return False
        return largest in self.columns and not equation.op.traits.isdisjoint(("elementwise", "linear"))

    def shared(self, equation: Equation, i: int) -> bool:
        """Whether the i-th input is one matrix for all rows of the batch."""
        value = equation.inputs[i]
        whole = value not in self.loop.axis and (equation, i) not in self.loop.reads
        return isinstance(value, Value) and value.ndim == 2 and whole

    def axis(self, value: Value) -> int | None:
        return self.loop.axis.get(value)

    def local(self, equation: Equation, i: int, value: Value) -> str:
        if value in self.loop.axis:
            return f"{self.names[value]}_part" if value in self.loop.stored else self.names[value]
        axis = self.loop.reads.get((equation, i))
        return self.names[value] if axis is None else self.parts[value, axis]

    def turned(self, equation: Equation, i: int) -> str:
        """The source of the i-th input as a matrix of (features, points)."""
        value = equation.inputs[i]
        assert isinstance(value, Value)
        name = self.local(equation, i, value)
        matrix = f"{name}.T" if value.ndim == 2 else f"{name}.reshape(-1, {value.shape[-1]}).T"
        if value in self.loop.axis:
            if value not in self.allocator.owners or value in self.loop.stored:
                return self.transposed.get(name, matrix)
            return self.form(self.allocator.at[value], value, self.axis(value), turned=True)
        if name not in self.transposed:
            self.transposed[name] = f"{name}_T"
            inside = (equation, i) in self.loop.reads
            (self.lines if inside else self.head).append(f"{self.indent if inside else '    '}{name}_T = {matrix}")
        return self.transposed[name]

    def stage(self, scratch: str) -> list[str]:
        for v, axis in self.loop.stored.items():
            self.head.append(f"    {self.names[v]} = {self.empty(v)}")
            self.add(f"{self.names[v]}_part = {self.names[v]}{cut(axis)}")
        self.fresh.update(self.loop.summed)
        for (v, axis), part in self.parts.items():
            self.add(f"{part} = {self.names[v]}{cut(axis)}")
        self.write_all()
        self.scratch, names = self.arrays(self.loop.length)
        unpacked = f"({names})" if names else "_"
        sums = "".join(f"{self.names[v]}, " for v in self.loop.summed).rstrip()
        part = f"part{scratch.removeprefix('scratch')}"
        return [
            *self.head,
            f"    def {part}(chunks):",
            *[f"        {self.names[v]} = zeros({v.shape!r}, {v.dtype!r})" for v in self.loop.summed],
            f"        for lo, hi, {unpacked} in chunks:",
            *self.lines,
            f"        return {sums or '()'}",
            f"    {sums and f'{sums} = '}in_groups({part}, {scratch})",
        ]

    def write(self, equation: Equation) -> None:
        out = equation.out
        found = self.loop.carried[equation]
        if not equation.several and self.lowered(equation):
            return
        if found.axis is not None and not equation.several and self.fits_ufunc(equation):
            self.add(self.ufunc(equation, self.target(equation)))
            return
        if found.axis == 0 and out not in self.columns and self.fits_blocks(equation, math.prod(out.shape[1:]) * FEW):
            self.add(self.in_blocks(equation, self.target(equation)))
            return
        made = self.expression(equation, found)
        if equation.several:
            self.assign_all(equation, made)
            return
        self.assign(equation, made)
        source = equation.inputs[0] if equation.inputs else None
        shared = found.axis is not None and out not in self.loop.stored and "view" in equation.op.traits
        if shared and isinstance(source, Value) and source in self.allocator.at:
            self.allocator.join(out, self.allocator.at[source])

    def target(self, equation: Equation) -> str:
        """Memory for a result: a part of an array that is stored whole, or a buffer."""
        name = self.names[equation.out]
        if equation.out in self.loop.stored:
            return f"{name}_part"
        self.add(f"{name} = {self.into(equation)}")
        return name

    def expression(self, equation: Equation, found: Carried) -> str:
        """A call of the op's forward on a chunk."""
        params = dict(equation.params)
        if found.resized:
            params["shape"] = RawText(self.shape(equation.out, found.axis))
        return self.call(equation, params, found.axis)

    def assign(self, equation: Equation, made: str) -> None:
        """Keep what an expression makes of a chunk, or add it to the sum over all."""
        out, name = equation.out, self.names[equation.out]
        if out in self.loop.stored:
            self.add(f"copyto({name}_part, {made})")
        else:
            self.add(f"{name} {'=' if out in self.loop.axis else '+='} {made}")

    def assign_all(self, equation: Equation, made: str) -> None:
        stored = [v for v in equation.outputs if v in self.loop.stored]
        names = [f"{self.names[v]}_new" if v in stored else self.names[v] for v in equation.outputs]
        self.add(f"{''.join(f'{name}, ' for name in names)}= {made}")
        for v in stored:
            self.add(f"copyto({self.names[v]}_part, {self.names[v]}_new)")

    # ---- what rules of ops ask for --------------------------------------------------------------------------------

    def product(self, equation: Equation) -> str | bool:
        out, axis = equation.out, self.loop.carried[equation].axis
        a, b = self.text(equation, 0), self.text(equation, 1)
        if axis is None:
            return f"matmul({a}, {b}, {self.buffer(out, None)})"
        if out in self.loop.stored:
            self.add(f"matmul({a}, {b}, {self.names[out]}_part)")
            return True
        index = self.allocator.new(out, axis)
        name = self.form(index, out, axis)
        self.add(f"{self.names[out]} = {name}")
        if out in self.columns:
            target = self.form(index, out, axis, turned=True)
            self.add(f"matmul({self.turned(equation, 1)}, {self.turned(equation, 0)}, {target})")
        else:
            self.add(f"matmul({a}, {b}, {name})")
        return True

    def contraction(self, equation: Equation) -> str | None:
        out = equation.out
        if out in self.loop.axis:
            return None
        return f"matmul({self.turned(equation, 0)}, {self.turned(equation, 1)}.T, {self.buffer(out, None)})"

    def total(self, equation: Equation, dims: tuple[int, ...]) -> str | None:
        """A sum over the batch: of all rows by a product with ones, which is several times faster."""
        (value,), out = equation.values, equation.out
        if out in self.loop.axis or out.dtype == "float16":
            return None
        rows = value.ndim > 1 and dims == tuple(range(value.ndim - 1))
        if rows and (value.ndim == 2 or value in self.columns) and value.dtype == out.dtype:
            ones = self.one(value.dtype, math.prod(value.shape[:-1]) // self.loop.length, each=True)
            row = Value((value.shape[-1],), out.dtype, out.place)
            target = self.form(self.allocator.new(row, None), row, None)
            tail = "" if out.ndim == 1 else f".reshape({out.shape!r})"
            return f"matmul({self.turned(equation, 0)}, {ones}, {target}){tail}"
        keep = out.ndim == value.ndim
        tail = "" if keep or value.ndim - len(dims) == out.ndim else f".reshape({out.shape!r})"
        return f"reduce({self.text(equation, 0)}, axis={dims!r}, keepdims={keep}){tail}"

    def permuted(self, equation: Equation) -> bool:
        """A matrix is there both ways."""
        out, (value,) = equation.out, equation.values
        if out.ndim != 2 or out in self.loop.stored:
            return False
        source = self.text(equation, 0) if equation.params["dims"] == (0, 1) else self.turned(equation, 0)
        self.add(f"{self.names[out]} = {source}")
        self.transposed[self.names[out]] = self.text(equation, 0)
        if value in self.allocator.at:
            self.allocator.join(out, self.allocator.at[value])
        return True

    def part(self, equation: Equation) -> bool:
        (value,), out = equation.values, equation.out
        self.assign(equation, f"{self.text(equation, 0)}[{subscript(equation.params['at'])}]")
        if out not in self.loop.stored and value in self.allocator.at:
            self.allocator.join(out, self.allocator.at[value])
        return True

    def placed(self, equation: Equation, fill: float) -> bool:
        out, name = equation.out, self.names[equation.out]
        if out in self.loop.stored:
            return False
        self.add(f"{name} = {self.buffer(out, self.loop.axis[out])}")
        self.add(f"{name}.fill({self.constant(fill)})")
        self.add(f"{name}[{subscript(equation.params['at'])}] = {self.text(equation, 0)}")
        return True

    def joined(self, equation: Equation, flat: bool = False) -> bool:
        out, name = equation.out, self.names[equation.out]
        if out in self.loop.stored:
            return False
        self.add(f"{name} = {self.buffer(out, self.loop.axis[out])}")
        parts = ", ".join(self.text(equation, i) for i in range(len(equation.inputs)))
        self.add(f"xp.concatenate(({parts},), {equation.params['dim']}, {name})")
        return True


def cut(axis: int) -> str:
    """The subscript of a chunk."""
    return "[" + ":, " * axis + "lo:hi]"


def subscript(at: tuple[Any, ...]) -> str:
    """A basic index as source; a range over the whole batch also fits a chunk."""
    parts = [":".join(map(str, e[: 2 if e[2] == 1 else 3])) if isinstance(e, tuple) else str(e) for e in at]
    return ", ".join([*parts, "..."])
