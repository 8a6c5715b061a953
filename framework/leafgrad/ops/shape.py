"""Ops that rearrange: reshape, permute, expand and its transpose sum_to, diagonals, joining, flipping.

What is not a view is a copy: only ops with the trait "view" return memory of their argument.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from leafgrad.ops.abstract import reduced
from leafgrad.ops.define import op
from leafgrad.ops.geometry import inverse
from leafgrad.ops.shifted import all_samples, behind, in_front, kept_first, shifted

Shape = tuple[int, ...]

# ---- views --------------------------------------------------------------------------------------------------------


@op("linear", "view")
def reshape(xp: Any, x: Any, *, shape: Shape) -> Any:
    """The elements of x, in order, in another shape. (...) -> shape"""
    return x.reshape(shape)


reshape.vjp(x=lambda g, x_shape: reshape(g, shape=x_shape))
reshape.batched(shifted(shape=in_front))


@op("linear", "view")
def permute(xp: Any, x: Any, *, dims: tuple[int, ...]) -> Any:
    """x with its dimensions in the order ``dims`` (non-negative, each once)."""
    return x.transpose(dims)


permute.vjp(x=lambda g, *, dims: permute(g, dims=inverse(dims)))
permute.batched(shifted(dims=kept_first))


@op("linear", "view")
def expand(xp: Any, x: Any, *, shape: Shape) -> Any:
    """x broadcast to ``shape``. (...) -> shape"""
    padded = (1,) * (len(shape) - x.ndim) + x.shape
    return x.reshape(shape) if padded == shape else xp.broadcast_to(x, shape)  # NumPy's broadcasts are read-only


@expand.batched
def _expand_batched(call: Any) -> Any:
    target = call.params["shape"]
    return expand(call.front(0, len(target)), shape=(call.size, *target))


@op("linear", transpose_of=expand)
def sum_to(xp: Any, x: Any, *, shape: Shape) -> Any:
    """x summed over the dimensions in which it was broadcast from ``shape``; the transpose of expand."""
    return x.sum(axis=reduced(x.shape, shape)).reshape(shape)


@sum_to.batched
def _sum_to_batched(call: Any) -> Any:
    target = call.params["shape"]
    ones = (1,) * (call.ndim(0) - len(target))
    summed = sum_to(call.args[0], shape=(call.size, *ones, *target))
    return reshape(summed, shape=(call.size, *target)) if ones else summed


# ---- diagonals and triangles --------------------------------------------------------------------------------------


def _diagonal(xp: Any, x: Any, offset: int, dims: tuple[int, int]) -> Any:
    """A diagonal of x, writable, as its last dimension. (einsum gives views, NumPy's diagonal read-only ones.)"""
    rest = [d for d in range(x.ndim) if d not in dims]
    x = x.transpose((*rest, *dims))
    x = x[..., max(-offset, 0) :, max(offset, 0) :]
    n = min(x.shape[-2:])
    return xp.einsum("...ii->...i", x[..., :n, :n])


@op("linear", "view")
def diagonal(xp: Any, x: Any, *, offset: int, dims: tuple[int, int]) -> Any:
    """The elements x[i, i + offset] of the dimensions ``dims``, as the last dimension."""
    return _diagonal(xp, x, offset, dims)


diagonal.batched(shifted(dims=behind))


@op("linear", transpose_of=diagonal)
def undiagonal(xp: Any, x: Any, *, shape: Shape, offset: int, dims: tuple[int, int]) -> Any:
    """Zeros of ``shape`` with x on a diagonal; the transpose of diagonal."""
    out = xp.zeros(shape, dtype=x.dtype)
    _diagonal(xp, out, offset, dims)[...] = x
    return out


@op("linear")
def tril(xp: Any, x: Any, *, diagonal: int) -> Any:
    """x with zeros above a diagonal of its last two dimensions. (..., m, n) -> (..., m, n)"""
    return xp.tril(x, diagonal)


@op("linear")
def triu(xp: Any, x: Any, *, diagonal: int) -> Any:
    """x with zeros below a diagonal of its last two dimensions. (..., m, n) -> (..., m, n)"""
    return xp.triu(x, diagonal)


tril.vjp(x=lambda g, *, diagonal: tril(g, diagonal=diagonal))
triu.vjp(x=lambda g, *, diagonal: triu(g, diagonal=diagonal))
tril.batched(shifted())
triu.batched(shifted())


# ---- moving elements ----------------------------------------------------------------------------------------------


@op("linear")
def flip(xp: Any, x: Any, *, dims: tuple[int, ...]) -> Any:
    """x with the order of its elements along ``dims`` reversed."""
    return xp.flip(x, dims).copy()


@op("linear")
def roll(xp: Any, x: Any, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """x shifted along each of ``dims``; what leaves at one end comes in at the other."""
    return xp.roll(x, shifts, dims)


flip.vjp(x=lambda g, *, dims: flip(g, dims=dims))
roll.vjp(x=lambda g, *, shifts, dims: roll(g, shifts=tuple(-s for s in shifts), dims=dims))
flip.batched(shifted(dims=behind))
roll.batched(shifted(dims=behind))


# ---- joining and parts --------------------------------------------------------------------------------------------

# A basic index as a hashable parameter: one entry per dimension, an int or (start, stop, step), None inserts one.
Range = tuple[int, int, int]
Index = tuple[int | Range | None, ...]


def key(at: Index) -> tuple[Any, ...]:
    """``at`` as arrays take it. The ellipsis makes NumPy give views where it would give scalars."""
    return (*[slice(*part) if type(part) is tuple else part for part in at], ...)


@op("linear", "view", name="slice")
def part(xp: Any, x: Any, *, at: Index) -> Any:
    """The part of x that a basic index chooses: ints, ranges with positive steps, None."""
    return x[key(at)]


part.batched(shifted(at=all_samples))


@op("linear", name="unslice", transpose_of=part)
def unpart(xp: Any, x: Any, *, at: Index, shape: Shape) -> Any:
    """Zeros of ``shape`` with x in the part that ``at`` chooses; the transpose of slice."""
    out = xp.zeros(shape, dtype=x.dtype)
    out[key(at)] = x
    return out


@op
def pad(xp: Any, x: Any, *, at: Index, shape: Shape, value: float) -> Any:
    """``value`` in an array of ``shape``, with x in the part that ``at`` chooses."""
    out = xp.full(shape, value, dtype=x.dtype)
    out[key(at)] = x
    return out


pad.vjp(x=lambda g, *, at: part(g, at=at))
pad.batched(shifted(at=all_samples, shape=in_front))


@op("linear", "promote")
def cat(xp: Any, *xs: Any, dim: int) -> Any:
    """Arrays of equal shapes, but for ``dim``, one after the other along it."""
    return xp.concatenate(xs, axis=dim)


_joined: tuple[tuple[Shape, ...], int, list[int]] = ((), 0, [0])  # shapes, dim, and where each part starts


def _starts(shapes: tuple[Shape, ...], dim: int) -> list[int]:
    """Where the parts start. Rules ask for it once for each part in turn: it is counted once for all of them."""
    global _joined
    last = _joined
    if last[0] is not shapes or last[1] != dim:
        _joined = last = shapes, dim, [0, *accumulate([shape[dim] for shape in shapes])]
    return last[2]


def _cat_rule(g: Any, xs_shape: tuple[Shape, ...], index: int, *, dim: int) -> Any:
    start = _starts(xs_shape, dim)[index]
    lead = tuple((0, n, 1) for n in xs_shape[index][:dim])
    return part(g, at=(*lead, (start, start + xs_shape[index][dim], 1)))


cat.vjp(xs=_cat_rule)
cat.batched(shifted(dim=behind))
