"""Order: argsort and binary search. They give indices, which have no gradient; values are gathered by them."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.shape import reshape


@op("along", "nondifferentiable")
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


@searchsorted.batched
def _searchsorted_batched(call: Any) -> Any:
    """Row by row where each sample has edges of its own."""
    if call.ndim(0) > 1:
        return call.again(call.front(0), call.front(1))
    if not call.inside[0]:
        return call.again(call.args[0], call.front(1))
    found = call.again(call.front(0), call.rows(1))
    return reshape(found, shape=(call.size, *call.shape(1)))
