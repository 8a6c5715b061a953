"""Python source for a scheduled graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leafgrad.compile.ir.graph import Equation, Graph, kind
from leafgrad.compile.numpy.chunks import LoopWriter
from leafgrad.compile.numpy.scratch import Scratch, ScratchProgram
from leafgrad.compile.numpy.writer import NumpyWriter, Text, comment, stored
from leafgrad.compile.schedule.buffers import Allocator
from leafgrad.compile.schedule.schedule import Loop, Schedule, Whole
from leafgrad.ops.abstract import PRECISE

SMALL = 1024  # elements below which a fresh array is as good as a buffer


def emit(graph: Graph, schedule: Schedule) -> ScratchProgram:
    """The source of ``run(inputs, *scratch)``, which returns results, then effects' values, each in new memory."""
    text = Text(graph)
    names = text.names
    lines: list[str] = []
    scratch: list[Scratch] = []
    for i, stage in enumerate(schedule.stages):
        writer = LoopWriter(stage, text) if isinstance(stage, Loop) else WholeWriter(stage, text)
        lines += writer.stage(f"scratch{i}")
        scratch.append(writer.scratch)
    results = []
    for k, v in enumerate(graph.ends):
        results.append(names[v] if v in text.fresh and v not in graph.ends[:k] else f"{names[v]}.copy()")
    parameters = ", ".join(["inputs", *(f"scratch{i}" for i in range(len(scratch)))])
    head = [f"def run({parameters}):"]
    if graph.inputs:
        head += [comment("    ", f"{names[v]} is {text.spoken[v]}: {kind(v)}") for v in graph.inputs]
        head.append(f"    {''.join(f'{names[v]}, ' for v in graph.inputs)}= inputs")
    source = "\n".join([*head, *lines, f"    return [{', '.join(results)}]", ""])
    return ScratchProgram(source, text.space, scratch, text.ufuncs)


class WholeWriter(NumpyWriter):
    """A stage on whole arrays."""

    def __init__(self, stage: Whole, text: Text) -> None:
        super().__init__(stage, text)
        own = set(stage.equations)
        here = {v for e in stage.equations for v in e.outputs}
        later = {v for e in text.graph.equations if e not in own for v in e.values}
        self.kept = here & (text.graph.kept | later)
        self.allocator = Allocator(self.equations, self.kept)

    def stage(self, scratch: str) -> list[str]:
        self.write_all()
        self.scratch, names = self.arrays(0)
        head = [f"    {names}= {scratch}"] if names else []
        return head + self.lines

    def write(self, equation: Equation) -> None:
        out = equation.out
        if equation.several:
            if not self.lowered(equation):
                self.assign(equation, self.call(equation, equation.params))
        elif stored(equation):
            self.add(f"{self.names[out]} = {self.call(equation, equation.params)}")
        elif self.lowered(equation):
            return
        elif equation.inputs and self.fits_ufunc(equation):
            target = self.target(equation, self.into)
            if target is None:
                self.assign(equation, self.ufunc(equation, None))
            else:
                self.add(self.ufunc(equation, target))
        elif self.fits_blocks(equation, math.prod(out.shape)):
            target = self.target(equation, self.into)
            self.add(self.in_blocks(equation, target or self.names[out]))
        else:
            self.assign(equation, self.call(equation, equation.params))
            if "view" in equation.op.traits and equation.inputs[0] in self.allocator.at:
                self.allocator.join(out, self.allocator.at[equation.inputs[0]])

    def assign(self, equation: Equation, made: str) -> None:
        """Keep what an expression makes; NumPy's functions give scalars where arrays of no dimensions are due."""
        if not equation.several:
            self.add(f"{self.names[equation.out]} = {made if equation.out.ndim else f'asarray({made})'}")
            return
        self.add(f"{''.join(f'{self.names[v]}, ' for v in equation.outputs)}= {made}")
        for v in equation.outputs:
            if not v.ndim:
                self.add(f"{self.names[v]} = asarray({self.names[v]})")

    def target(self, equation: Equation, buffer: Callable[[Equation], str]) -> str | None:
        """Memory for a result: its own if it stays, a buffer if it is large; None: a new array is as good."""
        out, name = equation.out, self.names[equation.out]
        if out in self.kept and out.ndim:
            self.add(f"{name} = {self.empty(out)}")
        elif math.prod(out.shape) >= SMALL:
            self.add(f"{name} = {buffer(equation)}")
        else:
            return None
        return name

    def into_new(self, equation: Equation) -> str:
        """A buffer that none of the inputs is in."""
        return self.buffer(equation.out, None)

    def product(self, equation: Equation) -> bool:
        """A matrix product into a given array; one large product, not many small ones."""
        out = equation.out
        if out.ndim < 2 and out not in self.kept:
            return False
        target = self.target(equation, self.into_new)
        if target is None:
            return False
        a, b = self.text(equation, 0), self.text(equation, 1)
        x, y = equation.values
        if x.ndim > 2 and y.ndim == 2:
            a = f"{a}.reshape({math.prod(x.shape[:-1])}, {x.shape[-1]})"
            target = f"{target}.reshape({math.prod(x.shape[:-1])}, {y.shape[-1]})"
        self.add(f"matmul({a}, {b}, {target})")
        return True

    def contraction(self, equation: Equation) -> bool:
        """As one product of matrices."""
        target = self.target(equation, self.into_new)
        if target is None:
            return False
        rows = math.prod(equation.values[0].shape[:-1])
        x, y = (f"{self.text(equation, i)}.reshape({rows}, {v.shape[-1]})" for i, v in enumerate(equation.values))
        self.add(f"matmul({x}.T, {y}, {target})")
        return True

    def joined(self, equation: Equation, flat: bool = False) -> bool:
        target = self.target(equation, self.into_new)
        if target is None:
            return False
        parts = [self.text(equation, i) + ".reshape(-1)" * flat for i in range(len(equation.inputs))]
        self.add(f"xp.concatenate(({', '.join(parts)},), {equation.params.get('dim', 0)}, {target})")
        return True

    def divided(self, equation: Equation, shapes: Sequence[tuple[int, ...]]) -> bool:
        (vector,), start = equation.values, 0
        if not self.kept.isdisjoint(equation.outputs):
            return False
        for v, shape in zip(equation.outputs, shapes, strict=True):
            size = math.prod(shape)
            self.add(f"{self.names[v]} = {self.names[vector]}[{start}:{start + size}].reshape({tuple(shape)!r})")
            start += size
            if vector in self.allocator.at:
                self.allocator.join(v, self.allocator.at[vector])
        return True

    def total(self, equation: Equation, dims: tuple[int, ...]) -> bool:
        """A sum over the first or the last dimensions as a product with ones, which is several times faster."""
        (value,), out, ndim = equation.values, equation.out, len(equation.values[0].shape)
        if value.dtype not in PRECISE or value.dtype != out.dtype:
            return False
        a, count = self.text(equation, 0), math.prod(value.shape[d] for d in dims)
        rest = math.prod(value.shape) // max(count, 1)
        if min(rest, count) < 2:
            return False
        if dims == tuple(range(ndim - len(dims), ndim)):
            product = f"matmul({a}.reshape({rest}, {count}), {self.one(value.dtype, count)})"
        elif dims == tuple(range(len(dims))):
            product = f"matmul({self.one(value.dtype, count)}, {a}.reshape({count}, {rest}))"
        else:
            return False
        shaped = product if out.shape == (rest,) else f"{product}.reshape({out.shape!r})"
        self.add(f"{self.names[out]} = {shaped}")
        self.fresh.add(out)
        return True
