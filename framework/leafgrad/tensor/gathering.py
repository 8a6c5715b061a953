"""Elements picked by index tensors and masks: gather, index_select, masked_select, take, nonzero, …"""

from __future__ import annotations

import math
import re
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import dispatch, index as ops
from leafgrad.ops.classes import POSITIVE
from leafgrad.ops.compare import bitwise_and
from leafgrad.ops.index import argwhere as argwhere_op
from leafgrad.ops.marks import shown_as
from leafgrad.ops.shape import part
from leafgrad.tensor import arguments
from leafgrad.tensor.arguments import expect_tensor, shape as shape_of
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import broadcast_shapes, broadcast_tensors, reshaped
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

_and, _gather, _part = bitwise_and.function, ops.gather.function, part.function

# ---- checks -------------------------------------------------------------------------------------------------------


def expect_indices(index: Any, function: str, *, wraps: bool = False) -> Tensor:
    """``index`` if it holds integers. Unless it ``wraps``, negative ones are put out of range: they lose the sign."""
    arguments.expect_tensor(index, "index", function)
    kind = dtypes.of(index._data)
    if kind is not dtypes.int64:
        if kind is not dtypes.int32:
            raise RuntimeError(
                f"{function}(): Expected dtype int32/int64 for index, got {kind}; convert it with .long()"
            )
        index = index if wraps else arguments.cast(index, dtypes.int64)
    checked: Tensor = index if wraps else _and(index, POSITIVE)
    return checked


class indices_within:
    """Within it an index out of range, of dimension ``d`` of ``x``, is an error of a kind, in the caller's words."""

    __slots__ = ("d", "function", "kind", "x")

    def __init__(self, x: Tensor, d: int, function: str, kind: type[Exception] = RuntimeError) -> None:
        self.x, self.d, self.function, self.kind = x, d, function, kind

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type | None, error: BaseException | None, where: object) -> None:
        if not isinstance(error, (IndexError, RuntimeError)) or "out of bounds" not in str(error):
            return
        found = re.search(r"index (\d+) is out", str(error))
        index, n = int(found[1]) if found else POSITIVE, self.x._data.shape[self.d]
        raise self.kind(
            f"{self.function}(): index {index if index < 1 << 61 else index - POSITIVE - 1} is out of bounds for "
            f"dimension {self.d} with size {n}; expected indices from 0 to {n - 1}: negative ones do not count from "
            "the end here"
        ) from None


def expect_same_dtype(input: Tensor, other: Tensor, name: str, function: str) -> None:
    if input.dtype is not other.dtype:
        raise RuntimeError(
            f"{function}(): Expected self.dtype to be equal to {name}.dtype, got {input.dtype} and {other.dtype}"
        )


def expect_fitting(input: Tensor, index: Tensor, d: int, function: str) -> None:
    """A RuntimeError unless ``index`` is nowhere larger than ``input``, apart from dimension ``d``."""
    mine, theirs = input._data.shape, index._data.shape
    if len(mine) != len(theirs):
        raise RuntimeError(
            f"{function}(): Index tensor must have the same number of dimensions as input tensor, got {list(theirs)} "
            f"and {list(mine)}"
        )
    for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if b > a and k != d:
            raise RuntimeError(
                f"{function}(): Size does not match at some dimension: expected index {list(theirs)} to be no larger "
                f"than input {list(mine)} apart from dimension {d}"
            )


def lifted(*tensors: Any) -> list[Any]:
    """Tensors without dimensions as tensors of one."""
    return [reshaped(x, (1,)) if isinstance(x, Tensor) and not x._data.ndim else x for x in tensors]


# ---- along one dimension ------------------------------------------------------------------------------------------


@public(out="exact")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """out[i, j, k] = input[i, index[i, j, k], k] for ``dim=1``, and alike for others.

    Args:
        index: int64 or int32, with as many dimensions as ``input`` and, apart from ``dim``, nowhere larger.
        sparse_grad: accepted, and not used.

    Raises:
        RuntimeError: dtype or shape of ``index``. IndexError: an index is out of range.
    """
    if sparse_grad:
        raise NotImplementedError("gather: sparse_grad: there are no sparse tensors; leave it False")
    d = arguments.one_dim(arguments.expect_tensor(input, "input", "gather"), dim, "gather")
    if 0 in arguments.expect_tensor(index, "index", "gather")._data.shape:  # of any dtype: it names nothing
        index = arguments.cast(index, dtypes.int64)
    return _gathered(input, d, expect_indices(index, "gather"), "gather")


def _gathered(input: Tensor, d: int, index: Tensor, function: str) -> Tensor:
    shape = index._data.shape
    x, at = lifted(input, index)
    if 0 in shape:
        at = nothing(at, x.ndim)
    expect_fitting(x, at, d, function)
    with indices_within(x, d, function):
        out: Tensor = _gather(x, at, dim=d)
    return alone(reshaped(out, tuple(shape))) if 0 in shape or not shape else out


def nothing(x: Tensor, ndim: int) -> Tensor:
    """No element of ``x``: an index without elements names none, whatever its shape is."""
    first = part(reshaped(x, (x.numel(),)), at=((0, 0, 1),))
    return reshaped(first, (0,) * ndim)


def unlifted(out: Tensor, input: Tensor) -> Tensor:
    return out if input._data.ndim else alone(reshaped(out, ()))


@public(out="exact")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """``gather`` with the other dimensions broadcast; without ``dim`` from the flattened tensors.

    Here negative indices count from the end.

    Args:
        indices: places along ``dim``; broadcast with ``input``.
    """
    at = expect_indices(indices, "take_along_dim", wraps=True)
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
    if mine != theirs:
        common = broadcast_shapes(mine, theirs)
        input, at = (x.expand((*common[:d], x.shape[d], *common[d + 1 :])) for x in (input, at))
    return _gathered(input, d, at, "take_along_dim")


# ---- whole slices -------------------------------------------------------------------------------------------------


def index_vector(
    input: Tensor, dim: int, index: Tensor, function: str, *, wraps: bool = False
) -> tuple[Tensor, Tensor, int]:
    """``input`` and ``index`` with one dimension at least, and the checked ``dim``."""
    d = arguments.one_dim(arguments.expect_tensor(input, "input", function), dim, function)
    x, at = lifted(input, expect_indices(index, function, wraps=wraps))
    if at._data.ndim > 1:
        raise IndexError(f"{function}(): Index is supposed to be a vector, got shape {list(index.shape)}")
    return x, at, d


@public(out="exact")
@shown_as("IndexSelectBackward0")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of ``input`` along ``dim`` at a vector of indices, as a copy."""
    x, at, d = index_vector(input, dim, index, "index_select")
    with indices_within(x, d, "index_select", IndexError):
        out = ops.index.function(x, at, dims=(d,))
    return unlifted(out, input)


# ---- by masks -----------------------------------------------------------------------------------------------------


def expect_mask(mask: Any, function: str) -> Tensor:
    arguments.expect_tensor(mask, "mask", function)
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"{function}: expected BoolTensor for mask, but got {mask.dtype}; convert it with .bool()")
    checked: Tensor = mask
    return checked


def masked(input: Tensor, mask: Any, function: str) -> tuple[Tensor, ...]:
    """``input`` and ``mask``, which says where something is done, of one shape."""
    arguments.expect_tensor(input, "input", function)
    m = expect_mask(mask, function)
    return (input, m) if input._data.shape == m._data.shape else broadcast_tensors(input, m)


@public(out="exact")
@shown_as("MaskedSelectBackward0")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where ``mask`` holds. How many depends on values: the host waits. (...) -> (n,)"""
    x, m = masked(input, mask, "masked_select")
    return x[m] if x.ndim else reshaped(x, (1,))[reshaped(m, (1,))]


@public(out="exact")
@shown_as("TakeBackward0")
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements of the flattened ``input`` at ``index``. -> index.shape

    Args:
        index: places in the flattened tensor.
    """
    at = expect_indices(index, "take", wraps=True)
    return ops.index.function(reshaped(input, (input.numel(),)), at, dims=(0,))


@public(only="leafgrad")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates in an array of ``shape`` of indices into the flattened array, one int64 tensor per dimension.

    Args:
        indices: integers, each less than the product of ``shape``; negative ones count from the end.
        shape: an int or a sequence of ints.

    Raises:
        ValueError: an index is out of range. TypeError: not integers. RuntimeError: a size is negative.
    """
    if expect_tensor(indices, "indices", "unravel_index").dtype.category != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = shape_of((shape,), "unravel_index", "shape")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    count = math.prod(sizes)
    if indices.numel() and bool(((indices >= count) | (indices < -count)).any()):
        raise ValueError(f"unravel_index: indices: expected indices below {count}, the product of shape {sizes}")
    flat = arguments.cast(indices, dtypes.int64)
    flat = where(flat < 0, flat + count, flat)
    found = []
    for n in reversed(sizes):
        n = max(n, 1)
        found.append(flat % n)
        flat = flat // n
    return tuple(reversed(found))


# ---- search -------------------------------------------------------------------------------------------------------


@public
def argwhere(input: Tensor) -> Tensor:
    """Indices of the elements that are not zero, in order. (how many, input.ndim), int64

    How many depends on values: the host waits for the device, and a compiled step is cut in two here.
    """
    out: Tensor = dispatch.computed(argwhere_op, arguments.expect_tensor(input, "input", "nonzero"))
    return out


@public
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first ``size`` rows of ``argwhere``, and below them rows of ``fill_value``. (...) -> (size, dim) int64

    Raises:
        RuntimeError: ``size`` is negative.
    """
    found = argwhere(input)
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    made = found.new_full((size, found.shape[1]), fill_value)
    made[: found.shape[0]] = found[:size]
    return made


@public(out="exact")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Like ``argwhere``; with ``as_tuple`` one tensor (how many,) for each dimension, which can index ``input``.

    Args:
        as_tuple: whether the result is one tensor for each dimension.
    """
    found = argwhere(input if not as_tuple or input.ndim else reshaped(input, (1,)))
    if not as_tuple:
        return found
    every = (0, found.shape[0], 1)
    return tuple([_part(found, at=(every, d)) for d in range(found.shape[1])])
