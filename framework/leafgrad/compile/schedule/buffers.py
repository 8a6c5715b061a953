"""Scratch memory of a stage: which buffer each value lives in, reused as soon as its values are dead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leafgrad.compile.ir.graph import Equation, Value


@dataclass
class WorkBuffer:
    """Memory of one dtype: so many elements per row of a chunk, or in all where there is no batch."""

    elements: int
    dtype: str
    batched: bool


def elements(value: Value, axis: int | None) -> int:
    """Elements of one row of a batch value, or all elements of another."""
    return math.prod(n for i, n in enumerate(value.shape) if i != axis)


class Allocator:
    """Hands out buffers while the equations of a stage are walked in order."""

    def __init__(self, equations: Sequence[Equation], kept: Iterable[Value]) -> None:
        self.buffers: list[WorkBuffer] = []
        self.at: dict[Value, int] = {}
        self.owners: set[Value] = set()  # values that fill their buffer; the others there are views
        self.holders: list[int] = []  # live values per buffer
        self.free: dict[tuple[int, str, bool], list[int]] = {}
        self.reads: dict[Value, int] = dict.fromkeys(kept, 1)  # reads still to come; one more than all for kept ones
        for equation in equations:
            for v in equation.values:
                self.reads[v] = self.reads.get(v, 0) + 1

    def new(self, value: Value, axis: int | None) -> int:
        """A buffer for ``value``."""
        key = elements(value, axis), value.dtype, axis is not None
        spare = self.free.get(key)
        if spare:
            index = spare.pop()
        else:
            index = len(self.buffers)
            self.buffers.append(WorkBuffer(*key))
            self.holders.append(0)
        self.fill(value, index)
        return index

    def fill(self, value: Value, index: int) -> None:
        """``value`` is computed into this buffer."""
        self.owners.add(value)
        self.join(value, index)

    def join(self, value: Value, index: int) -> None:
        """``value`` is a view of what is in this buffer."""
        self.at[value] = index
        self.holders[index] += 1

    def dying(self, value: Value, equation: Equation) -> bool:
        """Whether ``equation`` is the last to read ``value``, which has a buffer for itself."""
        reads = sum(v is value for v in equation.values)
        index = self.at.get(value) if value in self.owners else None
        return index is not None and self.reads[value] == reads and self.holders[index] == 1

    def done(self, equation: Equation) -> None:
        """The equation has run: give back buffers whose values no one reads any more."""
        for v in equation.values:
            self.reads[v] -= 1
        for v in dict.fromkeys((*equation.values, *equation.outputs)):
            index = self.at.get(v)
            if index is not None and not self.reads.get(v):
                del self.at[v]
                self.holders[index] -= 1
                if not self.holders[index]:
                    b = self.buffers[index]
                    self.free.setdefault((b.elements, b.dtype, b.batched), []).append(index)
