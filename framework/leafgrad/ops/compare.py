"""Comparisons, tests, logic and bits. None of them has a gradient."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op

# ---- comparisons --------------------------------------------------------------------------------------------------


@op("comparison", "complex", c="x == y", ufunc="equal")
def eq(xp: Any, x: Any, y: Any) -> Any:
    """Whether x equals y. (...), (...) -> (...) bool"""
    return x == y


@op("comparison", "complex", c="x != y", ufunc="not_equal")
def ne(xp: Any, x: Any, y: Any) -> Any:
    """Whether x differs from y. (...), (...) -> (...) bool"""
    return x != y


@op("comparison", c="x < y", ufunc="less")
def lt(xp: Any, x: Any, y: Any) -> Any:
    """Whether x is below y. (...), (...) -> (...) bool"""
    return x < y


@op("comparison", c="x <= y", ufunc="less_equal")
def le(xp: Any, x: Any, y: Any) -> Any:
    """Whether x is y or below. (...), (...) -> (...) bool"""
    return x <= y


@op("comparison", c="x > y", ufunc="greater")
def gt(xp: Any, x: Any, y: Any) -> Any:
    """Whether x is above y. (...), (...) -> (...) bool"""
    return x > y


@op("comparison", c="x >= y", ufunc="greater_equal")
def ge(xp: Any, x: Any, y: Any) -> Any:
    """Whether x is y or above. (...), (...) -> (...) bool"""
    return x >= y


# ---- tests --------------------------------------------------------------------------------------------------------


@op("comparison", "complex", c="x != x")
def isnan(xp: Any, x: Any) -> Any:
    """Whether x is nan. (...) -> (...) bool"""
    return xp.isnan(x)


@op("comparison", "complex", c="x - x != x - x && x == x")
def isinf(xp: Any, x: Any) -> Any:
    """Whether x is inf or -inf. (...) -> (...) bool"""
    return xp.isinf(x)


@op("comparison", "complex", c="x - x == x - x")
def isfinite(xp: Any, x: Any) -> Any:
    """Whether x is neither infinite nor nan. (...) -> (...) bool"""
    return xp.isfinite(x)


@op("comparison")
def signbit(xp: Any, x: Any) -> Any:
    """Whether the sign of x is negative, -0.0 included. (...) -> (...) bool"""
    return xp.signbit(x) if x.dtype.kind == "f" else x < 0


@op("comparison", "complex")
def isclose(xp: Any, x: Any, y: Any, *, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Whether abs(x - y) <= atol + rtol * abs(y), or x equals y. (...), (...) -> (...) bool"""
    close = x == y
    if rtol or atol:
        if x.dtype.kind in "biu":  # their difference may lie outside of the dtype
            x, y = x.astype("float64"), y.astype("float64")
        close = close | (xp.isfinite(y) & (xp.abs(x - y) <= atol + rtol * xp.abs(y)))
    return close | ((x != x) & (y != y)) if equal_nan else close


# ---- logic --------------------------------------------------------------------------------------------------------


@op("comparison", "complex", c="x != 0 && y != 0")
def logical_and(xp: Any, x: Any, y: Any) -> Any:
    """Whether x and y are both nonzero. (...), (...) -> (...) bool"""
    return xp.logical_and(x, y)


@op("comparison", "complex", c="x != 0 || y != 0")
def logical_or(xp: Any, x: Any, y: Any) -> Any:
    """Whether x or y is nonzero. (...), (...) -> (...) bool"""
    return xp.logical_or(x, y)


@op("comparison", "complex", c="(x != 0) != (y != 0)")
def logical_xor(xp: Any, x: Any, y: Any) -> Any:
    """Whether just one of x and y is nonzero. (...), (...) -> (...) bool"""
    return xp.logical_xor(x, y)


@op("comparison", "complex", c="x == 0")
def logical_not(xp: Any, x: Any) -> Any:
    """Whether x is zero. (...) -> (...) bool"""
    return xp.logical_not(x)


# ---- bits ---------------------------------------------------------------------------------------------------------


def _refuse_floats(*arguments: Any) -> None:
    for a in arguments:
        if type(a) is float or (hasattr(a, "dtype") and a.dtype.kind == "f"):
            raise NotImplementedError("expected integers or bools, got floats; convert them with .long() or .bool()")


@op("elementwise", "nondifferentiable", c="x & y")
def bitwise_and(xp: Any, x: Any, y: Any) -> Any:
    """x and y, bit by bit. Integers and bools. (...), (...) -> (...)"""
    _refuse_floats(x, y)
    return x & y


@op("elementwise", "nondifferentiable", c="x | y")
def bitwise_or(xp: Any, x: Any, y: Any) -> Any:
    """x or y, bit by bit. Integers and bools. (...), (...) -> (...)"""
    _refuse_floats(x, y)
    return x | y


@op("elementwise", "nondifferentiable", c="x ^ y")
def bitwise_xor(xp: Any, x: Any, y: Any) -> Any:
    """Bits in which x and y differ. Integers and bools. (...), (...) -> (...)"""
    _refuse_floats(x, y)
    return x ^ y


@op("elementwise", "nondifferentiable")
def bitwise_not(xp: Any, x: Any) -> Any:
    """All bits of x turned round; logical not for bools. (...) -> (...)"""
    _refuse_floats(x)
    return ~x


bitwise_not.lower("native", lambda c, e: c.elementwise("x == 0" if e.out.dtype == "bool" else "~x"))


@op("elementwise", "nondifferentiable")
def bitwise_left_shift(xp: Any, x: Any, y: Any) -> Any:
    """The bits of x moved up by y. Integers. (...), (...) -> (...)"""
    _refuse_floats(x, y)
    return x << y


@op("elementwise", "nondifferentiable")
def bitwise_right_shift(xp: Any, x: Any, y: Any) -> Any:
    """The bits of x moved down by y, the sign kept. Integers. (...), (...) -> (...)"""
    _refuse_floats(x, y)
    return x >> y
