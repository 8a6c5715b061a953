"""Values that go to one place by an index array, combined: the largest, the smallest, their product.

Sums of them are the transposes of reading, in ``index.py``.
"""

from __future__ import annotations

from typing import Any

from leafgrad.ops.convert import new_full
from leafgrad.ops.cumulative import shift
from leafgrad.ops.define import op
from leafgrad.ops.half import accumulator
from leafgrad.ops.index import along, along_batched, bounds, by_rows, flat_index, gather, gather_sum
from leafgrad.ops.select import where
from leafgrad.ops.small import SMALL
from leafgrad.ops.sort import argsort


def _last_of_runs(xp: Any, target: Any) -> Any:
    """Of indices in order, whether each is the last of those that equal it. (n,) -> (n,)"""
    last = xp.ones(len(target), "bool")
    last[:-1] = target[1:] != target[:-1]
    return last


def _flat(xp: Any, x: Any, at: Any, v: Any, dim: int) -> Any:
    """Where in the flattened x each element of v goes; for one such index ufunc.at is fast."""
    with bounds():
        return flat_index(xp, x.shape, along(xp, x.shape, at, dim), (dim,), v.shape)


@op("any_dtype", "raises")
def scatter_best(xp: Any, x: Any, at: Any, v: Any, *, dim: int, largest: bool) -> Any:
    """The largest (smallest) of x and all of v that goes to the same index; equal ones share the gradient.

    At nan that is nan.
    """
    out, better = x.copy(), xp.maximum if largest else xp.minimum
    if v.size > SMALL:
        better.at(out.reshape(-1), _flat(xp, x, at, v, dim), v.reshape(-1))
    else:
        with bounds():
            better.at(out, along(xp, x.shape, at, dim), v)
    return out


@scatter_best.kernel("cupy")
def _scatter_best(xp: Any, x: Any, at: Any, v: Any, *, dim: int, largest: bool) -> Any:
    """As above, by sorting: CuPy's maximum.at rounds float64 to float32, and leaves nan out."""
    flat = _flat(xp, x, at, v, dim)
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
    flat = _flat(xp, x, at, v, dim)
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


@scatter_product.kernel("numpy")
def _scatter_product(xp: Any, x: Any, at: Any, v: Any, *, dim: int) -> Any:
    """As above, one after the other."""
    out = x.astype(accumulator(x.dtype), order="C")
    xp.multiply.at(out.reshape(-1), _flat(xp, x, at, v, dim), v.reshape(-1).astype(out.dtype, copy=False))
    return out.astype(x.dtype, copy=False)


def _product_x(g: Any, x: Any, at: Any, v: Any, *, dim: int) -> Any:
    return g * scatter_product(new_full(x, shape=tuple(x.shape), value=1), at, v, dim=dim)


def _product_v(g: Any, x: Any, at: Any, v: Any, *, dim: int) -> Any:
    """Sorted by index, what is multiplied is before and after each in its run: right where some of it is 0, too."""
    order = argsort(at, dim=dim, descending=False)
    place, line = gather(at, order, dim=dim, inside=True), gather(v, order, dim=dim, inside=True)
    others = _of_run(place, line, dim, 1) * _of_run(place, line, dim, -1)
    back = argsort(order, dim=dim, descending=False)
    return gather(g * x, at, dim=dim, inside=True) * gather(others, back, dim=dim, inside=True)


def _of_run(place: Any, line: Any, dim: int, way: int) -> Any:
    """The product of all before each element (after it, if ``way`` is -1) that has the same place."""

    def beside(of: Any, by: int) -> Any:
        same = place == shift(place, dim=dim, by=way * by, fill=-1)
        return where(same, shift(of, dim=dim, by=way * by, fill=1), 1)

    found, reach = beside(line, 1), 1
    while reach < place.shape[dim]:
        found = found * beside(found, reach)
        reach *= 2
    return found


scatter_product.vjp(x=_product_x, v=_product_v)
scatter_product.shape(lambda x, at, v: x.shape)
scatter_product.chunk(by_rows)
scatter_best.batched(along_batched)
scatter_product.batched(along_batched)
