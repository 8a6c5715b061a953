"""Ops on diagonals and triangles of matrices."""

from __future__ import annotations

import functools
from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.shifted import behind, shifted
from leafgrad.ops.small import SMALL


def _diagonal(xp: Any, x: Any, offset: int, dims: tuple[int, int]) -> Any:
    """A diagonal of x, writable, as its last dimension. (einsum gives views, NumPy's diagonal read-only ones.)"""
    rest = [d for d in range(x.ndim) if d not in dims]
    x = x.transpose((*rest, *dims))
    x = x[..., max(-offset, 0) :, max(offset, 0) :]
    n = min(x.shape[-2:])
    return xp.einsum("...ii->...i", x[..., :n, :n])


@op("linear", "view", "complex")
def diagonal(xp: Any, x: Any, *, offset: int, dims: tuple[int, int]) -> Any:
    """The elements x[i, i + offset] of the dimensions ``dims``, as the last dimension."""
    return _diagonal(xp, x, offset, dims)


diagonal.never_copies = True
diagonal.batched(shifted(dims=behind))


@diagonal.kernel("numpy")
def _own_diagonal(xp: Any, x: Any, *, offset: int, dims: tuple[int, int]) -> Any:
    """As above, by the method of arrays, in which NumPy lets nobody write."""
    out = x.diagonal(offset, *dims)
    out.flags.writeable = x.flags.writeable
    return out


@op("linear", "complex", transpose_of=diagonal)
def undiagonal(xp: Any, x: Any, *, shape: tuple[int, ...], offset: int, dims: tuple[int, int]) -> Any:
    """Zeros of ``shape`` with x on a diagonal; the transpose of diagonal."""
    out = xp.zeros(shape, dtype=x.dtype)
    _diagonal(xp, out, offset, dims)[...] = x
    return out


@diagonal.shape
def _diagonal_shape(x: Any, *, offset: int, dims: tuple[int, int]) -> Any:
    rows, columns = (x.shape[d] for d in dims)
    n = min(rows - max(-offset, 0), columns - max(offset, 0))
    return (*[size for d, size in enumerate(x.shape) if d not in dims], max(n, 0))


@diagonal.chunk
def _diagonal_rows(call: Any) -> Any:
    rest = [d for d in range(call.inputs[0].ndim) if d not in call.params["dims"]]
    return call.on(rest.index(call.axes[0]), call.axes[0]) if call.axes[0] in rest else None


@undiagonal.chunk
def _undiagonal_rows(call: Any) -> Any:
    rest = [d for d in range(call.out.ndim) if d not in call.params["dims"]]
    return call.on(rest[call.axes[0]], call.axes[0], resized=True) if call.axes[0] < len(rest) else None


undiagonal.shape(lambda x, *, shape: shape)


@op("linear", "complex")
def tril(xp: Any, x: Any, *, diagonal: int) -> Any:
    """x with zeros above a diagonal of its last two dimensions. (..., m, n) -> (..., m, n)"""
    return xp.tril(x, diagonal)


@op("linear", "complex")
def triu(xp: Any, x: Any, *, diagonal: int) -> Any:
    """x with zeros below a diagonal of its last two dimensions. (..., m, n) -> (..., m, n)"""
    return xp.triu(x, diagonal)


@functools.lru_cache(maxsize=128)
def _below(xp: Any, shape: tuple[int, int], diagonal: int) -> Any:
    """Where a matrix lies on or below a diagonal."""
    return xp.tri(*shape, diagonal, bool)


@tril.kernel("numpy")
def _tril(xp: Any, x: Any, *, diagonal: int) -> Any:
    """As above; small ones by a mask that is kept."""
    small = 0 < x.size <= SMALL and x.dtype.kind != "b"
    return xp.where(_below(xp, x.shape[-2:], diagonal), x, 0) if small else tril.forward(xp, x, diagonal=diagonal)


@triu.kernel("numpy")
def _triu(xp: Any, x: Any, *, diagonal: int) -> Any:
    """As above; small ones by a mask that is kept."""
    small = 0 < x.size <= SMALL and x.dtype.kind != "b"
    return xp.where(_below(xp, x.shape[-2:], diagonal - 1), 0, x) if small else triu.forward(xp, x, diagonal=diagonal)


def _triangle(c: Any, e: Any, side: str) -> Any:
    code = f"for (long i = 0; i < n; i++) out(i) = i - row {side} {e.params['diagonal']} ? x(i) : 0;"
    return c.along(code, -1, mixed=True)


tril.vjp(x=lambda g, *, diagonal: tril(g, diagonal=diagonal))
triu.vjp(x=lambda g, *, diagonal: triu(g, diagonal=diagonal))
for _op, _side in ((tril, "<="), (triu, ">=")):
    _op.lower("cuda", lambda c, e, side=_side: _triangle(c, e, side))
    _op.shape(lambda x: x.shape)
    _op.chunk(lambda call: call.aligned(whole=(-2, -1)))
tril.batched(shifted())
triu.batched(shifted())
