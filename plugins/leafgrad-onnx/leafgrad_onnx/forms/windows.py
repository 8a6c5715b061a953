"""Forms of windows that slide over the last dimensions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from leafgrad.compile.ir.graph import Equation
from leafgrad.ops import ranges, strided, windows as ops
from leafgrad.ops.windows import Windows
from leafgrad_onnx.forms.products import geometry, padding
from leafgrad_onnx.forms.shape import converted, counted
from leafgrad_onnx.writer import OnnxWriter


def planes(e: Equation) -> tuple[int, ...]:
    """The dimensions before those that windows slide over."""
    return tuple(e.out.shape[: e.out.ndim - len(e.params["windows"].size)])


def pooled(w: OnnxWriter, e: Equation, outputs: int) -> Any:
    """MaxPool of the argument, with one batch and one dimension of channels.

    onnxruntime takes no padding as wide as the kernel, which dilation may ask for; that stands before.
    """
    windows, x, lead = e.params["windows"], e.values[0], planes(e)
    kind = x.dtype if x.dtype in ("float32", "float64") else "float64" if x.dtype in ("int32", "int64") else "float32"
    name = w(x, kind)
    if len(lead) != 2:
        name = w.reshape(name, (1, math.prod(lead), *windows.length))
    pads = padding(windows)
    if any(p >= k for p, k in zip(pads, windows.kernel * 2, strict=True)):
        if outputs > 1:
            raise w.refusal("places of maxima whose windows are padded by as much as they are wide")
        count = len(windows.size)
        wide = w.ints([0, 0, *pads[:count], 0, 0, *pads[count:]])
        name, pads = w.emit("Pad", name, wide, w.scalar(-math.inf, kind)), [0] * len(pads)
    found = w.emit("MaxPool", name, outputs=outputs, pads=pads, **geometry(windows))
    return found, kind


@ops.window_max.lower("onnx")
def _window_max(w: OnnxWriter, e: Equation) -> str:
    (found,), kind = pooled(w, e, 1)
    if len(planes(e)) != 2:
        found = w.reshape(found, e.out.shape)
    return found if kind == e.out.dtype else w.cast(found, e.out.dtype)


@ops.window_argmax.lower("onnx")
def _window_argmax(w: OnnxWriter, e: Equation) -> str:
    """Within each plane; MaxPool counts from the first element of all."""
    (_, places), _ = pooled(w, e, 2)
    if len(planes(e)) != 2:
        places = w.reshape(places, e.out.shape)
    return str(w.emit("Mod", places, w.scalar(math.prod(e.params["windows"].length), "int64")))


@ops.window_pick.lower("onnx")
def _window_pick(w: OnnxWriter, e: Equation) -> str:
    windows, lead = e.params["windows"], planes(e)
    x = w.reshape(w(e.inputs[0]), (*lead, math.prod(windows.length)))
    at = w.reshape(w(e.inputs[1]), (*lead, math.prod(windows.size)))
    return w.reshape(w.emit("GatherElements", x, at, axis=len(lead)), e.out.shape)


@ops.window_place.lower("onnx")
def _window_place(w: OnnxWriter, e: Equation) -> str:
    windows, lead = e.params["windows"], planes(e)
    v, at = (w.reshape(w(x), (*lead, math.prod(windows.size))) for x in e.inputs)
    zeros = w.filled((*lead, math.prod(windows.length)), 0, e.out.dtype)
    flat = w.emit("ScatterElements", zeros, at, v, axis=len(lead), reduction="add")
    return w.reshape(flat, e.out.shape)


def padded(w: OnnxWriter, name: str, lead: int, windows: Windows) -> str:
    """A value with zeros wherever its windows reach beyond it."""
    ends = [max(e - p - n, 0) for e, p, n in zip(windows.extent, windows.padding, windows.length, strict=True)]
    if not any(windows.padding) and not any(ends):
        return name
    return str(w.emit("Pad", name, w.ints([*(0,) * lead, *windows.padding, *(0,) * lead, *ends])))


@ops.unfold.lower("onnx")
def _unfold(w: OnnxWriter, e: Equation) -> str:
    """Elements chosen along one dimension after the other, and sorted: kernels first, then windows."""
    windows = e.params["windows"]
    count = len(windows.size)
    lead = e.out.ndim - 2 * count
    name = padded(w, w(e.inputs[0]), lead, windows)
    for i in range(count):
        name = w.emit("Gather", name, places(w, windows, i), axis=lead + 2 * i)
    order = [*range(lead), *range(lead, lead + 2 * count, 2), *range(lead + 1, lead + 2 * count, 2)]
    return str(w.emit("Transpose", name, perm=order))


def places(w: OnnxWriter, windows: Windows, i: int) -> str:
    """Where windows have their elements along one dimension, from the first of the first window. (kernel, size)"""
    inner = w.emit("Unsqueeze", counted(w, 0, windows.dilation[i], windows.kernel[i]), w.ints([1]))
    return str(w.emit("Add", inner, counted(w, 0, windows.stride[i], windows.size[i])))


@ops.fold.lower("onnx")
def _fold(w: OnnxWriter, e: Equation) -> str:
    """Elements added where they were in the extent of all windows, of which the padding is cut off."""
    windows, x = e.params["windows"], e.values[0]
    count, lead = len(windows.size), planes(e)
    flat: Any = None
    for i, extent in enumerate(windows.extent):  # (kernel, ..., size, ...), each dimension in its place
        at = places(w, windows, i)
        shape = [1] * (2 * count)
        shape[i], shape[count + i] = windows.kernel[i], windows.size[i]
        at = w.reshape(at, tuple(shape))
        flat = at if flat is None else w.emit("Add", w.emit("Mul", flat, w.scalar(extent, "int64")), at)
    many = math.prod(windows.kernel) * math.prod(windows.size)
    at = w.expand(w.reshape(flat, (many,)), (*lead, many))
    zeros = w.filled((*lead, math.prod(windows.extent)), 0, x.dtype)
    updates = w.reshape(w(x), (*lead, many))
    found = w.emit("ScatterElements", zeros, at, updates, axis=len(lead), reduction="add")
    found = w.reshape(found, (*lead, *windows.extent))
    kept = [min(p + n, m) for p, n, m in zip(windows.padding, windows.length, windows.extent, strict=True)]
    axes = list(range(len(lead), len(lead) + count))
    found = w.emit("Slice", found, w.ints(windows.padding), w.ints(kept), w.ints(axes))
    short = [n - (k - p) for n, k, p in zip(windows.length, kept, windows.padding, strict=True)]
    pads = [*(0,) * len(lead), *(0,) * count, *(0,) * len(lead), *short]
    return str(w.emit("Pad", found, w.ints(pads))) if any(short) else str(found)


# ---- windows along one dimension ----------------------------------------------------------------------------------


@ranges.range_sum.lower("onnx")
def _range_sum(w: OnnxWriter, e: Equation) -> str:
    """The elements of each range along a dimension of their own, with zeros behind a short one, summed."""
    spans, dim, x = e.params["ranges"], e.params["dim"], e.values[0]
    starts, lengths = [a for a, _ in spans], [b - a for a, b in spans]
    longest = max(lengths, default=0)
    if not spans or not longest:
        return w.filled(e.out.shape, 0, e.out.dtype)
    steps = {b - a for a, b in itertools.pairwise(starts)} or {1}
    kind = "float32" if x.dtype == "float16" else x.dtype
    if len(steps) == 1 and set(lengths) == {longest}:
        within = counted(w, 0, 1, longest)
        first = w.emit("Unsqueeze", counted(w, starts[0], steps.pop(), len(spans)), w.ints([1]))
        found = w.emit("Gather", w(x, kind), w.emit("Add", first, within), axis=dim)
    else:
        at = np.array(starts)[:, None] + np.arange(longest)
        inside = np.arange(longest) < np.array(lengths)[:, None]
        found = w.emit("Gather", w(x, kind), w.array(np.where(inside, at, 0)), axis=dim)
        mask = w.array(inside.reshape(*inside.shape, *(1,) * (x.ndim - dim - 1)))
        found = w.emit("Where", mask, found, w.scalar(0, kind))
    return converted(w, w.reduce("ReduceSum", found, (dim + 1,)), kind, e.out.dtype)


def spots(w: OnnxWriter, e: Equation, count: int) -> str:
    """Where windows of one size lie along a dimension. (count, size)"""
    first = w.emit("Unsqueeze", counted(w, 0, e.params["step"], count), w.ints([1]))
    return str(w.emit("Add", first, counted(w, 0, 1, e.params["size"])))


@strided.windows.lower("onnx")
def _windows(w: OnnxWriter, e: Equation) -> str:
    dim, ndim = e.params["dim"], e.out.ndim
    found = w.emit("Gather", w(e.inputs[0]), spots(w, e, e.out.shape[dim]), axis=dim)
    return str(w.emit("Transpose", found, perm=[*range(dim + 1), *range(dim + 2, ndim), dim + 1]))


@strided.unwindow.lower("onnx")
def _unwindow(w: OnnxWriter, e: Equation) -> str:
    x, dim = e.values[0], e.params["dim"]
    count, size = x.shape[dim], e.params["size"]
    near = w.emit("Transpose", w(x), perm=[*range(dim + 1), x.ndim - 1, *range(dim + 1, x.ndim - 1)])
    shape = tuple(count * size if d == dim else n for d, n in enumerate(e.out.shape))
    at = w.reshape(spots(w, e, count), (count * size, *(1,) * (len(shape) - dim - 1)))
    zeros = w.filled(e.out.shape, 0, e.out.dtype)
    updates = w.reshape(near, shape)
    return str(w.emit("ScatterElements", zeros, w.expand(at, shape), updates, axis=dim, reduction="add"))


@strided.strided.lower("onnx")
def _strided(w: OnnxWriter, e: Equation) -> str:
    """The elements of x, in order, by their numbers."""
    flat = w.reshape(w(e.inputs[0]), (math.prod(e.values[0].shape),))
    at = w.scalar(e.params["start"], "int64")
    for d, (n, step) in enumerate(zip(e.params["shape"], e.params["steps"], strict=True)):
        along = w.reshape(counted(w, 0, step, n), (n, *(1,) * (e.out.ndim - d - 1)))
        at = w.emit("Add", at, along)
    return str(w.emit("Gather", flat, at, axis=0))
