"""Convolutions and pooling: windows over the dimensions behind batch and channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import leafgrad
from leafgrad.nn import functional as F
from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.operators.elementwise import whole
from leafgrad_onnx.operators.registry import ints, operator, room, tensor_of


def geometry(
    x: Any, kernel: list[int], strides: Any, dilations: Any, pads: Any, auto_pad: str, ceil: int = 0
) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Strides, dilations, padding before and behind, and how many windows there are, of each dimension."""
    count = len(kernel)
    if count != x.ndim - 2:
        raise OnnxLoadError(f"expected {x.ndim - 2} sizes of a kernel, got {kernel}")
    s, d = list(strides or [1] * count), list(dilations or [1] * count)
    before, after = (list(pads[:count]), list(pads[count:])) if pads else ([0] * count, [0] * count)
    if min([*s, *d, *kernel]) < 1 or len(before) != count or len(after) != count:
        raise OnnxLoadError(
            f"kernel {kernel}, strides {s}, dilations {d}, pads {pads}: not windows of {count} dimensions"
        )
    sizes = []
    for i, n in enumerate(x.shape[2:]):
        reach = (kernel[i] - 1) * d[i] + 1
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            size = -(-n // s[i])
            missing = max((size - 1) * s[i] + reach - n, 0)
            before[i] = missing // 2 if auto_pad == "SAME_UPPER" else -(-missing // 2)
            after[i] = missing - before[i]
        room_left = n + before[i] + after[i] - reach
        size = (-(-room_left // s[i]) if ceil else room_left // s[i]) + 1
        if ceil and (size - 1) * s[i] >= n + before[i]:
            size -= 1
        sizes.append(max(size, 0))
    return s, d, before, after, sizes


def framed(x: Any, before: list[int], after: list[int], value: float) -> Any:
    """``x`` with padding around its last dimensions."""
    room([*x.shape[:2], *(n + a + b for n, a, b in zip(x.shape[2:], before, after, strict=True))], 8)
    if min([*before, *after], default=0) < 0:
        raise OnnxLoadError(f"expected padding of at least 0, got {before} and {after}")
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        d = i + 2
        parts = [x.new_full([k if e == d else n for e, n in enumerate(x.shape)], value) if k else None for k in (a, b)]
        x = leafgrad.cat([p for p in (parts[0], x, parts[1]) if p is not None], d) if a or b else x
    return x


def behind(x: Any, before: list[int], kernel: list[int], s: list[int], d: list[int], sizes: list[int]) -> list[int]:
    """How much padding the last window needs."""
    return [
        max((m - 1) * s[i] + (kernel[i] - 1) * d[i] + 1 - before[i] - x.shape[i + 2], 0) for i, m in enumerate(sizes)
    ]


CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TURNED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def by_rank(functions: Any, x: Any) -> Any:
    if x.ndim - 2 not in functions:
        raise OnnxLoadError(f"a convolution over {x.ndim - 2} dimensions; leafgrad has 1 to 3")
    return functions[x.ndim - 2]


@operator("Conv")
def conv(
    x: Any, w: Any, b: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
    kernel_shape: Any = None, pads: Any = None, strides: Any = None,
) -> Any:  # fmt: skip
    s, d, before, after, _ = geometry(x, list(w.shape[2:]), strides, dilations, pads, auto_pad)
    if before != after:
        x, before = framed(x, before, after, 0), [0] * len(before)
    else:
        room([*x.shape[:2], *(n + 2 * p for n, p in zip(x.shape[2:], before, strict=True))], 8)
    return by_rank(CONV, x)(x, w, b, s, before, d, group)


@operator("ConvInteger")
def conv_integer(
    x: Any, w: Any, zx: Any = None, zw: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
    kernel_shape: Any = None, pads: Any = None, strides: Any = None,
) -> Any:  # fmt: skip
    wide = [whole(v, z, axis).to(leafgrad.float64) for v, z, axis in ((x, zx, 0), (w, zw, 0))]
    found = conv(*wide, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads, strides=strides)
    return found.to(leafgrad.int32)


@operator("ConvTranspose")
def conv_transpose(
    x: Any, w: Any, b: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
    kernel_shape: Any = None, output_padding: Any = None, output_shape: Any = None, pads: Any = None,
    strides: Any = None,
) -> Any:  # fmt: skip
    kernel, count = list(w.shape[2:]), x.ndim - 2
    s, d = list(strides or [1] * count), list(dilations or [1] * count)
    extra = list(output_padding or [0] * count)
    before, after = (list(pads[:count]), list(pads[count:])) if pads else ([0] * count, [0] * count)
    whole_ = [(n - 1) * s[i] + (kernel[i] - 1) * d[i] + 1 for i, n in enumerate(x.shape[2:])]
    wanted = list(output_shape or ())[-count:]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = [n * s[i] for i, n in enumerate(x.shape[2:])]
    if wanted:
        for i, n in enumerate(wanted):
            cut = whole_[i] + extra[i] - n
            if cut < 0:
                extra[i], cut = extra[i] - cut, 0
            before[i] = -(-cut // 2) if auto_pad == "SAME_LOWER" else cut // 2
            after[i] = cut - before[i]
    room([x.shape[0], w.shape[1] * group, *(n + e for n, e in zip(whole_, extra, strict=True))], 8)
    y = by_rank(TURNED, x)(x, w, None, s, 0, 0, group, d)
    for i in range(count):
        end = whole_[i] + extra[i] - after[i]
        if end > y.shape[i + 2]:
            y = leafgrad.cat([y, y.new_zeros([end - n if e == i + 2 else n for e, n in enumerate(y.shape)])], i + 2)
        y = y.narrow(i + 2, before[i], end - before[i])
    return y if b is None else y + b.reshape(-1, *(1,) * count)


# ---- pooling ------------------------------------------------------------------------------------------------------


def taps(x: Any, kernel: list[int], s: list[int], d: list[int], sizes: list[int]) -> Any:
    """The elements of each window, along a new last dimension. -> (N, C, *sizes, kernel)"""
    for i, (k, m) in enumerate(zip(kernel, sizes, strict=True)):
        at = np.arange(m)[:, None] * s[i] + np.arange(k) * d[i]
        room([*x.shape[: 2 + i], m, k, *x.shape[3 + i :]], 8)
        x = x[(slice(None),) * (2 + i) + (tensor_of(at),)].movedim(3 + i, -1)
    return x.reshape(*x.shape[: 2 + len(kernel)], math.prod(kernel))


@operator("MaxPool")
def max_pool(
    x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None, kernel_shape: list[int],
    pads: Any = None, storage_order: int = 0, strides: Any = None, outputs: int,
) -> Any:  # fmt: skip
    s, d, before, _, sizes = geometry(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    after = behind(x, before, kernel_shape, s, d, sizes)
    low = float("-inf") if x.dtype.is_floating_point else leafgrad.iinfo(x.dtype).min
    found = taps(framed(x, before, after, low), kernel_shape, s, d, sizes)
    best, at = found.max(-1)
    if outputs < 2:
        return best
    planes = math.prod(x.shape[:2])
    every = np.arange(planes * math.prod(x.shape[2:])).reshape(x.shape)
    if storage_order:
        size = math.prod(x.shape[2:])
        inner = np.arange(size).reshape(tuple(x.shape[2:])[::-1]).transpose()
        every = (np.arange(planes) * size).reshape(*x.shape[:2], *(1,) * (x.ndim - 2)) + inner
    places = taps(framed(tensor_of(every.copy()), before, after, -1), kernel_shape, s, d, sizes)
    chosen = places.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    first = leafgrad.where(places < 0, leafgrad.iinfo(places.dtype).max, places).amin(-1)
    return best, leafgrad.where(chosen < 0, first, chosen)  # not the padding, if all is -inf


@operator("AveragePool")
def average_pool(
    x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0, dilations: Any = None,
    kernel_shape: list[int], pads: Any = None, strides: Any = None,
) -> Any:  # fmt: skip
    s, d, before, after, sizes = geometry(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    ends = behind(x, before, kernel_shape, s, d, sizes)
    sums = taps(framed(x, before, ends, 0), kernel_shape, s, d, sizes).sum(-1)
    ones = x.detach()[:1, :1] * 0 + 1
    if count_include_pad:
        known = [min(a, e) for a, e in zip(after, ends, strict=True)]
        ones = framed(ones, before, known, 1)
        counts = taps(
            framed(ones, [0] * len(ends), [e - k for e, k in zip(ends, known, strict=True)], 0),
            kernel_shape,
            s,
            d,
            sizes,
        )
    else:
        counts = taps(framed(ones, before, ends, 0), kernel_shape, s, d, sizes)
    return sums / counts.sum(-1)


@operator("LpPool")
def lp_pool(
    x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None, kernel_shape: list[int], p: int = 2,
    pads: Any = None, strides: Any = None,
) -> Any:  # fmt: skip
    s, d, before, _, sizes = geometry(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    ends = behind(x, before, kernel_shape, s, d, sizes)
    found = taps(framed(x, before, ends, 0), kernel_shape, s, d, sizes)
    return (found.abs() ** p).sum(-1) ** (1 / p)


@operator("GlobalAveragePool")
def global_average(x: Any) -> Any:
    return x.mean(list(range(2, x.ndim)), keepdim=True)


@operator("GlobalMaxPool")
def global_max(x: Any) -> Any:
    return x.amax(list(range(2, x.ndim)), keepdim=True)


@operator("GlobalLpPool")
def global_lp(x: Any, *, p: int = 2) -> Any:
    return (x.abs() ** p).sum(list(range(2, x.ndim)), keepdim=True) ** (1 / p)


@operator("MaxUnpool", host=(2,))
def max_unpool(x: Any, at: Any, shape: Any = None, *, kernel_shape: Any, pads: Any = None, strides: Any = None) -> Any:
    count = x.ndim - 2
    s, p = strides or [1] * count, pads or [0] * 2 * count
    inner = [(n - 1) * s[i] + kernel_shape[i] - p[i] - p[i + count] for i, n in enumerate(x.shape[2:])]
    small = room([*x.shape[:2], *inner], 8)
    flat = x.new_zeros((math.prod(small),)).scatter(0, at.reshape(-1), x.reshape(-1)).reshape(small)
    if shape is None:
        return flat
    wide = room(ints(shape), 8)
    return framed(flat, [0] * count, [a - b for a, b in zip(wide[2:], inner, strict=True)], 0)


@operator("Col2Im", host=(1, 2))
def col2im(x: Any, size: Any, block: Any, *, dilations: Any = None, pads: Any = None, strides: Any = None) -> Any:
    """Elements of windows added where they were."""
    shape, kernel = ints(size), ints(block)
    count = len(shape)
    s, d, p = strides or [1] * count, dilations or [1] * count, pads or [0] * 2 * count
    wide = room([n + p[i] + p[i + count] for i, n in enumerate(shape)], 8)
    flat: Any = np.zeros(1, "int64")
    for i, n in enumerate(wide):
        m = (n - (kernel[i] - 1) * d[i] - 1) // s[i] + 1
        at = np.arange(kernel[i])[:, None] * d[i] + np.arange(m) * s[i]
        ahead = flat if i else np.zeros((1, 1), "int64")
        flat = (ahead[:, None, :, None] * n + at[None, :, None, :]).reshape(len(ahead) * kernel[i], -1)
    batch, channels = x.shape[0], x.shape[1] // math.prod(kernel)
    rows = x.reshape(batch * channels, -1)
    where = tensor_of(flat.reshape(1, -1)).expand(rows.shape)
    out = (
        rows.new_zeros((batch * channels, math.prod(wide))).scatter_add(1, where, rows).reshape(batch, channels, *wide)
    )
    for i, n in enumerate(shape):
        out = out.narrow(i + 2, p[i], n)
    return out
