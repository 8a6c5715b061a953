"""Values that go to one place by an index array, combined: the largest, the smallest, their product.

Sums of them are the transposes of reading, in ``index.py``.
"""

from __future__ import annotations

from typing import Any

from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op
from leafgrad.ops.half import accumulator
from leafgrad.ops.index import along, along_batched, bounds, by_rows, flat_index, gather, gather_sum
from leafgrad.ops.select import where


def _last_of_runs(xp: Any, target: Any) -> Any:
    """Of indices in order, whether each is the last of those that equal it. (n,) -> (n,)"""
    last = xp.ones(len(target), "bool")
    last[:-1] = target[1:] != target[:-1]
    return last


@op("any_dtype", "raises")
def scatter_best(xp: Any, x: Any, at: Any, v: Any, *, dim: int, largest: bool) -> Any:
    """The largest (smallest) of x and all of v that goes to the same index; equal ones share the gradient.

    At nan that is nan.
    """
    out = x.copy()
    with bounds():
        (xp.maximum if largest else xp.minimum).at(out, along(xp, x.shape, at, dim), v)
    return out


@scatter_best.kernel("cupy")
def _scatter_best(xp: Any, x: Any, at: Any, v: Any, *, dim: int, largest: bool) -> Any:
    """As above, by sorting: CuPy's maximum.at rounds float64 to float32, and leaves nan out."""
    with bounds():
        flat = xp.broadcast_to(flat_index(xp, x.shape, along(xp, x.shape, at, dim)), v.shape).reshape(-1)
    values = v.reshape(-1)
    ranks = values if largest else -values if v.dtype.kind == "f" else ~values  # nan comes last either way
    order = xp.argsort(ranks, kind="stable")
    order = order[xp.argsort(flat[order], kind="stable")]
    target = flat[order]
    last = _last_of_runs(xp, target)
    out = x.copy()
    to, best = target[last], values[order][last]
    out.reshape(-1)[to] = (xp.maximum if largest else xp.minimum)(x.reshape(-1)[to], best)
    return out


def _share(g: Any, out: Any, x: Any, at: Any, v: Any, dim: int) -> Any:
    """The gradient divided by how many of x and v are equal to the result; infinite where that is nan."""
    hits = _ones_where(g, v == gather(out, at, dim=dim, inside=True))
    return g / (_ones_where(g, x == out) + gather_sum(hits, at, shape=tuple(out.shape), dim=dim, inside=True))


def _ones_where(g: Any, condition: Any) -> Any:
    return where(condition, new_full(g, shape=(), value=1), 0)


scatter_best.vjp(
    x=lambda g, out, x, at, v, *, dim: _ones_where(g, x == out) * _share(g, out, x, at, v, dim),
    v=lambda g, out, x, at, v, *, dim: (
        _ones_where(g, v == gather(out, at, dim=dim, inside=True))
        * gather(_share(g, out, x, at, v, dim), at, dim=dim, inside=True)
    ),
)
scatter_best.shape(lambda x, at, v: x.shape)
scatter_best.chunk(by_rows)


@scatter_best.lower("native")
def _extreme(c: Any, e: Any) -> Any:
    return c.lookup("max" if e.params["largest"] else "min", (e.params["dim"],), at=1, along=True)


@op("any_dtype", "raises", "holomorphic")
def scatter_product(xp: Any, x: Any, at: Any, v: Any, *, dim: int) -> Any:
    """x times the product of all of v that goes to the same index.

    Sorted by index, neighbours are multiplied in log2(n) sweeps; CUDA has no atomic product.
    """
    with bounds():
        flat = xp.broadcast_to(flat_index(xp, x.shape, along(xp, x.shape, at, dim)), v.shape).reshape(-1)
    order = xp.argsort(flat, kind="stable")
    target, run, reach = flat[order], v.reshape(-1)[order].astype(accumulator(v.dtype), copy=False), 1
    while reach < len(target):
        same = target[reach:] == target[:-reach]
        run[reach:] *= xp.where(same, run[:-reach], 1)
        reach *= 2
    last = _last_of_runs(xp, target)
    factors = xp.ones(x.size + 1, dtype=run.dtype)  # with one for what is not the last of its run
    factors[xp.where(last, target, x.size)] = run
    return (x * factors[:-1].reshape(x.shape)).astype(x.dtype, copy=False)


def _others(g: Any, x: Any, product: Any, zeros: Any) -> Any:
    """g times the product of all that goes to an index but x, given that of all but the ``zeros`` many zeros."""
    alone = where((zeros == 1) & (x == 0), product, 0)
    return g * where(zeros == 0, product / where(x == 0, 1, x), alone)


def _without_zeros(x: Any, at: Any, v: Any, dim: int) -> tuple[Any, Any]:
    """The product of what is not zero at each index, and how many zeros there are."""
    one = new_full(x, shape=(), value=1)
    product = scatter_product(where(x == 0, 1, x), at, where(v == 0, 1, v), dim=dim)
    return product, where(x == 0, one, 0) + gather_sum(
        where(v == 0, one, 0), at, shape=tuple(x.shape), dim=dim, inside=True
    )


def _product_x(g: Any, x: Any, at: Any, v: Any, *, dim: int) -> Any:
    return _others(g, x, *_without_zeros(x, at, v, dim))


def _product_v(g: Any, x: Any, at: Any, v: Any, *, dim: int) -> Any:
    product, zeros = _without_zeros(x, at, v, dim)
    return _others(
        gather(g, at, dim=dim, inside=True),
        v,
        gather(product, at, dim=dim, inside=True),
        gather(zeros, at, dim=dim, inside=True),
    )


scatter_product.vjp(x=_product_x, v=_product_v)
scatter_product.shape(lambda x, at, v: x.shape)
scatter_product.chunk(by_rows)
scatter_best.batched(along_batched)
scatter_product.batched(along_batched)
