"""Choosing between values: where, the larger and the smaller, clamp."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes
from leafgrad.ops import forms
from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op


def zero(g: Any) -> Any:
    """Zeros like g: the gradient of steps, and of what is only compared with."""
    return new_full(g, shape=tuple(g.shape), value=0)


@op("elementwise", "any_dtype", "complex", c="condition ? x : y")
def where(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    """x where ``condition`` (bool) holds, else y; x and y of one dtype, at most one a number. All broadcast."""
    return xp.where(condition, x, y)


where.vjp(
    x=lambda g, condition: where(condition, g, 0),
    y=lambda g, condition: where(condition, 0, g),
)  # fmt: skip


@op("elementwise", c="!(y <= low || y >= high) ? x : leak == 0 ? 0 : x * leak")
def gate(xp: Any, x: Any, y: Any, *, low: float, high: float | None = None, leak: float = 0.0) -> Any:
    """``leak`` times x where y <= low or y >= high, else x: the gradient of what is linear in parts.

    A y that is nan is neither, so that the gradient does not look as if there were none. (...), (...) -> (...)
    """
    outside = y <= low if high is None else (y <= low) | (y >= high)
    if leak or x.dtype.kind != "f":
        return xp.where(outside, x * leak, x)
    bits = f"int{8 * x.itemsize}"  # all bits kept or none: many times faster than where on a mask without a pattern
    return (x.view(bits) & (outside.astype(bits) - 1)).view(x.dtype)


gate.vjp(x=lambda g, y, *, low, high, leak: gate(g, y, low=low, high=high, leak=leak), y=zero)


@op("elementwise", c="maximum(x, y)", ufunc="maximum")
def maximum(xp: Any, x: Any, y: Any) -> Any:
    """The larger of x and y; nan if either is. Where they are equal each gets half the gradient, at nan all of it."""
    return xp.maximum(x, y)


maximum.vjp(
    x=lambda g, x, y: where(x == y, g / 2, where(x < y, 0, g)),
    y=lambda g, x, y: where(x == y, g / 2, where(x > y, 0, g)),
)


@op("elementwise", c="minimum(x, y)", ufunc="minimum")
def minimum(xp: Any, x: Any, y: Any) -> Any:
    """The smaller of x and y; nan if either is. Where they are equal each gets half the gradient, at nan all of it."""
    return xp.minimum(x, y)


minimum.vjp(
    x=lambda g, x, y: where(x == y, g / 2, where(x > y, 0, g)),
    y=lambda g, x, y: where(x == y, g / 2, where(x < y, 0, g)),
)


@op("elementwise", c="y != y || x >= y ? x : y")
def fmax(xp: Any, x: Any, y: Any) -> Any:
    """The larger of x and y; if one is nan, the other. Where they are equal x gets the gradient."""
    return xp.fmax(x, y)


fmax.vjp(
    x=lambda g, x, y: where((x >= y) | (y != y), g, 0),
    y=lambda g, x, y: where((x >= y) | (y != y), 0, g),
)  # fmt: skip


@op("elementwise", c="y != y || x <= y ? x : y")
def fmin(xp: Any, x: Any, y: Any) -> Any:
    """The smaller of x and y; if one is nan, the other. Where they are equal x gets the gradient."""
    return xp.fmin(x, y)


fmin.vjp(
    x=lambda g, x, y: where((x <= y) | (y != y), g, 0),
    y=lambda g, x, y: where((x <= y) | (y != y), 0, g),
)  # fmt: skip


@op("elementwise")
def clamp(xp: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    """x, but at least ``low`` and at most ``high`` (numbers, arrays or None). If low > high, the result is high.

    Of uint8, integers from -255 to -1 are those plus 256, as in PyTorch.
    """
    if x.dtype == "uint8":
        low, high = (b % 256 if type(b) is int and -256 < b < 0 else b for b in (low, high))
    if low is not None:
        x = xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


def _clamp_x(g: Any, x: Any, low: Any, high: Any) -> Any:
    if low is None or high is None:
        return where(x <= high if low is None else x >= low, g, 0)
    return where((x >= low) & (x <= high), g, 0)


def _clamp_low(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(x < low if high is None else (x < low) & (low < high), g, 0)


def _clamp_high(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(x > high if low is None else (x > high) | (high < low), g, 0)


clamp.form = forms.clamp_form
clamp.within_float16 = True
clamp.vjp(x=_clamp_x, low=_clamp_low, high=_clamp_high)


@clamp.lower("native")
def _clamped(c: Any, e: Any) -> Any:
    low, high = (*e.inputs, None, None)[1:3]
    text = "x" if low is None else "maximum(x, low)"
    return c.elementwise(text if high is None else f"minimum({text}, high)")


@op("elementwise")
def nan_to_num(xp: Any, x: Any, *, nan: float, posinf: float | None, neginf: float | None) -> Any:
    """x with nan and infinities replaced; None stands for the largest (smallest) finite number."""
    return xp.nan_to_num(x if 0 not in x.strides else x.copy(), True, nan, posinf, neginf)


@nan_to_num.kernel("bfloat16")
def _nan_to_num_bfloat16(xp: Any, x: Any, *, nan: float, posinf: float | None, neginf: float | None) -> Any:
    top = dtypes.finfo(dtypes.bfloat16).max
    given = top if posinf is None else posinf, -top if neginf is None else neginf
    return xp.nan_to_num(x.astype("float32"), True, nan, *given).astype(x.dtype)


@nan_to_num.lower("native")
def _nan_to_num_in_c(c: Any, e: Any) -> Any:
    if not e.out.dtype.startswith("float"):
        return None
    top = dtypes.finfo(getattr(dtypes, e.out.dtype)).max
    high, low = (e.params.get(name) for name in ("posinf", "neginf"))
    text = f"x > 0 ? {top if high is None else 'posinf'} : {-top if low is None else 'neginf'}"
    return c.elementwise(f"x != x ? nan : x - x == 0 ? x : {text}")


nan_to_num.vjp(x=lambda g, x: where(x - x == 0, g, 0))  # inf - inf and nan - nan are nan
