"""The mean and the p-norm of windows: of one size, or of a given number of them."""

from __future__ import annotations

import functools
import math
from typing import Any

from leafgrad.dtypes import REDUCED
from leafgrad.nn.functional.windows import Size, Wanted, adaptive, expect_filled, pooled, shares
from leafgrad.ops.activation import relu
from leafgrad.ops.marks import shown_as
from leafgrad.ops.ranges import Ranges, range_sum
from leafgrad.ops.traits import ALL
from leafgrad.ops.windows import Windows, window_max
from leafgrad.tensor.arguments import expect_differentiable, expect_floating, integer
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.data import tensor
from leafgrad.tensor.formats import keeps_channels_last
from leafgrad.tensor.reductions import mean
from leafgrad.tensor.tensor import Tensor

_range_sum = range_sum.function

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
]


# ---- means ----------------------------------------------------------------------------------------------------------


def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """``avg_pool2d`` over one dimension. (n, c, l) or (c, l) -> (n, c, m) or (c, m)"""
    return _averaged(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@keeps_channels_last
@shown_as("AvgPool2DBackward0")
def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window. (n, c, h, w) or (c, h, w) -> (n, c, h', w') or (c, h', w')

    Args:
        stride: from one window to the next; by default ``kernel_size``.
        padding: zeros on both sides, at most half a window.
        ceil_mode: also count a window that sticks out at the end.
        count_include_pad: whether the zeros count as elements; what lies beyond them never does.
        divisor_override: what the sums are divided by, in place of the number of elements.

    Raises:
        RuntimeError: sizes out of range, or no window that fits.
    """
    return _averaged(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@shown_as("AvgPool3DBackward0")
@autocast("float32")
def avg_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """``avg_pool2d`` over three dimensions. (n, c, d, h, w) or (c, d, h, w) -> (n, c, d', h', w') or (c, d', h', w')"""
    return _averaged(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _averaged(
    n: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Tensor:
    function = f"avg_pool{n}d"
    windows = pooled(input, n, function, kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override is not None and not integer(divisor_override, "divisor_override", function):
        raise RuntimeError(f"{function}: divisor must be not zero")
    ranges, counts, each = _covered(windows, bool(count_include_pad))
    return _mean(input, ranges, counts, each if divisor_override is None else divisor_override)


@functools.lru_cache(maxsize=256)
def _covered(windows: Windows, count_include_pad: bool) -> tuple[list[Ranges], list[list[int]], int | None]:
    """What windows cover of each dimension, and how many elements count in each; and in all of them, if as many do."""
    ranges, counts = [], []
    for m, k, s, p, size in zip(
        *(windows.length, windows.kernel, windows.stride, windows.padding, windows.size), strict=True
    ):
        padded = [(i * s - p, min(i * s - p + k, m + p)) for i in range(size)]
        within = tuple((max(start, 0), min(stop, m)) for start, stop in padded)
        ranges.append(within)
        counts.append([stop - start for start, stop in (padded if count_include_pad else within)])
    alike = all(len(set(each)) == 1 for each in counts)
    return ranges, counts, math.prod([each[0] for each in counts]) if alike else None


def _mean(input: Tensor, ranges: list[Ranges], counts: list[list[int]], divisor: int | None = None) -> Tensor:
    """Sums over ranges of the last dimensions, divided by ``divisor`` or by the product of each one's counts.

    Those of 16 bits are rounded once, after the division: a sum may be infinite where the mean is not.
    """
    total, by = input.float() if input.dtype in REDUCED else input, divisor
    for d, within in reversed(list(enumerate(ranges))):
        total = _range_sum(total, ranges=within, dim=input._data.ndim - len(ranges) + d)
    if by is None:
        by = _divisors(counts, total)
    if not input.dtype.is_floating_point:
        return total.div(by, rounding_mode="trunc")
    return (total / by).to(input.dtype) if input.dtype in REDUCED else total / by


def _divisors(counts: list[list[int]], like: Tensor) -> Any:
    """The product of one count for each dimension: a number if all are equal, else a tensor that broadcasts."""
    number, varied = 1, None
    for d, each in enumerate(counts):
        if len(set(each)) <= 1:
            number *= each[0] if each else 1
            continue
        here = tensor(each, dtype=like.dtype, device=like.device).reshape(-1, *(1,) * (len(counts) - 1 - d))
        varied = here if varied is None else varied * here
    return number if varied is None else varied * number


def adaptive_avg_pool1d(input: Tensor, output_size: Wanted) -> Tensor:
    """``adaptive_avg_pool2d`` over one dimension. (n, c, l) or (c, l) -> (n, c, output_size) or (c, output_size)"""
    return _adaptive_mean(1, input, output_size)


@keeps_channels_last
@shown_as("AdaptiveAvgPool2DBackward0")
def adaptive_avg_pool2d(input: Tensor, output_size: Wanted) -> Tensor:
    """The mean of each of ``output_size`` windows that cover the input, of about one size.

    (n, c, h, w) or (c, h, w) -> (n, c, *output_size) or (c, *output_size)

    Args:
        output_size: an int, or one for each dimension, where None keeps the dimension as it is.
    """
    return _adaptive_mean(2, input, output_size)


@keeps_channels_last
@shown_as("AdaptiveAvgPool3DBackward0")
@autocast("float32")
def adaptive_avg_pool3d(input: Tensor, output_size: Wanted) -> Tensor:
    """``adaptive_avg_pool2d`` over three dimensions. (n, c, d, h, w) or (c, d, h, w) -> (n, c, *output_size) or …"""
    return _adaptive_mean(3, input, output_size)


def _adaptive_mean(n: int, input: Any, output_size: Any) -> Tensor:
    function = f"adaptive_avg_pool{n}d"
    expect_filled(input, n, function)
    return resized(input, *adaptive(input, n, output_size, function), function)


def resized(input: Tensor, length: tuple[int, ...], size: tuple[int, ...], function: str) -> Tensor:
    """The means of ``size`` windows that cover the last dimensions, of sizes ``length``."""
    if set(size) == {1}:
        expect_differentiable(input, function, NotImplementedError)
        return mean(input, ALL[input._data.ndim][-len(size) :], True)
    expect_floating(input, function, NotImplementedError)
    ranges = [shares(m, s) for m, s in zip(length, size, strict=True)]
    return _mean(input, ranges, [[stop - start for start, stop in each] for each in ranges])


# ---- norms ----------------------------------------------------------------------------------------------------------


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """``lp_pool2d`` over one dimension. (n, c, l) or (c, l) -> (n, c, m) or (c, m)"""
    return _norm(1, input, norm_type, kernel_size, stride, ceil_mode)


@keeps_channels_last
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x**p) ** (1/p) of each window, with p = ``norm_type``. (n, c, h, w) or (c, h, w) -> …

    An odd p keeps signs, and a negative sum has no root: nan. Where the sum is 0 its gradient is taken as 0. A window
    that sticks out at the end is scaled up to a whole one.

    Args:
        norm_type: p; infinity for the largest magnitude, minus infinity for the smallest.
        stride, ceil_mode: as in ``avg_pool2d``.

    Raises:
        ValueError: p is 0.
    """
    return _norm(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """``lp_pool2d`` over three dimensions. (n, c, d, h, w) or (c, d, h, w) -> (n, c, d', h', w') or (c, d', h', w')"""
    return _norm(3, input, norm_type, kernel_size, stride, ceil_mode)


def _norm(n: int, input: Any, norm_type: Any, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    function = f"lp_pool{n}d"
    expect_floating(input, function, NotImplementedError)
    windows = pooled(input, n, function, kernel_size, stride, 0, 1, ceil_mode)
    if not norm_type:
        raise ValueError(f"{function}: norm_type: expected a number other than 0, got {norm_type}")
    if math.isinf(norm_type):
        sign = 1 if norm_type > 0 else -1
        largest: Tensor = window_max(sign * input.abs(), windows=windows)
        return sign * largest
    average = _averaged(n, input**norm_type, kernel_size, stride, 0, ceil_mode, True, None)
    root: Tensor = (average.sign() * relu(average.abs()) * math.prod(windows.kernel)) ** (1.0 / norm_type)
    return root
