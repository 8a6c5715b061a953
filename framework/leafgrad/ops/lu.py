"""Gaussian elimination: LU with exchanges of rows, and how far it goes without.

The gradient of a square matrix after Giles (2008); those of others follow from U2 = L^-1 P^T A2 and L2 = (P^T A)2 U^-1.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import backends
from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op
from leafgrad.ops.linalg import solve, span
from leafgrad.ops.matmul import matmul, swap
from leafgrad.ops.shape import cat, tril, triu
from leafgrad.ops.shifted import shifted


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
