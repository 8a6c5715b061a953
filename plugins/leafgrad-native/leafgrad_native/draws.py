"""Random zeros and ones, as dropout draws them: they follow from a key and their place, so each loop makes its own."""

from __future__ import annotations

import math

from leafgrad.lowering.kernels import LOOK, Draw
from leafgrad_native.blocks import short
from leafgrad_native.writer import CWriter


def write(w: CWriter, draw: Draw) -> None:
    """The elements of a whole array, or of the rows of a chunk."""
    out = draw.target
    name, total = w.names[out.root], math.prod(out.shape)
    size, step = (math.prod(out.shape[1:]), w.chunk) if w.chunk else (1, 1)
    first, end = "0", "n" if w.chunk else str(total)
    if w.inside[-1] > LOOK:
        first, end = w.stretches(first, end, max(1, LOOK // max(1, size)))
    call = f"lg_bernoulli_{short(out.root.dtype)}({name} + {out.offset} + {first}, *key"
    begin = f"({'lo + ' if w.chunk else ''}{first}) * {size}L"
    w.add(f"{call}, {draw.bound}u, {begin}, ({end} - {first}) * {size}L, {size}L, {step}L);")
    if w.chunk:
        w.loop("i", size)
        w.add(f"for (long p = n; p < m; p++) {name}[i * {step}L + p] = 0;")
        w.close()
