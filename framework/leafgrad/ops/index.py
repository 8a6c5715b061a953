"""Choosing and writing elements by integer arrays. Negative indices count from the end.

``index`` takes one array per chosen dimension, ``gather`` one that says, for each element of the result, where along
one dimension it comes from. Each has a transpose that sums into zeros, and a form that writes into a copy.

An index out of range is an error on every device. Where the array library has none of its own, that costs a reduction
for which the host waits; none where it is said that all are ``inside``, as in rules of what was checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad import backends
from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op
from leafgrad.ops.geometry import index_axes, index_shape, inverse
from leafgrad.ops.half import accumulator
from leafgrad.ops.select import where
from leafgrad.ops.shape import expand, permute, reshape

Shape = tuple[int, ...]
FEW = 16  # rows that are sooner added one by one than by an index


# ---- keys -----------------------------------------------------------------------------------------------------------


def expect_in_range(index: Any, size: int, dim: int, inside: bool = False) -> None:
    """An IndexError if an index is out of range and the array library would not say so."""
    if not inside:
        backends.backend_of(index).check_index(index, size, dim)


def _chosen(shape: Shape, at: Sequence[Any], dims: tuple[int, ...], inside: bool) -> tuple[Any, ...]:
    """The key of ``index``: arrays at ``dims``, everything elsewhere."""
    if not inside and len(at) > 1:
        index_shape(shape, [a.shape for a in at], dims)  # an IndexError if they do not broadcast
    key: list[Any] = [slice(None)] * len(shape)
    for d, indices in zip(dims, at, strict=True):
        expect_in_range(indices, shape[d], d, inside)
        key[d] = indices
    return tuple(key)


def _ladder(xp: Any, n: int, axis: int, ndim: int) -> Any:
    """0, ..., n - 1 along one of ``ndim`` axes."""
    return xp.arange(n, dtype="int64").reshape((1,) * axis + (n,) + (1,) * (ndim - axis - 1))


def _along(xp: Any, shape: Shape, at: Any, dim: int, inside: bool = False) -> tuple[Any, ...]:
    """The key of ``gather``: ``at`` along ``dim``, each element's own index elsewhere."""
    if shape:
        expect_in_range(at, shape[dim], dim, inside)
    for d, (n, size) in enumerate(zip(at.shape, shape, strict=True)):
        if d != dim and n > size:
            raise IndexError(f"index {n - 1} is out of bounds for dimension {d} with size {size}")
    return tuple(at if d == dim else _ladder(xp, n, d, at.ndim) for d, n in enumerate(at.shape))


class _bounds:
    """Within it an index out of range is a RuntimeError, as PyTorch's is of gather and its kin."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type | None, error: BaseException | None, where: object) -> None:
        if kind is IndexError:
            raise ValueError(str(error)) from None


def _spelled_out(xp: Any, shape: Shape, at: Sequence[Any], dims: tuple[int, ...], inside: bool) -> tuple[Any, ...]:
    """The key of ``index`` with an array for every dimension."""
    axes = index_axes(len(shape), dims, max(a.ndim for a in at))
    key = [_ladder(xp, n, axes.index(d), len(axes)) if d in axes else None for d, n in enumerate(shape)]
    for d, a in zip(dims, at, strict=True):
        expect_in_range(a, shape[d], d, inside)
        key[d] = a.reshape([a.shape[k] if -a.ndim <= k < 0 else 1 for k in axes])
    return tuple(key)


def _add_at(xp: Any, shape: Shape, key: tuple[Any, ...], values: Any) -> Any:
    """Zeros of ``shape`` with ``values`` added at ``key``; through one flat index, for which ufunc.at is fast."""
    out = xp.zeros(shape, dtype=accumulator(values.dtype))
    flat = _flat_index(xp, shape, key)
    wide = values.astype(out.dtype, copy=False)
    xp.add.at(out.reshape(-1), xp.broadcast_to(flat, values.shape).reshape(-1), wide.reshape(-1))
    return out.astype(values.dtype, copy=False)


def _flat_index(xp: Any, shape: Shape, key: tuple[Any, ...]) -> Any:
    """The index of what ``key`` chooses in the flattened array."""
    flat, stride = 0, 1
    for n, k in zip(reversed(shape), reversed(key), strict=True):
        xp.broadcast_to(xp.zeros((), dtype="bool"), (n,))[k]  # an IndexError if something is out of range
        k = k.astype("int64")
        flat = flat + xp.where(k < 0, k + n, k) * stride
        stride *= n
    return flat


# ---- one array per dimension --------------------------------------------------------------------------------------


@op("linear", "any_dtype", "raises", "complex")
def index(xp: Any, x: Any, *at: Any, dims: tuple[int, ...], inside: bool = False) -> Any:
    """The elements of x at integer arrays ``at``, one for each of ``dims`` (ascending), which broadcast together.

    The dimensions of the arrays stand where ``dims`` stood, or first if ``dims`` are not next to each other.
    """
    if len(dims) == 1 and x.size:
        expect_in_range(at[0], x.shape[dims[0]], dims[0], inside)
        return x.take(at[0], axis=dims[0])
    return x[_chosen(x.shape, at, dims, inside)]


@index.kernel("numpy")
def _index(xp: Any, x: Any, *at: Any, dims: tuple[int, ...], inside: bool = False) -> Any:
    """As above; NumPy says itself what is out of range."""
    return x.take(at[0], axis=dims[0]) if len(dims) == 1 and x.size else x[_chosen(x.shape, at, dims, True)]


index.kernel("bfloat16")(index.forward)  # elements are only moved


@op("linear", "any_dtype", "raises", "complex", transpose_of=index)
def index_sum(xp: Any, x: Any, *at: Any, shape: Shape, dims: tuple[int, ...], inside: bool = False) -> Any:
    """Zeros of ``shape`` with x added where ``index`` would read; the transpose of index."""
    return _add_at(xp, shape, _spelled_out(xp, shape, at, dims, inside), x)


@index_sum.kernel("numpy")
def _index_sum(xp: Any, x: Any, *at: Any, shape: Shape, dims: tuple[int, ...], inside: bool = False) -> Any:
    """As above; of few rows, each is added by itself."""
    if len(dims) == 1 and at[0].ndim == 1 and at[0].size <= FEW:
        out, lead = xp.zeros(shape, dtype=accumulator(x.dtype)), (slice(None),) * dims[0]
        for i, k in enumerate(at[0].tolist()):
            out[(*lead, k)] += x[(*lead, i)]
        return out.astype(x.dtype, copy=False)
    return index_sum.forward(xp, x, *at, shape=shape, dims=dims, inside=inside)


index.lower("native", lambda c, e: c.lookup("read", e.params["dims"], at=1))
index_sum.lower("native", lambda c, e: c.lookup("add", e.params["dims"], at=1))


index.shape(lambda x, *at, dims: index_shape(x.shape, [a.shape for a in at], dims))


@index.chunk
def _index_rows(call: Any) -> Any:
    """The batch runs along the index arrays, or along a dimension that they do not choose."""
    (x, *at), (axis, *rest), dims = call.inputs, call.axes, call.params["dims"]
    width = max(a.ndim for a in at)
    axes = index_axes(x.ndim, dims, width)
    if axis is None:
        found = call.broadcast(first=1)
        return found and call.on(axes.index(found[0] - width), None, *found[1])
    if axis in dims or rest.count(None) < len(rest):
        return None
    return call.on(axes.index(axis), axis)


@index_sum.chunk
def _index_sum_rows(call: Any) -> Any:
    """Its transpose. What is summed over the batch is summed whole, in the order of the elements."""
    axis = call.axes[0]
    axes = index_axes(call.out.ndim, call.params["dims"], max(a.ndim for a in call.inputs[1:]))
    return None if axis is None or axes[axis] < 0 else call.on(axes[axis], axis, resized=True)


index.vjp(x=lambda g, x_shape, at, *, dims: index_sum(g, *at, shape=x_shape, dims=dims, inside=True))
index_sum.vjp(x=lambda g, at, *, dims: index(g, *at, dims=dims, inside=True))


@op("any_dtype", "raises", "complex")
def index_put(xp: Any, x: Any, v: Any, *at: Any, dims: tuple[int, ...], inside: bool = False) -> Any:
    """x with v (an array that broadcasts, or a number) written where ``index`` would read."""
    out = x.copy()
    out[_chosen(x.shape, at, dims, inside)] = v
    return out


index_put.vjp(
    x=lambda g, at, *, dims: index_put(g, 0, *at, dims=dims, inside=True),
    v=lambda g, at, *, dims: index(g, *at, dims=dims, inside=True),
)
index_put.lower("native", lambda c, e: c.lookup("write", e.params["dims"], at=2))
index_put.shape(lambda x, v, *at: x.shape)


class _Batch:
    """How an op by index arrays runs on a batch: where the arrays are one, each sample's number is one more index.

    Attributes:
        shape: of the chosen elements of one sample.
        at, dims: the index arrays for the whole batch, and which dimensions they choose from.
        order: the dimensions of the chosen elements of the whole batch: first the samples, then those of one.
    """

    def __init__(self, call: Any, first: int, shape: Shape, ahead: bool) -> None:
        slots = range(first, len(call.args))
        arrays, dims = [call.shape(i) for i in slots], call.params["dims"]
        width, own = max(map(len, arrays)), any(call.inside[i] for i in slots)
        self.shape = index_shape(shape, arrays, dims)
        self.at = [call.aligned(i, width) for i in slots]
        self.dims = tuple([d + ahead for d in dims])
        if own and ahead:
            self.dims, self.at = (0, *self.dims), [call.arange(width), *self.at]
        one = index_axes(len(shape), dims, width)
        all_ = index_axes(len(shape) + ahead, self.dims, width + own)
        samples = -width - 1 if own else 0
        self.order = tuple([all_.index(a) for a in (samples, *[a + ahead if a >= 0 else a for a in one])])

    def sorted(self, chosen: Any) -> Any:
        """Chosen elements with the samples first."""
        return permute(chosen, dims=self.order)

    def chosen(self, call: Any, i: int) -> Any:
        """Argument i, broadcast to the chosen elements of the whole batch."""
        x = expand(call.front(i, len(self.shape)), shape=(call.size, *self.shape))
        return permute(x, dims=inverse(self.order))


@index.batched
def _index_batched(call: Any) -> Any:
    batch = _Batch(call, 1, call.shape(0), call.inside[0])
    return batch.sorted(index(call.args[0], *batch.at, dims=batch.dims, inside=call.params["inside"]))


@index_sum.batched
def _index_sum_batched(call: Any) -> Any:
    shape = call.params["shape"]
    batch = _Batch(call, 1, shape, True)
    x, shape = batch.chosen(call, 0), (call.size, *shape)
    return index_sum(x, *batch.at, shape=shape, dims=batch.dims, inside=call.params["inside"])


@index_put.batched
def _index_put_batched(call: Any) -> Any:
    batch = _Batch(call, 2, call.shape(0), True)
    v = batch.chosen(call, 1) if hasattr(call.args[1], "shape") else call.args[1]
    return index_put(call.front(0), v, *batch.at, dims=batch.dims, inside=call.params["inside"])


# ---- along one dimension ------------------------------------------------------------------------------------------


@op("any_dtype", "raises", "complex")
def gather(xp: Any, x: Any, at: Any, *, dim: int, inside: bool = False) -> Any:
    """out[i, j, k] = x[i, at[i, j, k], k] for dim = 1, and alike. ``at`` may be smaller than x. -> at.shape"""
    with _bounds():
        return x[_along(xp, x.shape, at, dim, inside)]


gather.kernel("bfloat16")(gather.forward)


@op("any_dtype", "raises", "complex", transpose_of=gather)
def gather_sum(xp: Any, x: Any, at: Any, *, shape: Shape, dim: int, inside: bool = False) -> Any:
    """Zeros of ``shape`` with x added where ``gather`` would read; the transpose of gather."""
    with _bounds():
        return _add_at(xp, shape, _along(xp, shape, at, dim, inside), x)


gather.lower("native", lambda c, e: c.lookup("read", (e.params["dim"],), at=1, along=True))
gather_sum.lower("native", lambda c, e: c.lookup("add", (e.params["dim"],), at=1, along=True))


def _by_rows(call: Any, resized: bool = False) -> Any:
    """Each row of the batch has index arrays of its own, and all have as many rows."""
    axis = next(a for a in call.axes if a is not None)
    if axis == call.params["dim"] or call.out.shape[axis] != call.length:
        return None
    return call.on(axis, *[axis] * len(call.inputs), resized=resized)


gather.shape(lambda x, at: x.like(at.shape) if x.ndim == at.ndim else None)
gather.chunk(_by_rows)
gather_sum.chunk(lambda call: _by_rows(call, resized=True))
gather.vjp(x=lambda g, x_shape, at, *, dim: gather_sum(g, at, shape=x_shape, dim=dim, inside=True))
gather_sum.vjp(x=lambda g, at, *, dim: gather(g, at, dim=dim, inside=True))


@op("any_dtype", "raises", "complex")
def scatter(xp: Any, x: Any, at: Any, v: Any, *, dim: int, inside: bool = False) -> Any:
    """x with v (of at's shape, or a number) written where ``gather`` would read."""
    out = x.copy()
    with _bounds():
        out[_along(xp, x.shape, at, dim, inside)] = v
    return out


scatter.lower("native", lambda c, e: c.lookup("write", (e.params["dim"],), at=1, along=True))
scatter.shape(lambda x, at, v: x.shape)
scatter.chunk(_by_rows)
scatter.vjp(
    x=lambda g, at, *, dim: scatter(g, at, 0, dim=dim, inside=True),
    v=lambda g, at, *, dim: gather(g, at, dim=dim, inside=True),
)


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
    with _bounds():
        (xp.maximum if largest else xp.minimum).at(out, _along(xp, x.shape, at, dim), v)
    return out


@scatter_best.kernel("cupy")
def _scatter_best(xp: Any, x: Any, at: Any, v: Any, *, dim: int, largest: bool) -> Any:
    """As above, by sorting: CuPy's maximum.at rounds float64 to float32, and leaves nan out."""
    with _bounds():
        flat = xp.broadcast_to(_flat_index(xp, x.shape, _along(xp, x.shape, at, dim)), v.shape).reshape(-1)
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
scatter_best.chunk(_by_rows)


@scatter_best.lower("native")
def _extreme(c: Any, e: Any) -> Any:
    return c.lookup("max" if e.params["largest"] else "min", (e.params["dim"],), at=1, along=True)


@op("any_dtype", "raises", "holomorphic")
def scatter_product(xp: Any, x: Any, at: Any, v: Any, *, dim: int) -> Any:
    """x times the product of all of v that goes to the same index.

    Sorted by index, neighbours are multiplied in log2(n) sweeps; CUDA has no atomic product.
    """
    with _bounds():
        flat = xp.broadcast_to(_flat_index(xp, x.shape, _along(xp, x.shape, at, dim)), v.shape).reshape(-1)
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
scatter_product.chunk(_by_rows)


def _along_batched(call: Any) -> Any:
    """Each element's own index elsewhere is its own sample, too. Numbers have one dimension for this purpose."""
    shape = call.params.get("shape", call.shape(1 if call.op is gather else 0))
    args = [call.front(i, max(call.widest(), 1)) for i in range(len(call.args))]
    changes = {"shape": (call.size, *(shape or (1,)))} if "shape" in call.params else {}
    out = call.again(*args, dim=call.params["dim"] + 1, **changes)
    return out if shape else reshape(out, shape=(call.size,))


for _op in (gather, gather_sum, scatter, scatter_best, scatter_product):
    _op.batched(_along_batched)


# ---- where something holds ----------------------------------------------------------------------------------------


@op("nondifferentiable", "complex")
def argwhere(xp: Any, x: Any) -> Any:
    """The indices of the elements that are not zero, in order. -> (how many, x.ndim), int64; depends on values"""
    return xp.argwhere(x)


argwhere.batched(lambda call: call.dynamic())
