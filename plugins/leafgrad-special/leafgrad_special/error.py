"""The error function's relatives: complementary, scaled, imaginary, and the inverses."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import exp, op
from leafgrad_special.functions import special
from leafgrad_special.precision import beyond, finely, keep, polynomial

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


@op("elementwise", "float", c="erfc(x)")
def erfc(xp: Any, x: Any) -> Any:
    """1 - erf(x), accurate where that is small (DLMF 7.2.2). (...) -> (...)"""
    return keep(special().erfc(x), x)


finely(erfc, x=lambda g, x: g * (-TWO_OVER_ROOT_PI * exp(-(x * x))))  # DLMF 7.10.1


@op("elementwise", "float")
def erfcx(xp: Any, x: Any) -> Any:
    """exp(x**2) erfc(x), which falls only as 1 / x (DLMF 7.2.3 with z = ix). (...) -> (...)"""
    return keep(special().erfcx(x), x)


# From the 1 on, (2 k + 1)!! / 2**k; 9 of them are exact to float64 from abs(x) = 30 on.
RISING = [math.prod(range(1, 2 * k + 2, 2)) / 2**k for k in range(9)]


def _erfcx_x(g: Any, x: Any) -> Any:
    def series(x: Any) -> Any:  # DLMF 7.12.1
        u = 1 / (x * x)
        return -TWO_OVER_ROOT_PI / 2 * u * polynomial(-u, RISING)

    return g * beyond(x > 30, x, series, lambda x: 2 * x * erfcx(x) - TWO_OVER_ROOT_PI)  # DLMF 7.10.2


finely(erfcx, x=_erfcx_x)


@op("elementwise", "float")
def erfinv(xp: Any, x: Any) -> Any:
    """The y with erf(y) = x; infinite at -1 and 1, nan beyond (DLMF 7.17.1). (...) -> (...)"""
    return keep(special().erfinv(x), x)


finely(erfinv, x=lambda g, x: g * (exp(erfinv(x) ** 2) / TWO_OVER_ROOT_PI))  # the reciprocal of erf's derivative there


@op("elementwise", "float")
def erfcinv(xp: Any, x: Any) -> Any:
    """The y with erfc(y) = x; infinite at 0 and 2, nan beyond (DLMF 7.17.1). (...) -> (...)"""
    return keep(special().erfcinv(x), x)


finely(erfcinv, x=lambda g, x: g * (-exp(erfcinv(x) ** 2) / TWO_OVER_ROOT_PI))


@op("elementwise", "float")
def erfi(xp: Any, x: Any) -> Any:
    """The imaginary error function -i erf(ix). (...) -> (...)"""
    return keep(special().erfi(x), x)


finely(erfi, x=lambda g, x: g * (TWO_OVER_ROOT_PI * exp(x * x)))


@op("elementwise", "float")
def dawsn(xp: Any, x: Any) -> Any:
    """Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x (DLMF 7.2.5). (...) -> (...)"""
    return keep(special().dawsn(x), x)


def _dawsn_x(g: Any, x: Any) -> Any:
    def series(x: Any) -> Any:  # as of erfcx, in DLMF 7.5.1
        u = 1 / (x * x)
        return -0.5 * u * polynomial(u, RISING)

    return g * beyond(abs(x) > 30, x, series, lambda x: 1 - 2 * x * dawsn(x))  # DLMF 7.10.1


finely(dawsn, x=_dawsn_x)
