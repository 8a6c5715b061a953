"""Rounding, and division that rounds."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.select import zero


def _rounded(rounding: Any, x: Any) -> Any:
    return rounding(x) if x.dtype.kind == "f" else x.copy()


@op("elementwise", c="floor(x)")
def floor(xp: Any, x: Any) -> Any:
    """The largest integer that is not above x. (...) -> (...)"""
    return _rounded(xp.floor, x)


floor.vjp(x=zero)


@op("elementwise", c="ceil(x)")
def ceil(xp: Any, x: Any) -> Any:
    """The smallest integer that is not below x. (...) -> (...)"""
    return _rounded(xp.ceil, x)


ceil.vjp(x=zero)


@op("elementwise", c="trunc(x)")
def trunc(xp: Any, x: Any) -> Any:
    """x without its decimals. (...) -> (...)"""
    return _rounded(xp.trunc, x)


trunc.vjp(x=zero)


@op("elementwise", c="x - trunc(x)")
def frac(xp: Any, x: Any) -> Any:
    """The decimals of x, with its sign. (...) -> (...)"""
    return x - xp.trunc(x)


frac.vjp(x=lambda g: g)


@op("elementwise")
def round(xp: Any, x: Any, *, decimals: int = 0) -> Any:
    """x rounded to ``decimals``, halves to the even neighbour. (...) -> (...)"""
    return xp.round(x, decimals)


round.vjp(x=zero)


def _refuse_zero(x: Any, y: Any) -> None:
    """Arrays are not looked into, but a number that no integer can be divided by is seen."""
    if type(y) in (bool, int) and y == 0 and x.dtype.kind != "f":
        raise ZeroDivisionError("ZeroDivisionError: expected a divisor other than 0 for integers")


@op("elementwise")
def floor_divide(xp: Any, x: Any, y: Any) -> Any:
    """The quotient rounded down. It has no gradient. (...), (...) -> (...)"""
    _refuse_zero(x, y)
    return x // y


@op("elementwise")
def div_floor(xp: Any, x: Any, y: Any) -> Any:
    """The quotient rounded down, with zero gradient. (...), (...) -> (...)"""
    _refuse_zero(x, y)
    return x // y


div_floor.vjp(x=zero, y=zero)


@op("elementwise")
def div_trunc(xp: Any, x: Any, y: Any) -> Any:
    """The quotient rounded towards zero, with zero gradient. (...), (...) -> (...)"""
    _refuse_zero(x, y)
    if "f" in (x if hasattr(x, "dtype") else y).dtype.kind:
        return xp.trunc(x / y)
    return (x - xp.fmod(x, y)) // y


div_trunc.vjp(x=zero, y=zero)


@op("elementwise")
def remainder(xp: Any, x: Any, y: Any) -> Any:
    """x - y floor(x / y): has the sign of y, as Python's ``%``. (...), (...) -> (...)"""
    _refuse_zero(x, y)
    return x % y


remainder.vjp(x=lambda g: g, y=lambda g, x, y: -g * div_floor(x, y))


@op("elementwise")
def fmod(xp: Any, x: Any, y: Any) -> Any:
    """x - y trunc(x / y): has the sign of x, as C's ``fmod``. (...), (...) -> (...)"""
    _refuse_zero(x, y)
    return xp.fmod(x, y)


fmod.vjp(x=lambda g: g, y=lambda g, x, y: -g * div_trunc(x, y))
