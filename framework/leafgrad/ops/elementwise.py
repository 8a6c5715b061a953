"""Elementwise arithmetic: sums, products, quotients, powers, roots, signs."""

from __future__ import annotations

import cmath
import math
from typing import Any

from leafgrad.ops import forms
from leafgrad.ops.conjugate import is_complex, real_part
from leafgrad.ops.define import op
from leafgrad.ops.exponential import log
from leafgrad.ops.select import clamp, where, zero
from leafgrad.ops.series import product

NUMBERS = (bool, int, float, complex)


# ---- sums, products, quotients ------------------------------------------------------------------------------------


@op("elementwise", "linear", "complex", c="x + y", ufunc="add")
def add(xp: Any, x: Any, y: Any) -> Any:
    """Sum of x and y, broadcast. (...), (...) -> (...)"""
    return x + y


add.vjp(x=lambda g: g, y=lambda g: g)


@op("elementwise", "linear", "complex", c="x - y", ufunc="subtract")
def sub(xp: Any, x: Any, y: Any) -> Any:
    """Difference of x and y, broadcast. (...), (...) -> (...)"""
    return x - y


sub.vjp(x=lambda g: g, y=lambda g: -g)
sub.no_bool = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. Use the `^` or `logical_xor()` operator for "
    "two of them, the `~` or `logical_not()` operator to invert a mask, or convert it with .to(dtype)"
)


@op("elementwise", "bilinear", "holomorphic", c="x * y", ufunc="multiply")
def mul(xp: Any, x: Any, y: Any) -> Any:
    """Product of x and y, broadcast. (...), (...) -> (...)"""
    return x * y


mul.exact = True
mul.vjp(x=lambda g, y: g * y, y=lambda g, x: g * x)


@op("elementwise", "float", "holomorphic", c="x / y", ufunc="true_divide")
def div(xp: Any, x: Any, y: Any) -> Any:
    """Quotient of x and y, broadcast; integers divide as floats. (...), (...) -> (...)"""
    return x / y


div.form = forms.div_form
div.exact = True
div.vjp(x=lambda g, y: g / y, y=lambda g, x, y: -g * (x / y / y))  # not by out, which may be written to, as in PyTorch


@div.jet
def _quotient(out: Any, x: Any, y: Any) -> Any:
    """From out y = x."""
    k, known = len(out), None
    if any(term is not None for term in y[1:]):
        known = product(mul, [x[0] / y[0], *out[1:], None], [None, *y[1:]], k)
    rest = x[k] if known is None else -known if x[k] is None else x[k] - known
    return None if rest is None else rest / y[0]


@op("elementwise", "linear", "complex", c="-x", ufunc="negative")
def neg(xp: Any, x: Any) -> Any:
    """Minus x. (...) -> (...)"""
    return -x


neg.vjp(x=lambda g: -g)
neg.no_bool = (
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead"
)


@op("elementwise", "float", "holomorphic", c="1 / x", ufunc="reciprocal")
def reciprocal(xp: Any, x: Any) -> Any:
    """One over x. (...) -> (...)"""
    return 1 / x


reciprocal.vjp(x=lambda g, out: -g * out * out)


# ---- powers and roots ---------------------------------------------------------------------------------------------


@op("elementwise", "holomorphic", c="pow(x, y)")
def pow(xp: Any, x: Any, y: Any) -> Any:
    """x to the power y, broadcast. (...), (...) -> (...)"""
    if (
        type(y) in NUMBERS and hasattr(x, "dtype") and x.dtype.kind in "fc"
    ):  # the common powers, much faster than the general one
        if y == 2:
            return x * x
        if y == 1:
            return +x
        if y == 3:
            return x * x * x
        if y == 0.5:
            return xp.sqrt(x)
        if y == -1:
            return 1 / x
    if all(getattr(a, "dtype", type(a)) in ("bool", bool) for a in (x, y)):
        return x >= y
    if hasattr(y, "dtype") and y.dtype.kind == "i":
        return _whole(xp, x, y)
    if type(y) is int and y < 0 and hasattr(x, "dtype") and x.dtype.kind in "biu":
        raise ValueError("Integers to negative integer powers are not allowed.")
    return x**y


def _whole(xp: Any, x: Any, y: Any) -> Any:
    """x to the power y of integers: negative powers are rounded towards zero, and are 0 for 0, as in PyTorch."""
    below = y < 0
    return x ** xp.where(below, y & 1, y) * ~(below & (x != 1) & (x != -1))


def _pow_x(g: Any, x: Any, y: Any) -> Any:
    if not hasattr(y, "dtype"):  # a number, also one that a recording follows
        return zero(g) if y == 0 else g * (y * pow(x, y - 1))
    varies = (y != 0) | (abs(1 / x) < math.inf)  # 0**0 and nan**0 are 1; elsewhere y x**(y - 1), also at y = 0
    return where(varies, g * (y * pow(where(varies, x, 1), y - 1)), 0)


def _log_of(x: Any, out: Any) -> Any:
    """The logarithm of a number, nan of one that has none beside ``out``."""
    if is_complex(out):
        return cmath.log(x)
    if not x > 0:
        return math.nan
    return x.log() if hasattr(x, "log") else math.log(x)


def _at_least_0(y: Any) -> Any:
    """Whether y, or its real part, is 0 or more."""
    return real_part(y) >= 0


def _pow_y(g: Any, out: Any, x: Any, y: Any) -> Any:
    if not hasattr(x, "dtype"):  # a number, also one that a recording follows
        if x == 0:
            return where(_at_least_0(y), 0, g * (out * -math.inf))
        return g * (out * _log_of(x, out))
    return where(
        (x == 0) & _at_least_0(y), 0, g * (out * log(x))
    )  # 0**y is constant in y > 0, though log(0) is infinite


pow.form, pow.saved_as = forms.pow_form, {"y": "exponent"}
pow.within_float16 = True
pow.vjp(x=_pow_x, y=_pow_y)


@pow.lower("native")
def _power(c: Any, e: Any) -> Any:
    """Small whole powers and roots as NumPy's own shortcuts have them."""
    y = e.inputs[1]
    common = {1: "x", 2: "x * x", 3: "x * x * x", 4: "(x * x) * (x * x)", 0.5: "sqrt(x)", -1: "1 / x"}
    return c.elementwise(common.get(y, "pow(x, y)") if isinstance(y, (int, float)) else "pow(x, y)")


@op("elementwise", "holomorphic", c="x * x", ufunc="square")
def square(xp: Any, x: Any) -> Any:
    """x times x; of bools int64, as other powers of them are. (...) -> (...)"""
    return x.astype("int64") if x.dtype.kind == "b" else x * x


square.label = "PowBackward0"
square.vjp(x=lambda g, x: _pow_x(g, x, 2))


@op("elementwise", "float", c="minimum(maximum(x, -end), end) * (x - 0.5 * minimum(maximum(x, -end), end))")
def bent_square(xp: Any, x: Any, *, end: float) -> Any:
    """x**2 / 2 up to |x| = ``end``, and straight on from there: the integral of x clamped. (...) -> (...)"""
    near = xp.minimum(xp.maximum(x, -end), end)
    return near * (x - 0.5 * near)


bent_square.vjp(x=lambda g, x, *, end: g * clamp(x, -end, end))


@op("elementwise", "float", "holomorphic", c="sqrt(x)", ufunc="sqrt")
def sqrt(xp: Any, x: Any) -> Any:
    """Square root; nan for negative x. (...) -> (...)"""
    return xp.sqrt(x)


sqrt.vjp(x=lambda g, out: g / (2 * out))


@op("elementwise", "float", "holomorphic", c="1 / sqrt(x)")
def rsqrt(xp: Any, x: Any) -> Any:
    """One over the square root of x. (...) -> (...)"""
    return 1 / xp.sqrt(x)


rsqrt.vjp(x=lambda g, out: g * (-0.5 * (out * out * out)))


@op("elementwise", "float", c="hypot(x, y)", ufunc="hypot")
def hypot(xp: Any, x: Any, y: Any) -> Any:
    """Length of the vector (x, y), without overflow in between. (...), (...) -> (...)"""
    return xp.hypot(x, y)


hypot.vjp(x=lambda g, out, x: g * (x / out), y=lambda g, out, y: g * (y / out))


@op("elementwise", "holomorphic", c="abs(w) < 0.5 ? x + (y - x) * w : y - (y - x) * (1 - w)")
def lerp(xp: Any, x: Any, y: Any, w: Any) -> Any:
    """x + w (y - x), exact at both ends; float16 goes by way of float32. (...), (...), (...) -> (...)"""
    if "float16" in (getattr(x, "dtype", ""), getattr(y, "dtype", "")):
        wide = [a.astype("float32") if hasattr(a, "dtype") else a for a in (x, y, w)]
        return lerp.forward(xp, *wide).astype("float16")
    way = y - x
    if type(w) in NUMBERS and type(w) is not complex:
        return x + way * w if -0.5 < w < 0.5 else y - way * (1 - w)
    return xp.where(xp.abs(w) < 0.5, x + way * w, y - way * (1 - w))


lerp.form = forms.with_numbers("LerpBackward")
lerp.vjp(x=lambda g, w: g * (1 - w), y=lambda g, w: g * w, w=lambda g, x, y: g * (y - x))


# ---- signs --------------------------------------------------------------------------------------------------------


@op("elementwise", c="x > 0 ? 1 : x < 0 ? -1 : 0")
def sign(xp: Any, x: Any) -> Any:
    """-1, 0 or 1; 0 for nan, which has no sign. (...) -> (...)"""
    return x.copy() if x.dtype.kind == "b" else (x > 0).astype(x.dtype) - (x < 0)


sign.vjp(x=zero)


@op("elementwise", "complex", c="abs(x)", ufunc="absolute")
def abs(xp: Any, x: Any) -> Any:
    """Absolute value. Its derivative at 0 is taken as 0. (...) -> (...)"""
    return xp.abs(x)


def abs_x(g: Any, x: Any) -> Any:
    return g * sign(x) if not is_complex(x) else g * where(x == 0, 0, x / where(x == 0, 1, abs(x)))


abs.vjp(x=abs_x)


@op("elementwise", "float", c="copysign(x, y)", ufunc="copysign")
def copysign(xp: Any, x: Any, y: Any) -> Any:
    """The magnitude of x with the sign of y. (...), (...) -> (...)"""
    return xp.copysign(x, y)


copysign.vjp(x=lambda g, out, x: where(x == 0, 0, g * (out / x)), y=zero)


@op("elementwise", "float")
def nextafter(xp: Any, x: Any, y: Any) -> Any:
    """The next number after x in the direction of y. (...), (...) -> (...)"""
    return xp.nextafter(x, y)


nextafter.vjp(x=lambda g, x, y: where(x == y, 0, g), y=zero)


@nextafter.kernel("bfloat16")
def _nextafter_bfloat16(xp: Any, x: Any, y: Any) -> Any:
    return xp.nextafter(x, y)


@op("elementwise")
def heaviside(xp: Any, x: Any, y: Any) -> Any:
    """1 where x > 0, y where x is 0, and 0 elsewhere, at nan too. It has no gradient. (...), (...) -> (...)"""
    return xp.where(x == 0, y, (x > 0).astype(x.dtype))
