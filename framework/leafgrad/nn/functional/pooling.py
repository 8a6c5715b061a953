"""The largest element of windows: of one size, or of a given number of them; and putting it back where it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad.dtypes import FLOATING, int64, of
from leafgrad.nn.functional.windows import (
    Size,
    Sizes,
    Wanted,
    adaptive,
    at_least,
    expect_filled,
    per_dim,
    pooled,
    shares,
)
from leafgrad.ops import windows as ops
from leafgrad.ops.marks import shown_as
from leafgrad.ops.windows import Windows
from leafgrad.tensor.arguments import expect_real, expect_tensor
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import arange, zeros
from leafgrad.tensor.data import tensor
from leafgrad.tensor.formats import as_channels_last, channels_last, keeps_channels_last
from leafgrad.tensor.scattering import scatter
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

Found = Tensor | tuple[Tensor, Tensor]
_window_max = ops.window_max.function


# ---- the largest ----------------------------------------------------------------------------------------------------


def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Found:
    """``max_pool2d`` over one dimension. (n, c, l) or (c, l) -> (n, c, m) or (c, m)"""
    return _largest(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Found:
    """The largest element of each window. (n, c, h, w) or (c, h, w) -> (n, c, h', w') or (c, h', w')

    The first of equal ones gets the gradient. Padding never wins.

    Args:
        stride: from one window to the next; by default ``kernel_size``.
        padding: on both sides, at most half a window.
        dilation: from one element of a window to the next.
        ceil_mode: also count a window that sticks out at the end.
        return_indices: also return where each was found, as a number among the h * w elements of its channel (int64).

    Raises:
        RuntimeError: sizes out of range, or no window that fits.
    """
    return _largest(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@shown_as("MaxPool3DWithIndicesBackward0")
@autocast("float32")
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Found:
    """``max_pool2d`` over three dimensions. (n, c, d, h, w) or (c, d, h, w) -> (n, c, d', h', w') or (c, d', h', w')"""
    return _largest(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _largest(
    n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: bool
) -> Found:
    function = f"max_pool{n}d"
    windows = pooled(input, n, function, kernel_size, stride, padding, dilation, ceil_mode)
    if input._data.dtype not in FLOATING and of(input._data).category == 0:
        raise NotImplementedError(f"{function}: input: not implemented for bool; convert it with .to(dtype)")
    if not indices:
        found: Found = _window_max(input, windows=windows)
    else:
        at = ops.window_argmax(input, windows=windows)
        found = ops.window_pick(input, at, windows=windows), at
    flags = getattr(input._data, "flags", None)
    if flags is not None and flags.c_contiguous:  # as mostly
        return found
    return as_channels_last(found, input, channels_last(input))


def adaptive_max_pool1d(input: Tensor, output_size: Wanted, return_indices: bool = False) -> Found:
    """``adaptive_max_pool2d`` over one dimension. (n, c, l) or (c, l) -> (n, c, output_size) or (c, output_size)"""
    return _adaptive_largest(1, input, output_size, return_indices)


@keeps_channels_last
@shown_as("AdaptiveMaxPool2DBackward0")
def adaptive_max_pool2d(input: Tensor, output_size: Wanted, return_indices: bool = False) -> Found:
    """The largest element of each of ``output_size`` windows that cover the input, of about one size.

    (n, c, h, w) or (c, h, w) -> (n, c, *output_size) or (c, *output_size)

    Args:
        output_size: an int, or one for each dimension, where None keeps the dimension as it is.
        return_indices: as in ``max_pool2d``.
    """
    return _adaptive_largest(2, input, output_size, return_indices)


@keeps_channels_last
@shown_as("AdaptiveMaxPool3DBackward0")
@autocast("float32")
def adaptive_max_pool3d(input: Tensor, output_size: Wanted, return_indices: bool = False) -> Found:
    """``adaptive_max_pool2d`` over three dimensions. (n, c, d, h, w) or (c, d, h, w) -> (n, c, *output_size) or …"""
    return _adaptive_largest(3, input, output_size, return_indices)


def _adaptive_largest(n: int, input: Any, output_size: Any, indices: bool) -> Found:
    function = f"adaptive_max_pool{n}d"
    expect_filled(input, n, function)
    length, size = adaptive(input, n, output_size, function)
    if all(s and not m % s for m, s in zip(length, size, strict=True)):
        kernel = tuple(m // s for m, s in zip(length, size, strict=True))
        return _largest(n, input, kernel, None, 0, 1, False, indices)
    windows = Windows(length, (1,) * n, (1,) * n, (0,) * n, (1,) * n, size)
    numbers = _window_numbers(length, size, input.device)
    elements = input.detach().reshape(*input.shape[:-n], math.prod(length))[..., numbers]
    if math.prod(size):
        found = elements.argmax(-1)
        at = numbers.reshape(-1)[found + arange(math.prod(size), device=input.device) * numbers.shape[1]]
    else:
        at = elements[..., 0].long()
    at = at.reshape(*input.shape[:-n], *size)
    largest: Tensor = ops.window_pick(input, at, windows=windows)
    return (largest, at) if indices else largest


def _window_numbers(length: Sizes, size: Sizes, device: Any) -> Tensor:
    """The numbers of the elements of each adaptive window, its last one again if others have more. -> (windows, k)"""
    n = len(length)
    numbers: Any = 0
    for d, (m, s) in enumerate(zip(length, size, strict=True)):
        ranges = shares(m, s)
        longest = max([stop - start for start, stop in ranges], default=1)
        table = [[min(start + k, stop - 1) for k in range(longest)] for start, stop in ranges]
        places = tensor(table, device=device).long().reshape(s, longest)
        shape = [1] * (2 * n)
        shape[d], shape[n + d] = s, longest
        numbers = numbers * m + places.reshape(shape)
    together: Tensor = numbers.reshape(math.prod(size), -1) if math.prod(size) else numbers.reshape(0, 1)
    return together


# ---- and back -------------------------------------------------------------------------------------------------------


@autocast("float32")
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """``max_unpool2d`` over one dimension. (n, c, m) or (c, m), and indices of that size -> (n, c, l) or (c, l)"""
    return _unpooled(1, input, indices, kernel_size, stride, padding, output_size)


@keeps_channels_last
@autocast("float32")
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros with ``input`` where ``max_pool2d`` found it. (n, c, h', w') or (c, h', w') -> (n, c, h, w) or (c, h, w)

    Args:
        indices: as ``max_pool2d`` returns them, int64.
        kernel_size, stride, padding: of the pooling. From these follows the size of the result, up to a stride;
        output_size: chooses it within a stride, with or without the leading dimensions.

    Raises:
        ValueError: an impossible ``output_size``. RuntimeError: indices of another size or dtype, or out of range.
    """
    return _unpooled(2, input, indices, kernel_size, stride, padding, output_size)


@autocast("float32")
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """``max_unpool2d`` over three dimensions. (n, c, d', h', w') or (c, d', h', w') -> (n, c, d, h, w) or …"""
    return _unpooled(3, input, indices, kernel_size, stride, padding, output_size)


def _unpooled(
    n: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    function = f"max_unpool{n}d"
    expect_filled(expect_real(expect_tensor(input, "input", function), function), n, function)
    if expect_tensor(indices, "indices", function).dtype is not int64:
        raise RuntimeError(f"{function}: elements in indices should be type int64 but got: {indices.dtype}")
    if indices.shape != input.shape:
        raise RuntimeError(
            f"{function}: Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but "
            f"got indices tensor with shape: {list(indices.shape)}"
        )
    kernel = at_least(1, per_dim(kernel_size, n, "kernel_size", function), "kernel_size", function)
    step = kernel if stride is None else at_least(1, per_dim(stride, n, "stride", function), "stride", function)
    before = at_least(0, per_dim(padding, n, "padding", function), "padding", function)
    usual = tuple((m - 1) * s + k - 2 * p for m, s, k, p in zip(input.shape[-n:], step, kernel, before, strict=True))
    length = usual if output_size is None else _chosen_size(tuple(output_size), usual, step, function)
    planes, elements, found = math.prod(input.shape[:-n]), math.prod(length), math.prod(input.shape[-n:])
    empty = zeros(planes, elements, dtype=input.dtype, device=input.device)
    try:
        out = scatter(empty, 1, indices.reshape(planes, found), input.reshape(planes, found))
    except RuntimeError as error:
        expected = f"expected places from 0 to {elements - 1} in outputs of size {list(length)}"
        raise RuntimeError(f"{function}: indices: found an invalid max index; {expected}") from error
    return alone(out.reshape(*input.shape[:-n], *length))


def _chosen_size(output_size: Sizes, usual: Sizes, stride: Sizes, function: str) -> Sizes:
    n = len(usual)
    if len(output_size) not in (n, n + 2):
        raise ValueError(
            f"{function}: output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"{len(output_size)}"
        )
    chosen = output_size[-n:]
    for d, (wanted, size, s) in enumerate(zip(chosen, usual, stride, strict=True)):
        if not size - s < wanted < size + s:
            raise ValueError(
                f"{function}: invalid output_size {chosen} (dim {d} must be between {size - s} and {size + s})"
            )
    return chosen
