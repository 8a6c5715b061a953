"""Copies and parts in another order: flip, roll, repeat, diagonals, triangles, windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import diagonals, index as index_ops, shape as ops
from leafgrad.ops.convert import clone
from leafgrad.ops.marks import shown_as
from leafgrad.ops.strided import windows
from leafgrad.tensor import arguments
from leafgrad.tensor.data import copied
from leafgrad.tensor.formats import channels_last, follow, preserved
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

# ---- order --------------------------------------------------------------------------------------------------------


@public(only="leafgrad")
def flip(input: Tensor, dims: Any) -> Tensor:
    """A copy with the order along ``dims`` reversed."""
    arguments.expect_tensor(input, "input", "flip")
    given = arguments.shape((dims,), "flip", "dims")
    return preserved(ops.flip.function(input, dims=arguments.dims(input, given, "flip") if given else ()), input)


attach("flip", lambda self, *dims: flip(self, arguments.shape(dims, "flip", "dims")))


@public
def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns in reverse order."""
    if input.ndim < 2:
        raise RuntimeError(f"fliplr: Input must be >= 2-d, got {input.ndim}-d")
    return flip(input, (1,))


@public
def flipud(input: Tensor) -> Tensor:
    """A copy with the rows in reverse order."""
    if input.ndim < 1:
        raise RuntimeError("flipud: Input must be >= 1-d, got 0-d")
    return flip(input, (0,))


@public
@shown_as("RollBackward0")
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Elements shifted by ``shifts`` along ``dims``, coming in again at the other end; flattened without ``dims``."""
    by = arguments.shape((shifts,), "roll", "shifts")
    if not by:
        raise RuntimeError("roll: shifts: `shifts` required, got none; pass an int, or one for each of dims")
    if dims is None or (isinstance(dims, tuple) and not dims):
        if len(by) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:0")
        flat = ops.roll.function(reshaped(input, (input.numel(),)), shifts=by, dims=(0,))
        return alone(reshaped(flat, tuple(input._data.shape)))
    along = arguments.shape((dims,), "roll", "dims")
    if len(by) != len(along):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(along)}")
    if not input.ndim:
        raise IndexError(f"roll: dims: Dimension specified as {along[0]} but tensor has no dimensions; leave out dims")
    along = tuple(arguments.one_dim(input, d, "roll", name="dims") for d in along)
    out: Tensor = ops.roll.function(input, shifts=by, dims=along)
    return follow(out, order) if (order := channels_last(input)) else out


@public
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotated by k * 90 degrees in the plane of ``dims``, from the first towards the second."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    a, b = (arguments.one_dim(input, d, "rot90", name="dims") for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    match k % 4:
        case 1:
            return alone(flip(input, (b,)).transpose(a, b))
        case 2:
            return flip(input, (a, b))
        case 3:
            return alone(flip(input, (a,)).transpose(a, b))
    return clone(input)


# ---- repetition ---------------------------------------------------------------------------------------------------


@public(only="Tensor")
@shown_as("RepeatBackward0")
def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """A copy with dimension i repeated ``repeats[i]`` times; new dimensions come first."""
    times = arguments.shape(repeats, "repeat", "repeats")
    shape = tuple(self._data.shape)
    if len(times) < len(shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor, got "
            f"{len(times)} and {len(shape)}"
        )
    if times and min(times) < 0:
        raise RuntimeError(f"repeat: Trying to create tensor with negative dimension, got repeats {list(times)}")
    sizes = (1,) * (len(times) - len(shape)) + shape
    between = reshaped(self, tuple(n for size in sizes for n in (1, size)))
    spread = ops.expand.function(between, shape=tuple(n for pair in zip(times, sizes, strict=True) for n in pair))
    full = tuple(r * n for r, n in zip(times, sizes, strict=True))
    return separate(reshaped(spread, full))


def separate(x: Tensor) -> Tensor:
    """``x``, or a copy if it is a view."""
    return x if x._view is None else clone(x)


@public(only="leafgrad")
def tile(input: Tensor, dims: Any) -> Tensor:
    """A copy with the last dimensions repeated ``dims`` times.

    Args:
        dims: how often each of the last dimensions is repeated.
    """
    times = arguments.shape((dims,), "tile", "dims")
    return repeat(input, (1,) * (arguments.expect_tensor(input, "input", "tile").ndim - len(times)) + times)


attach("tile", lambda self, *dims: tile(self, arguments.shape(dims, "tile", "dims")))


@public
def repeat_interleave(
    input: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each slice along ``dim`` repeated ``repeats`` times (an int, or a tensor with one for each), in place.

    Without ``dim`` of the flattened tensor. A tensor of repeats is read on the host. With ``input`` alone that is the
    repeats, of 0, 1, 2, …
    """
    if repeats is None:
        if input.ndim != 1:
            raise RuntimeError(f"repeat_interleave only accepts 1D vector as repeat, got {input.ndim} dimensions")
        return repeat_interleave(copied(list(range(input.numel())), input.dtype, input.device), input, 0)
    if dim is None:
        return repeat_interleave(reshaped(input, (input.numel(),)), repeats, 0)
    d = arguments.one_dim(input, dim, "repeat_interleave")
    shape = tuple(input._data.shape)
    kind = repeats.dtype if isinstance(repeats, Tensor) else dtypes.int64
    if kind not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"repeats has to be Long or Int tensor, got {kind}; convert it with .long()")
    counts = repeats.tolist() if isinstance(repeats, Tensor) else repeats
    if isinstance(counts, list) and len(counts) == 1:
        counts = counts[0]
    if isinstance(counts, list):
        if len(counts) != shape[d]:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, got {len(counts)} and size {shape[d]}"
            )
        if min(counts, default=0) < 0:
            raise RuntimeError(f"repeats can not be negative, got {min(counts)}")
        at = copied([i for i, n in enumerate(counts) for _ in range(n)], None, input.device).to(kind)
        return index_ops.index.function(input, at, dims=(d,), inside=True)
    if counts < 0:
        raise RuntimeError(f"repeats can not be negative, got {counts}")
    between = reshaped(input, (*shape[: d + 1], 1, *shape[d + 1 :]))
    spread = ops.expand.function(between, shape=(*shape[: d + 1], counts, *shape[d + 1 :]))
    return separate(reshaped(spread, (*shape[:d], shape[d] * counts, *shape[d + 1 :])))


# ---- diagonals and triangles --------------------------------------------------------------------------------------


@public
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements [i, i + offset] of two dimensions, as the last dimension of a view."""
    a = arguments.one_dim(input, dim1, "diagonal", name="dim1")
    b = arguments.one_dim(input, dim2, "diagonal", name="dim2")
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diagonals.diagonal.function(input, offset=offset, dims=(a, b))


@public
@shown_as("DiagEmbedBackward0")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Zeros with the last dimension of ``input`` on a diagonal of the dimensions ``dim1`` and ``dim2``."""
    a = arguments.one_dim(input, dim1, "diag_embed", name="dim1", extra=1)
    b = arguments.one_dim(input, dim2, "diag_embed", name="dim2", extra=1)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    *rest, n = input._data.shape
    size, left = n + abs(offset), iter(rest)
    shape = tuple(size if d in (a, b) else next(left) for d in range(input._data.ndim + 1))
    return diagonals.undiagonal.function(input, shape=shape, offset=offset, dims=(a, b))


@public(out="exact")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, as a copy; or a matrix with ``input`` (n,) on its diagonal."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    if input.ndim == 1:
        return diag_embed(input, diagonal, 0, 1)
    return clone(diagonals.diagonal.function(input, offset=diagonal, dims=(0, 1)))


@public
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements of ``input`` on its diagonal."""
    return diag_embed(reshaped(input, (input.numel(),)), offset, 0, 1)


@public(out="exact")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two dimensions, zeros elsewhere. (..., m, n) -> (..., m, n)"""
    return diagonals.tril.function(_matrix(input, "tril"), diagonal=diagonal)


@public(out="exact")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two dimensions, zeros elsewhere. (..., m, n) -> (..., m, n)"""
    return diagonals.triu.function(_matrix(input, "triu"), diagonal=diagonal)


def _matrix(input: Tensor, function: str) -> Tensor:
    if arguments.expect_tensor(input, "input", function).ndim < 2:
        raise RuntimeError(f"{function}: input tensor must have at least 2 dimensions, got {input.ndim}")
    return input


# ---- windows and margins ------------------------------------------------------------------------------------------


@public(only="Tensor")
@shown_as("UnfoldBackward0")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of ``size`` along ``dimension``, ``step`` apart, as a new last dimension of a view."""
    d = arguments.one_dim(self, dimension, "unfold", name="dimension")
    source = self if self._data.ndim else reshaped(self, (1,))
    n = source._data.shape[d]
    if size < 0 or size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    out = windows(source, dim=d, size=size, step=step)
    return out if self._data.ndim else reshaped(out, (size,))


def constant_pad(input: Tensor, pad: tuple[int, ...], value: float) -> Tensor:
    """``value`` around the last dimensions: ``pad`` has (before, after) for the last one, then the one before, …

    Negative numbers cut off. ``nn.functional.pad`` checks its arguments and calls this.
    """
    shape, ranges = list(input._data.shape), [(0, n, 1) for n in input._data.shape]
    inner = list(ranges)
    for i in range(len(pad) // 2):
        d, before, after = len(shape) - 1 - i, pad[2 * i], pad[2 * i + 1]
        n = shape[d]
        ranges[d] = (max(-before, 0), n - max(-after, 0), 1)
        shape[d] = n + before + after
        if shape[d] < 0 or ranges[d][0] > ranges[d][1]:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {before} and {after} resulted in a negative output size, "
                f"which is invalid. Check dimension {d} of your input."
            )
        inner[d] = (max(before, 0), max(before, 0) + ranges[d][1] - ranges[d][0], 1)
    cut = (
        input
        if all(r == (0, n, 1) for r, n in zip(ranges, input._data.shape, strict=True))
        else ops.part.function(input, at=tuple(ranges))
    )
    if tuple(shape) == tuple(cut._data.shape):
        return clone(cut)
    return ops.pad.function(cut, at=tuple(inner), shape=tuple(shape), value=value)
