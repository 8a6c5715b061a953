"""Conversions of dtype and device, copies, and new arrays like a given one."""

from __future__ import annotations

from typing import Any

from leafgrad import backends
from leafgrad.ops.define import op
from leafgrad.ops.geometry import inverse, memory_order
from leafgrad.ops.runtime import runtime
from leafgrad.ops.shifted import in_front, shifted


def apart(x: Any) -> Any:
    """An array, copied if elements share memory: NumPy's copies would lie in another order than PyTorch's."""
    if x.flags.c_contiguous or 0 not in x.strides:
        return x
    order = memory_order(x.shape, (x.strides,))
    return x.transpose(order).copy().transpose(inverse(order))


@op("linear", "any_dtype", "complex")
def to_dtype(xp: Any, x: Any, *, dtype: str, source: str) -> Any:
    """``x``, whose dtype is named ``source``, converted to ``dtype``. (...) -> (...)"""
    if x.dtype.kind == "c" and not (dtype.startswith("complex") or dtype == "bool"):
        x = x.real
    return apart(x).astype(dtype, order="K")


to_dtype.keeps_layout = True
to_dtype.vjp(x=lambda g, *, dtype, source: to_dtype(g, dtype=source, source=dtype))
to_dtype.lower("native", lambda c, e: c.elementwise("x", kind=e.values[0].dtype))


@to_dtype.lower("cuda")
def _to_dtype(c: Any, e: Any) -> Any:
    """As above; bfloat16 is bits there."""
    source, target = e.values[0].dtype, e.out.dtype
    if source == target or "bfloat16" not in (source, target):
        return c.elementwise("x", kind=source)
    return c.elementwise("of_bfloat16(x)" if source == "bfloat16" else "to_bfloat16(x)", kind="float32")


to_dtype.shape(lambda x, *, dtype: x.like(x.shape, dtype))
to_dtype.chunk(lambda call: call.kept())
to_dtype.batched(shifted())


@op("elementwise", "nondifferentiable")
def nearest_bfloat16(xp: Any, x: Any) -> Any:
    """float32 rounded to numbers that bfloat16 has, ties to even, as float32: in compiled programs. (...) -> (...)"""
    return x.astype("bfloat16").astype("float32")


nearest_bfloat16.lower("native", lambda c, e: c.elementwise("nearest_bfloat16(x)"))


@op("linear", "any_dtype", "complex")
def to_device(xp: Any, x: Any, *, device: tuple[str, int], source: tuple[str, int], non_blocking: bool = False) -> Any:
    """A copy of ``x``, which lies on ``source``, on another device. (...) -> (...)

    ``non_blocking``: ``x`` is not written before the copy is done, if it is pinned.
    """
    host, target = backends.backend_of(x).to_host(x), backends.by_device_type(device[0])
    return target.from_pinned(host, device[1]) if non_blocking else target.from_host(host, device[1])


to_device.crosses = True
to_device.vjp(x=lambda g, *, device, source: to_device(g, device=source, source=device))
to_device.batched(shifted())


@op("linear", "any_dtype", "elementwise", "complex", c="x")
def clone(xp: Any, x: Any) -> Any:
    """A copy of ``x`` in memory of its own, laid out like ``x``. (...) -> (...)"""
    return x.copy("K") if (copy := apart(x)) is x else copy


@op("linear", "any_dtype", "elementwise", "complex", c="x")
def contiguous(xp: Any, x: Any) -> Any:
    """A copy of ``x`` that lies in memory in the order of its dimensions. (...) -> (...)"""
    return x.copy()


contiguous.keeps_layout = False
contiguous.vjp(x=lambda g: g)
clone.vjp(x=lambda g: g)


@op("nondifferentiable", "any_dtype", "complex")
def new_full(xp: Any, x: Any, *, shape: tuple[int, ...], value: float, dtype: str | None = None) -> Any:
    """A new array of ``shape`` filled with ``value``, on the device of ``x`` and, by default, of its dtype."""
    return xp.full(shape, value, dtype=dtype or x.dtype)


@new_full.kernel("numpy")
def _new_full(xp: Any, x: Any, *, shape: tuple[int, ...], value: float, dtype: str | None = None) -> Any:
    """As above, without the two Python functions that ``full`` is."""
    if dtype is not None or x.dtype.kind != "f":
        return new_full.forward(xp, x, shape=shape, value=value, dtype=dtype)
    out = xp.empty(shape, x.dtype)
    out.fill(value)
    return out


new_full.lower("native", lambda c, e: c.elementwise("value", arrays=False))
new_full.shape(lambda x, *, shape, dtype: x.like(shape, dtype))


@new_full.chunk
def _new_full_rows(call: Any) -> Any:
    (axis,), shape = call.axes, call.params["shape"]
    return call.on(axis, axis, resized=True) if shape[axis : axis + 1] == (call.length,) else None


new_full.batched(shifted(shape=in_front))


to_dtype.label = to_device.label = "ToCopyBackward0"  # PyTorch's names
contiguous.label = "CloneBackward0"


runtime.to_dtype, runtime.to_device, runtime.clone = to_dtype, to_device, clone
