"""Convolutions by implicit products: an item is a few channels of one output, so that it reads each source once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leafgrad.lowering.expressions import HELD, held
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Convolve
from leafgrad.lowering.strides import linear
from leafgrad.lowering.sweeps import Line
from leafgrad_cuda.along import added
from leafgrad_cuda.writer import ITEMS, Item, Refused, Task

TILES = (8, 4, 2, 1)  # channels of an item


def convolve(item: Callable[[], Item], kernel: Convolve) -> list[Task]:
    """A convolution, its transpose, or its sum over windows."""
    if kernel.kind == "taps":
        return taps(item, kernel)
    if kernel.sources[1].root.axis is not None:
        raise Refused(kernel.equation, "each point of a batch has a kernel of its own")
    return [sweep(item(), kernel, lines) for lines in kernel.sweeps]


def tiled(channels: int) -> int:
    return next(n for n in TILES if channels % n == 0)


def place(w: Item, x: Form, channel: str, at: Sequence[str]) -> str:
    """The element of an image, which is number ``b`` of whole arrays, or a point of a chunk."""
    image = ([], []) if x.axis is not None else ([x.strides[0]], ["b"])
    return w.at(x, [*image[0], *x.strides[1:]], [*image[1], channel, *at])


def found(w: Item, lines: Sequence[Line], length: Sequence[int]) -> str:
    """Variables ``i0`` and on for where output ``u0`` finds tap ``k0``; the condition that there is an element."""
    tests = []
    for d, (line, n) in enumerate(zip(lines, length, strict=True)):
        w.add(f"const INDEX i{d} = {linear(line.start, [line.step, line.hop], [f'u{d}', f'k{d}'])};")
        low, high = line.ends
        tests += [*([f"i{d} >= 0"] if low < 0 else []), *([f"i{d} < {n}"] if high >= n else [])]
    return " && ".join(tests)


def sweep(w: Item, kernel: Convolve, lines: Sequence[Line]) -> Task:
    """Outputs that have the same taps."""
    (x, weight, *bias), out = kernel.sources, kernel.target
    kind, groups, spread = HELD[out.root.dtype], kernel.groups, kernel.kind == "spread"
    inputs, outputs = x.shape[1] // groups, out.shape[1] // groups
    tile, rows = tiled(outputs), [f"s{r}" for r in range(tiled(outputs))]
    outs, ks = [f"u{d}" for d in range(len(lines))], [f"k{d}" for d in range(len(lines))]
    batched = out.axis is not None
    lengths = [*([] if batched else [x.shape[0]]), out.shape[1] // tile, *(line.size for line in lines)]
    count = w.decode([*([] if batched else ["b"]), "tile", *outs], lengths, points=batched)
    w.add(f"const INDEX first = tile * {tile}, from = first / {outputs} * {inputs};")
    for r, s in enumerate(rows):
        start = w.at(bias[0], bias[0].strides, [f"(first + {r})"]) if bias else "0"
        w.add(f"{kind} {s} = {start};")
    w.loops(["c", *ks], [inputs, *(line.taps for line in lines)])
    inside = found(w, lines, x.shape[2:])
    read = place(w, x, "(from + c)", [f"i{d}" for d in range(len(lines))])
    if spread and inside:
        w.open(f"if ({inside}) {{")
    # zeros around an image count, as they do in the op: nan comes of an infinite kernel
    w.add(f"const {kind} x_ = {f'{inside} ? ({kind}){read} : 0' if inside and not spread else read};")
    at = [linear(line.tap, [line.each], [k]) for line, k in zip(lines, ks, strict=True)]
    first = [f"(from + c), first % {outputs}", "first, c"][not spread].split(", ")
    along = 1 if spread else 0
    for r, s in enumerate(rows):
        step = str(int(weight.strides[along] or 0) * r) if r else ""
        places = [f"({v})" for v in (*first, *at)]
        w.add(f"{s} += x_ * {w.at(weight, weight.strides, places, step)};")
    w.close(1 + len(ks) + bool(spread and inside))
    ends = [f"({linear(line.out, [line.every], [u])})" for line, u in zip(lines, outs, strict=True)]
    for r, s in enumerate(rows):
        w.add(f"{place(w, out, f'(first + {r})', ends)} = {s};")
    work = 2 * tile * inputs * math.prod(line.taps for line in lines)
    return w.task(count, kernel.sources, [out], operations=work)


def taps(item: Callable[[], Item], kernel: Convolve) -> list[Task]:
    """For each element of a kernel the sum over all windows: added to an accumulator, or of parts of the batch."""
    (x, y), (lines,), out = kernel.sources, kernel.sweeps, kernel.target
    batched = x.axis is not None
    if (y.axis is None) == batched:
        raise Refused(kernel.equation, "one of two arrays has a batch")
    w = item()
    kind, groups = HELD[out.root.dtype], kernel.groups
    inputs, outputs = x.shape[1] // groups, y.shape[1] // groups
    tile, rows = tiled(outputs), [f"s{r}" for r in range(tiled(outputs))]
    ks, outs = [f"k{d}" for d in range(len(lines))], [f"u{d}" for d in range(len(lines))]
    lengths = [y.shape[1] // tile, inputs, *(line.taps for line in lines)]
    batch, parts = x.shape[0], 1 if batched else min(x.shape[0], max(1, ITEMS // math.prod(lengths)))
    size = -(-batch // parts)
    parts = -(-batch // size)
    count = w.decode([*(["part"] if parts > 1 else []), "tile", "c", *ks], [*([parts] if parts > 1 else []), *lengths])
    w.add(f"const INDEX first = tile * {tile}, from = first / {outputs} * {inputs};")
    w.add(f"{kind} {', '.join(f'{s} = 0' for s in rows)};")
    if not batched and parts > 1:
        w.add(f"const INDEX begin = part * {size}, end = begin + {size} < {batch} ? begin + {size} : {batch};")
    if not batched:
        w.loop("b", *(("end", "begin") if parts > 1 else (batch,)))
    w.loops(outs, [line.size for line in lines])
    inside = found(w, lines, x.shape[2:])
    if batched:
        w.loop("p", "n")
    read = place(w, x, "(from + c)", [f"i{d}" for d in range(len(lines))])
    w.add(f"const {kind} x_ = {f'{inside} ? ({kind}){read} : 0' if inside else read};")
    for r, s in enumerate(rows):
        w.add(f"{s} += x_ * {place(w, y, f'(first + {r})', outs)};")
    w.close(1 + len(outs))
    work = 2 * tile * math.prod(line.size for line in lines) * (w.chunk if batched else size)
    target = full(Root((parts, *out.shape), held(out.root.dtype))) if parts > 1 else out
    for r, s in enumerate(rows):
        at = [*(["part"] if parts > 1 else []), f"(first + {r})", "c", *ks]
        w.add(f"{w.at(target, target.strides, at)} {'+' if batched else ''}= {s};")
    made = w.task(count, [x, y, out] if batched else [x, y], [target], operations=work)
    return [made] if parts == 1 else [made, *added(item, target, out)]
