"""Matrix products as calls: which of the product functions does it, and the loops around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Product
from leafgrad.lowering.strides import Strides, spread
from leafgrad_native.writer import ENOUGH, CWriter


def product(w: CWriter, product: Product) -> None:
    a, b = product.sources
    out = product.target
    if product.total:
        w.add(w.products.sums(w.chunk, a, b, out, w.row))
        return
    if len(a.shape) == 1:
        a = Form(a.root, (1, *a.shape), (0, *a.strides), a.offset)
        out = Form(
            out.root, (*out.shape[:-1], 1, *out.shape[-1:]), (*out.strides[:-1], 0, *out.strides[-1:]), out.offset
        )
    if len(b.shape) == 1:
        b = Form(b.root, (*b.shape, 1), (*b.strides, 0), b.offset)
        out = Form(out.root, (*out.shape, 1), (*out.strides, 0), out.offset)
    kind = a.root.dtype
    lead = out.shape[:-2]
    sa, sb = spread(a, (*lead, *a.shape[-2:])), spread(b, (*lead, *b.shape[-2:]))
    dims = [k for k in range(len(lead)) if lead[k] != 1 and out.strides[k] is not None]
    while out.axis is None and dims and as_rows(dims[-1], a, sa, sb, out):
        k = dims.pop()
        a = Form(a.root, (lead[k] * a.shape[-2], a.shape[-1]), a.strides[-2:], a.offset)
        out = Form(out.root, (*out.shape[:-2], lead[k] * out.shape[-2], out.shape[-1]), out.strides, out.offset)
    many = out.axis is None and math.prod(lead[k] for k in dims) >= ENOUGH and not w.products.by_blas(a, b, out)
    cut = w.cut([lead[k] for k in dims]) if many else None
    for at, k in enumerate(dims):
        w.loop(f"l{k}", lead[k], shared=at == cut)
    variables = [f"l{k}" for k in dims]

    def base(form: Form, strides: Strides, extra: Sequence[tuple[str, int]] = ()) -> str:
        steps = [strides[k] or 0 for k in dims] + [s for _, s in extra]
        return w.row(form, steps, [*variables, *(v for v, _ in extra)])

    if out.axis is None:
        w.add(w.products.whole(a, b, out, base(a, sa), base(b, sb), base(out, out.strides), w.ends))
    else:
        chunked(w, kind, (a, sa), (b, sb), out, base)
    w.close(len(dims))


def as_rows(k: int, a: Form, sa: Strides, sb: Strides, out: Form) -> bool:
    """Whether the matrices along dimension ``k``, which share the right one, lie below each other as one."""
    rows = out.shape[-2]
    above, below = (sa[k], out.strides[k]), (a.strides[-2], out.strides[-2])
    return sb[k] == 0 and all(
        x is not None and y is not None and x == y * rows for x, y in zip(above, below, strict=True)
    )


def chunked(
    w: CWriter, kind: str, a: tuple[Form, Strides], b: tuple[Form, Strides], out: Form, base: Callable[..., str]
) -> None:
    """A product whose result has a chunk's points on some axis."""
    (x, sx), (y, sy) = a, b
    rows, cols = out.shape[-2], out.shape[-1]
    k = x.shape[-1]
    so = out.strides
    if x.axis is not None and y.axis is not None:  # both vary with the point
        w.loop("i", rows)
        w.loop("j", cols)
        call = w.products.points(kind, w.chunk, k, sx[-1] or 0, sy[-2] or 0)
        left, right = base(x, sx, [("i", sx[-2] or 0)]), base(y, sy, [("j", sy[-1] or 0)])
        w.add(f"{call}(call, {left}, {right}, {base(out, so, [('i', so[-2] or 0), ('j', so[-1] or 0)])}, m);")
        w.close(2)
    elif x.axis is not None:  # each point has rows, and shares the matrix on the right
        step = () if sx[-2] is None else (("i", sx[-2]),)
        if step:
            w.loop("i", rows)
        call = w.products.weights(kind, w.chunk, k, cols, sx[-1] or 0, so[-1] or 0, sy[-2] or 0, sy[-1] or 0)
        target = () if not step else (("i", so[-2] or 0),)
        w.add(
            f"if ((code = {call}(call, {base(x, sx, step)}, {base(y, sy)}, {base(out, so, target)}, m))) return code;"
        )
        w.close(len(step))
    else:  # the matrix on the left is shared, and each point has columns
        step = () if sy[-1] is None else (("j", sy[-1]),)
        if step:
            w.loop("j", cols)
        call = w.products.weights(kind, w.chunk, k, rows, sy[-2] or 0, so[-2] or 0, sx[-1] or 0, sx[-2] or 0)
        target = () if not step else (("j", so[-1] or 0),)
        w.add(
            f"if ((code = {call}(call, {base(y, sy, step)}, {base(x, sx)}, {base(out, so, target)}, m))) return code;"
        )
        w.close(len(step))
