"""Order: argsort and binary search. They give indices, which have no gradient; values are gathered by them."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.shape import in_reverse, part, reshape
from leafgrad.ops.shifted import behind, shifted
from leafgrad.ops.small import SMALL


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


@op("nondifferentiable")
def argtop(xp: Any, x: Any, *, dim: int, count: int, descending: bool) -> Any:
    """The first ``count`` indices of ``argsort``. int64"""
    return argsort.forward(xp, x, dim=dim, descending=descending)[_ends(dim, 0, count)]


@argtop.kernel("numpy")
def _argtop(xp: Any, x: Any, *, dim: int, count: int, descending: bool) -> Any:
    """As above; few of many are parted from the others first, unless others equal the last of them."""
    n = x.shape[dim]
    if x.size > SMALL and 0 < count <= n // 4:
        ends = _ends(dim, n - count, n) if descending else _ends(dim, 0, count)
        found = xp.sort(x.argpartition(n - count if descending else count - 1, dim)[ends], dim)
        best = xp.take_along_axis(x, found, dim)
        among = x >= best.min(dim, keepdims=True) if descending else x <= best.max(dim, keepdims=True)
        if (xp.count_nonzero(among, dim) == count).all():  # with nan it is not
            return xp.take_along_axis(found, _argsort(xp, best, dim=dim, descending=descending), dim)
    return _argsort(xp, x, dim=dim, descending=descending)[_ends(dim, 0, count)]


def _ends(dim: int, start: int, stop: int) -> tuple[slice, ...]:
    return (*(slice(None),) * dim, slice(start, stop))


argsort.keeps_dtype = argtop.keeps_dtype = False  # they give indices
argtop.shape(lambda x, *, dim, count: x.like((*x.shape[:dim], count, *x.shape[dim + 1 :]), "int64"))
argtop.batched(shifted(dim=behind))


@argtop.rewrite
def _in_two_steps(graph: Any, equation: Any) -> Any:
    params, (x,) = equation.params, equation.values
    order = graph.emit(argsort, x, dim=params["dim"], descending=params["descending"])
    whole = [(0, n, 1) for n in x.shape[: params["dim"]]]
    return graph.emit(part, order, at=(*whole, (0, params["count"], 1)))


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
