"""Convolutions: three ops, bilinear, of which any two are the derivatives of the third.

For windows q over x, places k in the kernel, and r the element that window q has at k:

    convolution         y[n, o, q] = sum over c, k of weight[o, c, k] x[n, c, r]
    convolution_input  x[n, c, r] = sum over o, q, k of weight[o, c, k] y[n, o, q]
    convolution_weight  weight[o, c, k] = sum over n, q of y[n, o, q] x[n, c, r]

All come down to products with the matrix of all windows: rows (c, k), columns (q, n). It is made in blocks that stay
in the cache, with the batch innermost, so that long runs of elements are copied and added whatever the kernel.

Of a long kernel the matrix repeats each element that often, and few kernels make little of it. So windows next to each
other become one that is a little longer, seen by each kernel at several places: the matrix is so many times smaller.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from leafgrad import backends
from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op
from leafgrad.ops.reduce import sum
from leafgrad.ops.windows import Windows, places, taps

BLOCK = 1 << 18  # elements of a block
NARROW = 1 << 12  # elements of an image up to which a chunk of many of them fits the cache
RUN = 16  # images side by side, unless one has wide rows of its own
TOGETHER = 128  # kernels for which to take windows together

Band = tuple[int, int, Windows]


# ---- blocks of the matrix of windows --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _blocks(windows: Windows, channels: int, batch: int) -> list[tuple[slice, list[Band]]]:
    """Parts of the batch, with bands of windows: from and to where in their first dimension, and the windows there."""
    columns = max(BLOCK // (channels * math.prod(windows.kernel) or 1), 1)
    count = math.prod(windows.size)
    most = 1 if count >= 512 and windows.size[-1] >= 2 * RUN else max(columns // count, RUN)
    part = -(-batch // -(-batch // most)) if batch else 1  # parts of about one size
    rows, some = windows.size[0], max(columns * windows.size[0] // (count * part), 1)
    edges = [(a, min(a + some, rows)) for a in range(0, rows, some)]
    bands = [(a, b, windows._replace(size=(b - a, *windows.size[1:]))) for a, b in edges]
    return [(slice(n, n + part), bands) for n in range(0, batch, part)]


def _inner(x: Any) -> Any:
    """The batch as the last dimension. (batch, ...) -> (..., batch)"""
    return x.transpose((*range(1, x.ndim), 0))


def _outer(x: Any) -> Any:
    """The batch as the first dimension. (..., batch) -> (batch, ...)"""
    return x.transpose((x.ndim - 1, *range(x.ndim - 1)))


def _framed(xp: Any, x: Any, windows: Windows) -> Any:
    """x over the extent of the windows, batch last, 0 in the padding. (n, c, *length) -> (c, *extent, n)"""
    frame, source, extent, _ = places(windows)
    part = _inner(x[(slice(None), slice(None), *source)])
    if part.shape[1:-1] == extent:
        return xp.ascontiguousarray(part)
    out = xp.zeros((x.shape[1], *extent, x.shape[0]), dtype=x.dtype)
    out[(slice(None), *frame)] = part
    return out


def _columns(xp: Any, frame: Any, windows: Windows, groups: int) -> Any:
    """A block of the matrix for each group. (c, *extent, n) -> (groups, c / groups * kernel, size * n)"""
    channels, batch, parts = frame.shape[0], frame.shape[-1], taps(windows)
    if len(parts) == 1:
        columns = frame[(slice(None), *parts[0])]
    else:
        columns = xp.empty((channels, len(parts), *windows.size, batch), dtype=frame.dtype)
        for k, tap in enumerate(parts):
            columns[:, k] = frame[(slice(None), *tap)]
    return columns.reshape(groups, channels // groups * len(parts), math.prod(windows.size) * batch)


def _add_columns(frame: Any, columns: Any, windows: Windows) -> None:
    """Add a block where its elements came from; the transpose of ``_columns``."""
    columns = columns.reshape(frame.shape[0], math.prod(windows.kernel), *windows.size, frame.shape[-1])
    for k, tap in enumerate(taps(windows)):
        part = frame[(slice(None), *tap)]  # by itself, since ``frame[...] +=`` would write the sum there again
        part += columns[:, k]


def _grouped(x: Any, groups: int) -> Any:
    """As many matrices as groups. (m, ...) -> (groups, m / groups, n)"""
    return x.reshape(groups, x.shape[0] // groups, math.prod(x.shape[1:]))


# ---- windows next to each other, taken together ---------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _together(windows: Windows, images: int, kernels: int) -> int:
    """How many windows to take together along the last dimension: 1 where that gains nothing.

    Args:
        images: how many the windows slide over, channels of all samples. kernels: how many see each.
    """
    kernel, step, _, apart, size = (sizes[-1] for sizes in windows[1:])
    many = min(TOGETHER // max(kernels, 1), kernel // (2 * step), size)
    elements = images * math.prod(windows.kernel) * math.prod(windows.size)
    return many if many >= 8 and apart == 1 and elements > BLOCK else 1


def _longer(windows: Windows, many: int) -> Windows:
    """Windows of which each has in it ``many`` of the given ones, the last perhaps some that are beyond these."""
    kernel, step, size = windows.kernel[-1], windows.stride[-1], windows.size[-1]
    return windows._replace(
        kernel=(*windows.kernel[:-1], kernel + (many - 1) * step),
        stride=(*windows.stride[:-1], many * step),
        size=(*windows.size[:-1], -(-size // many)),
    )


def _spread(xp: Any, weight: Any, windows: Windows, many: int) -> Any:
    """Each kernel at each of its places, 0 around. (o, ..., kernel) -> (o * many, ..., longer kernel)"""
    out = xp.zeros((weight.shape[0] * many, *weight.shape[1:-1], *_longer(windows, many).kernel[-1:]), weight.dtype)
    _inside(out, windows, many)[...] = weight[:, None]
    return out


def _inside(weight: Any, windows: Windows, many: int) -> Any:
    """Of longer kernels what is at each place, seen in them. (o * many, ..., longer) -> (o, many, ..., kernel)"""
    shape = (weight.shape[0] // many, many, *weight.shape[1:-1], windows.kernel[-1])
    apart, *within = weight.strides
    steps = (many * apart, apart + windows.stride[-1] * weight.itemsize, *within)
    return backends.backend_of(weight).strided(weight, shape, steps)


def _split(xp: Any, y: Any, many: int) -> Any:
    """What belongs to windows, as channels of longer ones. (n, o, ..., size) -> (n, o * many, ..., fewer)"""
    size = y.shape[-1]
    fewer = -(-size // many)
    whole = xp.zeros((*y.shape[:-1], fewer * many), dtype=y.dtype)
    whole[..., :size] = y
    apart = xp.moveaxis(whole.reshape(*y.shape[:-1], fewer, many), -1, 2)
    return apart.reshape(y.shape[0], y.shape[1] * many, *apart.shape[3:])


def _merged(xp: Any, y: Any, windows: Windows, many: int) -> Any:
    """The other way. (n, o * many, ..., fewer) -> (n, o, *size)"""
    apart = xp.moveaxis(y.reshape(y.shape[0], y.shape[1] // many, many, *y.shape[2:]), 2, -1)
    whole = apart.reshape(*apart.shape[:-2], apart.shape[-2] * many)
    return xp.ascontiguousarray(whole[..., : windows.size[-1]])


def _finite(xp: Any, *arrays: Any) -> bool:
    """Whether zeros that are filled in may meet what is in arrays: nan and infinities stay where a kernel sees them."""
    return all(bool(xp.isfinite(x.sum())) for x in arrays)


# ---- the ops --------------------------------------------------------------------------------------------------------


@op("holomorphic")
def convolution(xp: Any, x: Any, weight: Any, bias: Any = None, *, windows: Windows, groups: int) -> Any:
    """The product of each window with each kernel. (n, c, *length), (o, c / groups, *kernel), (o,) -> (n, o, *size)

    The channels of x and of the result are in as many parts as ``groups``, each of which sees its like alone.
    """
    if x.dtype == "float16":
        wide = (None if a is None else a.astype("float32") for a in (x, weight, bias))
        return convolution.forward(xp, *wide, windows=windows, groups=groups).astype("float16")
    many = _together(windows, x.shape[0] * x.shape[1], weight.shape[0] // groups)
    if many > 1 and _finite(xp, x):
        longer, bias = _spread(xp, weight, windows, many), None if bias is None else xp.repeat(bias, many)
        y = convolution.forward(xp, x, longer, bias, windows=_longer(windows, many), groups=groups)
        return _merged(xp, y, windows, many)
    out = xp.empty((x.shape[0], weight.shape[0], *windows.size), dtype=x.dtype)
    kernels = _grouped(weight, groups)
    for part, bands in _blocks(windows, x.shape[1], x.shape[0]):
        frame = _framed(xp, x[part], windows)
        for a, b, band in bands:
            y = kernels @ _columns(xp, frame[:, a * windows.stride[0] :], band, groups)
            if bias is not None:
                y += bias.reshape(groups, -1, 1)
            out[part, :, a:b] = _outer(y.reshape(weight.shape[0], *band.size, frame.shape[-1]))
    return out


@op("holomorphic")
def convolution_input(xp: Any, y: Any, weight: Any, bias: Any = None, *, windows: Windows, groups: int) -> Any:
    """Each kernel added in each window as often as y says, the gradient of a convolution and a layer of its own.

    (n, o, *size), (o, c / groups, *kernel), (c,) -> (n, c, *length)
    """
    if y.dtype == "float16":
        wide = (None if a is None else a.astype("float32") for a in (y, weight, bias))
        return convolution_input.forward(xp, *wide, windows=windows, groups=groups).astype("float16")
    many = _together(windows, y.shape[0] * weight.shape[1] * groups, weight.shape[0] // groups)
    if many > 1 and _finite(xp, y, weight):
        longer, y = _spread(xp, weight, windows, many), _split(xp, y, many)
        return convolution_input.forward(xp, y, longer, bias, windows=_longer(windows, many), groups=groups)
    channels = weight.shape[1] * groups
    out = xp.zeros((y.shape[0], channels, *windows.length), dtype=y.dtype)
    kernels = _grouped(weight, groups).swapaxes(1, 2)
    frame_places, source, extent, _ = places(windows)
    for part, bands in _blocks(windows, channels, y.shape[0]):
        inner = xp.ascontiguousarray(_inner(y[part]))
        frame = xp.zeros((channels, *extent, inner.shape[-1]), dtype=y.dtype)
        for a, b, band in bands:
            block = _grouped(inner[:, a:b], groups)
            columns = kernels @ block if kernels.shape[2] > 1 else kernels * block  # NumPy is slow at outer products
            _add_columns(frame[:, a * windows.stride[0] :], columns, band)
        out[(part, slice(None), *source)] = _outer(frame[(slice(None), *frame_places)])
    if bias is not None:
        out += bias.reshape((-1,) + (1,) * len(windows.size))
    return out


@op("holomorphic")
def convolution_weight(xp: Any, x: Any, y: Any, *, windows: Windows, groups: int) -> Any:
    """The kernels that would take the windows of x to y, were each window orthogonal to the others.

    (n, c, *length), (n, o, *size) -> (o, c / groups, *kernel)
    """
    if x.dtype == "float16":
        wide = (a.astype("float32") for a in (x, y))
        return convolution_weight.forward(xp, *wide, windows=windows, groups=groups).astype("float16")
    many = _together(windows, x.shape[0] * x.shape[1], y.shape[1] // groups)
    if many > 1 and _finite(xp, x):
        longer = _longer(windows, many)
        weight = convolution_weight.forward(xp, x, _split(xp, y, many), windows=longer, groups=groups)
        return _inside(weight, windows, many).sum(axis=1)
    channels, each = y.shape[1], x.shape[1] // groups
    total = xp.zeros((groups, each * math.prod(windows.kernel), channels // groups), dtype=x.dtype)
    for part, bands in _blocks(windows, x.shape[1], x.shape[0]):
        frame, inner = _framed(xp, x[part], windows), xp.ascontiguousarray(_inner(y[part]))
        for a, b, band in bands:
            columns = _columns(xp, frame[:, a * windows.stride[0] :], band, groups)
            total += columns @ _grouped(inner[:, a:b], groups).swapaxes(1, 2)
    return xp.ascontiguousarray(total.swapaxes(1, 2)).reshape(channels, each, *windows.kernel)


def _bias_rule(g: Any) -> Any:
    return sum(g, dim=(0, *range(2, len(g.shape))))


convolution.vjp(
    x=lambda g, weight, *, windows, groups: convolution_input(g, weight, windows=windows, groups=groups),
    weight=lambda g, x, *, windows, groups: convolution_weight(x, g, windows=windows, groups=groups),
    bias=_bias_rule,
)
convolution_input.vjp(
    y=lambda g, weight, *, windows, groups: convolution(g, weight, windows=windows, groups=groups),
    weight=lambda g, y, *, windows, groups: convolution_weight(g, y, windows=windows, groups=groups),
    bias=_bias_rule,
)
convolution_weight.vjp(
    x=lambda g, y, *, windows, groups: convolution_input(y, g, windows=windows, groups=groups),
    y=lambda g, x, *, windows, groups: convolution(x, g, windows=windows, groups=groups),
)


@convolution.shape
def _convolution_shape(x: Any, weight: Any, bias: Any, *, windows: Windows, groups: int) -> Any:
    fits = x.shape[1:] == (weight.shape[1] * groups, *windows.length)
    return (x.shape[0], weight.shape[0], *windows.size) if fits and x.floating else None


@convolution_input.shape
def _spread_shape(y: Any, weight: Any, bias: Any, *, windows: Windows, groups: int) -> Any:
    return (y.shape[0], weight.shape[1] * groups, *windows.length) if y.floating else None


@convolution_weight.shape
def _weight_shape(x: Any, y: Any, *, windows: Windows, groups: int) -> Any:
    return (y.shape[1], x.shape[1] // groups, *windows.kernel) if x.floating else None


def _narrow(call: Any) -> bool:
    """Whether images are so small that many fit the cache; large ones are taken in blocks by the ops themselves."""
    return all(math.prod(x.shape[1:]) <= NARROW for x in (*call.inputs[:2], call.out))


convolution.chunk(lambda call: call.on(0, 0) if _narrow(call) else None)
convolution_input.chunk(lambda call: call.on(0, 0) if _narrow(call) else None)
convolution_weight.chunk(lambda call: call.summed(0, 0) if _narrow(call) else None)
convolution.lower("native", lambda c, e: c.convolution("gather", e.params["windows"], e.params["groups"]))
convolution_input.lower("native", lambda c, e: c.convolution("spread", e.params["windows"], e.params["groups"]))
convolution_weight.lower("native", lambda c, e: c.convolution("taps", e.params["windows"], e.params["groups"]))
convolution.autocast = convolution_input.autocast = "lower"
convolution.label = convolution_input.label = "ConvolutionBackward0"  # as PyTorch names their nodes


# ---- batches --------------------------------------------------------------------------------------------------------


def _batched(call: Any) -> Any:
    """Kernels that all samples share have them as one larger batch; kernels of their own make samples groups."""
    windows, groups = call.params["windows"], call.params["groups"]
    (n, *_), weight = call.shape(0), call.shape(1)
    if not any(call.inside[1:]):
        return call.split(call.again(call.merged(call.args[0], 0), *call.args[1:]), 0, n)
    spread = call.op is convolution_input
    channels, length = (weight[1] * groups, windows.length) if spread else (weight[0], windows.size)
    if not call.size:
        return new_full(call.front(0), shape=(0, n, channels, *length), value=0)
    bias = [None if call.args[i] is None else call.merged(call.front(i), 0) for i in range(2, len(call.args))]
    x, kernels = call.merged(call.front(0), 1), call.merged(call.front(1), 0)
    return call.split(call.again(x, kernels, *bias, groups=groups * call.size), 1, channels)


convolution.batched(_batched)
convolution_input.batched(_batched)


@convolution_weight.batched
def _weight_batched(call: Any) -> Any:
    windows, groups = call.params["windows"], call.params["groups"]
    inputs, outputs = call.shape(0)[1], call.shape(1)[1]
    if not call.size:
        return new_full(call.front(0), shape=(0, outputs, inputs // groups, *windows.kernel), value=0)
    x, y = call.merged(call.front(0), 1), call.merged(call.front(1), 1)
    return call.split(call.again(x, y, groups=groups * call.size), 0, outputs)
