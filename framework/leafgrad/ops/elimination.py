"""Factors by elimination: L U with exchanges of rows; L D L^T of symmetric and Hermitian indefinite matrices.

The gradient of the LU factors of a square matrix after Giles (2008); those of others follow from U2 = L^-1 P^T A2 and
L2 = (P^T A)2 U^-1.

LDL is by the diagonal pivoting of Bunch and Kaufman (1977). Factors and pivots lie as LAPACK's sytrf and hetrf leave
them for the lower triangle: where a pivot p, from 1, is positive, D has one element there, and rows and columns were
exchanged with p; two alike that are negative stand for a block of two by two, whose second row and column were
exchanged with -p.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import backends
from leafgrad.ops.conjugate import conjugated
from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op
from leafgrad.ops.diagonals import tril, triu
from leafgrad.ops.linalg import solve, span
from leafgrad.ops.matmul import matmul, swap
from leafgrad.ops.shape import cat, sum_to
from leafgrad.ops.shifted import shifted

ALPHA = (1 + math.sqrt(17)) / 8  # with which the elements of LDL grow least


# ---- LU -----------------------------------------------------------------------------------------------------------


@op("holomorphic")
def lu(xp: Any, x: Any) -> Any:
    """L below and U on and above the diagonal of one matrix, and with which row each row was exchanged, from 0.

    (..., m, n) -> (..., m, n), (..., min(m, n)) int64. L has ones on its diagonal, and P^T x = L U.
    Pivots of complex numbers are those with the largest sum of the magnitudes of both parts, as in LAPACK.
    """
    *batch, m, n = x.shape
    a = x.reshape(math.prod(batch), m, n).copy()
    each, k = xp.arange(len(a)), min(m, n)
    pivots = xp.zeros((len(a), k), dtype="int64")
    for i in range(k):
        below = a[:, i:, i]
        pivots[:, i] = p = xp.argmax(xp.abs(below.real) + xp.abs(below.imag), axis=1) + i
        upper, lower = a[:, i].copy(), a[each, p].copy()
        a[:, i], a[each, p] = lower, upper
        a[:, i] = lower  # where a row is exchanged with itself
        pivot = a[:, i, i]
        a[:, i + 1 :, i] /= xp.where(pivot == 0, 1, pivot)[:, None]
        a[:, i + 1 :, i + 1 :] -= a[:, i + 1 :, i, None] * a[:, i, None, i + 1 :]
    return a.reshape(x.shape), pivots.reshape(*batch, k)


@op("nondifferentiable", "any_dtype", "raises", "complex")
def exchanges(xp: Any, pivots: Any, x: Any) -> Any:
    """The permutation matrix P of rows that were exchanged one after the other, in the dtype of ``x``.

    (..., k), (..., m, n) -> (..., m, m)
    """
    m = x.shape[-2]
    if backends.backend_of(pivots).item(((pivots < 0) | (pivots >= m)).any()):
        raise ValueError(f"pivots: expected numbers from 1 to {m}, got others; pass what linalg.lu_factor returned")
    swaps = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = xp.broadcast_to(xp.arange(m), (len(swaps), m)).copy()
    each = xp.arange(len(swaps))
    for i in range(swaps.shape[1]):
        p = swaps[:, i]
        upper, lower = order[:, i].copy(), order[each, p].copy()
        order[each, p] = upper
        order[:, i] = lower
    out = xp.arange(m)[:, None] == order[:, None, :]
    return out.reshape(*pivots.shape[:-1], m, m).astype(x.dtype)


@op("nondifferentiable", "any_dtype", "complex")
def first_bad_minor(xp: Any, x: Any) -> Any:
    """The order of the first leading minor that is not positive, 0 if all are; of the lower triangle.

    (..., n, n) -> (...) int32
    """
    n = x.shape[-1]
    a = xp.tril(x).reshape(math.prod(x.shape[:-2]), n, n).copy()
    found = xp.zeros(len(a), dtype="int32")
    for i in range(n):
        pivot = a[:, i, i].real
        good = pivot > 0
        found = xp.where(good | (found > 0), found, i + 1)
        column = a[:, i + 1 :, i]
        a[:, i + 1 :, i + 1 :] -= column[:, :, None] * (xp.conj(column) / xp.where(good, pivot, 1)[:, None])[:, None, :]
    return found.reshape(x.shape[:-2]).astype("int32")


def _lu(g: Any, out: Any) -> Any:
    """See above; ``inner`` is the square part, ``rest`` what is right of it, or below."""
    g, (packed, pivots) = g[0], out
    m, n = packed.shape[-2:]
    k, last = min(m, n), len(packed.shape) - 1
    square, g_square = (span(span(a, last - 1, 0, k), last, 0, k) for a in (packed, g))
    lower_t = swap(_with_ones(tril(square, diagonal=-1)))
    upper_t = swap(triu(square, diagonal=0))
    g_lower, g_upper = tril(g_square, diagonal=-1), triu(g_square, diagonal=0)
    rest = None
    if n > k:
        right, g_right = (span(a, last, k, n) for a in (packed, g))
        rest = solve(lower_t, g_right)
        g_lower = g_lower - matmul(rest, swap(right))
    if m > k:
        below, g_below = (span(a, last - 1, k, m) for a in (packed, g))
        rest = swap(solve(swap(upper_t), swap(g_below)))
        g_upper = g_upper - matmul(swap(below), rest)
    inner = tril(matmul(lower_t, g_lower), diagonal=-1) + triu(matmul(g_upper, upper_t), diagonal=0)
    inner = solve(lower_t, swap(solve(swap(upper_t), swap(inner))))
    if rest is not None:
        inner = cat(inner, rest, dim=last if n > k else last - 1)
    return matmul(exchanges(pivots, packed), inner)


def _with_ones(x: Any) -> Any:
    """``x``, strictly triangular, with 1 on its diagonal."""
    ones = new_full(x, shape=tuple(x.shape), value=1)
    return x + tril(triu(ones, diagonal=0), diagonal=0)


lu.vjp(x=_lu)
lu.label = "LinalgLuFactorExBackward0"  # PyTorch's name
lu.shape(lambda x: [x.shape, x.like((*x.shape[:-2], min(x.shape[-2:])), "int64")])
exchanges.shape(lambda pivots, x: x.like((*pivots.shape[:-1], x.shape[-2], x.shape[-2])))
first_bad_minor.shape(lambda x: x.like(x.shape[:-2], "int32"))
for _op in (lu, first_bad_minor):  # leading dimensions are a batch
    _op.batched(shifted())
exchanges.batched(lambda call: exchanges(call.front(0), call.front(1)))


# ---- LDL ----------------------------------------------------------------------------------------------------------


@op("complex")
def ldl(xp: Any, x: Any, *, hermitian: bool) -> Any:
    """L and D, pivots, and the number of the first D that is 0. (..., n, n) -> the same, (..., n) and () int32

    Only the lower triangle of x is read.
    """
    batch, n = x.shape[:-2], x.shape[-1]
    a = xp.tril(x).reshape(math.prod(batch), n, n)
    pivots, info = xp.zeros((len(a), n), dtype="int32"), xp.zeros(len(a), dtype="int32")
    for each, (matrix, own) in enumerate(zip(a, pivots, strict=True)):
        info[each] = _factor(xp, matrix, own, hermitian)
    return a.reshape(x.shape), pivots.reshape(*batch, n), info.reshape(batch)


def _factor(xp: Any, a: Any, pivots: Any, hermitian: bool) -> int:
    """Factor one matrix, in its memory. Returns the number of the first D that is 0."""
    conj = xp.conj if hermitian else _same
    n, k, bad = len(a), 0, 0
    while k < n:
        if hermitian:
            xp.fill_diagonal(a, a.diagonal().real.copy())
        step, p = _pivot(xp, a, k)
        end = k + max(step, 1)
        if p != end - 1:
            _exchange(a, k, end - 1, p, conj)
        pivots[k:end] = p + 1 if step < 2 else -(p + 1)
        if not step:
            bad = bad or k + 1
        else:
            before = a[end:, k:end].copy()
            block = a[k:end, k:end].copy()
            block[0, -1] = block[0, -1] if step == 1 else conj(block[1, 0])
            a[end:, k:end] = before / block if step == 1 else before @ xp.linalg.inv(block)
            a[end:, end:] -= xp.tril(a[end:, k:end] @ conj(before).T)
        k = end
    return bad


def _pivot(xp: Any, a: Any, k: int) -> tuple[int, int]:
    """How large the next block of D is, 0 where all is zero, and with which row its last is exchanged."""

    def item(x: Any) -> Any:
        return backends.backend_of(a).item(x)

    size = xp.abs(a.real) + xp.abs(a.imag)
    own, below = item(size[k, k]), size[k + 1 :, k]
    if not len(below) or item(below.max()) == 0:
        return int(own > 0), k
    p = k + 1 + item(xp.argmax(below))
    column = item(size[p, k])
    if own >= ALPHA * column:
        return 1, k
    row = max(item(size[p, k:p].max()), item(size[p + 1 :, p].max()) if p + 1 < len(a) else 0)
    if own * row >= ALPHA * column * column:
        return 1, k
    return (1 if item(size[p, p]) >= ALPHA * row else 2), p


def _exchange(a: Any, k: int, i: int, p: int, conj: Any) -> None:
    """Rows and columns i and p, i < p, of what is left of a matrix from k on, of which there is the lower triangle."""
    _swap(a[p + 1 :, i], a[p + 1 :, p])
    _swap(a[i + 1 : p, i], a[p, i + 1 : p])
    a[i + 1 : p, i] = conj(a[i + 1 : p, i])
    a[p, i + 1 : p] = conj(a[p, i + 1 : p])
    a[p, i] = conj(a[p, i])
    _swap(a[i : i + 1, i], a[p : p + 1, p])
    _swap(a[i, k:i], a[p, k:i])


def _swap(x: Any, y: Any) -> None:
    x[...], y[...] = y.copy(), x.copy()


def _same(x: Any) -> Any:
    return x


@op("any_dtype", "complex")
def ldl_solve(xp: Any, x: Any, pivots: Any, b: Any, *, hermitian: bool) -> Any:
    """The solution of A y = b from what ``ldl`` made of A. (..., n, n), (..., n), (..., n, k) -> (..., n, k)"""
    batch, (n, columns) = xp.broadcast_shapes(x.shape[:-2], b.shape[:-2]), b.shape[-2:]
    count = math.prod(batch)
    a = xp.broadcast_to(x, (*batch, n, n)).reshape(count, n, n)
    rows = xp.broadcast_to(pivots, (*batch, n)).reshape(count, n)
    out = xp.broadcast_to(b, (*batch, n, columns)).reshape(count, n, columns).copy()
    for factors, own, y in zip(a, rows, out, strict=True):
        _solve(xp, factors, own.tolist(), y, xp.conj if hermitian else _same)
    return out.reshape(*batch, n, columns)


def _solve(xp: Any, a: Any, pivots: list[int], y: Any, conj: Any) -> None:
    """Solve for one matrix, in the memory of ``y``."""
    starts, k = [], 0
    while k < len(a):
        end = k + (1 if pivots[k] > 0 else 2)
        starts.append((k, end))
        _swap(y[end - 1], y[abs(pivots[k]) - 1])
        y[end:] -= a[end:, k:end] @ y[k:end]
        block = a[k:end, k:end].copy()
        block[0, -1] = block[0, -1] if end == k + 1 else conj(block[1, 0])
        y[k:end] = y[k:end] / block if end == k + 1 else xp.linalg.solve(block, y[k:end])
        k = end
    for k, end in reversed(starts):
        y[k:end] -= conj(a[end:, k:end]).T @ y[end:]
        _swap(y[end - 1], y[abs(pivots[k]) - 1])


def _ldl_solve_b(g: Any, x: Any, pivots: Any, b_shape: tuple[int, ...], *, hermitian: bool) -> Any:
    """A is its own transpose, conjugated if it is Hermitian."""
    solved = ldl_solve(x, pivots, g if hermitian else conjugated(g), hermitian=hermitian)
    return sum_to(solved if hermitian else conjugated(solved), shape=b_shape)


ldl_solve.vjp(b=_ldl_solve_b)
ldl.shape(lambda x: [x.shape, x.like(x.shape[:-1], "int32"), x.like(x.shape[:-2], "int32")])
ldl.batched(shifted())
