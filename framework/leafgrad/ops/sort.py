"""Order: argsort and binary search. They give indices, which have no gradient; values are gathered by them."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.shape import in_reverse, reshape


@op("along", "nondifferentiable")
def argsort(xp: Any, x: Any, *, dim: int, descending: bool) -> Any:
    """Indices that sort x along ``dim``, equal elements in order; nan counts as the largest. int64"""
    if not descending:
        return xp.argsort(x, dim, "stable")
    return (x.shape[dim] - 1) - in_reverse(xp.argsort(in_reverse(x, (dim,)), dim, "stable"), (dim,))


@argsort.kernel("numpy")
def _argsort(xp: Any, x: Any, *, dim: int, descending: bool) -> Any:
    """As above, without the several Python functions that NumPy's is."""
    if not descending:
        return x.argsort(dim, "stable")
    turned = (*(slice(None),) * dim, slice(None, None, -1))
    return (x.shape[dim] - 1) - x[turned].argsort(dim, "stable")[turned]


argsort.lower("cuda", lambda c, e: c.ranked("out(rank) = at;", e.params["dim"], e.params["descending"]))
argsort.shape(lambda x: x.like(x.shape, "int64"))
argsort.chunk(lambda call: call.along())


@op("nondifferentiable", "promote")
def searchsorted(xp: Any, edges: Any, x: Any, *, right: bool) -> Any:
    """How many of the ascending ``edges`` are below x (with ``right``: not above x). (n,), (...) -> (...), int64

    Or row by row: (..., n), (..., m) -> (..., m).
    """
    if edges.ndim == 1 and not bool((edges != edges).any()):
        return xp.searchsorted(edges, x, "right" if right else "left")
    n = edges.shape[-1]
    low, high = xp.zeros(x.shape, "int64"), xp.full(x.shape, n, "int64")
    for _ in range(n.bit_length()):  # bisection with PyTorch's comparisons, so that nan goes where it goes there
        middle = xp.minimum((low + high) >> 1, n - 1)
        edge = edges[middle] if edges.ndim == 1 else xp.take_along_axis(edges, middle, -1)
        above = edge > x if right else edge >= x
        go = low < high
        low, high = xp.where(go & ~above, middle + 1, low), xp.where(go & above, middle, high)
    return low


searchsorted.keeps_dtype = False  # it counts


@searchsorted.batched
def _searchsorted_batched(call: Any) -> Any:
    """Row by row where each sample has edges of its own."""
    if call.ndim(0) > 1:
        return call.again(call.front(0), call.front(1))
    if not call.inside[0]:
        return call.again(call.args[0], call.front(1))
    found = call.again(call.front(0), call.rows(1))
    return reshape(found, shape=(call.size, *call.shape(1)))
