"""Symmetric and Hermitian indefinite matrices as L D L^T, by the diagonal pivoting of Bunch and Kaufman (1977).

Factors and pivots lie as LAPACK's sytrf and hetrf leave them for the lower triangle: where a pivot p, from 1, is
positive, D has one element there, and rows and columns were exchanged with p; two alike that are negative stand for a
block of two by two, whose second row and column were exchanged with -p.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import backends
from leafgrad.ops.define import op
from leafgrad.ops.shifted import shifted

ALPHA = (1 + math.sqrt(17)) / 8  # for which the elements grow least


@op("nondifferentiable", "complex")
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


@op("nondifferentiable", "any_dtype", "complex")
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


ldl.shape(lambda x: [x.shape, x.like(x.shape[:-1], "int32"), x.like(x.shape[:-2], "int32")])
ldl.batched(shifted())
