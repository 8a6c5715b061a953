"""Choosing and writing elements by integer arrays. Negative indices count from the end.

``index`` takes one array per chosen dimension, ``gather`` one that says, for each element of the result, where along
one dimension it comes from. Each has a transpose that sums into zeros, and a form that writes into a copy.

An index out of range is an error on every device. Where the array library has none of its own, that costs a reduction
for which the host waits; none where it is said that all are ``inside``, as in rules of what was checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from leafgrad import backends
from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op
from leafgrad.ops.select import where

Shape = tuple[int, ...]


# ---- keys -----------------------------------------------------------------------------------------------------------


def check(index: Any, size: int, dim: int, inside: bool = False) -> None:
    """An IndexError if an index is out of range and the array library would not say so."""
    if not inside:
        backends.backend_of(index).check_index(index, size, dim)


def _chosen(shape: Shape, at: Sequence[Any], dims: tuple[int, ...], inside: bool) -> tuple[Any, ...]:
    """The key of ``index``: arrays at ``dims``, everything elsewhere."""
    key: list[Any] = [slice(None)] * len(shape)
    for d, indices in zip(dims, at, strict=True):
        check(indices, shape[d], d, inside)
        key[d] = indices
    return tuple(key)


def _ladder(xp: Any, n: int, axis: int, ndim: int) -> Any:
    """0, ..., n - 1 along one of ``ndim`` axes."""
    return xp.arange(n, dtype="int64").reshape((1,) * axis + (n,) + (1,) * (ndim - axis - 1))


def _along(xp: Any, shape: Shape, at: Any, dim: int, inside: bool = False) -> tuple[Any, ...]:
    """The key of ``gather``: ``at`` along ``dim``, each element's own place elsewhere."""
    if shape:
        check(at, shape[dim], dim, inside)
    for d, (n, size) in enumerate(zip(at.shape, shape, strict=True)):
        if d != dim and n > size:
            raise IndexError(f"index {n - 1} is out of bounds for dimension {d} with size {size}")
    return tuple(at if d == dim else _ladder(xp, n, d, at.ndim) for d, n in enumerate(at.shape))


@contextmanager
def _bounds() -> Iterator[None]:
    """An index out of range is a RuntimeError in gather and its kin, as in PyTorch."""
    try:
        yield
    except IndexError as error:
        raise ValueError(str(error)) from None


def _spelled_out(xp: Any, shape: Shape, at: Sequence[Any], dims: tuple[int, ...], inside: bool) -> tuple[Any, ...]:
    """The key of ``index`` with an array for every dimension."""
    width = max(a.ndim for a in at)
    kept = [d for d in range(len(shape)) if d not in dims]
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0  # chosen dimensions that are apart come first
    ndim = width + len(kept)
    key: list[Any] = [None] * len(shape)
    for rank, d in enumerate(kept):
        key[d] = _ladder(xp, shape[d], rank if rank < first else rank + width, ndim)
    after = (1,) * (len(kept) - first)
    for d, a in zip(dims, at, strict=True):
        check(a, shape[d], d, inside)
        key[d] = a.reshape((1,) * (first + width - a.ndim) + a.shape + after)
    return tuple(key)


def _add_at(xp: Any, shape: Shape, key: tuple[Any, ...], values: Any) -> Any:
    """Zeros of ``shape`` with ``values`` added at ``key``; through one flat index, for which ufunc.at is fast."""
    out = xp.zeros(shape, dtype=values.dtype)
    flat = _flat_places(xp, shape, key)
    xp.add.at(out.reshape(-1), xp.broadcast_to(flat, values.shape).reshape(-1), values.reshape(-1))
    return out


def _flat_places(xp: Any, shape: Shape, key: tuple[Any, ...]) -> Any:
    """The places of ``key`` in the flattened array."""
    flat, stride = 0, 1
    for n, k in zip(reversed(shape), reversed(key), strict=True):
        xp.broadcast_to(xp.zeros((), dtype="bool"), (n,))[k]  # an IndexError if something is out of range
        k = k.astype("int64")
        flat = flat + xp.where(k < 0, k + n, k) * stride
        stride *= n
    return flat


# ---- one array per dimension --------------------------------------------------------------------------------------


@op("linear", "any_dtype")
def index(xp: Any, x: Any, *at: Any, dims: tuple[int, ...], inside: bool = False) -> Any:
    """The elements of x at integer arrays ``at``, one for each of ``dims`` (ascending), which broadcast together.

    The dimensions of the arrays stand where ``dims`` stood, or first if ``dims`` are not next to each other.
    """
    if len(dims) == 1 and x.size:
        check(at[0], x.shape[dims[0]], dims[0], inside)
        return x.take(at[0], axis=dims[0])
    return x[_chosen(x.shape, at, dims, inside)]


@op("linear", "any_dtype")
def index_sum(xp: Any, x: Any, *at: Any, shape: Shape, dims: tuple[int, ...], inside: bool = False) -> Any:
    """Zeros of ``shape`` with x added where ``index`` would read; the transpose of index."""
    return _add_at(xp, shape, _spelled_out(xp, shape, at, dims, inside), x)


index.vjp(x=lambda g, x_shape, at, *, dims: index_sum(g, *at, shape=x_shape, dims=dims, inside=True))
index_sum.vjp(x=lambda g, at, *, dims: index(g, *at, dims=dims, inside=True))


@op("any_dtype")
def index_put(xp: Any, x: Any, v: Any, *at: Any, dims: tuple[int, ...], inside: bool = False) -> Any:
    """x with v (an array that broadcasts, or a number) written where ``index`` would read."""
    out = x.copy()
    out[_chosen(x.shape, at, dims, inside)] = v
    return out


index_put.vjp(
    x=lambda g, at, *, dims: index_put(g, 0, *at, dims=dims, inside=True),
    v=lambda g, at, *, dims: index(g, *at, dims=dims, inside=True),
)


# ---- along one dimension ------------------------------------------------------------------------------------------


@op("any_dtype")
def gather(xp: Any, x: Any, at: Any, *, dim: int, inside: bool = False) -> Any:
    """out[i, j, k] = x[i, at[i, j, k], k] for dim = 1, and alike. ``at`` may be smaller than x. -> at.shape"""
    with _bounds():
        return x[_along(xp, x.shape, at, dim, inside)]


@op("any_dtype")
def gather_sum(xp: Any, x: Any, at: Any, *, shape: Shape, dim: int, inside: bool = False) -> Any:
    """Zeros of ``shape`` with x added where ``gather`` would read; the transpose of gather."""
    with _bounds():
        return _add_at(xp, shape, _along(xp, shape, at, dim, inside), x)


gather.vjp(x=lambda g, x_shape, at, *, dim: gather_sum(g, at, shape=x_shape, dim=dim, inside=True))
gather_sum.vjp(x=lambda g, at, *, dim: gather(g, at, dim=dim, inside=True))


@op("any_dtype")
def scatter(xp: Any, x: Any, at: Any, v: Any, *, dim: int, inside: bool = False) -> Any:
    """x with v (of at's shape, or a number) written where ``gather`` would read."""
    out = x.copy()
    with _bounds():
        out[_along(xp, x.shape, at, dim, inside)] = v
    return out


scatter.vjp(
    x=lambda g, at, *, dim: scatter(g, at, 0, dim=dim, inside=True),
    v=lambda g, at, *, dim: gather(g, at, dim=dim, inside=True),
)


@op("any_dtype")
def scatter_best(xp: Any, x: Any, at: Any, v: Any, *, dim: int, largest: bool) -> Any:
    """The largest (smallest) of x and all of v that goes to the same place; equal ones share the gradient.

    At nan that is nan.
    """
    out = x.copy()
    with _bounds():
        (xp.maximum if largest else xp.minimum).at(out, _along(xp, x.shape, at, dim), v)
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


@op("any_dtype")
def scatter_product(xp: Any, x: Any, at: Any, v: Any, *, dim: int) -> Any:
    """x times the product of all of v that goes to the same place.

    Sorted by place, neighbours are multiplied in log2(n) sweeps; CUDA has no atomic product.
    """
    with _bounds():
        flat = xp.broadcast_to(_flat_places(xp, x.shape, _along(xp, x.shape, at, dim)), v.shape).reshape(-1)
    order = xp.argsort(flat, kind="stable")
    place, run, reach = flat[order], v.reshape(-1)[order], 1
    while reach < len(place):
        same = place[reach:] == place[:-reach]
        run[reach:] *= xp.where(same, run[:-reach], 1)
        reach *= 2
    last = xp.ones(len(place), "bool")
    last[:-1] = place[1:] != place[:-1]
    factors = xp.ones(x.size + 1, dtype=x.dtype)  # with a place for what is not the last of its run
    factors[xp.where(last, place, x.size)] = run
    return x * factors[:-1].reshape(x.shape)


def _others(g: Any, x: Any, product: Any, zeros: Any) -> Any:
    """g times the product of all that goes to a place but x, given that of all but the ``zeros`` many zeros."""
    alone = where((zeros == 1) & (x == 0), product, 0)
    return g * where(zeros == 0, product / where(x == 0, 1, x), alone)


def _without_zeros(x: Any, at: Any, v: Any, dim: int) -> tuple[Any, Any]:
    """The product of what is not zero at each place, and how many zeros there are."""
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


# ---- where something holds ----------------------------------------------------------------------------------------


@op("nondifferentiable")
def argwhere(xp: Any, x: Any) -> Any:
    """The indices of the elements that are not zero, in order. -> (how many, x.ndim), int64; depends on values"""
    return xp.argwhere(x)
