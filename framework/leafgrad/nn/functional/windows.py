"""Sizes of kernels, steps and margins as the functions of convolution and pooling take them, and their checks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from leafgrad.ops.geometry import window_count
from leafgrad.ops.windows import Windows
from leafgrad.tensor.arguments import expect_tensor, integer
from leafgrad.tensor.tensor import Tensor

Size = int | Sequence[int]
Sizes = tuple[int, ...]


def per_dim(value: Any, n: int, name: str, function: str) -> Sizes:
    """One int for each of n dimensions; a single one stands for all.

    Raises:
        RuntimeError: more or fewer than n. TypeError: not ints.
    """
    if type(value) is int:
        return (value,) * n
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        sizes = tuple(integer(v, name, function) for v in sizes)
    except TypeError:
        wrong = next(type(v).__name__ for v in sizes if type(v) is not int)
        raise TypeError(f"{function}(): argument {name!r} must be int or tuple of ints, not {wrong}") from None
    if len(sizes) not in (1, n):
        raise RuntimeError(f"{function}: {name}: expected an int or a tuple of {n}, got {list(sizes)}")
    return sizes * n if len(sizes) == 1 else sizes


def at_least(least: int, sizes: Sizes, name: str, function: str) -> Sizes:
    """``sizes`` if none is below ``least``, else a RuntimeError."""
    if min(sizes) < least:
        raise RuntimeError(f"{function}: {name}: expected at least {least}, got {list(sizes)}")
    return sizes


def batched(input: Any, n: int, function: str, leading: str = "channels") -> tuple[Tensor, bool]:
    """The input with a batch dimension, and whether it came with one.

    Raises:
        RuntimeError: not n + 1 or n + 2 dimensions.
    """
    if not isinstance(input, Tensor):
        expect_tensor(input, "input", function)
    shape = input._data.shape
    _expect_dims(shape, n, function, leading)
    return (input, True) if len(shape) == n + 2 else (input.unsqueeze(0), False)


def _expect_dims(shape: Sizes, n: int, function: str, leading: str = "channels") -> None:
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"{function}: input: Expected {n + 1}D (unbatched) or {n + 2}D (batched) input, (batch, {leading}"
            f"{', size' * n}), but got input of size: {list(shape)}"
        )


def expect_filled(input: Any, n: int, function: str, leading: str = "channels") -> None:
    """A RuntimeError unless ``input`` has n + 1 or n + 2 dimensions, of which none but the batch is empty."""
    _expect_filled(expect_tensor(input, "input", function)._data.shape, n, function, leading)


def _expect_filled(shape: Sizes, n: int, function: str, leading: str = "channels") -> None:
    _expect_dims(shape, n, function, leading)
    if 0 in shape[-n - 1 :]:
        raise RuntimeError(
            f"{function}: input: Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(shape)}"
        )


def pooled(
    input: Tensor,
    n: int,
    function: str,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Windows:
    """The windows of a pooling function over the last n dimensions of ``input``.

    Raises:
        RuntimeError: not n + 1 or n + 2 dimensions, one that is empty and not the batch, sizes out of range, a padding
            of more than half a kernel, no window that fits, or one in which there is nothing but padding.
    """
    if not isinstance(input, Tensor):
        expect_tensor(input, "input", function)
    given = kernel_size, kernel_size if stride is None else stride, padding, dilation
    make = _pooled_by_ints if set(map(type, given)) == {int} else _pooled  # other numbers are equal to ints
    shape = input._data.shape
    if len(shape) not in (n + 1, n + 2) or 0 in shape[-n - 1 :]:
        _expect_filled(shape, n, function)
    return make(shape[-n - 1 :], n, function, kernel_size, stride, padding, dilation, bool(ceil_mode))


def _pooled(
    shape: Sizes, n: int, function: str, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Windows:
    kernel = at_least(1, per_dim(kernel_size, n, "kernel_size", function), "kernel_size", function)
    given = kernel if stride is None or (isinstance(stride, (tuple, list)) and not stride) else stride
    step = at_least(1, per_dim(given, n, "stride", function), "stride", function)
    before = at_least(0, per_dim(padding, n, "padding", function), "padding", function)
    apart = at_least(1, per_dim(dilation, n, "dilation", function), "dilation", function)
    for k, p in zip(kernel, before, strict=True):
        if 2 * p > k:
            raise RuntimeError(
                f"{function}: padding: expected at most half of kernel_size, but got padding={p} and kernel_size={k}"
            )
    length = shape[-n:]
    size = tuple(map(_count, length, kernel, step, before, apart, (ceil_mode,) * n))
    if min(size) < 1:
        channels = "x".join(map(str, shape[-n - 1 : -n]))
        raise RuntimeError(
            f"{function}: Given input size: ({_by((channels, *length))}). Calculated output size: "
            f"({_by((channels, *size))}). Output size is too small"
        )
    windows = Windows(length, kernel, step, before, apart, size)
    for n, k, s, p, d, count in zip(*windows, strict=True):
        if d > 1 and any(all(not 0 <= i * s - p + j * d < n for j in range(k)) for i in range(count)):
            raise RuntimeError(
                f"{function}: expected windows with elements, but with kernel_size={k}, padding={p} and dilation={d} "
                f"one has nothing but padding, for a size of {n}; choose a smaller dilation or padding"
            )
    return windows


_pooled_by_ints = functools.lru_cache(maxsize=256)(_pooled)


def _by(sizes: Sequence[Any]) -> str:
    return "x".join(map(str, sizes))


def _count(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """How many windows fit. Rounded up, the last one may stick out, but begins before the end of the elements."""
    if not ceil:
        return window_count(n, kernel, stride, 2 * padding, dilation)
    count = window_count(n + stride - 1, kernel, stride, 2 * padding, dilation)
    return count - 1 if (count - 1) * stride >= n + padding else count


# ---- as many windows as are asked for -------------------------------------------------------------------------------

Wanted = int | Sequence[int | None] | None


def adaptive(input: Tensor, n: int, output_size: Any, function: str) -> tuple[Sizes, Sizes]:
    """The last n sizes of ``input``, and what ``output_size`` makes of them; None keeps one.

    Raises:
        RuntimeError: more or fewer sizes than n, or negative ones. TypeError: not ints.
    """
    length = tuple(input.shape[-n:])
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(given) != n:
        raise RuntimeError(f"{function}: output_size: expected an int or a tuple of {n}, got {list(given)}")
    size = tuple(m if s is None else integer(s, "output_size", function) for m, s in zip(length, given, strict=True))
    return length, at_least(0, size, "output_size", function)


def shares(n: int, count: int) -> tuple[tuple[int, int], ...]:
    """The ranges (start, stop) of ``count`` windows of about one size that cover n elements."""
    return tuple((i * n // count, -(-(i + 1) * n // count)) for i in range(count))
