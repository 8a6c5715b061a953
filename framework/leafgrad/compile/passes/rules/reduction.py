"""Sums: of nothing, of broadcasts, of sums, and of products that are matrix products."""

from __future__ import annotations

import math
from functools import partial, reduce

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.compile.ir.shapes import shape_of
from leafgrad.compile.passes.rewrite import Rewriter, Rule, size
from leafgrad.compile.passes.rules.layout import sign_outward
from leafgrad.ops.abstract import PRECISE
from leafgrad.ops.elementwise import mul
from leafgrad.ops.matmul import contract, matmul
from leafgrad.ops.op import Op
from leafgrad.ops.reduce import sum as sum_op
from leafgrad.ops.shape import expand, permute, reshape
from leafgrad.ops.traits import dims

Shape = tuple[int, ...]


def of_one(r: Rewriter, e: Equation) -> Value | None:
    """A sum over a dimension, or over all, as one over several: what the other rules look for."""
    (x,), dim = e.values, e.params["dim"]
    return None if isinstance(dim, tuple) else r.emit(sum_op, x, **{**e.params, "dim": dims(dim, x.ndim)})


def of_no_terms(r: Rewriter, e: Equation) -> Value | None:
    """A sum of no terms, also of products, is 0, whatever a factor taken out of it would be."""
    if all(size(v.shape) for v in e.values):
        return None
    return r.full(e.out.shape, 0.0 if e.out.dtype.startswith("float") else 0, e.out)


def of_nothing(r: Rewriter, e: Equation) -> Value | None:
    """A sum over no dimension, or over dimensions of size 1."""
    (x,) = e.values
    if any(x.shape[i] != 1 for i in e.params["dim"]) or x.dtype != e.out.dtype:
        return None
    return r.emit(reshape, x, shape=e.out.shape)


def kept(x: Shape, dim: Shape) -> Shape:
    return tuple(1 if i in dim else n for i, n in enumerate(x))


def of_broadcast(r: Rewriter, e: Equation) -> Value | None:
    """A sum of equal elements is one of them times their number."""
    inner = r.maker(e.inputs[0], expand)
    if inner is None or e.out.dtype not in PRECISE:
        return None
    (x,), full, dim = inner.values, inner.out.shape, e.params["dim"]
    y = x if x.ndim == len(full) else r.emit(reshape, x, shape=(1,) * (len(full) - x.ndim) + x.shape)
    equal = tuple(i for i in dim if y.shape[i] == 1 and full[i] != 1)
    if not equal or not math.prod(full):
        return None
    count = math.prod(full[i] for i in equal)
    target = tuple(1 if i in equal else n for i, n in enumerate(full))
    part = r.emit(sum_op, r.emit(expand, y, shape=target), dim=dim, keepdim=True)
    return r.emit(reshape, r.emit(mul, part, count * 1.0), shape=e.out.shape)


def of_sum(r: Rewriter, e: Equation) -> Value | None:
    """A sum of a sum whose dimensions were kept is one sum."""
    inner = r.maker(e.inputs[0], sum_op)
    if inner is None or not inner.params.get("keepdim", False) or not r.once(e.inputs[0]):
        return None
    dim = tuple(sorted({*inner.params["dim"], *e.params["dim"]}))
    total = r.emit(sum_op, inner.inputs[0], dim=dim, keepdim=True)
    if total.shape != kept(shape_of(e.inputs[0]), e.params["dim"]):
        return None
    return r.emit(reshape, total, shape=e.out.shape)


def of_permuted(r: Rewriter, e: Equation) -> Value | None:
    """A sum of what was permuted is the sum before, permuted."""
    inner = r.maker(e.inputs[0], permute)
    if inner is None:
        return None
    dims = inner.params["dims"]
    total = r.emit(sum_op, inner.inputs[0], dim=tuple(sorted(dims[i] for i in e.params["dim"])), keepdim=True)
    return r.emit(reshape, r.emit(permute, total, dims=dims), shape=e.out.shape)


def of_reshaped(r: Rewriter, e: Equation) -> Value | None:
    """A sum of what lost or won dimensions of size 1 is the sum before."""
    (x,), inner = e.values, r.maker(e.inputs[0], reshape)
    if inner is None:
        return None
    u = inner.values[0]
    before, after = ([d for d, n in enumerate(v.shape) if n != 1] for v in (u, x))
    if [u.shape[d] for d in before] != [x.shape[d] for d in after]:
        return None
    dim = tuple([b for b, a in zip(before, after, strict=True) if a in e.params["dim"]])
    if not dim:
        return None
    return r.emit(reshape, r.emit(sum_op, u, dim=dim, keepdim=True), shape=e.out.shape)


def of_factors(r: Rewriter, e: Equation) -> Value | None:
    """Factors that are the same along the dimensions of a sum go out of it, where at most two stay inside."""
    (x,), dim = e.values, e.params["dim"]
    if not r.once(x) or not e.out.dtype.startswith("float"):
        return None
    inside: list[Value] = []
    outside: list[Value] = []
    left = [x]
    while left and len(inside) < 3:
        v = left.pop()
        made = r.derived(v, mul) if v.shape == x.shape else None
        if made is not None and all(isinstance(y, Value) for y in made.inputs):
            left += made.values
        elif any(v.shape[d - x.ndim] != 1 for d in dim if d - x.ndim >= -v.ndim):
            inside.append(v)
        else:
            outside.append(v)
    if not outside or not 0 < len(inside) < 3:
        return None
    product = inside[0] if len(inside) == 1 else r.emit(mul, *inside)
    if product.ndim != x.ndim:
        return None
    total = r.emit(mul, r.emit(sum_op, product, dim=dim, keepdim=True), reduce(partial(r.emit, mul), outside))
    return r.emit(reshape, total, shape=e.out.shape) if size(total.shape) == size(e.out.shape) else None


def of_product(r: Rewriter, e: Equation) -> Value | None:
    """The sum over n of a[n, 1] b[n, k], or over k of a[1, k] b[n, k], is a matrix product: no product to keep."""
    product = r.maker(e.inputs[0], mul)
    if product is None or not r.once(e.inputs[0]) or product.out.ndim < 2:
        return None
    shape, dim = product.out.shape, e.params["dim"]
    for a, b in (product.inputs, product.inputs[::-1]):
        if not isinstance(a, Value) or not isinstance(b, Value) or b.shape != shape:
            continue
        if dim == tuple(range(len(shape) - 1)) and a.shape == (*shape[:-1], 1) and size(a.shape) > 1:
            return r.emit(reshape, r.emit(contract, a, b), shape=e.out.shape)
        if dim == (len(shape) - 1,) and a.shape[-1:] == shape[-1:] == (size(a.shape),) and size(a.shape) > 1:
            column = r.emit(permute, r.emit(reshape, a, shape=(1, *shape[-1:])), dims=(1, 0))
            return r.emit(reshape, r.emit(matmul, b, column), shape=e.out.shape)
    return None


def of_matmul(r: Rewriter, e: Equation) -> Value | None:
    """The sum of the rows of a b is the sum of the rows of a, times b; and so for columns."""
    product = r.derived(e.inputs[0], matmul)
    if product is None or not r.once(e.inputs[0]):
        return None
    (a, b), dim = product.values, e.params["dim"]
    if a.ndim < 2 or b.ndim != 2:
        return None
    if a.ndim - 1 not in dim:
        a = r.emit(sum_op, a, dim=dim, keepdim=True)
    elif dim == (a.ndim - 1,):
        b = r.emit(sum_op, b, dim=(1,), keepdim=True)
    else:
        return None
    return r.emit(reshape, r.emit(matmul, a, b), shape=e.out.shape)


RULES: dict[Op, tuple[Rule, ...]] = {
    sum_op: (
        of_one, of_no_terms, of_nothing, sign_outward, of_broadcast, of_sum, of_permuted, of_reshaped, of_factors,
        of_product, of_matmul,
    ),
    matmul: (of_no_terms,),
    contract: (of_no_terms,),
}  # fmt: skip
