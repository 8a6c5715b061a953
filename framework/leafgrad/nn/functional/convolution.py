"""Convolutions over one, two and three dimensions, their transposes, and taking windows out and adding them up."""

from __future__ import annotations

import functools
import math
from typing import Any

from leafgrad import modes
from leafgrad.dtypes import of
from leafgrad.nn.functional.windows import Size, Sizes, at_least, batched, expect_filled, per_dim
from leafgrad.ops import convolution as ops, windows as window_ops
from leafgrad.ops.geometry import window_count, window_span
from leafgrad.ops.windows import Windows
from leafgrad.tensor.arguments import expect_tensor, integer
from leafgrad.tensor.formats import keeps_channels_last
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold", "unfold"]


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """``conv2d`` over one dimension. (n, c, l) or (c, l), (out, c / groups, k), (out,) -> (n, out, m) or (out, m)"""
    return _convolved(1, input, weight, bias, stride, padding, dilation, groups)


@keeps_channels_last
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """The product of each window of ``input`` with each kernel in ``weight``, plus ``bias``.

    (n, c, h, w) or (c, h, w), (out, c / groups, kh, kw), (out,) -> (n, out, h', w') or (out, h', w')

    Args:
        stride: from one window to the next; an int, or one for each dimension, like what follows.
        padding: zeros on both sides; or ``"valid"`` for none, ``"same"`` for a result as large as ``input``.
        dilation: from one element of a window to the next.
        groups: parts of the channels of ``input`` and of the result; each part sees its like alone.

    Raises:
        RuntimeError: sizes that do not fit, tensors of different dtypes.
    """
    return _convolved(2, input, weight, bias, stride, padding, dilation, groups)


@keeps_channels_last
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """``conv2d`` over three dimensions. (n, c, d, h, w) or (c, d, h, w), (out, c / groups, …) -> (n, out, …)"""
    return _convolved(3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """``conv_transpose2d`` over one dimension. (n, c, l) or (c, l), (c, out / groups, k), (out,) -> (n, out, m)"""
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@keeps_channels_last
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """The gradient of a ``conv2d`` as a function: each element of ``input`` times a kernel, added where its window was.

    (n, c, h, w) or (c, h, w), (c, out / groups, kh, kw), (out,) -> (n, out, h', w') or (out, h', w')
    with h' = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1

    Args:
        output_padding: how much larger the result is on one side; less than ``stride`` or ``dilation``.
        stride, padding, dilation, groups: of that ``conv2d``.

    Raises:
        RuntimeError: sizes that do not fit, tensors of different dtypes.
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@keeps_channels_last
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """``conv_transpose2d`` over three dimensions. (n, c, d, h, w) or (c, d, h, w), (c, out / groups, …) -> …"""
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# ---- how ------------------------------------------------------------------------------------------------------------


def _convolved(
    n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Tensor:
    function = f"conv{n}d"
    x, had_batch = batched(input, n, function)
    kernel = _kernel(weight, n, function)
    named = padding if isinstance(padding, str) else None
    given = [
        tuple(v) if isinstance(v, (tuple, list)) else (v,) for v in (stride, padding if named is None else 0, dilation)
    ]
    flat, counts = [v for one in given for v in one], tuple(map(len, given))
    make = _known_windows if {int}.issuperset(map(type, flat)) else _windows
    try:
        windows = make(n, function, x._data.shape[2:], kernel, named, counts, *flat)
    except (RuntimeError, TypeError):
        for name, value in (("stride", stride), ("dilation", dilation)):
            at_least(1, per_dim(value, n, name, function), name, function)
        _check(x, weight, bias, groups, function, transposed=False)
        raise
    _check(x, weight, bias, groups, function, transposed=False)
    out = ops.convolution.function(x, weight, *_given(bias), windows=windows, groups=groups)
    return out if had_batch else out.squeeze(0)


def _windows(
    n: int, function: str, length: Sizes, kernel: Sizes, named: str | None, counts: Sizes, *flat: Any
) -> Windows:
    """The windows of a convolution: stride, padding and dilation, so many entries of each, one after the other."""
    first, last = counts[0], counts[0] + counts[1]
    stride, padding, dilation = flat[:first], flat[first:last], flat[last:]
    step = at_least(1, per_dim(stride, n, "stride", function), "stride", function)
    apart = at_least(1, per_dim(dilation, n, "dilation", function), "dilation", function)
    reach = tuple(d * (k - 1) for d, k in zip(apart, kernel, strict=True))  # from first to last element of a window
    if named is not None:
        before, both = named_padding(named, reach, step, function)
    else:
        before = at_least(0, per_dim(padding, n, "padding", function), "padding", function)
        both = tuple(2 * p for p in before)
    size = tuple(map(window_count, length, kernel, step, both, apart))
    if min(size) < 1:
        padded = [m + p for m, p in zip(length, both, strict=True)]
        raise RuntimeError(
            f"{function}: Calculated padded input size per channel: ({_by(padded)}). Kernel size: "
            f"({_by([r + 1 for r in reach])}). Kernel size can't be greater than actual input size"
        )
    return Windows(length, kernel, step, before, apart, size)


_known_windows = functools.lru_cache(maxsize=256, typed=True)(_windows)


def _transposed(
    n: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor:
    function = f"conv_transpose{n}d"
    x, had_batch = batched(input, n, function)
    kernel = _kernel(weight, n, function)
    step = at_least(1, per_dim(stride, n, "stride", function), "stride", function)
    apart = at_least(1, per_dim(dilation, n, "dilation", function), "dilation", function)
    before = at_least(0, per_dim(padding, n, "padding", function), "padding", function)
    extra = at_least(0, per_dim(output_padding, n, "output_padding", function), "output_padding", function)
    _check(x, weight, bias, groups, function, transposed=True)
    for o, s, d in zip(extra, step, apart, strict=True):
        if o >= max(s, d):
            raise RuntimeError(
                f"{function}: output padding must be smaller than either stride or dilation, but got output_padding "
                f"{list(extra)}, stride {list(step)}, dilation {list(apart)}"
            )
    size = tuple(x.shape[2:])
    removed = [2 * p - o for p, o in zip(before, extra, strict=True)]
    length = tuple(map(window_span, size, kernel, step, removed, apart))
    if min(length) < 1:
        raise RuntimeError(
            f"{function}: Given input size per channel: ({_by(size)}). Calculated output size per channel: "
            f"({_by(length)}). Output size is too small"
        )
    windows = Windows(length, kernel, step, before, apart, size)
    out = ops.convolution_input(x, weight, *_given(bias), windows=windows, groups=groups)
    return out if had_batch else out.squeeze(0)


def _kernel(weight: Any, n: int, function: str) -> Sizes:
    shape = expect_tensor(weight, "weight", function)._data.shape
    if len(shape) != n + 2 or 0 in shape[2:]:
        raise RuntimeError(
            f"{function}: weight: expected {n + 2} dimensions, (channels, channels{', kernel size' * n}), got size "
            f"{list(weight.shape)}"
        )
    return tuple(shape[2:])


def _check(x: Tensor, weight: Tensor, bias: Any, groups: Any, function: str, *, transposed: bool) -> None:
    """Errors about channels, groups, dtypes, and sizes that are empty."""
    if integer(groups, "groups", function) < 1:
        raise RuntimeError(f"{function}: groups: expected a positive number, got {groups}")
    shape, (first, second) = x._data.shape, weight._data.shape[:2]
    channels, out = (first, second * groups) if transposed else (second * groups, first)
    if first % groups:
        raise RuntimeError(
            f"{function}: Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got "
            f"weight of size {list(weight.shape)}"
        )
    if shape[1] != channels:
        raise RuntimeError(
            f"{function}: Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(x.shape)} to "
            f"have {channels} channels, but got {x.shape[1]} channels instead"
        )
    if 0 in shape[2:]:
        raise RuntimeError(f"{function}: input: expected at least one element per channel, got size {list(x.shape)}")
    if bias is not None and expect_tensor(bias, "bias", function)._data.shape != (out,):
        raise RuntimeError(
            f"{function}: Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {out} "
            f"elements, but got bias of size {list(bias.shape)} instead"
        )
    if modes.get() & modes.AUTOCAST:  # brings dtypes together
        return
    dtype = of(x._data)
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and of(other._data) is not dtype:
            raise RuntimeError(
                f"{function}: Input type ({x.dtype}) and {name} type ({other.dtype}) should be the same; convert one "
                "with .to(dtype)"
            )


def named_padding(padding: str, reach: Sizes, stride: Sizes, function: str) -> tuple[Sizes, Sizes]:
    """The padding before, and before and after together, that ``"valid"`` and ``"same"`` stand for."""
    if padding not in ("valid", "same"):
        raise RuntimeError(f"{function}: Invalid padding string: {padding!r}; expected 'valid' or 'same'")
    if padding == "valid":
        return (0,) * len(reach), (0,) * len(reach)
    if any(s != 1 for s in stride):
        raise RuntimeError(f"{function}: padding='same' is not supported for strided convolutions, got {list(stride)}")
    return tuple(r // 2 for r in reach), reach


def _given(bias: Tensor | None) -> tuple[Tensor, ...]:
    return () if bias is None else (bias,)


def _by(sizes: Any) -> str:
    return " x ".join(map(str, sizes))


# ---- windows --------------------------------------------------------------------------------------------------------


def unfold(input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The elements of all windows, those of one in a column.

    (n, c, h, w) or (c, h, w) -> (n, c * kernel size, windows) or (c * kernel size, windows)

    Raises:
        RuntimeError: sizes out of range, or no window that fits.
    """
    expect_filled(input, 2, "unfold")
    x, had_batch = batched(input, 2, "unfold")
    windows = _blocks(tuple(x.shape[2:]), kernel_size, dilation, padding, stride, "unfold")
    if min(windows.size) < 1:
        raise RuntimeError(
            f"unfold: Given input with spatial size {windows.length}, kernel_size={windows.kernel}, "
            f"dilation={windows.dilation}, padding={windows.padding}, calculated shape of the array of sliding blocks "
            f"as {windows.size}, but its components must be at least one."
        )
    out = window_ops.unfold(x, windows=windows)
    columns: Tensor = out.reshape(x.shape[0], x.shape[1] * math.prod(windows.kernel), math.prod(windows.size))
    return alone(columns if had_batch else columns.squeeze(0))


def fold(
    input: Tensor, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """Columns as ``unfold`` makes them, added up where they came from.

    (n, c * kernel size, windows) or (c * kernel size, windows) -> (n, c, *output_size) or (c, *output_size)

    Raises:
        RuntimeError: sizes out of range, or not as many columns or rows as windows and their elements.
    """
    expect_filled(input, 1, "fold", "channels * kernel size")
    x, had_batch = batched(input, 1, "fold")
    length = at_least(1, per_dim(output_size, 2, "output_size", "fold"), "output_size", "fold")
    windows = _blocks(length, kernel_size, dilation, padding, stride, "fold")
    elements, count = math.prod(windows.kernel), math.prod(windows.size)
    if x.shape[1] % elements:
        raise RuntimeError(
            "fold: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={x.shape[1]} and kernel_size={windows.kernel}."
        )
    if x.shape[2] != count or min(windows.size) < 1:
        raise RuntimeError(
            f"fold: Given output_size={length}, kernel_size={windows.kernel}, dilation={windows.dilation}, "
            f"padding={windows.padding}, stride={windows.stride}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {_by(windows.size)} = {count}, but got input.size(2)={x.shape[2]}."
        )
    out: Tensor = window_ops.fold(
        x.reshape(x.shape[0], x.shape[1] // elements, *windows.kernel, *windows.size), windows=windows
    )
    return out if had_batch else out.squeeze(0)


def _blocks(length: Sizes, kernel_size: Any, dilation: Any, padding: Any, stride: Any, function: str) -> Windows:
    kernel = at_least(1, per_dim(kernel_size, 2, "kernel_size", function), "kernel_size", function)
    apart = at_least(1, per_dim(dilation, 2, "dilation", function), "dilation", function)
    before = at_least(0, per_dim(padding, 2, "padding", function), "padding", function)
    step = at_least(1, per_dim(stride, 2, "stride", function), "stride", function)
    size = tuple(max(0, m) for m in map(window_count, length, kernel, step, [2 * p for p in before], apart))
    return Windows(length, kernel, step, before, apart, size)
