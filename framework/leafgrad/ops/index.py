"""Choosing and writing elements by integer arrays. Negative indices count from the end.

``index`` takes one array per chosen dimension, ``gather`` one that says, for each element of the result, where along
one dimension it comes from. Each has a transpose that sums into zeros, and a form that writes into a copy.

An index out of range is an error on every device. Where the array library has none of its own, that costs a reduction
for which the host waits; none where it is said that all are ``inside``, as in rules of what was checked.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from leafgrad import backends
from leafgrad.ops.define import op
from leafgrad.ops.geometry import index_axes, index_shape, inverse
from leafgrad.ops.half import accumulator
from leafgrad.ops.shape import Index, expand, part, permute, reshape
from leafgrad.ops.small import SMALL

Shape = tuple[int, ...]
FEW = 16  # rows that are sooner added one by one than by an index
COPIED = 2**17  # elements of a slice at most that are copied for one program to serve all


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


@functools.lru_cache(maxsize=256)
def _ladders(xp: Any, shape: Shape, dim: int) -> tuple[Any, ...]:
    """One along each axis of an array of ``shape`` but ``dim``, which has None."""
    return tuple([None if d == dim else _ladder(xp, n, d, len(shape)) for d, n in enumerate(shape)])


def along(xp: Any, shape: Shape, at: Any, dim: int, inside: bool = False) -> tuple[Any, ...]:
    """The key of ``gather``: ``at`` along ``dim``, each element's own index elsewhere."""
    backend = backends.BACKENDS[type(at)]
    if shape and not inside:
        backend.check_index(at, shape[dim], dim)
    for d, (n, size) in enumerate(zip(at.shape, shape, strict=True)):
        if d != dim and n > size:
            raise IndexError(f"index {n - 1} is out of bounds for dimension {d} with size {size}")
    kept = backend.one_device and at.size <= SMALL
    ladders = (_ladders if kept else _ladders.__wrapped__)(xp, at.shape, dim)
    return tuple([at if ladder is None else ladder for ladder in ladders])


class bounds:
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


def _add_at(xp: Any, shape: Shape, key: tuple[Any, ...], dims: tuple[int, ...], inside: bool, values: Any) -> Any:
    """Zeros of ``shape`` with ``values`` added at ``key``; through one flat index, for which ufunc.at is fast."""
    out = xp.zeros(shape, dtype=accumulator(values.dtype))
    flat = flat_index(xp, shape, key, dims, values.shape, inside)
    xp.add.at(out.reshape(-1), flat, values.astype(out.dtype, copy=False).reshape(-1))
    return out.astype(values.dtype, copy=False)


def flat_index(
    xp: Any, shape: Shape, key: tuple[Any, ...], dims: tuple[int, ...], wide: Shape, inside: bool = False
) -> Any:
    """Where in the flattened array is what ``key`` chooses, of shape ``wide``; others than at ``dims`` are in range."""
    flat: Any = 0
    stride = 1
    for d in reversed(range(len(shape))):
        n, k = shape[d], key[d]
        if d in dims:
            if not inside:
                xp.zeros(n, dtype="bool")[k]  # an IndexError if something is out of range
            k = k.astype("int64", copy=False) % n
        flat = flat + k * stride
        stride *= n
    alike = getattr(flat, "shape", None) == wide  # of an array without dimensions it is a number
    return (flat if alike else xp.broadcast_to(flat, wide)).reshape(-1)


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
    return _add_at(xp, shape, _spelled_out(xp, shape, at, dims, inside), dims, inside, x)


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


@part.dynamic
def _part_at(numbers: Any, x: Any, *, at: Index) -> Any:
    """Ranges and places that are not known yet are chosen by an index, of one dimension after the other.

    Not of many elements, which it takes longer to copy than to read where they are.
    """
    known: list[Any] = []
    chosen: list[tuple[int, Any, int | None]] = []  # dimension, start and count; None for one that goes away
    sizes, dim = list(x.shape), 0  # of what the known ones choose
    for entry in at:
        if entry is None:
            known.append(None)
        elif isinstance(entry, tuple) and any(map(numbers.holds, entry)):
            start, stop, step = entry
            count = operator.index(stop - start)
            if not numbers.holds(start):
                known.append((start, start + count, step))
            else:
                known.append((0, sizes[0], 1))
                chosen.append((dim, start, count))
            del sizes[0]
        elif numbers.holds(entry):
            known.append((0, sizes.pop(0), 1))
            chosen.append((dim, entry, None))
        else:
            known.append(entry)
            del sizes[0]
        dim += entry is None or isinstance(known[-1], tuple)
    if known != [(0, n, 1) for n in x.shape[: len(known)]]:
        x = part(x, at=tuple(known))
    counts = {dim: 1 if count is None else count for dim, _, count in chosen}
    if math.prod([counts.get(dim, n) for dim, n in enumerate(x.shape)]) > COPIED:
        return None
    gone = 0
    for dim, start, n in chosen:
        x = index(x, numbers.array(start) if n is None else numbers.range(start, n), dims=(dim - gone,), inside=True)
        gone += n is None
    return x


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
    try:
        return x[along(xp, x.shape, at, dim, inside)]
    except IndexError as error:
        raise ValueError(str(error)) from None  # a RuntimeError, as PyTorch's is of gather and its kin


gather.kernel("bfloat16")(gather.forward)


@op("any_dtype", "raises", "complex", transpose_of=gather)
def gather_sum(xp: Any, x: Any, at: Any, *, shape: Shape, dim: int, inside: bool = False) -> Any:
    """Zeros of ``shape`` with x added where ``gather`` would read; the transpose of gather."""
    with bounds():
        return _add_at(xp, shape, along(xp, shape, at, dim, inside), (dim,), inside, x)


gather.lower("native", lambda c, e: c.lookup("read", (e.params["dim"],), at=1, along=True))
gather_sum.lower("native", lambda c, e: c.lookup("add", (e.params["dim"],), at=1, along=True))


def by_rows(call: Any, resized: bool = False) -> Any:
    """Each row of the batch has index arrays of its own, and all have as many rows."""
    axis = next(a for a in call.axes if a is not None)
    if axis == call.params["dim"] or call.out.shape[axis] != call.length:
        return None
    return call.on(axis, *[axis] * len(call.inputs), resized=resized)


gather.shape(lambda x, at: x.like(at.shape) if x.ndim == at.ndim else None)
gather.chunk(by_rows)
gather_sum.chunk(lambda call: by_rows(call, resized=True))
gather.vjp(x=lambda g, x_shape, at, *, dim: gather_sum(g, at, shape=x_shape, dim=dim, inside=True))
gather_sum.vjp(x=lambda g, at, *, dim: gather(g, at, dim=dim, inside=True))


@op("any_dtype", "raises", "complex")
def scatter(xp: Any, x: Any, at: Any, v: Any, *, dim: int, inside: bool = False) -> Any:
    """x with v (of at's shape, or a number) written where ``gather`` would read."""
    out = x.copy()
    with bounds():
        out[along(xp, x.shape, at, dim, inside)] = v
    return out


scatter.lower("native", lambda c, e: c.lookup("write", (e.params["dim"],), at=1, along=True))
scatter.shape(lambda x, at, v: x.shape)
scatter.chunk(by_rows)
scatter.vjp(
    x=lambda g, at, *, dim: scatter(g, at, 0, dim=dim, inside=True),
    v=lambda g, at, *, dim: gather(g, at, dim=dim, inside=True),
)


def along_batched(call: Any) -> Any:
    """Each element's own index elsewhere is its own sample, too. Numbers have one dimension for this purpose."""
    shape = call.params.get("shape", call.shape(1 if call.op is gather else 0))
    args = [call.front(i, max(call.widest(), 1)) for i in range(len(call.args))]
    changes = {"shape": (call.size, *(shape or (1,)))} if "shape" in call.params else {}
    out = call.again(*args, dim=call.params["dim"] + 1, **changes)
    return out if shape else reshape(out, shape=(call.size,))


for _op in (gather, gather_sum, scatter):
    _op.batched(along_batched)


# ---- where something holds ----------------------------------------------------------------------------------------


@op("nondifferentiable", "complex")
def argwhere(xp: Any, x: Any) -> Any:
    """The indices of the elements that are not zero, in order. -> (how many, x.ndim), int64; depends on values"""
    return xp.argwhere(x)


@argwhere.kernel("numpy")
def _argwhere(xp: Any, x: Any) -> Any:
    """As above, without the several Python functions that NumPy's is."""
    return xp.array(x.nonzero()).T if x.ndim else argwhere.forward(xp, x)


argwhere.batched(lambda call: call.dynamic())
