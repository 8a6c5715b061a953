"""The standard normal distribution: distribution function, logarithm, inverse."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import exp, op
from leafgrad_special.functions import special
from leafgrad_special.precision import keep

ROOT_TWO_PI = math.sqrt(2 * math.pi)


@op("elementwise", "float", c="0.5 * erfc(x * -0.7071067811865476)")
def ndtr(xp: Any, x: Any) -> Any:
    """The probability that a standard normal number is below x (Abramowitz & Stegun 26.2.2). (...) -> (...)"""
    return keep(special().ndtr(x), x)


ndtr.vjp(x=lambda g, x: g * (exp(-0.5 * (x * x)) / ROOT_TWO_PI))  # A&S 26.2.1


@op("elementwise", "float")
def mills(xp: Any, x: Any) -> Any:
    """The derivative of log_ndtr: density over distribution function, about -x far below 0. (...) -> (...)

    It is the inverse of Mills' ratio at -x (Abramowitz & Stegun 26.2.44), here by erfcx, which does not underflow.
    """
    return keep(math.sqrt(2 / math.pi) / special().erfcx(x * -math.sqrt(0.5)), x)


mills.vjp(x=lambda g, out, x: g * (-out * (x + out)))


@op("elementwise", "float")
def log_ndtr(xp: Any, x: Any) -> Any:
    """The logarithm of ndtr(x), finite where ndtr(x) is 0 already. (...) -> (...)"""
    return keep(special().log_ndtr(x), x)


log_ndtr.vjp(x=lambda g, x: g * mills(x))


@op("elementwise", "float")
def ndtri(xp: Any, x: Any) -> Any:
    """The y with ndtr(y) = x; infinite at 0 and 1, nan beyond (Abramowitz & Stegun 26.2.22). (...) -> (...)"""
    return keep(special().ndtri(x), x)


ndtri.vjp(x=lambda g, out: g * (exp(0.5 * (out * out)) * ROOT_TWO_PI))
