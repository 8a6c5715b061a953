"""Conversions of dtype and device, copies, and new arrays like a given one."""

from __future__ import annotations

from typing import Any

from leafgrad import backends
from leafgrad.ops import promotion
from leafgrad.ops.define import op


@op("linear", "any_dtype")
def to_dtype(xp: Any, x: Any, *, dtype: str, source: str) -> Any:
    """``x``, whose dtype is named ``source``, converted to ``dtype``. (...) -> (...)"""
    return x.astype(dtype)


to_dtype.vjp(x=lambda g, *, dtype, source: to_dtype(g, dtype=source, source=dtype))


@op("linear", "any_dtype")
def to_device(xp: Any, x: Any, *, device: tuple[str, int], source: tuple[str, int]) -> Any:
    """A copy of ``x``, which lies on ``source``, on another device. (...) -> (...)"""
    host = backends.backend_of(x).to_host(x)
    return backends.by_device_type(device[0]).from_host(host, device[1])


to_device.crosses = True
to_device.vjp(x=lambda g, *, device, source: to_device(g, device=source, source=device))


@op("linear", "any_dtype", "elementwise")
def clone(xp: Any, x: Any) -> Any:
    """A copy of ``x`` in memory of its own. (...) -> (...)"""
    return x.copy()


clone.vjp(x=lambda g: g)


@op("nondifferentiable", "any_dtype")
def new_full(xp: Any, x: Any, *, shape: tuple[int, ...], value: float, dtype: str | None = None) -> Any:
    """A new array of ``shape`` filled with ``value``, on the device of ``x`` and, by default, of its dtype."""
    return xp.full(shape, value, dtype=dtype or x.dtype)


to_dtype.label = to_device.label = "ToCopyBackward0"  # PyTorch's name


promotion.adopt(to_dtype, to_device)
