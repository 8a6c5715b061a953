"""Elements written by index tensors and masks: scatter, index_add, masked_fill, select_scatter, put, …"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.ops import combine, dispatch, index as ops
from leafgrad.ops.convert import new_full
from leafgrad.ops.geometry import index_shape
from leafgrad.ops.marks import shown_as
from leafgrad.ops.refuse import refuse
from leafgrad.ops.select import where
from leafgrad.ops.shape import part
from leafgrad.tensor import arguments
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.formats import follow, preserved
from leafgrad.tensor.gathering import (
    expect_fitting,
    expect_indices,
    expect_mask,
    expect_same_dtype,
    index_vector,
    indices_within,
    lifted,
    masked,
    nonzero,
    nothing,
    unlifted,
)
from leafgrad.tensor.indexing import ParsedKey
from leafgrad.tensor.inplace import update
from leafgrad.tensor.joining import narrow, select
from leafgrad.tensor.public import public
from leafgrad.tensor.rearranging import diagonal
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.storage import as_strided
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone
from leafgrad.tensor.writes import value_for


def _scatter_arguments(input: Tensor, dim: int, index: Tensor, src: Any, function: str) -> tuple[Any, ...]:
    """Checked, without 0-d tensors, and ``src`` cut to the shape of ``index``."""
    d = arguments.one_dim(arguments.expect_tensor(input, "input", function), dim, function)
    x, at, v = lifted(input, expect_indices(index, function), src)
    if 0 in index._data.shape:
        at, v = nothing(at, x.ndim), nothing(v, x.ndim) if isinstance(v, Tensor) else v
    expect_fitting(x, at, d, function)
    if isinstance(v, Tensor):
        expect_same_dtype(input, v, "src", function)
        expect_fitting(v, at, -1, function)
        if v._data.shape != at._data.shape:
            v = part(v, at=tuple((0, n, 1) for n in at._data.shape))
    return x, at, v, d


@public(out="exact", inplace=True)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """A copy of ``input`` with out[i, index[i, j, k], k] = src[i, j, k] for ``dim=1``, and alike for others.

    Args:
        src: a tensor at least as large as ``index``, of the dtype of ``input``; or a number, also as ``value``.
        reduce: "add" or "multiply" to combine with what is there, and with what else goes to one place.
        index: places along ``dim``.
        value: a number in place of ``src``.

    Raises:
        RuntimeError: dtypes or shapes. IndexError: an index is out of range.
    """
    given = src if value is None else value
    if reduce == "add":
        filled = given if isinstance(given, Tensor) else new_full(input, shape=tuple(index.shape), value=given)
        return scatter_add(input, dim, index, filled)
    if reduce == "multiply":
        filled = given if isinstance(given, Tensor) else new_full(input, shape=tuple(index.shape), value=given)
        return scatter_reduce(input, dim, index, filled, "prod")
    if reduce is not None:
        raise RuntimeError(f"scatter: reduce argument must be either add or multiply, got {reduce!r}")
    v = given if isinstance(given, Tensor) else value_for(input, given, "scatter: src")
    x, at, v, d = _scatter_arguments(input, dim, index, v, "scatter")
    with indices_within(x, d, "scatter"):
        out: Tensor = ops.scatter.function(x, at, v, dim=d)
    return unlifted(out, input)


@public(out="exact", inplace=True)
@shown_as("ScatterAddBackward0", "input", "src")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of ``input`` with src[i, j, k] added to out[i, index[i, j, k], k] for ``dim=1``, and alike for others."""
    arguments.expect_tensor(src, "src", "scatter_add")
    x, at, v, d = _scatter_arguments(input, dim, index, src, "scatter_add")
    with indices_within(x, d, "scatter_add"):
        out: Tensor = ops.gather_sum.function(v, at, shape=tuple(x._data.shape), dim=d) + x  # in order, as the first
    return unlifted(out, input)


@public(out="exact", inplace=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Like ``scatter``, with all values that go to one place combined.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether what is there counts as one of them.
        index: places along ``dim``.
        src: what is combined.
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got {reduce!r}"
        )
    x, at, v, d = _scatter_arguments(input, dim, index, src, "scatter_reduce")
    with indices_within(x, d, "scatter_reduce"):
        return unlifted(_combined(x, at, v, d, reduce, include_self), input)


def _combined(x: Tensor, at: Tensor, v: Tensor, d: int, reduce: str, include_self: bool) -> Any:
    shape = tuple(x._data.shape)
    if reduce in ("amax", "amin"):
        if not include_self:
            lowest = -math.inf if reduce == "amax" else math.inf
            x = ops.scatter.function(x, at, lowest if x.dtype.is_floating_point else v, dim=d)
        return combine.scatter_best(x, at, v, dim=d, largest=reduce == "amax")
    if not include_self:
        x = ops.scatter.function(x, at, 1 if reduce == "prod" else 0, dim=d)
    if reduce == "prod" and x.dtype is dtypes.bool_:
        return combine.scatter_best(x, at, v, dim=d, largest=False)
    if reduce == "prod":
        return combine.scatter_product(x, at, v, dim=d)
    total = ops.gather_sum.function(v, at, shape=shape, dim=d) + x
    if reduce == "sum":
        return total
    kind = x.dtype.to_real().name if x.dtype.is_complex else None
    ones = new_full(v, shape=tuple(v._data.shape), value=1, dtype=kind)
    own = new_full(x, shape=shape, value=1, dtype=kind)
    count = own + ops.gather_sum.function(ones, at, shape=shape, dim=d)
    if not include_self:
        count = where((count > 1), count - 1, count)
    return total / count if x.dtype.is_differentiable else total // count


def _slices(x: Tensor, at: Tensor, d: int, source: Tensor, function: str) -> Tensor:
    """``source``, after checking that it has the shape of the slices of ``x`` at ``at``."""
    (v,) = lifted(source)
    shape = tuple(x._data.shape)
    expected = (*shape[:d], *at._data.shape, *shape[d + 1 :])
    if tuple(v._data.shape) != expected:
        raise RuntimeError(f"{function}(): expected source of shape {list(expected)}, got {list(v._data.shape)}")
    expect_same_dtype(x, v, "source", function)
    checked: Tensor = v
    return checked


@public(out="exact", inplace=True)
@shown_as("IndexAddBackward0", "input", "source")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """A copy of ``input`` with ``alpha`` times the slices of ``source`` added to those at ``index`` along ``dim``."""
    x, at, d = index_vector(input, dim, index, "index_add")
    v = _slices(x, at, d, source, "index_add")
    if x.dtype is dtypes.uint8 and isinstance(alpha, int) and -256 < alpha < 0:
        alpha += 256  # what is added wraps around to the same
    scaled = v if alpha == 1 else arguments.cast(v * value_for(x, alpha, "index_add: alpha"), x.dtype)
    with indices_within(x, d, "index_add", IndexError):
        added = ops.index_sum.function(scaled, at, shape=tuple(x._data.shape), dims=(d,))
    return unlifted(added + x, input)


@public(out="exact", inplace=True)
@shown_as("IndexCopyBackward0", "input", "source")
@autocast("widest")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of ``input`` with the slices at ``index`` along ``dim`` replaced by those of ``source``."""
    x, at, d = index_vector(input, dim, index, "index_copy")
    v = _slices(x, at, d, source, "index_copy")
    with indices_within(x, d, "index_copy", IndexError):
        out = ops.index_put.function(x, v, at, dims=(d,))
    return unlifted(out, input)


@public(inplace=True)
@shown_as("IndexFillBackward0")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy of ``input`` with a number (or 0-d tensor) in the slices at ``index`` along ``dim``."""
    x, at, d = index_vector(input, dim, index, "index_fill", wraps=True)
    count = x._data.shape[d]
    with indices_within(x, d, "index_fill", IndexError):
        filled = ops.index_put.function(new_full(at, shape=(count,), value=False, dtype="bool"), True, at, dims=(0,))
    mask = reshaped(filled, tuple(count if i == d else 1 for i in range(x._data.ndim)))
    out = where(mask, _number_or_0d(input, value, "index_fill"), x)  # each element once, unlike its index
    return preserved(unlifted(out, input), input)


def _number_or_0d(input: Tensor, value: Any, function: str) -> Any:
    if not isinstance(value, Tensor):
        return value_for(input, value, f"{function}: value")
    if value._data.ndim:
        raise RuntimeError(
            f"{function} only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return arguments.cast(value.to(input.device), input.dtype)


@public(inplace=True)
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of ``input`` with ``values`` written (or added, with ``accumulate``) where ``input[indices]`` reads.

    Args:
        indices: a tuple of index tensors, as in ``input[indices]``.
        values: a tensor that broadcasts to what they read.
        accumulate: whether values are added.
    """
    expect_same_dtype(input, arguments.expect_tensor(values, "values", "index_put"), "values", "index_put")
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"index_put(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    plan = ParsedKey(input, tuple(slice(None) if i is None else lifted(i)[0] for i in indices))
    dims = tuple(plan.dims)
    if not dims:
        raise RuntimeError("index_put: indices: expected at least one index tensor, got none; use copy_(values)")
    if not accumulate:
        return ops.index_put.function(input, values, *plan.indices, dims=dims)
    chosen = index_shape(tuple(input.shape), [tuple(i.shape) for i in plan.indices], dims)
    return input + ops.index_sum.function(values.expand(chosen), *plan.indices, shape=tuple(input.shape), dims=dims)


@public(inplace=True)
@shown_as("MaskedFillBackward0")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``value`` (a number or a 0-d tensor) where ``mask`` holds, ``input`` elsewhere. The two broadcast."""
    x = arguments.expect_tensor(input, "input", "masked_fill")
    out: Tensor = where(expect_mask(mask, "masked_fill"), _number_or_0d(x, value, "masked_fill"), x)
    return follow(out, None)


TOO_FEW = "masked_scatter: expected self and source to have number of elements in source >= number of ones in mask"


def _scattered_by_rank(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """masked_scatter of samples, which may choose differently many: elements of ``source`` by how many came before."""
    rank = reshaped(mask, (mask.numel(),)).cumsum(0)
    refuse(rank > source.numel(), error=RuntimeError, message=f"{TOO_FEW}, got {source.numel()} and more")
    if not source.numel():
        return where(mask, 0, x)
    chosen = reshaped(source, (source.numel(),))[(rank - 1).clamp(min=0)]
    return where(mask, reshaped(chosen, tuple(x.shape)), x)


@public(inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements where ``mask`` holds replaced by those of ``source``, in order."""
    expect_same_dtype(input, arguments.expect_tensor(source, "source", "masked_scatter"), "source", "masked_scatter")
    x, m = masked(input, mask, "masked_scatter")
    if getattr(dispatch.raw(m), "level", 0):
        return _scattered_by_rank(x, m, source)
    (places,) = nonzero(reshaped(m, (m.numel(),)), as_tuple=True)
    n = places.numel()
    if source.numel() < n:
        raise RuntimeError(f"{TOO_FEW}, got {source.numel()} and {n}")
    flat = ops.index_put.function(reshaped(x, (x.numel(),)), reshaped(source, (source.numel(),))[:n], places, dims=(0,))
    return alone(reshaped(flat, tuple(x.shape)))


def part_replaced(function: str, input: Tensor, src: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
    """A copy of ``input`` with ``part`` of it replaced by ``src``, which has its shape."""
    arguments.expect_tensor(src, "src", function)
    out = input.clone()
    if modes.get() & modes.BATCH:  # in which src may be, and input not
        out = where(new_full(src, shape=(), value=False, dtype="bool"), out, out)
    target = part(out)
    if target.shape != src.shape:
        raise RuntimeError(
            f"{function}: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice "
            f"size = {list(target.shape)}"
        )
    target.copy_(src)
    return out


@public
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with ``select(dim, index)`` replaced by ``src``.

    Args:
        src: the slice.
        index: its place along ``dim``.
    """
    return part_replaced("select_scatter", input, src, lambda x: select(x, dim, index))


@public(out="exact")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with the slice ``start:end:step`` of dimension ``dim`` replaced by ``src``.

    Args:
        src: of the shape of the part.
        start, end, step: of the part, as of a slice.
    """
    d = arguments.one_dim(input, dim, "slice_scatter")
    key = (*[slice(None)] * d, slice(start, end, step))
    return part_replaced("slice_scatter", input, src, lambda x: x[key])


@public
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with a diagonal replaced by ``src``.

    Args:
        src: the elements of the diagonal.
        offset: which one: 0 for the main diagonal, above it if positive.
        dim1, dim2: the dimensions in which it runs.
    """
    return part_replaced("diagonal_scatter", input, src, lambda x: diagonal(x, offset, dim1, dim2))


@public
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy with ``as_strided(size, stride, storage_offset)`` replaced by ``src``.

    Args:
        src: of the shape ``size``.
        size: of the view that is replaced.
        storage_offset: where it begins.
    """
    return part_replaced("as_strided_scatter", input, src, lambda x: as_strided(x, size, stride, storage_offset))


@public(out="exact")
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``narrow(dim, start, length)`` as a copy.

    Args:
        start: the first place.
        length: how many.
    """
    return narrow(input, dim, start, length).clone()


@public(out="exact")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of ``input`` whose slices at ``index`` along ``dim`` are combined with those of ``source``.

    Args:
        index: integers. (n,)
        source: of the shape of ``input``, with n slices along ``dim``.
        reduce: "prod", "mean", "amax" or "amin".
        include_self: whether what is there counts as one of them.

    Raises:
        RuntimeError: another ``reduce``, or shapes that do not fit. IndexError: an index is out of range.
    """
    at = arguments.expect_tensor(index, "index", "index_reduce")
    d = arguments.one_dim(input, dim, "index_reduce")
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce: reduce: expected prod, mean, amax or amin, got {reduce!r}")
    if not input.ndim and at.numel() == 1:
        one = index_reduce(input.reshape(1), 0, at.reshape(1), source.reshape(1), reduce, include_self=include_self)
        return alone(one.reshape(()))
    wanted = (*input.shape[:d], at.numel(), *input.shape[d + 1 :])
    if at.ndim != 1 or not input.ndim or arguments.expect_tensor(source, "source", "index_reduce").shape != wanted:
        raise RuntimeError(
            f"index_reduce: expected an index of one dimension and a source of size {list(wanted)}, got index of size "
            f"{list(at.shape)} and source of size {list(source.shape)} for dimension {d} of size {list(input.shape)}"
        )
    everywhere = at.reshape([-1 if e == d else 1 for e in range(input.ndim)]).expand(wanted)
    return scatter_reduce(input, d, everywhere, source, reduce, include_self=include_self)


@public(only="Tensor")
def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``index_reduce`` in place."""
    return update(self, index_reduce, dim, index, source, reduce, include_self=include_self)


@public
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with elements of ``source`` at places of the flattened tensor; they add up if ``accumulate``.

    Args:
        index: places in the flattened tensor.
        source: as many elements.
        accumulate: whether they are added.

    Raises:
        RuntimeError: not as many elements as places. IndexError: a place is out of range.
    """
    at = arguments.expect_tensor(index, "index", "put")
    new = arguments.expect_tensor(source, "source", "put")
    if at.dtype is not dtypes.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {at.dtype}")
    if new.dtype is not input.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype} and "
            f"source.dtype = {new.dtype}"
        )
    if at.numel() != new.numel():
        raise RuntimeError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{new.numel()}, index.numel() = {at.numel()}"
        )
    n = input.numel()
    if at.numel() and not -n <= int(at.min()) <= int(at.max()) < n:
        raise IndexError(f"put_(): out of range: an index is outside the {n} elements of the tensor")
    flat, places = reshaped(input, (n,)), at.reshape(-1) % max(n, 1)
    filled = (scatter_add if accumulate else scatter)(flat, 0, places, new.reshape(-1))
    return alone(reshaped(filled, tuple(input.shape)))


@public(only="Tensor")
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``put`` in place."""
    return update(self, put, index, source, accumulate)
