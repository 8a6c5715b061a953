"""Divisors and multiples of integers."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op


def _expect_integers(*arguments: Any) -> None:
    for a in arguments:
        if type(a) in (float, bool) or (hasattr(a, "dtype") and a.dtype.kind in "fb"):
            raise NotImplementedError("expected integers, got floats or bools; convert them with .long()")


@op("elementwise", "nondifferentiable")
def gcd(xp: Any, x: Any, y: Any) -> Any:
    """The greatest common divisor, at least 0; that of 0 and 0 is 0. Integers. (...), (...) -> (...)"""
    _expect_integers(x, y)
    return xp.gcd(x, y)


@op("elementwise", "nondifferentiable")
def lcm(xp: Any, x: Any, y: Any) -> Any:
    """The least common multiple, at least 0; that of 0 and anything is 0. Integers. (...), (...) -> (...)

    Of what the dtype cannot hold, what is left of it is made positive in at least 32 bits, as in C.
    """
    _expect_integers(x, y)
    found = xp.lcm(x, y)
    return xp.abs(found) if found.itemsize >= 4 else found
