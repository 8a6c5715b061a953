"""Reductions over dimensions. ``dim`` is a tuple of non-negative dimensions, sorted; () reduces nothing."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.shape import expand, reshape

Dims = tuple[int, ...]


def kept(shape: Dims, dim: Dims) -> Dims:
    """``shape`` with the reduced dimensions kept at size 1."""
    return tuple(1 if i in dim else n for i, n in enumerate(shape))


def spread(g: Any, x_shape: Dims, dim: Dims) -> Any:
    """The gradient (or value) of a reduction, back in the shape of what was reduced."""
    return expand(reshape(g, shape=kept(x_shape, dim)), shape=x_shape)


@op("linear", "reduction")
def sum(xp: Any, x: Any, *, dim: Dims, keepdim: bool = False) -> Any:
    """Sum over ``dim``."""
    return x.sum(axis=dim, keepdims=keepdim)


sum.vjp(x=lambda g, x_shape, *, dim: spread(g, x_shape, dim))
