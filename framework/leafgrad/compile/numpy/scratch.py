"""What generated source runs on: its scratch memory, and the function that it becomes."""

from __future__ import annotations

import itertools
import linecache
import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from leafgrad.compile.ir.admitted import Settled
from leafgrad.compile.ir.agreement import agree, agree_all
from leafgrad.compile.ir.graph import itemsize
from leafgrad.compile.ir.lengths import changed
from leafgrad.compile.numpy.parallel import Chunk, Groups, group_count, in_groups
from leafgrad.compile.schedule.buffers import WorkBuffer
from leafgrad.ops.define import quiet

NUMBERS = itertools.count()  # of programs, which their tracebacks name
MODULE = "leafgrad.compile.program"  # where generated source says it comes from
BLOCK = 1 << 16  # bytes of one array that `in_blocks` takes at a time


class Form(NamedTuple):
    """How the source sees a buffer.

    Attributes:
        buffer: its number.
        shape: of the array, with 0 for the rows of a chunk.
        axis: where these rows are.
        columns: the last dimension comes first in memory.
        turned: seen as a matrix of (last dimension, all others).
    """

    buffer: int
    shape: tuple[int, ...]
    axis: int | None
    columns: bool
    turned: bool


class Scratch:
    """The buffers of a stage and the shapes in which the source sees them."""

    def __init__(
        self, length: int, buffers: Sequence[WorkBuffer], forms: Sequence[Form], ones: Sequence[tuple[str, int, bool]]
    ) -> None:
        self.length = length
        self.buffers = buffers
        self.forms = forms
        self.ones = ones

    def at(self, settled: Settled) -> Scratch:
        """The same for other sizes."""
        if not settled.values:
            return self
        buffers = [b if type(b.elements) is int else replace(b, elements=settled(b.elements)) for b in self.buffers]
        forms = [f if (s := changed(f.shape, settled)) is f.shape else f._replace(shape=s) for f in self.forms]
        return Scratch(
            settled(self.length), buffers, forms, [(dtype, settled(n), each) for dtype, n, each in self.ones]
        )

    def row_bytes(self) -> int:
        return sum(b.elements * itemsize(b.dtype) for b in self.buffers if b.batched)

    def memory(self, xp: Any, rows: int) -> list[Any]:
        return [xp.empty(b.elements * (rows if b.batched else 1), dtype=b.dtype) for b in self.buffers]

    def arrays(self, xp: Any, memory: list[Any], rows: int) -> tuple[Any, ...]:
        """The arrays that the source unpacks, for a chunk of ``rows`` rows."""
        found = []
        for index, shape, axis, columns, turned in self.forms:
            *lead, n = full = [rows if i == axis else d for i, d in enumerate(shape)] or [1]
            flat = memory[index][: math.prod(full)]
            if not columns:
                array = flat.reshape(full if shape else ())
                found.append(array.reshape(math.prod(lead), n).T if turned else array)
            elif turned:
                found.append(flat.reshape(n, math.prod(lead)))
            else:
                found.append(flat.reshape(n, *lead).transpose(*range(1, len(full)), 0))
        ones = (xp.ones(n * rows if each else n, dtype=dtype) for dtype, n, each in self.ones)
        return (*found, *ones)

    def groups(self, xp: Any, rows: int, work: int, threads: int) -> Groups:
        """The chunks, (start, stop, arrays), in groups. All groups of one thread share the same memory.

        Args:
            rows: of a chunk.
            work: elements that are computed for each row.
            threads: how many may run.
        """
        starts = range(0, self.length, rows)
        count = group_count(len(starts), work * self.length)
        threads = min(threads, count)
        arrays = [self.views(xp, rows) for _ in range(threads)]
        share = -(-len(starts) // count)
        found: list[list[Chunk]] = []
        for k in range(count):
            own = starts[k * share : (k + 1) * share]
            stops = [min(lo + rows, self.length) for lo in own]
            views = arrays[k % threads]
            found.append([(lo, hi, views[hi - lo]) for lo, hi in zip(own, stops, strict=True)])
        return Groups(threads, [group for group in found if group])

    def views(self, xp: Any, rows: int) -> dict[int, tuple[Any, ...]]:
        """New memory, as the source unpacks it for whole chunks and for the last, by their rows."""
        memory = self.memory(xp, rows)
        lengths = {rows, self.length % rows or rows} if rows <= self.length else {self.length}
        return {n: self.arrays(xp, memory, n) for n in lengths}


class ScratchProgram:
    """Generated source with what it refers to, and the scratch memory that it asks for."""

    def __init__(self, source: str, names: dict[str, Any], scratch: list[Scratch], ufuncs: set[str]) -> None:
        self.source = source
        self.ufuncs = ufuncs
        self.names = names
        self.scratch = scratch
        file = f"<leafgrad program {next(NUMBERS)}>"
        self.code = compile(source, file, "exec")
        linecache.cache[file] = len(source), None, source.splitlines(True), file
        weakref.finalize(self, linecache.cache.pop, file, None)

    def function(self, xp: Any, settled: Settled) -> Callable[..., list[Any]]:
        """The function ``run(inputs, scratch0, scratch1, …)`` for these sizes."""
        space: dict[str, Any] = {u: getattr(xp, u) for u in self.ufuncs}
        space.update(xp=xp, matmul=xp.matmul, empty=xp.empty, zeros=xp.zeros, copyto=xp.copyto, reduce=xp.add.reduce)
        space.update(asarray=xp.asarray, in_blocks=in_blocks, agree=agree, agree_all=agree_all, in_groups=in_groups)
        quiet(MODULE)
        names = {name: changed(value, settled) for name, value in self.names.items()}
        scope = space | names | settled.names | {"__name__": MODULE}
        exec(self.code, scope)
        run: Callable[..., list[Any]] = scope["run"]
        return run


def in_blocks(xp: Any, out: Any, forward: Callable[..., Any], arrays: tuple[Any, ...], **params: Any) -> None:
    """``out[...] = forward(xp, *arrays, **params)`` for elementwise ops, in blocks where all lie alike in memory."""
    if any(a.shape != out.shape or not a.flags.c_contiguous for a in (out, *arrays) if hasattr(a, "shape")):
        out[...] = forward(xp, *arrays, **params)
        return
    flat = out.reshape(-1)
    parts = [a.reshape(-1) if hasattr(a, "shape") else a for a in arrays]
    step = BLOCK // out.itemsize
    for lo in range(0, flat.size, step):
        block = slice(lo, lo + step)
        flat[block] = forward(xp, *[a[block] if hasattr(a, "shape") else a for a in parts], **params)
