"""How ops over windows become C; ``patterns.py`` tells what a pattern is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering import lookups
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Copy, Slide
from leafgrad.lowering.pattern import Pattern, one_float
from leafgrad_native import frames, sliding

if TYPE_CHECKING:
    from leafgrad.lowering.lowering import Lowering


@dataclass(eq=False, repr=False)
class Convolution(Pattern):
    """A convolution, or one of its two derivatives."""

    kind: str
    windows: Sequence[Sequence[int]]
    groups: int

    def fits(self, e: Equation) -> bool:
        return one_float(e) and frames.fits(self.kind, self.windows, e)

    def lower(self, low: Lowering, e: Equation) -> None:
        total = self.kind == "taps" and low.loop is not None
        target = low.accumulator(e.out) if total else low.new(e.out)
        chunk = low.loop is not None
        low.add(frames.convolve(e, low.operands(e), target, self.kind, self.windows, self.groups, chunk), e.out)


def convolution(kind: str, windows: Sequence[Sequence[int]], groups: int) -> Convolution:
    """The products of windows with kernels.

    Args:
        kind: ``"gather"``: the first argument's windows with the second; ``"spread"``: its transpose by the first;
            ``"taps"``: by the second, which gets the first argument's windows and the second's elements.
        windows: for each dimension: length, kernel, stride, padding, dilation and size.
        groups: of channels, each of which sees its like alone.
    """
    return Convolution(kind, windows, groups)


@dataclass(eq=False, repr=False)
class Sliding(Pattern):
    """What windows over the last dimensions hold."""

    kind: str
    windows: Sequence[Sequence[int]]

    def fits(self, e: Equation) -> bool:
        return sliding.fits(self.kind, self.windows, e)

    def lower(self, low: Lowering, e: Equation) -> None:
        low.add(Slide(e, low.operands(e), low.new(e.out), self.windows, self.kind), e.out)


def windowed(kind: str, windows: Sequence[Sequence[int]]) -> Sliding:
    """Windows over the last dimensions of the argument, as `convolution` takes them.

    Args:
        kind: ``"max"``: the largest element of each. ``"argmax"``: its number among those of the last dimensions.
            ``"read"``: the elements of each. ``"add"``: such elements added where they were read.
    """
    return Sliding(kind, windows)


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
