"""Matrix products: constant rows, single columns and signs need none; a factor moves to the smaller side."""

from __future__ import annotations

from collections.abc import Iterator

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.compile.passes.rewrite import Rewriter, Rule, size
from leafgrad.compile.passes.rules.arithmetic import negated, scaled
from leafgrad.ops.create import full
from leafgrad.ops.elementwise import mul, neg
from leafgrad.ops.matmul import contract, matmul
from leafgrad.ops.op import Op
from leafgrad.ops.reduce import sum as sum_op
from leafgrad.ops.shape import expand, permute, reshape


def matrices(e: Equation) -> tuple[Value, Value] | None:
    """The arguments, if the right one is a matrix that all rows of the left one share."""
    a, b = e.values
    return (a, b) if a.ndim >= 2 and b.ndim == 2 else None


def signs_outward(r: Rewriter, e: Equation) -> Value | None:
    a, b = e.values
    if (u := negated(r, a)) is not None:
        return r.emit(neg, r.emit(e.op, u, b))
    if (u := negated(r, b)) is not None:
        return r.emit(neg, r.emit(e.op, a, u))
    return None


def scale_to_smallest(r: Rewriter, e: Equation) -> Value | None:
    """A scalar factor goes to the smallest of the two matrices and their product."""
    a, b = e.values
    for x, y, other in ((a, b, "right"), (b, a, "left")):
        found = scaled(r, x)
        if found is None or found[0].shape != x.shape or not r.once(x):
            continue
        u, c = found
        if size(e.out.shape) <= size(y.shape) and size(e.out.shape) < size(x.shape):
            return r.emit(mul, r.emit(e.op, u, y) if other == "right" else r.emit(e.op, y, u), c)
        if size(y.shape) < size(x.shape):
            small = r.emit(mul, y, c)
            return r.emit(e.op, u, small) if other == "right" else r.emit(e.op, small, u)
    return None


def scale_before(r: Rewriter, e: Equation) -> Value | None:
    """A number times a product of matrices goes to the smaller matrix, if that is smaller than the product."""
    found = scaled(r, e)
    inner = None if found is None else r.derived(found[0], matmul)
    if found is None or inner is None or not r.once(found[0]):
        return None
    a, b = inner.values
    if min(size(a.shape), size(b.shape)) >= size(e.out.shape):
        return None
    if size(a.shape) < size(b.shape):
        return r.emit(matmul, r.emit(mul, a, found[1]), b)
    return r.emit(matmul, a, r.emit(mul, b, found[1]))


def single_column(r: Rewriter, e: Equation) -> Value | None:
    """The product of a column and a row is elementwise."""
    pair = matrices(e)
    if pair is None or pair[0].shape[-1] != 1 or not e.out.dtype.startswith("float"):
        return None
    return r.emit(mul, *pair)


def unspread(r: Rewriter, x: Value) -> Value | None:
    """A matrix of equal rows or columns before it was spread, e.g. (1, m), (n, 1) or (1, 1)."""
    e = r.maker(x, expand)
    if e is not None:
        (y,) = e.values
        return y if y.ndim == x.ndim else None
    e = r.maker(x, full)
    return None if e is None or size(x.shape) == 1 else r.full((1,) * x.ndim, e.params["value"], x)


def of_equal_rows(r: Rewriter, e: Equation) -> Value | None:
    """Where a has equal rows or columns, a b is the product of one row and b, or of a column and the sum of b."""
    pair = matrices(e)
    if pair is None or not e.out.dtype.startswith("float"):
        return None
    a, b = pair
    if (u := unspread(r, a)) is not None:
        if u.shape[-1] != a.shape[-1] and not r.line.derived:
            return None
        if u.shape[-1] != a.shape[-1]:
            product = r.emit(mul, u, r.emit(sum_op, b, dim=(0,), keepdim=True))
        else:
            product = r.emit(matmul, u, b)
        return r.emit(expand, product, shape=e.out.shape)
    if (v := unspread(r, b)) is not None:
        if v.shape[0] != b.shape[0] and not r.line.derived:
            return None
        if v.shape[0] != b.shape[0]:
            product = r.emit(mul, r.emit(sum_op, a, dim=(a.ndim - 1,), keepdim=True), v)
        else:
            product = r.emit(matmul, a, v)
        return r.emit(expand, product, shape=e.out.shape)
    return None


def scales(r: Rewriter, x: Value) -> Iterator[tuple[Value, Value, bool]]:
    """(u, s, whether s is a row s[1, k]) if ``x`` is u[..., k] * s, read by products alone that will take s over.

    What is no row scales all of u[..., :] alike.
    """
    product = r.derived(x, mul)
    if product is None or not (r.once(x) or feeds_products(r, x)):
        return
    for u, s in (product.inputs, product.inputs[::-1]):
        if not isinstance(u, Value) or not isinstance(s, Value) or u.shape != x.shape or not s.ndim:
            continue
        if s.shape[-1] == x.shape[-1] == size(s.shape):
            yield u, r.emit(reshape, s, shape=(1, *s.shape[-1:])), True
        elif s.shape[-1] == 1 and r.once(x):
            yield u, s, False


def scaled_rows(r: Rewriter, e: Equation) -> Value | None:
    """In (a * s) b a row s[1, k] scales the rows of b instead, where b is the smaller; and so in b (a * s)."""
    pair = matrices(e)
    if pair is None:
        return None
    a, b = pair
    for x, other, left in ((a, b, True), (b, a, False)):
        for u, s, row in scales(r, x):
            if row == left and size(other.shape) < size(x.shape) and s.ndim == 2:
                small = r.emit(mul, other, r.emit(permute, s, dims=(1, 0)))
                return r.emit(matmul, u, small) if left else r.emit(matmul, small, u)
            if row != left and size(e.out.shape) < size(x.shape):
                product = r.emit(matmul, u, other) if left else r.emit(matmul, other, u)
                return r.emit(mul, product, s)
    return None


def scaled_sides(r: Rewriter, e: Equation) -> Value | None:
    """Rows by which the arguments of a contraction are scaled scale the smaller result instead."""
    x, y = e.values
    for u, s, row in scales(r, x):
        if row and size(e.out.shape) < size(x.shape):
            return r.emit(mul, r.emit(contract, u, y), r.emit(permute, s, dims=(1, 0)))
    for u, s, row in scales(r, y):
        if row and size(e.out.shape) < size(y.shape):
            return r.emit(mul, r.emit(contract, x, u), s)
    return None


def of_spread(r: Rewriter, e: Equation) -> Value | None:
    """Where one argument of a contraction is the same along some dimensions, the other is summed over them before."""
    for i, x in enumerate(e.values if r.line.derived else ()):
        if (u := unspread(r, x)) is not None:
            pair = [*e.values]
            equal = tuple([d for d in range(x.ndim - 1) if u.shape[d] != x.shape[d]])
            pair[i], pair[1 - i] = u, r.emit(sum_op, pair[1 - i], dim=equal, keepdim=True)
            return r.emit(expand, r.emit(contract, *pair), shape=e.out.shape)
    return None


def of_product(r: Rewriter, e: Equation) -> Value | None:
    """(a b) c is a (b c) where that takes fewer multiplications; and the other way round."""
    pair = matrices(e)
    if pair is None:
        return None
    x, y = pair
    if (inner := r.derived(x, matmul)) is not None and r.once(x) and matrices(inner):
        a, b = inner.values
        if flops(b, y) + size(a.shape) * y.shape[1] < flops(a, b) + flops(x, y):
            return r.emit(matmul, a, r.emit(matmul, b, y))
    if (inner := r.derived(y, matmul)) is not None and r.once(y) and matrices(inner):
        a, b = inner.values
        if flops(x, a) + size(x.shape[:-1]) * size(b.shape) < flops(a, b) + flops(x, y):
            return r.emit(matmul, r.emit(matmul, x, a), b)
    return None


def flops(a: Value, b: Value) -> int:
    """Multiplications in the product of two matrices."""
    return size(a.shape) * b.shape[1]


def feeds_products(r: Rewriter, x: Value) -> bool:
    """Whether x[n, k], transposed or not, is read only by matrix products that can take over a row scale s[1, k]."""
    if x in r.graph.kept or x not in r.readers:
        return False
    for reader in r.readers[x]:
        transposed = reader.op is permute
        if transposed and reader.out in r.graph.kept:
            return False
        y = reader.out if transposed else x
        for e in r.readers.get(y, ()) if transposed else (reader,):
            if not (e.op is contract or (e.op is matmul and matrices(e))) or e.inputs[0] is e.inputs[1]:
                return False
            a, b = e.values
            summed = e.op is matmul and (y is a) != transposed  # s runs along the dimension that the product sums over
            small = (b if y is a else a) if summed else e.out
            if size(small.shape) >= size(x.shape):
                return False
    return True


def permuted_rows(r: Rewriter, e: Equation) -> Value | None:
    """The transpose of x * s, where all products that read either will take over the row s."""
    (x,) = e.values
    product = r.derived(x, mul)
    if product is None or e.params["dims"] != (1, 0) or r.once(x) or not feeds_products(r, x):
        return None
    for u, s in (product.inputs, product.inputs[::-1]):
        if isinstance(u, Value) and isinstance(s, Value) and u.shape == x.shape and s.shape == (1, x.shape[1]):
            return r.emit(mul, r.emit(permute, u, dims=(1, 0)), r.emit(permute, s, dims=(1, 0)))
    return None


def permuted(r: Rewriter, e: Equation) -> Value | None:
    """A product transposed is the product of the transposed matrices, in the other order."""
    product = r.maker(e.inputs[0], matmul)
    if product is None or e.params["dims"] != (1, 0) or not r.once(e.inputs[0]):
        return None
    pair = matrices(product)
    if pair is None:
        return None
    a, b = (r.emit(permute, m, dims=(1, 0)) for m in pair)
    return r.emit(matmul, b, a)


RULES: dict[Op, tuple[Rule, ...]] = {
    matmul: (signs_outward, of_product, of_equal_rows, single_column, scale_to_smallest, scaled_rows),
    contract: (signs_outward, of_spread, scale_to_smallest, scaled_sides),
    mul: (scale_before,),
    permute: (permuted, permuted_rows),
}
