"""The incomplete gamma and beta functions, regularized, and their inverses.

They have derivatives in their last argument. Those in the others have no closed form, and asking for them is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad import exp, log, op
from leafgrad.ops.exponential import xlogy
from leafgrad.ops.select import where
from leafgrad_special.entropy import xlog1py
from leafgrad_special.functions import special
from leafgrad_special.gamma import betaln, gammaln
from leafgrad_special.precision import array, finely, keep


def _gamma_density(a: Any, x: Any, sign: int = 1) -> Any:
    """x**(a - 1) exp(-x) / gamma(a), the derivative of gammainc (DLMF 8.8.13), or with sign -1 its inverse."""
    a = array(a, x)
    zero = x == 0
    inside = where(zero, 1.0, x)
    edge = _edge(where(zero, x, 1.0), a - 1, lambda x: exp(-x - gammaln(a)))
    return where(zero, edge**sign, exp(sign * (xlogy(a - 1, inside) - inside - gammaln(a))))


def _beta_density(a: Any, b: Any, x: Any, sign: int = 1) -> Any:
    """x**(a - 1) (1 - x)**(b - 1) / beta(a, b), the derivative of betainc (DLMF 8.17.20); sign as above."""
    a, b = array(a, x), array(b, x)
    zero, one = x == 0, x == 1
    inside = where(zero | one, 0.5, x)
    low = _edge(where(zero, x, 0.5), a - 1, lambda x: exp(xlog1py(b - 1, -x) - betaln(a, b)))
    high = _edge(1 - where(one, x, 0.5), b - 1, lambda y: exp(xlog1py(a - 1, -y) - betaln(a, b)))
    density = exp(sign * (xlogy(a - 1, inside) + xlog1py(b - 1, -inside) - betaln(a, b)))
    return where(zero, low**sign, where(one, high**sign, density))


NEAR = 1e-15  # an inverse below which the first term of its series is all of it, but for derivatives that this has not


def _start(a: Any, y: Any, log_scale: Any, second: Any, third: Any) -> tuple[Any, Any]:
    """Where an inverse is s + second s**2 + third s**3, with s = (scale y)**(1 / a), near y = 0, and its derivative.

    That is a sum of powers of y, whose derivatives have their limits. Not for a = 1, where the usual formula has no
    power in it; and for a > 1 the first term alone counts, which becomes infinite.
    """
    near = (y >= 0) & (a > 0) & (a != 1) & (y <= exp(a * math.log(NEAR) - log_scale))
    power = 1 / where(near, a, 1.0)
    lead = exp(log_scale * power)
    slope = power * lead * where(near, y, 1.0) ** (power - 1)
    for k, factor in ((2, second), (3, third)):
        counts = near & (a < 1)
        more = k * power * factor * lead**k * where(counts, y, 1.0) ** (k * power - 1)
        slope = slope + where(counts, more, 0.0)
    return near, slope


def _gamma_start(a: Any, y: Any) -> tuple[Any, Any]:
    """That of gammaincinv, by the inverse of DLMF 8.7.1."""
    a = array(a, y)
    third = (3 * a + 5) / (2 * (a + 1) ** 2 * (a + 2))
    return _start(a, y, gammaln(a + 1), 1 / (a + 1), third)


def _beta_start(a: Any, b: Any, y: Any) -> tuple[Any, Any]:
    """That of betaincinv, by the inverse of DLMF 8.17.7."""
    a, b = array(a, y), array(b, y)
    third = (b - 1) * (a * a + 3 * a * b - a + 5 * b - 4) / (2 * (a + 1) ** 2 * (a + 2))
    return _start(a, y, log(a) + betaln(a, b), (b - 1) / (a + 1), third)


def _edge(x: Any, power: Any, rest: Callable[[Any], Any]) -> Any:
    """x**power rest(x) near x = 0, with derivatives that have their limits: beside an infinite power nothing counts."""
    return x**power * rest(where(power < 0, 0.0, x))


@op("elementwise", "float")
def gammainc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x); nan for negative a or x (DLMF 8.2.4).

    (...), (...) -> (...)
    """
    return keep(special().gammainc(a, x), a, x)


finely(gammainc, x=lambda g, a, x: g * _gamma_density(a, x)).method("igamma")


@op("elementwise", "float")
def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x) (DLMF 8.2.4). (...), (...) -> (...)"""
    return keep(special().gammaincc(a, x), a, x)


finely(gammaincc, x=lambda g, a, x: g * -_gamma_density(a, x)).method("igammac")


@op("elementwise", "float")
def gammaincinv(xp: Any, a: Any, y: Any) -> Any:
    """The x with gammainc(a, x) = y; nan for y outside of [0, 1]. (...), (...) -> (...)"""
    return keep(special().gammaincinv(a, y), a, y)


def _gammaincinv_y(g: Any, a: Any, y: Any) -> Any:
    low, start = _gamma_start(a, y)
    return g * where(low, start, _gamma_density(a, gammaincinv(a, where(low, 0.5, y)), -1))


finely(gammaincinv, y=_gammaincinv_y)


@op("elementwise", "float")
def gammainccinv(xp: Any, a: Any, y: Any) -> Any:
    """The x with gammaincc(a, x) = y; nan for y outside of [0, 1]. (...), (...) -> (...)"""
    return keep(special().gammainccinv(a, y), a, y)


def _gammainccinv_y(g: Any, a: Any, y: Any) -> Any:
    high, end = _gamma_start(a, 1 - y)
    return -g * where(high, end, _gamma_density(a, gammainccinv(a, where(high, 0.5, y)), -1))


finely(gammainccinv, y=_gammainccinv_y)


@op("elementwise", "float")
def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function; nan for x outside of [0, 1] (DLMF 8.17.2).

    (...), (...), (...) -> (...)
    """
    return keep(special().betainc(a, b, x), a, b, x)


finely(betainc, x=lambda g, a, b, x: g * _beta_density(a, b, x))


@op("elementwise", "float")
def betaincinv(xp: Any, a: Any, b: Any, y: Any) -> Any:
    """The x with betainc(a, b, x) = y; nan for y outside of [0, 1]. (...), (...), (...) -> (...)"""
    return keep(special().betaincinv(a, b, y), a, b, y)


def _betaincinv_y(g: Any, a: Any, b: Any, y: Any) -> Any:
    low, start = _beta_start(a, b, y)
    high, end = _beta_start(b, a, 1 - y)  # of 1 - betaincinv(b, a, 1 - y), the same function
    inside = where(low | high, 0.5, y)
    return g * where(low, start, where(high, end, _beta_density(a, b, betaincinv(a, b, inside), -1)))


finely(betaincinv, y=_betaincinv_y)
