"""Order: argsort and binary search. They give indices, which have no gradient; values are gathered by them."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op


@op("nondifferentiable")
def argsort(xp: Any, x: Any, *, dim: int, descending: bool) -> Any:
    """Indices that sort x along ``dim``, equal elements in order; nan counts as the largest. int64"""
    if not descending:
        return xp.argsort(x, dim, "stable")
    return (x.shape[dim] - 1) - xp.flip(xp.argsort(xp.flip(x, dim), dim, "stable"), dim)


argsort.shape(lambda x: x.like(x.shape, "int64"))
argsort.chunk(lambda call: call.along())


@op("nondifferentiable", "promote")
def searchsorted(xp: Any, edges: Any, x: Any, *, right: bool) -> Any:
    """How many of the ascending ``edges`` are below x (with ``right``: not above x). (n,), (...) -> (...), int64

    Or row by row: (..., n), (..., m) -> (..., m).
    """
    if edges.ndim == 1:
        return xp.searchsorted(edges, x, "right" if right else "left")
    edges, x = edges[..., None, :], x[..., :, None]
    return (edges <= x if right else edges < x).sum(axis=-1)
