"""The incomplete gamma and beta functions, regularized, and their inverses.

They have derivatives in their last argument. Those in the others have no closed form, and asking for them is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import exp, op
from leafgrad.ops.exponential import xlogy
from leafgrad.ops.select import where
from leafgrad_special.entropy import xlog1py
from leafgrad_special.functions import special
from leafgrad_special.gamma import betaln, gammaln
from leafgrad_special.precision import array, finely, keep


def _gamma_density(a: Any, x: Any) -> Any:
    """x**(a - 1) exp(-x) / gamma(a), the derivative of gammainc (DLMF 8.8.13)."""
    a = array(a, x)
    zero = x == 0
    inside = where(zero, 1.0, x)
    edge = _edge(where(zero, x, 1.0), a - 1, lambda x: exp(-x - gammaln(a)))
    return where(zero, edge, exp(xlogy(a - 1, inside) - inside - gammaln(a)))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """x**(a - 1) (1 - x)**(b - 1) / beta(a, b), the derivative of betainc (DLMF 8.17.20)."""
    a, b = array(a, x), array(b, x)
    zero, one = x == 0, x == 1
    inside = where(zero | one, 0.5, x)
    low = _edge(where(zero, x, 0.5), a - 1, lambda x: exp(xlog1py(b - 1, -x) - betaln(a, b)))
    high = _edge(1 - where(one, x, 0.5), b - 1, lambda y: exp(xlog1py(a - 1, -y) - betaln(a, b)))
    density = exp(xlogy(a - 1, inside) + xlog1py(b - 1, -inside) - betaln(a, b))
    return where(zero, low, where(one, high, density))


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


finely(gammaincinv, y=lambda g, a, y: g / _gamma_density(a, gammaincinv(a, y)))


@op("elementwise", "float")
def gammainccinv(xp: Any, a: Any, y: Any) -> Any:
    """The x with gammaincc(a, x) = y; nan for y outside of [0, 1]. (...), (...) -> (...)"""
    return keep(special().gammainccinv(a, y), a, y)


finely(gammainccinv, y=lambda g, a, y: -g / _gamma_density(a, gammainccinv(a, y)))


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


finely(betaincinv, y=lambda g, a, b, y: g / _beta_density(a, b, betaincinv(a, b, y)))
