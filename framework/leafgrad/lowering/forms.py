"""Where the elements of a value lie: strides over memory that a kernel made, so that views cost nothing.

In a loop over chunks, a batch value keeps its points side by side: element (i, p, j) of a value whose batch is
axis 1 lies at lane (i, j), point p. Strides then count lanes, and the stride of the batch axis is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leafgrad.compile.ir.graph import Value
from leafgrad.forks import cached_property

Stride = int | None
Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Root:
    """Memory that holds one array.

    Attributes:
        shape, dtype: of the array.
        axis: in a loop, the batch axis of a chunk's array; else None.
    """

    shape: Shape
    dtype: str
    axis: int | None = None

    @property
    def lanes(self) -> int:
        """Elements; of a chunk's array, elements of each point."""
        return math.prod(n for i, n in enumerate(self.shape) if i != self.axis)


@dataclass(frozen=True)
class Form:
    """An array seen in a root's memory: element i lies at ``offset + sum(i * strides)``."""

    root: Root
    shape: Shape
    strides: tuple[Stride, ...]
    offset: int = 0

    @property
    def axis(self) -> int | None:
        """The batch axis."""
        return self.strides.index(None) if None in self.strides else None

    @cached_property
    def contiguous(self) -> bool:
        """Whether the elements (of a point) lie in order, without gaps."""
        return all(
            n == 1 or s == c for n, s, c in zip(self.shape, self.strides, row_major(self.shape, self.axis), strict=True)
        )

    @cached_property
    def whole(self) -> bool:
        """Whether this is all of the root's memory, in order."""
        return self.offset == 0 and self.contiguous and math.prod(self.shape) == math.prod(self.root.shape)

    # ---- views ----------------------------------------------------------------------------------------------

    def permute(self, dims: Sequence[int]) -> Form:
        """The dimensions in another order."""
        return Form(self.root, tuple(self.shape[d] for d in dims), tuple(self.strides[d] for d in dims), self.offset)

    def expand(self, shape: Shape) -> Form:
        """Broadcast; where the batch is one long, it stays None."""
        missing = len(shape) - len(self.shape)
        strides = [
            0 if m != n else s for m, n, s in zip(self.shape, shape[missing:], self.strides, strict=True)
        ]  # fmt: skip
        return Form(self.root, shape, (*[0] * missing, *strides), self.offset)

    def part(self, at: Sequence[int | tuple[int, int, int] | None]) -> Form | None:
        """What a basic index chooses. None: it cuts the batch."""
        shape: list[int] = []
        strides: list[Stride] = []
        offset, source = self.offset, 0
        for entry in at:
            if entry is None:
                shape.append(1)
                strides.append(0)
                continue
            n, s = self.shape[source], self.strides[source]
            source += 1
            if isinstance(entry, tuple):
                start, stop, step = entry
                if s is None:
                    if entry != (0, n, 1):
                        return None
                else:
                    offset += start * s
                    s *= step
                shape.append(max(0, -(-(stop - start) // step)))
                strides.append(s)
            elif s is None:
                return None
            else:
                offset += entry * s
        return Form(self.root, (*shape, *self.shape[source:]), (*strides, *self.strides[source:]), offset)

    def flip(self, dims: Sequence[int]) -> Form | None:
        """Backwards along ``dims``. None: the batch is among them."""
        strides, offset = list(self.strides), self.offset
        for d in dims:
            s = strides[d]
            if s is None:
                return None
            offset += s * (self.shape[d] - 1)
            strides[d] = -s
        return Form(self.root, self.shape, tuple(strides), offset)

    def reshape(self, shape: Shape, axis: int | None) -> Form | None:
        """In another shape whose batch is ``axis``. None: its elements do not lie so."""
        old = [
            (n, s) for i, (n, s) in enumerate(zip(self.shape, self.strides, strict=True)) if i != self.axis and n != 1
        ]
        new = [n for i, n in enumerate(shape) if i != axis]
        strides = _restride(old, new)
        if strides is None:
            return None
        found: list[Stride] = list(strides)
        if axis is not None:
            found.insert(axis, None)
        return Form(self.root, shape, tuple(found), self.offset)

    def divided(self, shapes: Sequence[Shape]) -> list[Form] | None:
        """The parts of a vector, one after the other, in ``shapes``. None: its elements do not lie so."""
        parts: list[Form] = []
        start = 0
        for shape in shapes:
            size = math.prod(shape)
            cut = self.part(((start, start + size, 1),))
            shaped = None if cut is None else cut.reshape(shape, None)
            if shaped is None:
                return None
            parts.append(shaped)
            start += size
        return parts


def row_major(shape: Shape, axis: int | None) -> tuple[Stride, ...]:
    """The strides of an array in order."""
    strides: list[Stride] = []
    step = 1
    for i in reversed(range(len(shape))):
        strides.append(None if i == axis else step)
        step *= 1 if i == axis else shape[i]
    return tuple(reversed(strides))


def full(root: Root) -> Form:
    """All of a root."""
    return Form(root, root.shape, row_major(root.shape, root.axis))


def of(value: Value, axis: int | None = None) -> Form:
    """A new root for a value, all of it."""
    return full(Root(value.shape, value.dtype, axis))


def _restride(old: Sequence[tuple[int, Stride]], new: Sequence[int]) -> list[int] | None:
    """Strides for the dimensions ``new`` over the same elements in the same order."""
    strides: list[int] = []
    queue = list(old)
    run, step = 1, 0  # elements left of the innermost old dimensions taken so far, and their stride
    for n in reversed(new):
        if n == 1:
            strides.append(0)
            continue
        if run == 1:
            if not queue:
                return None
            run, last = queue.pop()
            assert last is not None
            step = last
        while run % n and queue and queue[-1][1] == step * run:
            run *= queue.pop()[0]
        if run % n:
            return None
        strides.append(step)
        step, run = step * n, run // n
    return strides[::-1] if run == 1 and not queue else None
