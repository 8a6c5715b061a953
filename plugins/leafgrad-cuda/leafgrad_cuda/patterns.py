"""What rules of ``op.lower`` may call here, and the pattern by which a kernel runs an equation.

An op's rule for ``"native"`` serves, unless it has one for ``"cuda"``. What has no kernel here yet is left to the op.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.lowering.expressions import BITS, FLOATS, HALVES, STORED, held
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Copy
from leafgrad.lowering.lowering import Lowering
from leafgrad.lowering.order_patterns import Order, ranked
from leafgrad.lowering.pattern import Pattern
from leafgrad.lowering.patterns import (
    Along,
    Elementwise,
    Random,
    Reduction,
    Target,
    View,
    along,
    constant,
    draw,
    elementwise,
    filled,
    join,
    lookup,
    normalized,
    pick,
    place,
    placed,
    view,
)
from leafgrad.lowering.product_patterns import MatrixProduct, RowProduct, contraction, product
from leafgrad.lowering.scan_patterns import scan
from leafgrad.lowering.window_patterns import ConvolutionPattern, convolution, numbered, ranged, windowed
from leafgrad.ops.traits import dims
from leafgrad_cuda import tiles
from leafgrad_cuda.draws import STREAMS

__all__ = [
    "along", "constant", "contraction", "convolution", "draw", "elementwise", "filled", "join", "lookup", "normalized",
    "numbered", "pick", "place", "placed", "product", "ranged", "ranked", "reduction", "scan", "view", "windowed",
    "written",
]  # fmt: skip

LARGEST = 1 << 31  # kernels count elements in 32 bits
LONGEST = 1024  # elements of a line that one thread walks along, or compares with each other, where lines are few
WIDE = 1 << 13  # elements of a matrix that the products of a loop share; by larger ones whole arrays are multiplied
LIBRARY = 1 << 16  # elements from which on a library does faster what squares do not
LONG = 1 << 29  # multiplications of such a product from which on an op between two graphs, cuBLAS, takes less time


def pattern(e: Equation) -> Pattern | None:
    """The pattern by which an equation is lowered; None if its op runs it."""
    if any(math.prod(v.shape) >= LARGEST for v in (*e.values, *e.outputs)):
        return None
    found = TARGET.pattern(e)
    if any(v.dtype in BITS for v in (*e.values, *e.outputs)) and not moves(found):
        return None
    if isinstance(found, Random) and e.params["generator"].stream not in STREAMS:
        return None
    if isinstance(found, (Along, Order)) and long(e, found):
        return None
    return None if isinstance(found, (ConvolutionPattern, MatrixProduct, RowProduct)) and wide(e, found) else found


def moves(found: Pattern | None) -> bool:
    """Whether elements are moved or converted, and nothing is computed of what they are stored as."""
    return isinstance(found, View) or (isinstance(found, Elementwise) and "bfloat16(" in found.body.text)


def long(e: Equation, found: Along | Order) -> bool:
    """Whether lines are so long, and so few, that a library takes them faster."""
    shape = e.values[0].shape
    length = math.prod(shape[k] for k in dims(found.dim, len(shape)))
    return length > LONGEST and (isinstance(found, Order) or math.prod(shape) < length * length)


def wide(e: Equation, found: Pattern) -> bool:
    """Whether it is a product of matrices, or a convolution, so large that a library multiplies faster."""
    if not large(e, found):
        return False
    if isinstance(found, ConvolutionPattern):
        kernel = e.out if found.kind == "taps" else e.values[1]
        return e.values[0].shape[0] * math.prod(found.windows[5]) * math.prod(kernel.shape) > LONG
    x = e.values[0].shape
    terms = x[-1] if isinstance(found, MatrixProduct) else math.prod(x[:-1])
    slow = min(e.out.shape[-2:]) < tiles.LEAST or e.out.dtype in HALVES
    return (slow and least(e) > LIBRARY) or math.prod(e.out.shape) * terms > LONG


def large(e: Equation, found: Pattern | None) -> bool:
    """Whether it is a product of large matrices, or a convolution of large arrays, of which no block holds one."""
    if isinstance(found, ConvolutionPattern):
        return min(math.prod(v.shape) for v in (*e.values[:2], e.out)) > LIBRARY
    products = isinstance(found, (MatrixProduct, RowProduct))
    return products and least(e) > (LIBRARY if e.out.dtype in HALVES else WIDE)


def least(e: Equation) -> int:
    """Elements of the smallest matrix of a product."""
    return min(math.prod(v.shape[-2:]) for v in (*e.values[:2], e.out))


@dataclass(eq=False, repr=False)
class Folded(Reduction):
    """A reduction of any dtype."""

    def fits(self, e: Equation) -> bool:
        x, out = e.values[0].dtype, e.out.dtype
        if held(out) in FLOATS:
            return x == out
        return not self.mean and self.then == "x" and (self.each != "x" or held(x) not in FLOATS)


def reduction(
    kind: str, dim: int | tuple[int, ...] | None, mean: bool = False, each: str = "x", then: str = "x"
) -> Folded:
    """The argument over ``dim``: a dimension, some, or all for None.

    Args:
        kind: ``"+"``, ``"*"``, ``"max"`` or ``"min"``.
        mean: a sum is divided by the number of its terms.
        each: a C expression of an element x and the op's parameters, which is taken in its place.
        then: one of the result x.
    """
    return Folded(kind, dim, mean, each, then)


@dataclass(eq=False, repr=False)
class Written(Pattern):
    """An array with another in the place of a view of it."""

    seen: Callable[[Any], Any]
    fixed = True

    def fits(self, e: Equation) -> bool:
        same = all(isinstance(v, Value) and v.dtype == e.out.dtype for v in e.inputs)
        return same and self.place(full(Root(e.out.shape, e.out.dtype))) is not None

    def place(self, x: Form) -> Form | None:
        """The view of ``x``, all of an array; None where it is none, or has an element twice."""
        memory = np.empty(x.shape, "uint8")  # whose elements are not touched: a view says where they lie
        part = self.seen(memory)
        if not np.may_share_memory(part, memory):
            return None
        reach = 0
        for step, n in sorted((abs(s), n) for s, n in zip(part.strides, part.shape, strict=True) if n > 1):
            if step <= reach:
                return None
            reach += step * (n - 1)
        offset = part.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        return Form(x.root, part.shape, part.strides, offset)

    def lower(self, low: Lowering, e: Equation) -> None:
        x, values = low.operands(e)
        target = low.new(e.out)
        place = self.place(target)
        assert place is not None
        low.add(Copy(e, (values.expand(place.shape),), place, x), e.out)


def written(seen: Callable[[Any], Any]) -> Written:
    """The first argument, with the second in the place of what ``seen`` makes of an array by views."""
    return Written(seen)


TARGET = Target(("cuda", "native"), ("cuda", "fake", "cpu"), sys.modules[__name__], STORED)
