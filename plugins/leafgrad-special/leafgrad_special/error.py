"""The error function's relatives: complementary, scaled, imaginary, and the inverses."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import exp, op
from leafgrad_special.functions import special
from leafgrad_special.precision import keep

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


@op("elementwise", "float", c="erfc(x)")
def erfc(xp: Any, x: Any) -> Any:
    """1 - erf(x), accurate where that is small (DLMF 7.2.2). (...) -> (...)"""
    return keep(special().erfc(x), x)


erfc.vjp(x=lambda g, x: g * (-TWO_OVER_ROOT_PI * exp(-(x * x))))  # DLMF 7.10.1


@op("elementwise", "float")
def erfcx(xp: Any, x: Any) -> Any:
    """exp(x**2) erfc(x), which falls only as 1 / x (DLMF 7.2.3 with z = ix). (...) -> (...)"""
    return keep(special().erfcx(x), x)


erfcx.vjp(x=lambda g, out, x: g * (2 * x * out - TWO_OVER_ROOT_PI))  # DLMF 7.10.2


@op("elementwise", "float")
def erfinv(xp: Any, x: Any) -> Any:
    """The y with erf(y) = x; infinite at -1 and 1, nan beyond (DLMF 7.17.1). (...) -> (...)"""
    return keep(special().erfinv(x), x)


erfinv.vjp(x=lambda g, out: g * (exp(out * out) / TWO_OVER_ROOT_PI))  # the reciprocal of erf's derivative there


@op("elementwise", "float")
def erfcinv(xp: Any, x: Any) -> Any:
    """The y with erfc(y) = x; infinite at 0 and 2, nan beyond (DLMF 7.17.1). (...) -> (...)"""
    return keep(special().erfcinv(x), x)


erfcinv.vjp(x=lambda g, out: g * (-exp(out * out) / TWO_OVER_ROOT_PI))


@op("elementwise", "float")
def erfi(xp: Any, x: Any) -> Any:
    """The imaginary error function -i erf(ix). (...) -> (...)"""
    return keep(special().erfi(x), x)


erfi.vjp(x=lambda g, x: g * (TWO_OVER_ROOT_PI * exp(x * x)))


@op("elementwise", "float")
def dawsn(xp: Any, x: Any) -> Any:
    """Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x (DLMF 7.2.5). (...) -> (...)"""
    return keep(special().dawsn(x), x)


dawsn.vjp(x=lambda g, out, x: g * (1 - 2 * x * out))  # DLMF 7.10.1
