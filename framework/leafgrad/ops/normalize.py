"""What normalisation layers do, each part in one op that passes over memory few times."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from leafgrad.ops import forms
from leafgrad.ops.abstract import PRECISE
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import add, mul, rsqrt, sub
from leafgrad.ops.reduce import Dims, averaged, count, dot, mean, sum
from leafgrad.ops.small import SMALL, known, summing


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


@standardize.kernel("numpy")
def _standardize(xp: Any, x: Any, *, dim: Dims, eps: float, centered: bool = True) -> Any:
    """As above; small arrays in fewer calls."""
    small = _small(xp, x.shape, x.dtype, dim, eps)
    if small is None:
        return standardize.forward(xp, x, dim=dim, eps=eps, centered=centered)
    n, eps, total, average = small
    y = x - total(x) / n if centered else x.copy()
    scale = average(y * y)
    scale += eps
    y /= xp.sqrt(scale, scale)
    return y


@standardize_slope.kernel("numpy")
def _standardize_slope(xp: Any, h: Any, x: Any, *, dim: Dims, eps: float, centered: bool = True) -> Any:
    """As above; small arrays in fewer calls."""
    small = _small(xp, x.shape, x.dtype, dim, eps)
    if small is None or h.shape != x.shape:
        return standardize_slope.forward(xp, h, x, dim=dim, eps=eps, centered=centered)
    n, eps, total, average = small
    y = x - total(x) / n if centered else x.copy()
    scale = average(y * y)
    scale += eps
    along = average(h * y)
    along /= scale
    y *= along
    xp.subtract(h, y, y)
    if centered:
        y -= average(h)
    y /= xp.sqrt(scale, scale)
    return y


@lru_cache(maxsize=256)
def _small(xp: Any, shape: tuple[int, ...], dtype: Any, dim: Dims, eps: float) -> tuple[Any, Any, Any, Any] | None:
    """Of small arrays how many elements are averaged, and eps, as arrays; what adds up, and what averages. Else None.

    The mean itself is a sum over the count, since that of equal elements is one of them then.
    """
    if dtype.char not in "fd" or not (shape and 0 < math.prod(shape) <= SMALL):
        return None
    n = count(shape, dim)
    total, average = summing(xp, shape, dtype, dim), summing(xp, shape, dtype, dim, 1 / n)
    return known(xp, n, dtype), known(xp, 0.0 + eps, dtype), total, average


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


_slope_of = standardize_slope.function
standardize.vjp(x=lambda g, x, *, dim, eps, centered: _slope_of(g, x, dim=dim, eps=eps, centered=centered))
standardize_slope.vjp(
    h=lambda g, x, *, dim, eps, centered: standardize_slope(g, x, dim=dim, eps=eps, centered=centered), x=_slope_x
)
standardize.shape(lambda x: x.shape if x.floating else None)
standardize.chunk(lambda call: call.along())
standardize_slope.shape(lambda h, x: h.shape if h.floating and h.shape == x.shape else None)
standardize_slope.chunk(lambda call: call.along())


def _centered(graph: Any, x: Any, params: Any) -> Any:
    return graph.emit(sub, x, averaged(graph, x, params["dim"])) if params["centered"] else x


def _standardized(graph: Any, x: Any, params: Any) -> Any:
    """The standardized x and what it was scaled by; None in float16, whose sums overflow, and without elements."""
    if x.dtype not in PRECISE or 0 in x.shape:
        return None
    c = _centered(graph, x, params)
    variance = averaged(graph, graph.emit(mul, c, c), params["dim"])
    scale = graph.emit(rsqrt, graph.emit(add, variance, params["eps"]))
    return graph.emit(mul, c, scale), scale


@standardize.rewrite
def _in_steps(graph: Any, equation: Any) -> Any:
    """(x - mean) rsqrt(variance + eps): derivatives and running averages share the mean and the variance."""
    found = _standardized(graph, equation.inputs[0], equation.params)
    return None if found is None else found[0]


@standardize_slope.rewrite
def _slope_in_steps(graph: Any, equation: Any) -> Any:
    """(h - mean(h) - y mean(h y)) rsqrt(variance + eps)."""
    (h, x), params = equation.values, equation.params
    found = _standardized(graph, x, params)
    if found is None:
        return None
    y, scale = found
    along = graph.emit(mul, y, averaged(graph, graph.emit(mul, h, y), params["dim"]))
    return graph.emit(mul, graph.emit(sub, _centered(graph, h, params), along), scale)


@op("elementwise", "holomorphic", c="x * weight + bias")
def affine(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    """x * weight + bias, broadcast. (...), (...), (...) -> (...)"""
    y = x * weight
    return xp.add(y, bias, y) if y.ndim and weight.shape == bias.shape else y + bias


affine.vjp(x=lambda g, weight: g * weight, weight=lambda g, x: g * x, bias=lambda g: g)
affine.form = forms.layer_norm_form  # batch norm and others are marked as what they are


@affine.rewrite
def _affine_in_steps(graph: Any, equation: Any) -> Any:
    x, weight, bias = equation.inputs
    return graph.emit(add, graph.emit(mul, x, weight), bias)
