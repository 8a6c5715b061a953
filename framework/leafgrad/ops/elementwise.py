"""Elementwise arithmetic and comparisons."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op

# ---- arithmetic ---------------------------------------------------------------------------------------------------


@op("elementwise", "linear")
def add(xp: Any, x: Any, y: Any) -> Any:
    """Sum of x and y, broadcast. (...), (...) -> (...)"""
    return x + y


add.vjp(x=lambda g: g, y=lambda g: g)


@op("elementwise", "linear")
def sub(xp: Any, x: Any, y: Any) -> Any:
    """Difference of x and y, broadcast. (...), (...) -> (...)"""
    return x - y


sub.vjp(x=lambda g: g, y=lambda g: -g)


@op("elementwise", "bilinear")
def mul(xp: Any, x: Any, y: Any) -> Any:
    """Product of x and y, broadcast. (...), (...) -> (...)"""
    return x * y


mul.vjp(x=lambda g, y: g * y, y=lambda g, x: g * x)


@op("elementwise", "float")
def div(xp: Any, x: Any, y: Any) -> Any:
    """Quotient of x and y, broadcast; integers divide as floats. (...), (...) -> (...)"""
    return x / y


div.vjp(x=lambda g, y: g / y, y=lambda g, out, y: -g * out / y)


@op("elementwise", "linear")
def neg(xp: Any, x: Any) -> Any:
    """Minus x. (...) -> (...)"""
    return -x


neg.vjp(x=lambda g: -g)


@op("elementwise", "float")
def exp(xp: Any, x: Any) -> Any:
    """e to the power x. (...) -> (...)"""
    return xp.exp(x)


exp.vjp(x=lambda g, out: g * out)


@op("elementwise", "float")
def tanh(xp: Any, x: Any) -> Any:
    """Hyperbolic tangent. (...) -> (...)"""
    return xp.tanh(x)


tanh.vjp(x=lambda g, out: g * (1 - out * out))
