"""Matrix products: an item is a tile of the result, for which it reads each element of its rows and columns once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leafgrad.lowering.expressions import HELD, held
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import Product
from leafgrad.lowering.strides import spread
from leafgrad_cuda.along import added
from leafgrad_cuda.writer import ITEMS, QUAD, Item, Refused, Task, quad_type

SHORTEST = 256  # terms of a part of a sum that is cut
TILES = (4, 2, 1)  # sides of tiles, of which the largest is taken that leaves enough items
FEWEST = 128  # items of a chunk
FEWEST_WHOLE = 1 << 13  # of whole arrays


def product(item: Callable[[], Item], product: Product) -> list[Task]:
    return [summed(item(), product)] if product.total else multiplied(item, product)


def side(length: int, others: int, fewest: int) -> int:
    """How many neighbours of ``length`` a tile takes, so that with ``others`` there are at least so many items."""
    return next((n for n in TILES if length % n == 0 and length // n * others >= fewest), 1)


def summed(w: Item, product: Product) -> Task:
    """x^T y, where all dimensions but the last are rows, those of a chunk: added to an accumulator."""
    x, y = product.sources
    out = product.target
    columns = len(y.shape) == len(x.shape)
    rows = [k for k in range(len(x.shape) - 1) if k != x.axis]
    if x.axis != y.axis or x.shape[:-1] != y.shape[: len(x.shape) - 1]:
        raise Refused(product.equation, "rows of two arrays that lie differently")
    sizes = [x.shape[-1], *([y.shape[-1]] if columns else [])]
    wide = side(sizes[-1], math.prod(sizes[:-1]), FEWEST)
    high = side(sizes[0], sizes[1] // wide, FEWEST) if columns else 1
    tile = [high, wide] if columns else [wide]
    outs = ["a", "b"][: len(sizes)]
    count = w.decode(outs, [n // t for n, t in zip(sizes, tile, strict=True)])
    t, names = HELD[out.root.dtype], [f"k{k}" for k in rows]
    high, wide = (high, wide) if columns else (wide, 1)
    totals = [(i, j) for i in range(high) for j in range(wide)]
    w.add(f"{t} {', '.join(f's{i}_{j} = 0' for i, j in totals)};")
    w.loops(names, [x.shape[k] for k in rows])

    def places(form: Form, variable: str, n: int) -> list[str]:
        along = [variable] if variable else []
        strides = [*(form.strides[k] for k in rows), *([int(form.strides[-1] or 0) * n] if variable else [])]
        step = int(form.strides[-1] or 0) if variable else 0
        return [w.at(form, strides, [*names, *along], str(step * i) if i else "") for i in range(n)]

    left, right = places(x, "a", high), places(y, "b" if columns else "", wide)
    terms = [f"s{i}_{j} += ({t})x{i}{{0}} * ({t})y{j}{{0}};" for i, j in totals]
    w.add("INDEX p = 0;")
    w.open(f"for (; p + {QUAD} <= n; p += {QUAD}) {{")
    for name, form, all_places in (("x", x, left), ("y", y, right)):
        for i, place in enumerate(all_places):
            w.add(f"const {quad_type(form.root.dtype)} {name}{i} = {w.quad_at(form, place)};")
    w.each_of_quad([term.format(".at[q]") for term in terms])
    w.close()
    w.open("for (; p < n; p++) {")
    for name, form, all_places in (("x", x, left), ("y", y, right)):
        for i, place in enumerate(all_places):
            w.add(f"const {HELD[form.root.dtype]} {name}{i} = {place};")
    for term in terms:
        w.add(term.format(""))
    w.close(len(rows) + 1)
    steps = [int(s or 0) for s in out.strides]
    for i, j in totals:
        extra = steps[0] * i + (steps[1] * j if columns else 0)
        strides = [s * n for s, n in zip(steps, tile, strict=False)]
        w.add(f"{w.at(out, strides, outs, str(extra) if extra else '')} += s{i}_{j};")
    work = 2 * math.prod(x.shape[k] for k in rows) * w.chunk * len(totals)
    return w.task(count, [x, y, out], [out], operations=work)


def multiplied(item: Callable[[], Item], product: Product) -> list[Task]:
    """Elements of a product whose result may have a chunk's points on any of its axes, or matrices side by side.

    A tile is of columns, with four points of a chunk, or with rows of whole arrays. Of whole arrays, long sums for few
    elements are cut into parts, which are added in order.
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
    lead, inner = out.shape[:-2], a.shape[-1]
    sa, sb = spread(a, (*lead, *a.shape[-2:])), spread(b, (*lead, *b.shape[-2:]))
    most = 1 if w.chunk else min(inner // SHORTEST, ITEMS // math.prod(out.shape))
    size = -(-inner // max(1, most))
    parts = -(-inner // size)
    target = full(Root((parts, *out.shape), held(out.root.dtype))) if parts > 1 else out
    so = target.strides[1:] if parts > 1 else out.strides
    quads = out.axis is not None
    kept = [k for k in range(len(out.shape)) if so[k] is not None and out.shape[k] != 1]
    lengths = {k: out.shape[k] for k in kept}
    tile = dict.fromkeys(range(len(out.shape)), 1)
    fewest = FEWEST if quads else FEWEST_WHOLE
    total = parts * math.prod(lengths.values()) * (w.chunk // QUAD if quads else 1)
    for k in (len(out.shape) - 1, *([] if quads else [len(out.shape) - 2])):
        if k in lengths:
            tile[k] = side(lengths[k], total // lengths[k], fewest)
            total //= tile[k]
            lengths[k] //= tile[k]
    high, wide = tile[len(out.shape) - 2], tile[len(out.shape) - 1]
    cut, names = ["part"] if parts > 1 else [], {k: f"l{k}" for k in kept}
    every = [*([parts] if cut else []), *lengths.values()]
    decode: Callable[[Sequence[str], Sequence[int]], int] = w.decode_quads if quads else w.decode
    count = decode([*cut, *names.values()], every)
    if cut:
        w.add(f"const INDEX begin = part * {size}, end = begin + {size} < {inner} ? begin + {size} : {inner};")
    t = HELD[out.root.dtype]
    totals = [(i, j) for i in range(high) for j in range(wide)]
    zero = f"[{QUAD}] = {{0, 0, 0, 0}}" if quads else " = 0"
    w.add(f"{t} {', '.join(f's{i}_{j}{zero}' for i, j in totals)};")
    w.loop("k", *(("end", "begin") if cut else (inner,)))
    last = len(out.shape) - 1

    def operand(name: str, form: Form, strides: Sequence[int | None], own: int, along: int, n: int) -> list[str]:
        """Reads what a term of the sum needs of one operand: n neighbours in dimension ``own``. -> their names"""
        ours = [k for k in kept if k < len(lead) or k == own]
        step = int(strides[own] or 0)
        steps = [step * tile[k] if k == own else strides[k] for k in ours]
        found = []
        for i in range(n):
            place = w.at(form, [*steps, strides[along]], [*(names[k] for k in ours), "k"], str(step * i) if i else "")
            if quads and form.root.axis is not None:
                w.add(f"const {quad_type(form.root.dtype)} {name}{i} = {w.quad_at(form, place)};")
                found.append(f"({t}){name}{i}.at[q]")
            else:
                w.add(f"const {t} {name}{i} = {place};")
                found.append(f"{name}{i}")
        return found

    left = operand("left", a, sa, last - 1, last, high)
    right = operand("right", b, sb, last, last - 1, wide)
    terms = [f"s{i}_{j}{'[q]' if quads else ''} += {left[i]} * {right[j]};" for i, j in totals]
    if quads:
        w.each_of_quad(terms)
    else:
        for term in terms:
            w.add(term)
    w.close()
    for i, j in totals:
        extra = int(so[-2] or 0) * i + int(so[-1] or 0) * j
        along = [*target.strides[: len(cut)], *(int(so[k] or 0) * tile[k] for k in kept)]
        place = w.at(target, along, [*cut, *names.values()], str(extra) if extra else "")
        if quads:
            w.add(f"{quad_type(target.root.dtype)} w{i}_{j};")
            w.each_of_quad([f"w{i}_{j}.at[q] = s{i}_{j}[q];"])
            w.add(f"{w.quad_at(target, place)} = w{i}_{j};")
        else:
            w.add(f"{place} = s{i}_{j};")
    made = w.task(count, [a, b], [target], operations=2 * size * len(totals) * (QUAD if quads else 1))
    return [made, *added(item, target, out)] if cut else [made]
