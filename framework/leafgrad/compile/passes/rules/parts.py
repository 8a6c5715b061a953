"""Slices, arrays with a part filled, and concatenations: they pass through each other and through products.

A window is a slice that keeps all dimensions: (start, stop) for each. Slices that drop or insert dimensions are
windows, reshaped. Zeros around a part are taken as zeros even against inf and nan on the other side of a product.
"""

from __future__ import annotations

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.compile.ir.shapes import shape_of
from leafgrad.compile.passes.rewrite import Rewriter, Rule
from leafgrad.compile.passes.rules.arithmetic import scaled
from leafgrad.ops.elementwise import add, mul, neg, sub
from leafgrad.ops.matmul import contract, matmul
from leafgrad.ops.op import Op
from leafgrad.ops.reduce import sum as sum_op
from leafgrad.ops.shape import Index, cat, expand, pad, part, permute, reshape, unslice
from leafgrad.tensor.view import write_view

Shape = tuple[int, ...]
Window = tuple[tuple[int, int], ...]


# ---- windows ----------------------------------------------------------------------------------------------------


def window(at: Index, shape: Shape) -> Window | None:
    """The window that a basic index is, if it is one of steps 1."""
    found = []
    for entry in at:
        if not isinstance(entry, tuple) or entry[2] != 1:
            return None
        found.append((entry[0], entry[1]))
    return (*found, *((0, n) for n in shape[len(found) :]))


def index(w: Window) -> Index:
    return tuple((start, stop, 1) for start, stop in w)


def extent(w: Window) -> Shape:
    return tuple(stop - start for start, stop in w)


def seen(r: Rewriter, x: Value, w: Window) -> Value:
    """The window of x."""
    return r.emit(part, x, at=index(w))


def in_window(r: Rewriter, x: Value, w: Window, shape: Shape) -> Value:
    """Zeros of ``shape`` with x in the window."""
    return r.emit(unslice, x, at=index(w), shape=shape)


def filled_by(r: Rewriter, x: object) -> tuple[Value, Window] | None:
    """(y, w) if x is y in a window of zeros."""
    e = r.maker(x, unslice) if isinstance(x, Value) else None
    w = None if e is None else window(e.params["at"], e.out.shape)
    return None if e is None or w is None else (e.values[0], w)


# ---- slices -----------------------------------------------------------------------------------------------------


def as_window(r: Rewriter, e: Equation) -> Value | None:
    """A slice that drops or inserts dimensions is a window, reshaped."""
    (x,), at = e.values, e.params["at"]
    kept, shape = ranges(at, x.shape)
    if kept == at:
        return None
    small = Value(shape, x.dtype, x.place)
    (value,) = r.put(Equation(part, (x,), {"at": kept}, (small,), e.line))
    return r.emit(reshape, value, shape=e.out.shape)


def ranges(at: Index, shape: Shape) -> tuple[Index, Shape]:
    """A basic index of arrays of this shape that keeps all dimensions and inserts none; the shape that it chooses."""
    kept = [entry if isinstance(entry, tuple) else (entry, entry + 1, 1) for entry in at if entry is not None]
    kept += [(0, n, 1) for n in shape[len(kept) :]]
    return tuple(kept), tuple(max(0, -((start - stop) // step)) for start, stop, step in kept)


def part_of(r: Rewriter, e: Equation) -> Value | None:
    """A window of what another rearrangement makes is found in what that one rearranges."""
    (x,) = e.values
    w = window(e.params["at"], x.shape)
    if w is None:
        return None
    if extent(w) == x.shape:
        return x
    if 0 in extent(w):
        return r.full(extent(w), 0, x)
    maker = r.makers.get(x)
    rule = None if maker is None else INSIDE.get(maker.op)
    if maker is not None and rule is None and "elementwise" in maker.op.traits:
        rule = part_of_elementwise
    return None if maker is None or rule is None else rule(r, maker, w)


def part_of_part(r: Rewriter, inner: Equation, w: Window) -> Value | None:
    first = window(inner.params["at"], shape_of(inner.inputs[0]))
    if first is None:
        return None
    return seen(
        r, inner.values[0], tuple((a + start, a + stop) for (a, _), (start, stop) in zip(first, w, strict=True))
    )


def part_of_filled(r: Rewriter, inner: Equation, w: Window) -> Value | None:
    hole = window(inner.params["at"], inner.out.shape)
    if hole is None:
        return None
    pairs = list(zip(hole, w, strict=True))
    if any(stop <= a or b <= start for (a, b), (start, stop) in pairs):
        return r.full(extent(w), 0.0 if inner.out.dtype.startswith("float") else 0, inner.out)
    if all(a <= start and stop <= b for (a, b), (start, stop) in pairs):
        return seen(r, inner.values[0], tuple((start - a, stop - a) for (a, _), (start, stop) in pairs))
    return None


def part_of_cat(r: Rewriter, inner: Equation, w: Window) -> Value | None:
    dim, begin = inner.params["dim"], 0
    start, stop = w[dim]
    for x in inner.values:
        end = begin + x.shape[dim]
        if begin <= start and stop <= end and x.dtype == inner.out.dtype:
            return seen(r, x, (*w[:dim], (start - begin, stop - begin), *w[dim + 1 :]))
        begin = end
    return None


def shrunk(w: Window, shape: Shape) -> Window:
    """The window in an argument that is broadcast from ``shape``."""
    tail = w[len(w) - len(shape) :]
    return tuple((0, 1) if n == 1 else pair for n, pair in zip(shape, tail, strict=True))


def part_of_expanded(r: Rewriter, inner: Equation, w: Window) -> Value | None:
    (x,) = inner.values
    return r.emit(expand, seen(r, x, shrunk(w, x.shape)), shape=extent(w))


def part_of_permuted(r: Rewriter, inner: Equation, w: Window) -> Value | None:
    dims = inner.params["dims"]
    moved = tuple(w[dims.index(i)] for i in range(len(dims)))
    return r.emit(permute, seen(r, inner.values[0], moved), dims=dims)


def part_of_elementwise(r: Rewriter, inner: Equation, w: Window) -> Value | None:
    if not r.once(inner.out) or inner.several or "random" in inner.op.traits:
        return None
    inputs = tuple(seen(r, v, shrunk(w, v.shape)) if isinstance(v, Value) else v for v in inner.inputs)
    small = Value(extent(w), inner.out.dtype, inner.place)
    return r.put(Equation(inner.op, inputs, inner.params, (small,), inner.line))[0]


def part_of_product(r: Rewriter, inner: Equation, w: Window) -> Value | None:
    """Some rows and columns of a matrix product need those rows and columns of its factors only."""
    a, b = inner.values
    if not r.once(inner.out) or a.ndim < 2 or b.ndim != 2:
        return None
    *rows, columns = w
    return r.emit(matmul, seen(r, a, (*rows, (0, a.shape[-1]))), seen(r, b, ((0, b.shape[0]), columns)))


INSIDE = {
    part: part_of_part,
    unslice: part_of_filled,
    cat: part_of_cat,
    expand: part_of_expanded,
    permute: part_of_permuted,
    matmul: part_of_product,
}


# ---- parts in zeros -----------------------------------------------------------------------------------------------


def padded_with_zeros(r: Rewriter, e: Equation) -> Value | None:
    if e.params["value"] != 0:
        return None
    return r.emit(unslice, *e.inputs, at=e.params["at"], shape=e.params["shape"])


def filled_as_window(r: Rewriter, e: Equation) -> Value | None:
    """What a slice that drops or inserts dimensions was taken of is filled by a window, reshaped."""
    at, shape = ranges(e.params["at"], e.out.shape)
    if at == e.params["at"]:
        return None
    return r.emit(unslice, r.emit(reshape, *e.inputs, shape=shape), at=at, shape=e.out.shape)


def filled_whole(r: Rewriter, e: Equation) -> Value | None:
    w = window(e.params["at"], e.out.shape)
    return e.values[0] if w is not None and extent(w) == e.out.shape else None


def sum_of_filled(r: Rewriter, e: Equation) -> Value | None:
    """Two parts side by side in zeros, added, are their concatenation; two in one place are their sum."""
    first, second = (filled_by(r, x) for x in e.inputs)
    if first is None or second is None or shape_of(e.inputs[0]) != shape_of(e.inputs[1]):
        return None
    (x, v), (y, w) = first, second
    if v == w:
        return in_window(r, r.emit(e.op, x, y), v, e.out.shape)
    apart = [i for i in range(len(v)) if v[i] != w[i]]
    if len(apart) != 1:
        return None
    (d,) = apart
    if e.op is sub:
        y = r.emit(neg, y)
    if w[d][1] == v[d][0]:
        (x, v), (y, w) = (y, w), (x, v)
    if v[d][1] != w[d][0]:
        return None
    return in_window(r, r.emit(cat, x, y, dim=d), (*v[:d], (v[d][0], w[d][1]), *v[d + 1 :]), e.out.shape)


def sign_of_filled(r: Rewriter, e: Equation) -> Value | None:
    """Minus, or a number times, a part in zeros."""
    found = filled_by(r, e.inputs[0])
    if found is None or (e.op is mul and scaled(r, e) is None):
        return None
    return in_window(r, r.emit(e.op, found[0], *e.inputs[1:]), found[1], e.out.shape)


def product_of_filled(r: Rewriter, e: Equation) -> Value | None:
    """Zero columns on the left and zero rows on the right need no product; zero rows of the left stay zero."""
    a, b = e.values
    if a.ndim < 2 or b.ndim != 2:
        return None
    if (found := filled_by(r, a)) is not None:
        x, (*rows, columns) = found
        product = r.emit(matmul, x, seen(r, b, (columns, (0, b.shape[1]))))
        return in_window(r, product, (*rows, (0, b.shape[1])), e.out.shape)
    if (found := filled_by(r, b)) is not None:
        x, (between, columns) = found
        lead = tuple([(0, n) for n in a.shape[:-1]])
        return in_window(r, r.emit(matmul, seen(r, a, (*lead, between)), x), (*lead, columns), e.out.shape)
    return None


def contraction_of_filled(r: Rewriter, e: Equation) -> Value | None:
    """Zero rows on either side add nothing; zero columns stay zero."""
    for i, x in enumerate(e.values):
        if (found := filled_by(r, x)) is not None:
            y, (*rows, columns) = found
            pair, w = [*e.values], [(0, n) for n in e.out.shape]
            other = pair[1 - i]
            pair[i], pair[1 - i], w[i] = y, seen(r, other, (*rows, (0, other.shape[-1]))), columns
            return in_window(r, r.emit(contract, *pair), tuple(w), e.out.shape)
    return None


def permuted_filled(r: Rewriter, e: Equation) -> Value | None:
    found = filled_by(r, e.inputs[0])
    if found is None:
        return None
    x, w = found
    return in_window(r, r.emit(permute, x, **e.params), tuple(w[i] for i in e.params["dims"]), e.out.shape)


def total_of_filled(r: Rewriter, e: Equation) -> Value | None:
    found = filled_by(r, e.inputs[0])
    if found is None:
        return None
    (x, w), dim, shape = found, e.params["dim"], shape_of(e.inputs[0])
    total = r.emit(sum_op, x, dim=dim, keepdim=True)
    kept = tuple(1 if i in dim else n for i, n in enumerate(shape))
    whole = in_window(r, total, tuple((0, 1) if i in dim else pair for i, pair in enumerate(w)), kept)
    return r.emit(reshape, whole, shape=e.out.shape)


# ---- concatenations -------------------------------------------------------------------------------------------------


def cat_rule(r: Rewriter, e: Equation) -> Value | None:
    """Empty arrays go; neighbouring windows of one array are one window; nested concatenations are one."""
    dim = e.params["dim"]
    pieces: list[Value] = []
    for v in e.values:
        if v.dtype != e.out.dtype or v.ndim != e.out.ndim:
            return None
        nested = r.maker(v, cat)
        inner = list(nested.values) if nested is not None and nested.params["dim"] == dim and r.once(v) else [v]
        for x in inner:
            joined = None if not pieces else neighbours(r, pieces[-1], x, dim)
            if joined is not None:
                pieces[-1] = joined
            elif x.shape[dim]:
                pieces.append(x)
    if len(pieces) == 1:
        return pieces[0]
    return r.emit(cat, *pieces, dim=dim) if pieces and pieces != list(e.values) else None


def neighbours(r: Rewriter, x: Value, y: Value, dim: int) -> Value | None:
    """The window of which x and y are the two halves."""
    first, second = r.maker(x, part), r.maker(y, part)
    if first is None or second is None or first.inputs[0] is not second.inputs[0]:
        return None
    (source,) = first.values
    v, w = window(first.params["at"], source.shape), window(second.params["at"], source.shape)
    if v is None or w is None or v[dim][1] != w[dim][0] or any(v[i] != w[i] for i in range(len(v)) if i != dim):
        return None
    return seen(r, source, (*v[:dim], (v[dim][0], w[dim][1]), *v[dim + 1 :]))


def written_whole(r: Rewriter, e: Equation) -> Value | None:
    """Writing all of an array leaves what was written."""
    v = e.inputs[1]
    if e.params["steps"] or not isinstance(v, Value) or v.dtype != e.out.dtype or v.place != e.place:
        return None
    return r.emit(expand, v, shape=e.out.shape)


RULES: dict[Op, tuple[Rule, ...]] = {
    part: (as_window, part_of),
    pad: (padded_with_zeros,),
    unslice: (filled_as_window, filled_whole),
    add: (sum_of_filled,),
    sub: (sum_of_filled,),
    neg: (sign_of_filled,),
    mul: (sign_of_filled,),
    matmul: (product_of_filled,),
    contract: (contraction_of_filled,),
    permute: (permuted_filled,),
    sum_op: (total_of_filled,),
    cat: (cat_rule,),
    write_view: (written_whole,),
}
