"""Ops that step through memory: windows along a dimension, and any strides. Elements of their views may overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad import backends
from leafgrad.ops.define import op
from leafgrad.ops.shifted import behind, shifted

Shape = tuple[int, ...]


@op("linear", "view", "complex")
def windows(xp: Any, x: Any, *, dim: int, size: int, step: int) -> Any:
    """All windows of ``size`` along ``dim``, ``step`` apart, as a new last dimension. (.., n, ..) -> (.., k, .., s)"""
    shape, strides = list(x.shape), list(x.strides)
    shape[dim] = (shape[dim] - size) // step + 1
    strides[dim] *= step
    return backends.backend_of(x).strided(x, (*shape, size), (*strides, x.strides[dim]))


windows.never_copies = True
windows.batched(shifted(dim=behind))


@op("linear", "complex", transpose_of=windows)
def unwindow(xp: Any, x: Any, *, shape: Shape, dim: int, size: int, step: int) -> Any:
    """Zeros of ``shape`` with each window added in its place; the transpose of windows."""
    out = xp.zeros(shape, dtype=x.dtype)
    lead = (slice(None),) * dim
    count = x.shape[dim]
    if size < count:
        for i in range(size):  # element i of all windows
            out[(*lead, slice(i, i + (count - 1) * step + 1, step))] += x[..., i]
    else:
        for i in range(count):
            out[(*lead, slice(i * step, i * step + size))] += xp.moveaxis(x[(*lead, i)], -1, dim)
    return out


@op("linear", "view", "complex")
def strided(xp: Any, x: Any, *, shape: Shape, steps: Shape, start: int) -> Any:
    """Element (i, j, ...) is number ``start + i * steps[0] + j * steps[1] + ...`` of x in order. -> shape"""
    flat = xp.ascontiguousarray(x).reshape(-1)  # in one piece: what is expanded would stay so
    if 0 in shape:
        return flat[:0].reshape(shape)
    reach = start + sum([(n - 1) * s for n, s in zip(shape, steps, strict=True)])
    if start < 0 or reach >= flat.size:
        raise RuntimeError(f"element {reach} is out of bounds for an array of {flat.size} elements")
    return backends.backend_of(x).strided(flat[start:], shape, [s * x.itemsize for s in steps])


@op("linear", "complex")
def unstrided(xp: Any, x: Any, *, whole: Shape, steps: Shape, start: int) -> Any:
    """Zeros of shape ``whole`` with x added where ``strided`` would read; the transpose of strided."""
    out = xp.zeros(math.prod(whole), dtype=x.dtype)
    xp.add.at(out, places(xp, x.shape, steps, start).reshape(-1), x.reshape(-1))
    return out.reshape(whole)


def places(xp: Any, shape: Sequence[int], steps: Sequence[int], start: int) -> Any:
    """The number of each element that ``strided`` reads. -> shape"""
    found = xp.full(tuple(shape), start, dtype="int64")
    for d, (n, step) in enumerate(zip(shape, steps, strict=True)):
        found += (xp.arange(n, dtype="int64") * step).reshape((n,) + (1,) * (len(shape) - d - 1))
    return found


strided.vjp(x=lambda g, x_shape, *, steps, start: unstrided(g, whole=x_shape, steps=steps, start=start))
unstrided.vjp(x=lambda g, x_shape, *, steps, start: strided(g, shape=x_shape, steps=steps, start=start))


@strided.batched
def _strided_batched(call: Any) -> Any:
    apart = math.prod(call.shape(0))
    return call.again(call.args[0], shape=(call.size, *call.params["shape"]), steps=(apart, *call.params["steps"]))


@unstrided.batched
def _unstrided_batched(call: Any) -> Any:
    whole = call.params["whole"]
    return call.again(call.args[0], whole=(call.size, *whole), steps=(math.prod(whole), *call.params["steps"]))


@op("view", "nondifferentiable", "complex")
def reinterpret(xp: Any, x: Any, *, dtype: str) -> Any:
    """The same bytes as elements of another dtype. (..., n) -> (..., n * itemsize / the other's itemsize)"""
    return x.view(dtype)


@reinterpret.kernel("bfloat16")
def _reinterpret_bfloat16(xp: Any, x: Any, *, dtype: str) -> Any:
    return x.view(dtype)


reinterpret.batched(shifted())


windows.label, strided.label = "UnfoldBackward0", "AsStridedBackward0"  # PyTorch's names
