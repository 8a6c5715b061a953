"""Exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.conjugate import is_complex
from leafgrad.ops.define import op
from leafgrad.ops.select import maximum, where

LN2 = math.log(2)
LN10 = math.log(10)


@op("elementwise", "float", "holomorphic", c="exp(x)", ufunc="exp")
def exp(xp: Any, x: Any) -> Any:
    """e to the power x. (...) -> (...)"""
    return xp.exp(x)


exp.vjp(x=lambda g, out: g * out)


@op("elementwise", "float", "holomorphic", c="exp2(x)", ufunc="exp2")
def exp2(xp: Any, x: Any) -> Any:
    """2 to the power x. (...) -> (...)"""
    return xp.exp(x * LN2) if x.dtype.kind == "c" else xp.exp2(x)


exp2.vjp(x=lambda g, out: g * (out * LN2))


@op("elementwise", "float", "holomorphic", c="expm1(x)", ufunc="expm1")
def expm1(xp: Any, x: Any) -> Any:
    """exp(x) - 1, accurate near 0. (...) -> (...)"""
    return xp.expm1(x)


expm1.vjp(x=lambda g, out: g * (out + 1))


@op("elementwise", "float", "holomorphic", c="log(x)", ufunc="log")
def log(xp: Any, x: Any) -> Any:
    """Natural logarithm; -inf at 0, nan below. (...) -> (...)"""
    return xp.log(x)


log.vjp(x=lambda g, x: g / x)


@op("elementwise", "float", "holomorphic", c="log2(x)", ufunc="log2")
def log2(xp: Any, x: Any) -> Any:
    """Logarithm to the base 2. (...) -> (...)"""
    return xp.log2(x)


log2.vjp(x=lambda g, x: g / (x * LN2))


@op("elementwise", "float", "holomorphic", c="log10(x)", ufunc="log10")
def log10(xp: Any, x: Any) -> Any:
    """Logarithm to the base 10. (...) -> (...)"""
    return xp.log10(x)


log10.vjp(x=lambda g, x: g / (x * LN10))


@op("elementwise", "float", "holomorphic", c="log1p(x)", ufunc="log1p")
def log1p(xp: Any, x: Any) -> Any:
    """log(1 + x), accurate near 0. (...) -> (...)"""
    return xp.log1p(x)


log1p.label = "Log1PBackward0"
log1p.vjp(x=lambda g, x: g / (x + 1))


@op("elementwise", "float", "holomorphic", c="1 / (1 + exp(-x))")
def sigmoid(xp: Any, x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x)). (...) -> (...)"""
    return 1 / (1 + xp.exp(-x))


sigmoid.vjp(x=lambda g, out: g * (out * (1 - out)))


CLAMPED = "(x < eps ? eps : x > 1 - eps ? 1 - eps : x)"


@op("elementwise", "float", c=f"log({CLAMPED} / (1 - {CLAMPED}))")
def logit(xp: Any, x: Any, *, eps: float | None = None) -> Any:
    """log(x / (1 - x)), the inverse of sigmoid; with ``eps`` of x clamped to [eps, 1 - eps]. (...) -> (...)"""
    if eps is not None:
        x = xp.minimum(xp.maximum(x, eps), 1 - eps)
    return xp.log(x / (1 - x))


def _logit_x(g: Any, x: Any, *, eps: float | None) -> Any:
    """Infinite at 0 and 1; beyond, where there is no logarithm, nan."""
    low, beyond = (0, math.nan) if eps is None else (eps, 0)
    return where((x < low) | (x > 1 - low), beyond, g / (x * (1 - x)))


logit.vjp(x=_logit_x)


@op("elementwise", "float", c="(y - 1) * maximum(log1p(-x), -100) - y * maximum(log(x), -100)")
def binary_entropy(xp: Any, x: Any, y: Any) -> Any:
    """-(y log(x) + (1 - y) log(1 - x)), the logarithms clamped at -100. (...), (...) -> (...)"""
    return (y - 1) * xp.maximum(xp.log1p(-x), -100) - y * xp.maximum(xp.log(x), -100)


binary_entropy.vjp(
    x=lambda g, x, y: g * ((x - y) / maximum(x * (1 - x), 1e-12)),
    y=lambda g, x: g * (log1p(-x) - log(x)),
)  # fmt: skip


@op("elementwise", "float", "holomorphic", c="logaddexp(x, y)")
def logaddexp(xp: Any, x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) without overflow. (...), (...) -> (...)"""
    if not (is_complex(x) or is_complex(y)):
        return xp.logaddexp(x, y)
    larger, smaller = xp.where(x.real >= y.real, x, y), xp.where(x.real >= y.real, y, x)
    alike = xp.isinf(larger.real) & (larger.real == smaller.real)
    gap = xp.where(alike, 0, smaller - larger)
    return xp.where(alike & (larger.real < 0), larger, larger + xp.log1p(xp.exp(gap)))


logaddexp.vjp(x=lambda g, x, y: g * sigmoid(x - y), y=lambda g, x, y: g * sigmoid(y - x))


@op("elementwise", "float", c="x == 0 && y == y ? 0 : x * log(y)")
def xlogy(xp: Any, x: Any, y: Any) -> Any:
    """x log(y), and 0 where x is 0 unless y is nan. Arrays alone. (...), (...) -> (...)"""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log(y))


# A gradient of 0, as of an element that a mask takes away, stays 0 where the logarithm is infinite or nan.
xlogy.vjp(x=lambda g, x, y: where((x == 0) & (y <= 0), 0, xlogy(g, y)), y=lambda g, x, y: g * x / y)
