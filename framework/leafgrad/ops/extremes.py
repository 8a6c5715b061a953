"""Where along one dimension the largest, smallest, middle or commonest element is; the distinct elements.

These give indices, which have no gradient; values are then gathered by index, which has.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.convert import new_full
from leafgrad.ops.cumulative import part, running_best
from leafgrad.ops.define import op
from leafgrad.ops.index import gather
from leafgrad.ops.reduce import amax, amin, kept, sum
from leafgrad.ops.select import where
from leafgrad.ops.shape import reshape
from leafgrad.ops.traits import ALL

_sum, _where = sum.function, where.function


@op("reduction", "nondifferentiable")
def argmax(xp: Any, x: Any, *, dim: int | None, keepdim: bool = False) -> Any:
    """Index of the largest element along ``dim``, the first of equal ones; in the flattened x for None. int64"""
    return _index(xp.argmax, x, dim, keepdim)


@op("reduction", "nondifferentiable")
def argmin(xp: Any, x: Any, *, dim: int | None, keepdim: bool = False) -> Any:
    """Index of the smallest element along ``dim``, the first of equal ones; in the flattened x for None. int64"""
    return _index(xp.argmin, x, dim, keepdim)


@argmax.kernel("numpy")
def _argmax(xp: Any, x: Any, *, dim: int | None, keepdim: bool = False) -> Any:
    """As above, by the method of arrays, which is no Python."""
    return x.argmax(dim if x.ndim else None, keepdims=keepdim)


@argmin.kernel("numpy")
def _argmin(xp: Any, x: Any, *, dim: int | None, keepdim: bool = False) -> Any:
    """As above, alike."""
    return x.argmin(dim if x.ndim else None, keepdims=keepdim)


def _first(better: str) -> Any:
    """A rule for the first of the best elements; nan is better than all others."""
    code = f"""
        long best = 0;
        for (long i = 1; i < n; i++) if (x(i) {better} x(best) || (x(i) != x(i) && x(best) == x(best))) best = i;
        out(0) = best;
    """
    return lambda c, e: c.along(code, e.params["dim"], mixed=True)


argmax.lower("cuda", _first(">"))
argmin.lower("cuda", _first("<"))


def _index(function: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    if dim is None or not x.ndim:
        found = function(x.reshape(-1), 0)
        return found.reshape((1,) * x.ndim) if keepdim else found
    found = function(x, dim)
    return found.reshape(kept(x.shape, (dim,))) if keepdim else found


@op("nondifferentiable")
def argmedian(xp: Any, x: Any, *, dim: int, skips_nan: bool = False) -> Any:
    """Index of the lower median along ``dim``, kept; of the first nan if there is one, unless it skips them. int64"""
    if not x.ndim:
        return xp.zeros((), "int64")
    order = xp.argsort(x, dim, "stable")
    n = x.shape[dim]
    spoilt = x != x
    if skips_nan:  # they are sorted last
        left = n - spoilt.sum(axis=dim, keepdims=True)
        return xp.take_along_axis(order, xp.maximum(left - 1, 0) // 2, dim)
    middle = order[part(x, dim, (n - 1) // 2, (n - 1) // 2 + 1)]
    first = xp.argmax(spoilt, dim).reshape(middle.shape)
    return xp.where(spoilt.any(axis=dim, keepdims=True), first, middle)


def _middle(dim: int | None, skips_nan: bool, found: str) -> Any:
    """A rule that takes ``found`` of the lower median, or of the first nan."""
    middle = "nans < n ? (n - nans - 1) / 2 : 0" if skips_nan else "nans ? n - nans : (n - 1) / 2"
    return lambda c, e: c.ranked(f"if (rank == ({middle})) out(0) = {found};", dim)


argmedian.lower("cuda", lambda c, e: _middle(e.params["dim"], e.params.get("skips_nan", False), "at")(c, e))
argmedian.shape(lambda x, *, dim: x.like(kept(x.shape, (dim,)), "int64"))
argmedian.chunk(lambda call: call.along())


@op("reduction")
def median(xp: Any, x: Any) -> Any:
    """The lower median of all elements, nan if there is one. Equal ones share the gradient."""
    flat = x.reshape(-1)
    return flat[argmedian.forward(xp, flat, dim=0)].reshape(()) if x.size else xp.full((), math.nan, dtype=x.dtype)


@median.kernel("numpy")
def _median(xp: Any, x: Any) -> Any:
    """As above, without sorting all of them."""
    flat, middle = x.reshape(-1), (x.size - 1) // 2
    if not x.size:
        return median.forward(xp, x)
    ends = xp.partition(flat, (middle, x.size - 1))  # nan comes last
    return (ends[middle] if ends[-1] == ends[-1] else ends[-1]).reshape(())


@op("reduction")
def largest(xp: Any, x: Any) -> Any:
    """The largest of all elements, nan if there is one. Equal ones share the gradient, nans among themselves."""
    return x.max(keepdims=False).reshape(())


@largest.kernel("numpy")
def _largest(xp: Any, x: Any) -> Any:
    return xp.maximum.reduce(x, axis=None)


@op("reduction")
def smallest(xp: Any, x: Any) -> Any:
    """The smallest of all elements, nan if there is one. Equal ones share the gradient, nans among themselves."""
    return x.min(keepdims=False).reshape(())


@smallest.kernel("numpy")
def _smallest(xp: Any, x: Any) -> Any:
    return xp.minimum.reduce(x, axis=None)


def _share(g: Any, out: Any, x: Any, x_shape: Any) -> Any:
    """g in equal parts to the elements that are ``out``, and 0 to the others, whatever g is."""
    one, chosen = new_full(g, shape=(), value=1), (x == out) | ((x != x) & (out != out))
    return _where(chosen, g / _sum(_where(chosen, one, 0), dim=ALL[len(x_shape)], keepdim=False), 0)


@op("reduction")
def nanmedian(xp: Any, x: Any) -> Any:
    """The lower median of all elements that are not nan; nan if there is none. Equal ones share the gradient."""
    flat = x.reshape(-1)
    index = argmedian.forward(xp, flat, dim=0, skips_nan=True) if x.size else None
    return xp.full((), math.nan, dtype=x.dtype) if index is None else flat[index].reshape(())


for _whole in (median, nanmedian, largest, smallest):
    _whole.vjp(x=_share)


def _median_batched(call: Any) -> Any:
    rows = call.rows(0)
    middle = argmedian(rows, dim=1, skips_nan=call.op is nanmedian)
    return reshape(gather(rows, middle, dim=1, inside=True), shape=(call.size,))


median.lower("cuda", _middle(None, False, "x(at)"))
nanmedian.lower("cuda", _middle(None, True, "x(at)"))
largest.label, smallest.label = "MaxBackward1", "MinBackward1"  # PyTorch's names
largest.lower("native", lambda c, e: c.reduction("max", None))
smallest.lower("native", lambda c, e: c.reduction("min", None))
median.batched(_median_batched)
nanmedian.batched(_median_batched)
largest.batched(lambda call: amax(call.rows(0), dim=(1,)))
smallest.batched(lambda call: amin(call.rows(0), dim=(1,)))


@op("nondifferentiable")
def argmode(xp: Any, x: Any, *, dim: int) -> Any:
    """Index of the commonest value along ``dim``, kept: the smallest of equally common, its last index. int64

    nan is a value like others, and larger than they.
    """
    if not x.ndim:
        return xp.zeros((), "int64")
    order = xp.argsort(x, dim, "stable")
    ranked = xp.take_along_axis(x, order, dim)
    n = x.shape[dim]
    later, earlier = part(x, dim, 1, None), part(x, dim, None, n - 1)
    sizes = [1] * x.ndim
    sizes[dim] = n
    index = xp.zeros(x.shape, "int64") + xp.arange(n).reshape(sizes)
    start = index.copy()
    start[later] = xp.where(_same(ranked[later], ranked[earlier]), 0, index[later])
    start, _ = running_best(xp, lambda new, old: new >= old, start, dim)
    best = xp.argmax(index - start, dim).reshape(kept(x.shape, (dim,)))
    last = xp.where(_same(ranked, xp.take_along_axis(ranked, best, dim)), order, -1)
    return last.max(axis=dim, keepdims=True)


argmode.shape(lambda x, *, dim: x.like(kept(x.shape, (dim,)), "int64"))
argmode.chunk(lambda call: call.along())


def _same(x: Any, y: Any) -> Any:
    return (x == y) | ((x != x) & (y != y))


@op
def unique(xp: Any, x: Any, *, dim: int | None) -> Any:
    """The distinct elements (slices along ``dim``), sorted, with inverse and counts. Each nan is one of its own.

    Sizes depend on values.
    """
    values, inverse, counts = xp.unique(x, False, True, True, dim, equal_nan=False)
    return values, inverse.reshape(x.shape if dim is None else (x.shape[dim],)), counts


@op("nondifferentiable")
def runs(xp: Any, x: Any, *, dim: int) -> Any:
    """Where runs of equal slices along ``dim`` start, the run of each slice, and their lengths. Sizes by values."""
    if not x.ndim:
        return xp.zeros((), "int64"), xp.zeros((), "int64"), xp.ones((), "int64")
    rows = xp.moveaxis(x, dim, 0).reshape(x.shape[dim], math.prod(x.shape[:dim] + x.shape[dim + 1 :]))
    new = xp.ones(len(rows), "bool")
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    starts = xp.flatnonzero(new)
    ends = xp.concatenate([starts[1:], xp.full(min(len(rows), 1), len(rows), dtype=starts.dtype)])
    return starts, xp.cumsum(new, dtype="int64") - 1, ends - starts


argmedian.batched(lambda call: call.along())
argmode.batched(lambda call: call.along())
unique.batched(lambda call: call.dynamic())
runs.batched(lambda call: call.dynamic())
