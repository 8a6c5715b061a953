"""Rounding, and division that rounds."""

from __future__ import annotations

from typing import Any

from leafgrad.ops import forms
from leafgrad.ops.define import op
from leafgrad.ops.op import Op
from leafgrad.ops.select import zero


def _rounded(rounding: Any, x: Any) -> Any:
    return rounding(x) if x.dtype.kind == "f" else x.copy()


@op("elementwise", c="floor(x)", ufunc="floor")
def floor(xp: Any, x: Any) -> Any:
    """The largest integer that is not above x. (...) -> (...)"""
    return _rounded(xp.floor, x)


floor.vjp(x=zero)


@op("elementwise", c="ceil(x)", ufunc="ceil")
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
    if decimals and x.dtype == "float16":  # whose own products would overflow
        return x.astype("float32").round(decimals).astype(x.dtype)
    return x.round(decimals)


round.vjp(x=zero)
round.lower("native", lambda c, e: None if e.params.get("decimals") else c.elementwise("round(x)"))


def _check(x: Any, y: Any) -> None:
    """No bools, and no number 0 for integers. Arrays are looked into on the host alone: another device would wait."""
    kinds = {a.dtype.kind if hasattr(a, "dtype") else "b" if type(a) is bool else "" for a in (x, y)}
    if kinds == {"b"}:
        raise NotImplementedError("expected integers or floats, got bools; convert one with .long()")
    if type(y) in (bool, int) and y == 0 and x.dtype.kind != "f" and x.size:
        raise ZeroDivisionError("ZeroDivisionError: expected a divisor other than 0 for integers")


def _on_host(op: Op) -> Op:
    """``op``, with a kernel that refuses 0 among integers too, for which the processor has no quotient."""

    @op.kernel("numpy")
    def checked(xp: Any, x: Any, y: Any) -> Any:
        if hasattr(y, "dtype") and y.dtype.kind in "iu" and not y.all() and getattr(x, "size", True):
            raise ZeroDivisionError("ZeroDivisionError: expected divisors other than 0 for integers, got a 0")
        return op.forward(xp, x, y)

    return op


@_on_host
@op("elementwise", "raises")
def floor_divide(xp: Any, x: Any, y: Any) -> Any:
    """The quotient rounded down. It has no gradient. (...), (...) -> (...)"""
    _check(x, y)
    return x // y


floor_divide.exact = True


@_on_host
@op("elementwise", "raises")
def div_floor(xp: Any, x: Any, y: Any) -> Any:
    """The quotient rounded down, with zero gradient. (...), (...) -> (...)"""
    _check(x, y)
    return x // y


div_floor.exact = True
div_floor.vjp(x=zero, y=zero)


@_on_host
@op("elementwise", "raises")
def div_trunc(xp: Any, x: Any, y: Any) -> Any:
    """The quotient rounded towards zero, with zero gradient. (...), (...) -> (...)"""
    _check(x, y)
    if "f" in (x if hasattr(x, "dtype") else y).dtype.kind:
        return xp.trunc(x / y)
    return (x - xp.fmod(x, y)) // y


div_trunc.exact = True
div_trunc.vjp(x=zero, y=zero)


@_on_host
@op("elementwise", "raises")
def remainder(xp: Any, x: Any, y: Any) -> Any:
    """x - y floor(x / y): has the sign of y, as Python's ``%``. (...), (...) -> (...)"""
    _check(x, y)
    return x % y


remainder.form = forms.with_numbers("RemainderBackward")
remainder.vjp(x=lambda g: g, y=lambda g, x, y: -g * div_floor(x, y))


@_on_host
@op("elementwise", "raises")
def fmod(xp: Any, x: Any, y: Any) -> Any:
    """x - y trunc(x / y): has the sign of x, as C's ``fmod``. (...), (...) -> (...)"""
    _check(x, y)
    return xp.fmod(x, y)


def _divided(floats: str, integers: str | None = None) -> Any:
    """A rule for floats, and for integers over a number, for which C has a rest: neither 0 nor -1."""

    def rule(c: Any, e: Any) -> Any:
        if "float" in e.out.dtype:
            return c.elementwise(floats)
        known = type(e.inputs[1]) is int and e.inputs[1] not in (0, -1)
        return c.elementwise(integers) if integers and known else None

    return rule


floor_divide.lower("cuda", _divided("floor_divide(x, y)"))
div_floor.lower("cuda", _divided("floor_divide(x, y)"))
div_trunc.lower("cuda", _divided("trunc(x / y)"))
remainder.lower("cuda", _divided("remainder(x, y)", "x % y + y * ((x % y != 0) & ((x % y < 0) != (y < 0)))"))
fmod.form = forms.with_numbers("FmodBackward")
fmod.lower("cuda", _divided("fmod(x, y)", "x % y"))
fmod.vjp(x=lambda g: g, y=lambda g, x, y: -g * div_trunc(x, y))
