"""Python source for a loop over chunks of a batch."""

from __future__ import annotations

from typing import Any

from leafgrad.compile.graph import Equation, Value
from leafgrad.compile.schedule import Loop
from leafgrad.compile.scratch import Scratch
from leafgrad.compile.writer import Raw, Text, Writer, summed_dims


class LoopWriter(Writer):
    """A loop over chunks of the batch.

    Matrices of a chunk are kept as (features, points): products with small weights are faster that way, and
    broadcasting a row of weights runs along the points. The source sees them transposed, as the program does.
    """

    indent = "        "

    def __init__(self, stage: Loop, text: Text) -> None:
        super().__init__(stage, text)
        self.loop = stage
        self.head: list[str] = []
        self.parts = {(v, axis): f"{self.names[v]}_{axis}" for v, axis in stage.sliced}
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
        self.write_all()
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
