"""Trigonometric and hyperbolic functions and their inverses. Angles in radians."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.conjugate import is_complex
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import rsqrt
from leafgrad.ops.select import where
from leafgrad.ops.series import half_square


@op("elementwise", "float", "holomorphic", c="sin(x)", ufunc="sin")
def sin(xp: Any, x: Any) -> Any:
    """Sine. (...) -> (...)"""
    return xp.sin(x)


@op("elementwise", "float", "holomorphic", c="cos(x)", ufunc="cos")
def cos(xp: Any, x: Any) -> Any:
    """Cosine. (...) -> (...)"""
    return xp.cos(x)


sin.vjp(x=lambda g, x: g * cos(x))
cos.vjp(x=lambda g, x: g * -sin(x))


@op("elementwise", "float", "holomorphic", c="tan(x)", ufunc="tan")
def tan(xp: Any, x: Any) -> Any:
    """Tangent. (...) -> (...)"""
    return xp.tan(x)


tan.vjp(x=lambda g, out: g * (1 + out * out))


@op("elementwise", "float", "holomorphic", c="asin(x)", ufunc="arcsin")
def asin(xp: Any, x: Any) -> Any:
    """Arcsine, in [-pi/2, pi/2]; nan beyond [-1, 1]. (...) -> (...)"""
    return xp.arcsin(x)


asin.vjp(x=lambda g, x: g * rsqrt(1 - x * x))


@op("elementwise", "float", "holomorphic", c="acos(x)", ufunc="arccos")
def acos(xp: Any, x: Any) -> Any:
    """Arccosine, in [0, pi]; nan beyond [-1, 1]. (...) -> (...)"""
    return xp.arccos(x)


acos.vjp(x=lambda g, x: g * -rsqrt(1 - x * x))


@op("elementwise", "float", "holomorphic", c="atan(x)", ufunc="arctan")
def atan(xp: Any, x: Any) -> Any:
    """Arctangent, in (-pi/2, pi/2). (...) -> (...)"""
    return xp.arctan(x)


atan.vjp(x=lambda g, x: g / (1 + x * x))


@op("elementwise", "float", c="atan2(x, y)", ufunc="arctan2")
def atan2(xp: Any, x: Any, y: Any) -> Any:
    """Angle of the point with ordinate x and abscissa y, in [-pi, pi]. (...), (...) -> (...)"""
    return xp.arctan2(x, y)


def _per_radius(g: Any, x: Any, y: Any) -> Any:
    r = x * x + y * y
    return where(r == 0, 0, g / where(r == 0, 1, r))


atan2.vjp(x=lambda g, x, y: _per_radius(g * y, x, y), y=lambda g, x, y: _per_radius(-g * x, x, y))


@op("elementwise", "float", "holomorphic", c="sinh(x)", ufunc="sinh")
def sinh(xp: Any, x: Any) -> Any:
    """Hyperbolic sine. (...) -> (...)"""
    return xp.sinh(x)


@op("elementwise", "float", "holomorphic", c="cosh(x)", ufunc="cosh")
def cosh(xp: Any, x: Any) -> Any:
    """Hyperbolic cosine. (...) -> (...)"""
    return xp.cosh(x)


sinh.vjp(x=lambda g, x: g * cosh(x))
cosh.vjp(x=lambda g, x: g * sinh(x))


@op("elementwise", "float", "holomorphic", c="tanh(x)", ufunc="tanh")
def tanh(xp: Any, x: Any) -> Any:
    """Hyperbolic tangent. (...) -> (...)"""
    return xp.tanh(x)


@op("elementwise", "holomorphic", c="x * (1 - y * y)")
def tanh_slope(xp: Any, x: Any, y: Any) -> Any:
    """x (1 - y**2): x times the derivative of tanh where tanh is y. (...), (...) -> (...)

    An op of its own, so that networks record one node instead of three and keep no intermediate arrays.
    """
    return x * (1 - y * y)


tanh.vjp(x=lambda g, out: tanh_slope(g, out))
tanh_slope.vjp(x=lambda g, y: tanh_slope(g, y), y=lambda g, x, y: (g * x) * (y * -2))


@tanh.jet
def _tanh_series(out: Any, x: Any) -> Any:
    """From k out_k = the sum of j x_j s_(k-j), where s is 1 - out**2."""
    k = len(out)
    found = None if x[k] is None else tanh_slope(x[k], out[0])
    for j in range(1, k):
        if x[j] is not None and (half := half_square(out, k - j)) is not None:
            part = x[j] * half if 2 * j == k else x[j] * half * (2 * j / k)
            found = -part if found is None else found - part
    return found


@op("elementwise", "float", "holomorphic", c="asinh(x)")
def asinh(xp: Any, x: Any) -> Any:
    """Inverse hyperbolic sine. (...) -> (...)"""
    return xp.arcsinh(x)


asinh.vjp(x=lambda g, x: g * rsqrt(x * x + 1))


@op("elementwise", "float", "holomorphic", c="acosh(x)")
def acosh(xp: Any, x: Any) -> Any:
    """Inverse hyperbolic cosine; nan below 1. (...) -> (...)"""
    return xp.arccosh(x)


acosh.vjp(x=lambda g, x: g * (rsqrt(x - 1) * rsqrt(x + 1) if is_complex(x) else rsqrt(x * x - 1)))


@op("elementwise", "float", "holomorphic", c="atanh(x)")
def atanh(xp: Any, x: Any) -> Any:
    """Inverse hyperbolic tangent; nan beyond [-1, 1]. (...) -> (...)"""
    return xp.arctanh(x)


atanh.vjp(x=lambda g, x: g / (1 - x * x))
