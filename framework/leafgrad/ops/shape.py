"""Ops that rearrange: reshape, permute, expand and its transpose sum_to."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op


@op("linear", "view")
def reshape(xp: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    """The elements of x, in order, in another shape. (...) -> shape"""
    return x.reshape(shape)


reshape.vjp(x=lambda g, x_shape: reshape(g, shape=x_shape))


@op("linear", "view")
def permute(xp: Any, x: Any, *, dims: tuple[int, ...]) -> Any:
    """x with its dimensions in the order ``dims`` (non-negative, each once)."""
    return x.transpose(dims)


permute.vjp(x=lambda g, *, dims: permute(g, dims=tuple(sorted(range(len(dims)), key=dims.__getitem__))))


@op("linear", "view")
def expand(xp: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    """x broadcast to ``shape``. The engine sums the gradient back."""
    return xp.broadcast_to(x, shape)


expand.vjp(x=lambda g: g)


@op("linear")
def sum_to(xp: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    """x summed over the dimensions in which it was broadcast from ``shape``; the transpose of expand."""
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1)
    return x.sum(axis=axes).reshape(shape)


sum_to.vjp(x=lambda g, x_shape: expand(g, shape=x_shape))
