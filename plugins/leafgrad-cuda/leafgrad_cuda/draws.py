"""Random zeros and ones by a counter, with eager's bits: they follow from two words and their place alone."""

from __future__ import annotations

import math

from leafgrad.lowering.expressions import HELD
from leafgrad.lowering.forms import full
from leafgrad.lowering.kernels import Draw
from leafgrad_cuda.walks import Walk
from leafgrad_cuda.writer import Item, Task

STREAMS = {"philox4x64": 8, "philox4x32": 1}  # how many numbers a counter gives


def draw(w: Item, draw: Draw) -> Task:
    """An item is the elements of one counter, whole rows of a chunk being of whole counters."""
    stream, out = draw.maker.params["generator"].stream, draw.target
    each, lanes = STREAMS[stream], math.prod(out.shape[1:]) if w.chunk else math.prod(out.shape)
    total = lanes * (w.chunk or 1)
    words = w.name(w.functions.words)
    at = 2 * w.functions.draws.index(draw.maker)
    first = f"(uint64_t)lo * {lanes} / {each} + (uint64_t)i" if w.chunk else "(uint64_t)i"
    w.add("uint32_t found[8];")
    w.add(f"lg_{stream}((uint64_t){words}[{at}], (uint64_t){words}[{at + 1}], {first}, found);")
    w.loop("k", each)
    w.add(f"const INDEX e = i * {each} + k;")
    coin = f"({HELD[out.root.dtype]})(found[k] >> 8 < {draw.bound}u)"
    if w.chunk:
        w.add(f"{w.name(out.root)}[e % {lanes} * {w.pitch} + e / {lanes}] = {coin};")
    else:
        w.add(f"if (e < {total}) {w.name(out.root)}[e] = {coin};")
    w.close()
    return w.task(
        -(-total // each),
        [full(w.functions.words)],
        [out],
        operations=30 * each,
        walks={out.root: Walk(total, 0)} if each == 1 else {},
    )
