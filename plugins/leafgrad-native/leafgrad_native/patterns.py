"""What rules of ``op.lower("native", rule)`` may call, and the pattern by which C runs an equation."""

from __future__ import annotations

import sys

from leafgrad.lowering.patterns import (
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
from leafgrad.lowering.product_patterns import contraction, product
from leafgrad.lowering.window_patterns import numbered, windowed
from leafgrad_native.scan_patterns import scan
from leafgrad_native.window_patterns import convolution

__all__ = [
    "along", "constant", "contraction", "convolution", "draw", "elementwise", "filled", "join", "lookup", "normalized",
    "numbered", "pick", "place", "placed", "product", "reduction", "scan", "view", "windowed",
]  # fmt: skip

pattern = Target(("native",), ("cpu",), sys.modules[__name__]).pattern
