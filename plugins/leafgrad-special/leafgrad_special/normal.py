"""The standard normal distribution: distribution function, logarithm, inverse."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import exp, op
from leafgrad_special.functions import special
from leafgrad_special.precision import beyond, finely, keep, polynomial

ROOT_TWO_PI = math.sqrt(2 * math.pi)


@op("elementwise", "float", c="0.5 * erfc(x * -0.7071067811865476)")
def ndtr(xp: Any, x: Any) -> Any:
    """The probability that a standard normal number is below x (Abramowitz & Stegun 26.2.2). (...) -> (...)"""
    return keep(special().ndtr(x), x)


finely(ndtr, x=lambda g, x: g * (exp(-0.5 * (x * x)) / ROOT_TWO_PI))  # A&S 26.2.1


@op("elementwise", "float")
def mills(xp: Any, x: Any) -> Any:
    """The derivative of log_ndtr: density over distribution function, about -x far below 0. (...) -> (...)

    It is the inverse of Mills' ratio at -x (Abramowitz & Stegun 26.2.44), here by erfcx, which does not underflow.
    """
    return keep(math.sqrt(2 / math.pi) / special().erfcx(x * -math.sqrt(0.5)), x)


# From the 1 on, (2 k + 1)!! with signs; 9 of them are exact to float64 from x = -50 down.
RISING = [(-1) ** k * math.prod(range(1, 2 * k + 2, 2)) for k in range(9)]


def _mills_x(g: Any, x: Any) -> Any:
    """-m (x + m), far below 0 by A&S 26.2.12: m is -x / s there, with s = 1 - 1/x**2 + 3/x**4 - ..."""

    def series(x: Any) -> Any:
        u = 1 / (x * x)
        falls = polynomial(u, RISING)  # (1 - s) x**2
        return -falls / (1 - u * falls) ** 2

    def near(x: Any) -> Any:
        m = mills(x)
        return -m * (x + m)

    return g * beyond(x < -50, x, series, near)


finely(mills, x=_mills_x)


@op("elementwise", "float")
def log_ndtr(xp: Any, x: Any) -> Any:
    """The logarithm of ndtr(x), finite where ndtr(x) is 0 already. (...) -> (...)"""
    return keep(special().log_ndtr(x), x)


finely(log_ndtr, x=lambda g, x: g * mills(x))


@op("elementwise", "float")
def ndtri(xp: Any, x: Any) -> Any:
    """The y with ndtr(y) = x; infinite at 0 and 1, nan beyond (Abramowitz & Stegun 26.2.22). (...) -> (...)"""
    return keep(special().ndtri(x), x)


finely(ndtri, x=lambda g, x: g * (exp(0.5 * ndtri(x) ** 2) * ROOT_TWO_PI))
