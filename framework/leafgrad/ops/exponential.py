"""Exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.select import where

LN2 = math.log(2)
LN10 = math.log(10)


@op("elementwise", "float", c="exp(x)")
def exp(xp: Any, x: Any) -> Any:
    """e to the power x. (...) -> (...)"""
    return xp.exp(x)


exp.vjp(x=lambda g, out: g * out)


@op("elementwise", "float", c="exp2(x)")
def exp2(xp: Any, x: Any) -> Any:
    """2 to the power x. (...) -> (...)"""
    return xp.exp2(x)


exp2.vjp(x=lambda g, out: g * (out * LN2))


@op("elementwise", "float", c="expm1(x)")
def expm1(xp: Any, x: Any) -> Any:
    """exp(x) - 1, accurate near 0. (...) -> (...)"""
    return xp.expm1(x)


expm1.vjp(x=lambda g, out: g * (out + 1))


@op("elementwise", "float", c="log(x)")
def log(xp: Any, x: Any) -> Any:
    """Natural logarithm; -inf at 0, nan below. (...) -> (...)"""
    return xp.log(x)


log.vjp(x=lambda g, x: g / x)


@op("elementwise", "float", c="log2(x)")
def log2(xp: Any, x: Any) -> Any:
    """Logarithm to the base 2. (...) -> (...)"""
    return xp.log2(x)


log2.vjp(x=lambda g, x: g / (x * LN2))


@op("elementwise", "float", c="log10(x)")
def log10(xp: Any, x: Any) -> Any:
    """Logarithm to the base 10. (...) -> (...)"""
    return xp.log10(x)


log10.vjp(x=lambda g, x: g / (x * LN10))


@op("elementwise", "float", c="log1p(x)")
def log1p(xp: Any, x: Any) -> Any:
    """log(1 + x), accurate near 0. (...) -> (...)"""
    return xp.log1p(x)


log1p.vjp(x=lambda g, x: g / (x + 1))


@op("elementwise", "float", c="1 / (1 + exp(-x))")
def sigmoid(xp: Any, x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x)). (...) -> (...)"""
    return 1 / (1 + xp.exp(-x))


sigmoid.vjp(x=lambda g, out: g * (out * (1 - out)))


@op("elementwise", "float", c="logaddexp(x, y)")
def logaddexp(xp: Any, x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) without overflow. (...), (...) -> (...)"""
    return xp.logaddexp(x, y)


logaddexp.vjp(x=lambda g, x, y: g * sigmoid(x - y), y=lambda g, x, y: g * sigmoid(y - x))


@op("elementwise", "float", c="x == 0 && y == y ? 0 : x * log(y)")
def xlogy(xp: Any, x: Any, y: Any) -> Any:
    """x log(y), and 0 where x is 0 unless y is nan. Arrays alone. (...), (...) -> (...)"""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log(y))


xlogy.vjp(x=lambda g, x, y: where((x == 0) & (y <= 0), 0, g * log(y)), y=lambda g, x, y: g * x / y)
