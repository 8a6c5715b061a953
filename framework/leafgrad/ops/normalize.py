"""What normalisation layers do, each part in one op that passes over memory few times."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.elementwise import rsqrt
from leafgrad.ops.reduce import Dims, count, dot, mean, sum


def _parts(xp: Any, x: Any, dim: Dims, eps: float, centered: bool) -> tuple[Any, Any]:
    """An array to write to with x, less its mean if ``centered``, and what to multiply it by."""
    c = x - sum(x, dim=dim, keepdim=True) / count(x.shape, dim) if centered else x.copy()
    return c, 1 / xp.sqrt(dot(xp, c, c, dim, True) / count(x.shape, dim) + eps)


@op("along")
def standardize(xp: Any, x: Any, *, dim: Dims, eps: float, centered: bool = True) -> Any:
    """(x - mean) / sqrt(variance + eps), both over ``dim``; about 0 instead of the mean unless ``centered``."""
    if x.dtype == "float16":
        return standardize.forward(xp, x.astype("float32"), dim=dim, eps=eps, centered=centered).astype("float16")
    y, scale = _parts(xp, x, dim, eps, centered)
    y *= scale
    return y


@op("along")
def standardize_slope(xp: Any, h: Any, x: Any, *, dim: Dims, eps: float, centered: bool = True) -> Any:
    """h times the derivative of ``standardize`` at x, a symmetric matrix. (...), (...) -> (...)

    With y the standardized x it is (h - mean(h) - y mean(h y)) / sqrt(variance + eps).
    """
    if x.dtype == "float16":
        wide = h.astype("float32"), x.astype("float32")
        return standardize_slope.forward(xp, *wide, dim=dim, eps=eps, centered=centered).astype("float16")
    out, scale = _parts(xp, x, dim, eps, centered)
    out *= -scale * scale * dot(xp, h, out, dim, True) / count(x.shape, dim)
    out += h
    if centered:
        out -= sum(h, dim=dim, keepdim=True) / count(x.shape, dim)
    out *= scale
    return out


def _slope_x(g: Any, h: Any, x: Any, *, dim: Dims, eps: float, centered: bool) -> Any:
    """The gradient by x of g · slope(h), which is n scale (mean(g h) - mean(g y) mean(h y)) with centered g."""

    def average(v: Any) -> Any:
        return mean(v, dim=dim, keepdim=True)

    def slope(v: Any) -> Any:
        return standardize_slope(v, x, dim=dim, eps=eps, centered=centered)

    c = x - average(x) if centered else x
    scale = rsqrt(average(c * c) + eps)
    y = c * scale
    gy, hy = average(g * y), average(h * y)
    gh = average((g - average(g) if centered else g) * h)
    return -scale * (scale * y * (gh - gy * hy) + hy * slope(g) + gy * slope(h))


standardize.vjp(x=lambda g, x, *, dim, eps, centered: standardize_slope(g, x, dim=dim, eps=eps, centered=centered))
standardize_slope.vjp(
    h=lambda g, x, *, dim, eps, centered: standardize_slope(g, x, dim=dim, eps=eps, centered=centered), x=_slope_x
)


@op("elementwise", c="x * weight + bias")
def affine(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    """x * weight + bias, broadcast. (...), (...), (...) -> (...)"""
    y = x * weight
    return xp.add(y, bias, out=y if y.ndim and weight.shape == bias.shape else None)


affine.vjp(x=lambda g, weight: g * weight, weight=lambda g, x: g * x, bias=lambda g: g)
