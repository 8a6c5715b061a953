"""Matrix products: an item is a few neighbouring elements of the result."""

from __future__ import annotations

import math
from collections.abc import Callable

from leafgrad.lowering.expressions import HELD, held
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Product
from leafgrad.lowering.strides import spread
from leafgrad_cuda.along import added
from leafgrad_cuda.writer import ITEMS, Item, Refused, Task

SHORTEST = 256  # terms of a part of a sum that is cut
TILE = 4  # columns of the result that one item computes: it reads each element on the left once for all of them


def product(item: Callable[[], Item], product: Product) -> list[Task]:
    return [summed(item(), product)] if product.total else multiplied(item, product)


def summed(w: Item, product: Product) -> Task:
    """x^T y, where all dimensions but the last are rows, those of a chunk: added to an accumulator."""
    x, y = product.sources
    out = product.target
    columns = len(y.shape) == len(x.shape)
    rows = [k for k in range(len(x.shape) - 1) if k != x.axis]
    if x.axis != y.axis or x.shape[:-1] != y.shape[: len(x.shape) - 1]:
        raise Refused(product.equation, "rows of two arrays that lie differently")
    lengths = [x.shape[-1], *([y.shape[-1]] if columns else [])]
    count = w.decode(["a", "b"][: len(lengths)], lengths)
    t = HELD[out.root.dtype]
    w.add(f"{t} s = 0;")
    names = [f"k{k}" for k in rows]
    w.loops(names, [x.shape[k] for k in rows])
    w.loop("p", "n")
    left = w.at(x, [*(x.strides[k] for k in rows), x.strides[-1]], [*names, "a"])
    right = w.at(y, [*(y.strides[k] for k in rows), *([y.strides[-1]] if columns else [])],
                 [*names, *(["b"] if columns else [])])  # fmt: skip
    w.add(f"s += {left} * {right};")
    w.close(len(rows) + 1)
    w.add(f"{w.at(out, out.strides, ['a', 'b'][: len(lengths)])} += s;")
    work = 2 * math.prod(x.shape[k] for k in rows) * w.chunk
    return w.task(count, [x, y, out], [out], operations=work)


def multiplied(item: Callable[[], Item], product: Product) -> list[Task]:
    """Elements of a product whose result may have a chunk's points on any of its axes, or matrices side by side.

    Of whole arrays, long sums for few elements are cut into parts, which are added in order.
    """
    w = item()
    a, b = product.sources
    out = product.target
    if len(a.shape) == 1:
        a = Form(a.root, (1, *a.shape), (0, *a.strides), a.offset)
        shape, strides = (*out.shape[:-1], 1, *out.shape[-1:]), (*out.strides[:-1], 0, *out.strides[-1:])
        out = Form(out.root, shape, strides, out.offset)
    if len(b.shape) == 1:
        b = Form(b.root, (*b.shape, 1), (*b.strides, 0), b.offset)
        out = Form(out.root, (*out.shape, 1), (*out.strides, 0), out.offset)
    lead, cols, inner = out.shape[:-2], out.shape[-1], a.shape[-1]
    sa, sb = spread(a, (*lead, *a.shape[-2:])), spread(b, (*lead, *b.shape[-2:]))
    most = 1 if w.chunk else min(inner // SHORTEST, ITEMS // math.prod(out.shape))
    size = -(-inner // max(1, most))
    parts = -(-inner // size)
    target = full(Root((parts, *out.shape), held(out.root.dtype))) if parts > 1 else out
    so = target.strides[1:] if parts > 1 else out.strides
    tile = TILE if so[-1] is not None and cols % TILE == 0 else 1
    kept = [k for k in range(len(out.shape) - 1) if so[k] is not None and out.shape[k] != 1]
    names, lengths = [f"l{k}" for k in kept], [out.shape[k] for k in kept]
    last = so[-1] is not None
    groups = ["j"] if last else []
    cut = ["part"] if parts > 1 else []
    lengths = [*([parts] if cut else []), *lengths, *([cols // tile] if last else [])]
    count = w.decode([*cut, *names, *groups], lengths, points=out.axis is not None)
    if cut:
        w.add(f"const INDEX begin = part * {size}, end = begin + {size} < {inner} ? begin + {size} : {inner};")
    t = HELD[out.root.dtype]
    w.add(f"{t} {', '.join(f's{c} = 0' for c in range(tile))};")
    w.loop("k", *(("end", "begin") if cut else (inner,)))
    ours = [k for k in kept if k != len(out.shape) - 1]
    left = w.at(a, [*(sa[k] for k in ours), sa[-1]], [*(f"l{k}" for k in ours), "k"])
    w.add(f"const {t} left = {left};")
    above = [k for k in ours if k < len(lead)]
    for c in range(tile):
        right = w.at(
            b,
            [*(sb[k] for k in above), sb[-2], *([int(sb[-1] or 0) * tile] if last else [])],
            [*(f"l{k}" for k in above), "k", *groups],
            str(int(sb[-1] or 0) * c) if c else "",
        )
        w.add(f"s{c} += left * {right};")
    w.close()
    for c in range(tile):
        write = w.at(
            target,
            [*target.strides[: len(cut)], *(so[k] for k in kept), *([int(so[-1] or 0) * tile] if last else [])],
            [*cut, *names, *groups],
            str(int(so[-1] or 0) * c) if c else "",
        )
        w.add(f"{write} = s{c};")
    made = w.task(count, [a, b], [target], operations=2 * size * tile)
    return [made, *added(item, target, out)] if cut else [made]
