"""What rules of ``op.lower`` may call here, and the pattern by which a kernel runs an equation.

An op's rule for ``"native"`` serves, unless it has one for ``"cuda"``. What has no kernel here yet is left to the op.
"""

from __future__ import annotations

import math
import sys

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering.expressions import STORED
from leafgrad.lowering.pattern import Pattern
from leafgrad.lowering.patterns import (
    Random,
    Target,
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
    reduction,
    view,
)
from leafgrad.lowering.product_patterns import MatrixProduct, RowProduct, contraction, product
from leafgrad.lowering.scan_patterns import scan
from leafgrad.lowering.window_patterns import Convolution, convolution, numbered, ranged, windowed
from leafgrad_cuda.draws import STREAMS

__all__ = [
    "along", "constant", "contraction", "convolution", "draw", "elementwise", "filled", "join", "lookup", "normalized",
    "numbered", "pick", "place", "placed", "product", "ranged", "reduction", "scan", "view", "windowed",
]  # fmt: skip

LARGEST = 1 << 31  # kernels count elements in 32 bits
WIDE = 1 << 16  # elements of a matrix that products share; cuBLAS multiplies by larger ones


def pattern(e: Equation) -> Pattern | None:
    """The pattern by which an equation is lowered; None if its op runs it."""
    if any(math.prod(v.shape) >= LARGEST for v in (*e.values, *e.outputs)):
        return None
    found = TARGET.pattern(e)
    if isinstance(found, Random) and e.params["generator"].stream not in STREAMS:
        return None
    return None if isinstance(found, (Convolution, MatrixProduct, RowProduct)) and wide(e, found) else found


def wide(e: Equation, found: Pattern) -> bool:
    """Whether it is a product of matrices so large that a library multiplies faster."""
    arrays = (*e.values[:2], e.out)
    if isinstance(found, Convolution):
        return min(math.prod(v.shape) for v in arrays) > WIDE
    return min(math.prod(v.shape[-2:]) for v in arrays) > WIDE


TARGET = Target(("cuda", "native"), ("cuda", "fake", "cpu"), sys.modules[__name__], STORED)
