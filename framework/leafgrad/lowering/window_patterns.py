"""How ops over windows are lowered; ``patterns.py`` tells what a pattern is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering import lookups
from leafgrad.lowering.expressions import FLOATS, held
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Convolve, Copy, Ranges, Slide
from leafgrad.lowering.pattern import Pattern, one_float
from leafgrad.lowering.sweeps import Line, sweeps

if TYPE_CHECKING:
    from leafgrad.lowering.lowering import Lowering

PARTS = 64  # sweeps of one spread


@dataclass(eq=False, repr=False)
class ConvolutionPattern(Pattern):
    """A convolution, or one of its two derivatives."""

    kind: str
    windows: Sequence[Sequence[int]]
    groups: int

    def fits(self, e: Equation) -> bool:
        return one_float(e) and (self.kind != "spread" or math.prod(self.windows[2]) <= PARTS)

    def lower(self, low: Lowering, e: Equation) -> None:
        sources, found = low.operands(e), sweeps(self.kind, self.windows)
        total = self.kind == "taps" and low.loop is not None
        target = low.accumulator(e.out) if total else low.new(e.out)
        outputs = (sources[1] if self.kind == "taps" else target).shape[1]
        scratch = self.scratch(sources[0], outputs, found, low.loop is not None)
        low.add(Convolve(e, sources, target, found, self.groups, self.kind, scratch), e.out)

    def scratch(self, x: Form, outputs: int, sweeps: list[tuple[Line, ...]], chunk: bool) -> tuple[Form, ...]:
        """Memory that a target needs on the way: none."""
        return ()


def convolution(kind: str, windows: Sequence[Sequence[int]], groups: int) -> ConvolutionPattern:
    """The products of windows with kernels.

    Args:
        kind: ``"gather"``: the first argument's windows with the second; ``"spread"``: its transpose by the first;
            ``"taps"``: by the second, which gets the first argument's windows and the second's elements.
        windows: for each dimension: length, kernel, stride, padding, dilation and size.
        groups: of channels, each of which sees its like alone.
    """
    return ConvolutionPattern(kind, windows, groups)


@dataclass(eq=False, repr=False)
class Sliding(Pattern):
    """What windows over the last dimensions hold."""

    kind: str
    windows: Sequence[Sequence[int]]

    def fits(self, e: Equation) -> bool:
        x, out = e.values[0].dtype, e.out.dtype
        elements = "max" not in self.kind or all(map(seen, *self.windows))
        return held(x) in FLOATS and (out == x or self.kind == "argmax") and elements

    def lower(self, low: Lowering, e: Equation) -> None:
        low.add(Slide(e, low.operands(e), low.new(e.out), self.windows, self.kind), e.out)


def seen(n: int, kernel: int, stride: int, padding: int, dilation: int, size: int) -> bool:
    """Whether each window has an element that is no padding, along one dimension."""
    starts = (u * stride - padding for u in range(size))
    return all(any(0 <= at + t * dilation < n for t in range(kernel)) for at in starts)


def windowed(kind: str, windows: Sequence[Sequence[int]]) -> Sliding:
    """Windows over the last dimensions of the argument, as `convolution` takes them.

    Args:
        kind: ``"max"``: the largest element of each. ``"argmax"``: its number among those of the last dimensions.
            ``"read"``: the elements of each. ``"add"``: such elements added where they were read.
    """
    return Sliding(kind, windows)


@dataclass(eq=False, repr=False)
class Ranged(Pattern):
    """Sums of ranges of a dimension."""

    ranges: Sequence[tuple[int, int]]
    dim: int

    def fits(self, e: Equation) -> bool:
        return one_float(e)

    def lower(self, low: Lowering, e: Equation) -> None:
        low.add(Ranges(e, low.operands(e), low.new(e.out), self.ranges, self.dim), e.out)


def ranged(ranges: Sequence[tuple[int, int]], dim: int) -> Ranged:
    """The sums of the argument over each of ``ranges``, (start, stop), of ``dim``."""
    return Ranged(ranges, dim)


@dataclass(eq=False, repr=False)
class Numbered(Pattern):
    """Elements of the last dimensions by their numbers there."""

    how: lookups.How
    last: int
    fixed = True

    def fits(self, e: Equation) -> bool:
        return lookups.fits(e, self.how)

    def lower(self, low: Lowering, e: Equation) -> None:
        how = replace(self.how, dims=(e.out.ndim - self.last,))
        given = {v: self.flat(low, e, low.operand(e, i)) for i, v in enumerate(e.values)}
        out = self.flat(low, e, low.new(e.out))
        low.add(lookups.lookup(e, how, given, out), e.out)

    def flat(self, low: Lowering, e: Equation, x: Form) -> Form:
        """With one dimension for the last ones; in order first, if elements do not lie so."""
        shape = (*x.shape[: -self.last], math.prod(x.shape[-self.last :]))
        found = x.reshape(shape, x.axis)
        if found is None:
            ordered = full(Root(x.shape, x.root.dtype, x.axis))
            low.add(Copy(e, (x,), ordered))
            found = ordered.reshape(shape, x.axis)
            assert found is not None
        return found


def numbered(kind: str, last: int) -> Numbered:
    """As `lookup` along the ``last`` dimensions as one, whose elements the second argument numbers."""
    return Numbered(lookups.How(kind, (), 1, True), last)
