"""Elements picked and written by index tensors: gather, scatter, index_select, index_add, masked_fill, take, …"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import index as ops
from leafgrad.ops.classes import POSITIVE
from leafgrad.ops.compare import bitwise_and
from leafgrad.ops.convert import new_full
from leafgrad.ops.geometry import index_shape
from leafgrad.ops.marks import shown_as
from leafgrad.ops.select import where
from leafgrad.ops.shape import part
from leafgrad.tensor import arguments
from leafgrad.tensor.indexing import Plan
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import broadcast_shapes, broadcast_tensors, reshaped
from leafgrad.tensor.sorting import nonzero
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.writes import value_for

# ---- checks -------------------------------------------------------------------------------------------------------


def _indices(index: Any, function: str, *, wraps: bool = False) -> Tensor:
    """``index`` if it holds integers. Unless it ``wraps``, negative ones are put out of range: they lose the sign."""
    arguments.expect_tensor(index, "index", function)
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            f"{function}(): Expected dtype int32/int64 for index, got {index.dtype}; convert it with .long()"
        )
    checked: Tensor = index if wraps else bitwise_and(arguments.cast(index, dtypes.int64), POSITIVE)
    return checked


@contextmanager
def _within(x: Tensor, d: int, function: str, kind: type[Exception] = RuntimeError) -> Iterator[None]:
    """An index out of range is an error of this kind, in the caller's words."""
    try:
        yield
    except (IndexError, RuntimeError) as error:
        if "out of bounds" not in str(error):
            raise
        found = re.search(r"index (\d+) is out", str(error))
        index, n = int(found[1]) if found else POSITIVE, x._data.shape[d]
        raise kind(
            f"{function}(): index {index if index < 1 << 61 else index - POSITIVE - 1} is out of bounds for dimension "
            f"{d} with size {n}; expected indices from 0 to {n - 1}: negative ones do not count from the end here"
        ) from None


def _same_dtype(input: Tensor, other: Tensor, name: str, function: str) -> None:
    if input.dtype is not other.dtype:
        raise RuntimeError(
            f"{function}(): Expected self.dtype to be equal to {name}.dtype, got {input.dtype} and {other.dtype}"
        )


def _fits(input: Tensor, index: Tensor, d: int, function: str) -> None:
    """A RuntimeError unless ``index`` is nowhere larger than ``input``, apart from dimension ``d``."""
    mine, theirs = input._data.shape, index._data.shape
    if len(mine) != len(theirs):
        raise RuntimeError(
            f"{function}(): Index tensor must have the same number of dimensions as input tensor, got {list(theirs)} "
            f"and {list(mine)}"
        )
    if any(b > a for k, (a, b) in enumerate(zip(mine, theirs, strict=True)) if k != d):
        raise RuntimeError(
            f"{function}(): Size does not match at some dimension: expected index {list(theirs)} to be no larger than "
            f"input {list(mine)} apart from dimension {d}"
        )


def _lifted(*tensors: Any) -> list[Any]:
    """Tensors without dimensions as tensors of one."""
    return [reshaped(x, (1,)) if isinstance(x, Tensor) and not x._data.ndim else x for x in tensors]


# ---- along one dimension ------------------------------------------------------------------------------------------


@public(out="exact")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """out[i, j, k] = input[i, index[i, j, k], k] for ``dim=1``, and alike for others.

    Args:
        index: int64 or int32, with as many dimensions as ``input`` and, apart from ``dim``, nowhere larger.

    Raises:
        RuntimeError: dtype or shape of ``index``. IndexError: an index is out of range.
    """
    if sparse_grad:
        raise NotImplementedError("gather: sparse_grad: there are no sparse tensors; leave it False")
    d = arguments.one_dim(arguments.expect_tensor(input, "input", "gather"), dim, "gather")
    return _gathered(input, d, _indices(index, "gather"), "gather")


def _gathered(input: Tensor, d: int, index: Tensor, function: str) -> Tensor:
    x, at = _lifted(input, index)
    if 0 in index.shape:
        at = _nothing(at, x.ndim)
    _fits(x, at, d, function)
    with _within(x, d, function):
        out: Tensor = ops.gather(x, at, dim=d)
    return reshaped(out, tuple(index.shape)) if 0 in index.shape or not index._data.ndim else out


def _nothing(x: Tensor, ndim: int) -> Tensor:
    """No element of ``x``: an index without elements names none, whatever its shape is."""
    first = part(reshaped(x, (x.numel(),)), at=((0, 0, 1),))
    return reshaped(first, (0,) * ndim)


def _scatter_arguments(input: Tensor, dim: int, index: Tensor, src: Any, function: str) -> tuple[Any, ...]:
    """Checked, without 0-d tensors, and ``src`` cut to the shape of ``index``."""
    d = arguments.one_dim(arguments.expect_tensor(input, "input", function), dim, function)
    x, at, v = _lifted(input, _indices(index, function), src)
    if 0 in index.shape:
        at, v = _nothing(at, x.ndim), _nothing(v, x.ndim) if isinstance(v, Tensor) else v
    _fits(x, at, d, function)
    if isinstance(v, Tensor):
        _same_dtype(input, v, "src", function)
        _fits(v, at, -1, function)
        if v._data.shape != at._data.shape:
            v = part(v, at=tuple((0, n, 1) for n in at._data.shape))
    return x, at, v, d


def _finished(out: Tensor, input: Tensor) -> Tensor:
    return out if input._data.ndim else reshaped(out, ())


@public(out="exact", inplace=True)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """A copy of ``input`` with out[i, index[i, j, k], k] = src[i, j, k] for ``dim=1``, and alike for others.

    Args:
        src: a tensor at least as large as ``index``, of the dtype of ``input``; or a number, also as ``value``.
        reduce: "add" or "multiply" to combine with what is there, and with what else goes to one place.

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
    with _within(x, d, "scatter"):
        out: Tensor = ops.scatter(x, at, v, dim=d)
    return _finished(out, input)


@public(out="exact", inplace=True)
@shown_as("ScatterAddBackward0", "input", "src")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of ``input`` with src[i, j, k] added to out[i, index[i, j, k], k] for ``dim=1``, and alike for others."""
    arguments.expect_tensor(src, "src", "scatter_add")
    x, at, v, d = _scatter_arguments(input, dim, index, src, "scatter_add")
    with _within(x, d, "scatter_add"):
        out: Tensor = x + ops.gather_sum(v, at, shape=tuple(x._data.shape), dim=d)
    return _finished(out, input)


@public(out="exact", inplace=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Like ``scatter``, with all values that go to one place combined.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether what is there counts as one of them.
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got {reduce!r}"
        )
    x, at, v, d = _scatter_arguments(input, dim, index, src, "scatter_reduce")
    with _within(x, d, "scatter_reduce"):
        return _finished(_combined(x, at, v, d, reduce, include_self), input)


def _combined(x: Tensor, at: Tensor, v: Tensor, d: int, reduce: str, include_self: bool) -> Any:
    shape = tuple(x._data.shape)
    if reduce in ("amax", "amin"):
        if not include_self:
            lowest = -math.inf if reduce == "amax" else math.inf
            x = ops.scatter(x, at, lowest if x.dtype.is_floating_point else v, dim=d)
        return ops.scatter_best(x, at, v, dim=d, largest=reduce == "amax")
    if not include_self:
        x = ops.scatter(x, at, 1 if reduce == "prod" else 0, dim=d)
    if reduce == "prod" and x.dtype is dtypes.bool_:
        return ops.scatter_best(x, at, v, dim=d, largest=False)
    if reduce == "prod":
        return ops.scatter_product(x, at, v, dim=d)
    total = x + ops.gather_sum(v, at, shape=shape, dim=d)
    if reduce == "sum":
        return total
    ones = new_full(v, shape=tuple(v._data.shape), value=1)
    own = new_full(x, shape=shape, value=1)
    count = own + ops.gather_sum(ones, at, shape=shape, dim=d)
    if not include_self:
        count = where((count > 1), count - 1, count)
    return total / count if x.dtype.is_floating_point else total // count


@public(out="exact")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """``gather`` with the other dimensions broadcast; without ``dim`` from the flattened tensors.

    Here negative indices count from the end.
    """
    at = _indices(indices, "take_along_dim", wraps=True)
    if dim is None:
        return _gathered(reshaped(input, (input.numel(),)), 0, reshaped(at, (at.numel(),)), "take_along_dim")
    d = arguments.one_dim(input, dim, "take_along_dim")
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    mine, theirs = list(input.shape), list(indices.shape)
    mine[d] = theirs[d] = 1
    common = broadcast_shapes(mine, theirs)
    mine, theirs = list(common), list(common)
    mine[d], theirs[d] = input.shape[d], indices.shape[d]
    return _gathered(input.expand(mine), d, at.expand(theirs), "take_along_dim")


# ---- whole slices -------------------------------------------------------------------------------------------------


def _vector(
    input: Tensor, dim: int, index: Tensor, function: str, *, wraps: bool = False
) -> tuple[Tensor, Tensor, int]:
    """``input`` and ``index`` with one dimension at least, and the checked ``dim``."""
    d = arguments.one_dim(arguments.expect_tensor(input, "input", function), dim, function)
    x, at = _lifted(input, _indices(index, function, wraps=wraps))
    if at._data.ndim > 1:
        raise IndexError(f"{function}(): Index is supposed to be a vector, got shape {list(index.shape)}")
    return x, at, d


def _slices(x: Tensor, at: Tensor, d: int, source: Tensor, function: str) -> Tensor:
    """``source``, after checking that it has the shape of the slices of ``x`` at ``at``."""
    (v,) = _lifted(source)
    shape = tuple(x._data.shape)
    expected = (*shape[:d], *at._data.shape, *shape[d + 1 :])
    if tuple(v._data.shape) != expected:
        raise RuntimeError(f"{function}(): expected source of shape {list(expected)}, got {list(v._data.shape)}")
    _same_dtype(x, v, "source", function)
    checked: Tensor = v
    return checked


@public(out="exact")
@shown_as("IndexSelectBackward0")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of ``input`` along ``dim`` at a vector of indices, as a copy."""
    x, at, d = _vector(input, dim, index, "index_select")
    with _within(x, d, "index_select", IndexError):
        out = ops.index(x, at, dims=(d,))
    return _finished(out, input)


@public(out="exact", inplace=True)
@shown_as("IndexAddBackward0", "input", "source")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """A copy of ``input`` with ``alpha`` times the slices of ``source`` added to those at ``index`` along ``dim``."""
    x, at, d = _vector(input, dim, index, "index_add")
    v = _slices(x, at, d, source, "index_add")
    with _within(x, d, "index_add", IndexError):
        scaled = v if alpha == 1 else arguments.cast(v * alpha, x.dtype if isinstance(alpha, int) else None)
        added = ops.index_sum(scaled, at, shape=tuple(x._data.shape), dims=(d,))
    return _finished(x + added, input)


@public(out="exact", inplace=True)
@shown_as("IndexCopyBackward0", "input", "source")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of ``input`` with the slices at ``index`` along ``dim`` replaced by those of ``source``."""
    x, at, d = _vector(input, dim, index, "index_copy")
    v = _slices(x, at, d, source, "index_copy")
    with _within(x, d, "index_copy", IndexError):
        out = ops.index_put(x, v, at, dims=(d,))
    return _finished(out, input)


@public(inplace=True)
@shown_as("IndexFillBackward0")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy of ``input`` with a number (or 0-d tensor) in the slices at ``index`` along ``dim``."""
    x, at, d = _vector(input, dim, index, "index_fill", wraps=True)
    return _finished(ops.index_put(x, _number_or_0d(input, value, "index_fill"), at, dims=(d,)), input)


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
    """A copy of ``input`` with ``values`` written (or added, with ``accumulate``) where ``input[indices]`` reads."""
    _same_dtype(input, arguments.expect_tensor(values, "values", "index_put"), "values", "index_put")
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"index_put(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    plan = Plan(input, tuple(slice(None) if i is None else _lifted(i)[0] for i in indices))
    dims = tuple(plan.dims)
    if not accumulate:
        return ops.index_put(input, values, *plan.indices, dims=dims)
    chosen = index_shape(tuple(input.shape), [tuple(i.shape) for i in plan.indices], dims)
    return input + ops.index_sum(values.expand(chosen), *plan.indices, shape=tuple(input.shape), dims=dims)


# ---- by masks -----------------------------------------------------------------------------------------------------


def _mask(mask: Any, function: str) -> Tensor:
    arguments.expect_tensor(mask, "mask", function)
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"{function}: expected BoolTensor for mask, but got {mask.dtype}; convert it with .bool()")
    checked: Tensor = mask
    return checked


@public(inplace=True)
@shown_as("MaskedFillBackward0")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``value`` (a number or a 0-d tensor) where ``mask`` holds, ``input`` elsewhere. The two broadcast."""
    x = arguments.expect_tensor(input, "input", "masked_fill")
    return where(_mask(mask, "masked_fill"), _number_or_0d(x, value, "masked_fill"), x)


@public(out="exact")
@shown_as("MaskedSelectBackward0")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where ``mask`` holds. How many depends on values: the host waits. (...) -> (n,)"""
    x, m = broadcast_tensors(input, _mask(mask, "masked_select"))
    return x[m] if x.ndim else reshaped(x, (1,))[reshaped(m, (1,))]


@public(inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements where ``mask`` holds replaced by those of ``source``, in order."""
    _same_dtype(input, arguments.expect_tensor(source, "source", "masked_scatter"), "source", "masked_scatter")
    x, m = broadcast_tensors(input, _mask(mask, "masked_scatter"))
    (places,) = nonzero(reshaped(m, (m.numel(),)), as_tuple=True)
    n = places.numel()
    if source.numel() < n:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have number of elements in source >= number of ones in "
            f"mask, got {source.numel()} and {n}"
        )
    flat = ops.index_put(reshaped(x, (x.numel(),)), reshaped(source, (source.numel(),))[:n], places, dims=(0,))
    return reshaped(flat, tuple(x.shape))


@public(out="exact")
@shown_as("TakeBackward0")
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements of the flattened ``input`` at ``index``. -> index.shape"""
    at = _indices(index, "take", wraps=True)
    return ops.index(reshaped(input, (input.numel(),)), at, dims=(0,))
