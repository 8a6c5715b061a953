"""The incomplete gamma and beta functions, regularized, and their inverses.

They have derivatives in their last argument. Those in the others have no closed form, and asking for them is an error.
"""

from __future__ import annotations

from typing import Any

from leafgrad import exp, op
from leafgrad.ops.exponential import xlogy
from leafgrad_special.entropy import xlog1py
from leafgrad_special.functions import special
from leafgrad_special.gamma import betaln, gammaln
from leafgrad_special.precision import array, keep


def _gamma_density(a: Any, x: Any) -> Any:
    """x**(a - 1) exp(-x) / gamma(a), the derivative of gammainc (DLMF 8.8.13)."""
    return exp(xlogy(a - 1, x) - x - gammaln(array(a, x)))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """x**(a - 1) (1 - x)**(b - 1) / beta(a, b), the derivative of betainc (DLMF 8.17.20)."""
    return exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(array(a, x), b))


@op("elementwise", "float")
def gammainc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x); nan for negative a or x (DLMF 8.2.4).

    (...), (...) -> (...)
    """
    return keep(special().gammainc(a, x), a, x)


gammainc.vjp(x=lambda g, a, x: g * _gamma_density(a, x)).method("igamma")


@op("elementwise", "float")
def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x) (DLMF 8.2.4). (...), (...) -> (...)"""
    return keep(special().gammaincc(a, x), a, x)


gammaincc.vjp(x=lambda g, a, x: g * -_gamma_density(a, x)).method("igammac")


@op("elementwise", "float")
def gammaincinv(xp: Any, a: Any, y: Any) -> Any:
    """The x with gammainc(a, x) = y; nan for y outside of [0, 1]. (...), (...) -> (...)"""
    return keep(special().gammaincinv(a, y), a, y)


gammaincinv.vjp(y=lambda g, out, a: g / _gamma_density(a, out))


@op("elementwise", "float")
def gammainccinv(xp: Any, a: Any, y: Any) -> Any:
    """The x with gammaincc(a, x) = y; nan for y outside of [0, 1]. (...), (...) -> (...)"""
    return keep(special().gammainccinv(a, y), a, y)


gammainccinv.vjp(y=lambda g, out, a: -g / _gamma_density(a, out))


@op("elementwise", "float")
def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function; nan for x outside of [0, 1] (DLMF 8.17.2).

    (...), (...), (...) -> (...)
    """
    return keep(special().betainc(a, b, x), a, b, x)


betainc.vjp(x=lambda g, a, b, x: g * _beta_density(a, b, x))


@op("elementwise", "float")
def betaincinv(xp: Any, a: Any, b: Any, y: Any) -> Any:
    """The x with betainc(a, b, x) = y; nan for y outside of [0, 1]. (...), (...), (...) -> (...)"""
    return keep(special().betaincinv(a, b, y), a, b, y)


betaincinv.vjp(y=lambda g, out, a, b: g / _beta_density(a, b, out))
