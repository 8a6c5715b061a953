"""Frames in memory, in which the outputs of a convolution find what they read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering import forms
from leafgrad.lowering.forms import Form, Root
from leafgrad.lowering.sweeps import Line
from leafgrad_native.blocks import lanes

# Elements of kernels up to which C is faster than the products of NumPy's BLAS, which works on larger blocks; measured.
MOST = {"gather": 1 << 18, "spread": 1 << 18, "taps": 1 << 14}


class Frame(NamedTuple):
    """Sources ``low`` to ``low + extent`` of each dimension, ``unit`` points of each side by side.

    Of the last dimension, sources that are ``split`` apart are neighbours; ``extent`` is a multiple of it.
    """

    low: tuple[int, ...]
    extent: tuple[int, ...]
    unit: int
    split: int

    @property
    def strides(self) -> list[int]:
        """Of all dimensions but the last."""
        return [math.prod(self.extent[d + 1 :]) * self.unit for d in range(len(self.extent) - 1)]

    @property
    def channel(self) -> int:
        return math.prod(self.extent) * self.unit

    def place(self, at: Sequence[int]) -> int:
        """Where a source lies, from the beginning of its channel."""
        *rest, last = [a - low for a, low in zip(at, self.low, strict=True)]
        inner = last % self.split * (self.extent[-1] // self.split) + last // self.split
        return sum(a * s for a, s in zip(rest, self.strides, strict=True)) + inner * self.unit


def frame(sweeps: Sequence[Sequence[Line]], unit: int, split: int) -> Frame:
    """What all sweeps together read."""
    ends = [[line.ends for line in lines] for lines in zip(*sweeps, strict=True)]
    low = tuple(min(a for a, _ in pairs) for pairs in ends)
    extent = [max(b for _, b in pairs) + 1 - a for pairs, a in zip(ends, low, strict=True)]
    extent[-1] = -(-extent[-1] // split) * split
    return Frame(low, tuple(extent), unit, split)


def images(kind: str, batch: int, row: int) -> int:
    """How many images of whole arrays lie side by side: rows of outputs fill vectors, some of them if they can."""
    n = lanes(kind) // math.gcd(row, lanes(kind))
    while n * row < 4 * lanes(kind):
        n *= 2
    return min(n, batch)


class Layout(NamedTuple):
    """How a kernel is computed: its sweeps, its frame, and the elements of a run along the vectors."""

    sweeps: list[tuple[Line, ...]]
    frame: Frame
    longest: int  # of a run, in whole vectors; 0 in a chunk, whose points are one

    @property
    def rows(self) -> int:
        """Elements of one channel of results, run by run."""
        return max(math.prod(line.size for line in lines[:-1]) for lines in self.sweeps) * self.longest


def layout(kind: str, chunk: int, sweeps: list[tuple[Line, ...]], batch: int) -> Layout:
    """For a chunk of so many points (1 before that is known), or for whole arrays with 0."""
    if chunk:
        return Layout(sweeps, frame(sweeps, chunk, 1), 0)
    row = max(lines[-1].size for lines in sweeps)
    unit, size = images(kind, batch, row), lanes(kind)
    return Layout(sweeps, frame(sweeps, unit, sweeps[0][-1].step), -(-row * unit // size) * size)


def fits(kind: str, e: Equation) -> bool:
    """Whether C is worth it: not for kernels that fill the cache."""
    kernel = e.out if kind == "taps" else e.values[1]
    return math.prod(kernel.shape) <= MOST[kind]


def scratch(x: Form, outputs: int, sweeps: list[tuple[Line, ...]], chunk: bool) -> tuple[Form, ...]:
    """Memory for the frame of x and, of whole arrays, for runs of so many channels of outputs."""
    dtype, channels = x.root.dtype, x.shape[1]
    found = layout(dtype, int(chunk), sweeps, x.shape[0])
    elements = found.frame.channel * channels
    if chunk:
        return (forms.full(Root((x.shape[0], elements), dtype, 0)),)
    return tuple(forms.full(Root((size,), dtype)) for size in (elements + found.longest, found.rows * outputs))
