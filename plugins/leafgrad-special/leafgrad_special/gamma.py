"""The gamma function, its logarithm and the derivatives of that; beta and zeta."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import Tensor, cos, exp, floor, log1p, op, sin
from leafgrad.ops.select import where
from leafgrad_special.functions import special
from leafgrad_special.orders import order
from leafgrad_special.precision import array, finely, keep


@op("elementwise", "float", name="polygamma")
def polygamma_op(xp: Any, x: Any, *, n: int) -> Any:
    """The n-th derivative of digamma, n >= 1, by Hurwitz' zeta function (DLMF 25.11.12). (...) -> (...)"""
    return keep((-1.0) ** (n + 1) * math.factorial(n) * special().zeta(n + 1, x), x)


finely(polygamma_op, x=lambda g, x, *, n: g * polygamma_op(x, n=n + 1))


@op("elementwise", "float")
def digamma(xp: Any, x: Any) -> Any:
    """The derivative of gammaln (DLMF 5.2.2). (...) -> (...)"""
    return keep(special().digamma(x), x)


finely(digamma, x=lambda g, x: g * polygamma_op(x, n=1)).method("digamma")


NEAR = 1e-300  # below, SciPy's gammaln is inf


@op("elementwise", "float")
def gammaln(xp: Any, x: Any) -> Any:
    """log |gamma(x)|; infinite at 0, -1, -2, ... (DLMF 5.2.1), and at both infinities. (...) -> (...)"""
    size = xp.abs(x)
    value = special().gammaln(xp.maximum(x, xp.finfo(x.dtype).min))  # SciPy's is -inf at -inf
    return keep(xp.where(size < NEAR, -xp.log(size), value), x)


finely(gammaln, x=lambda g, x: g * digamma(x)).method("lgamma")  # DLMF 5.2.2


@op("elementwise", "float")
def gamma(xp: Any, x: Any) -> Any:
    """The gamma function; nan at -1, -2, ... (DLMF 5.2.1). (...) -> (...)"""
    return keep(special().gamma(x), x)


finely(gamma, x=lambda g, x: g * (gamma(x) * digamma(x)))


@op("elementwise", "float")
def gammasgn(xp: Any, x: Any) -> Any:
    """The sign of gamma(x); nan at -1, -2, ... (...) -> (...)"""
    return keep(special().gammasgn(x), x)


gammasgn.vjp(x=lambda g: None)  # a step function


@op("elementwise", "float")
def poch(xp: Any, x: Any, m: Any) -> Any:
    """Pochhammer's symbol gamma(x + m) / gamma(x) (DLMF 5.2.5). (...), (...) -> (...)"""
    return keep(special().poch(x, m), x, m)


def _rise(a: Any, b: Any) -> Any:
    """digamma(a + b) - digamma(a), of large numbers by differences of the terms of DLMF 5.11.2."""
    a, b = array(a, b), array(b, a)
    far = (a > 1e3) & (a + b > 1e3)
    large, by = where(far, a, 1e3), where(far, b, 1.0)
    end = large + by
    series = log1p(by / large) + by / (large * end) * (0.5 + (large + end) / (12 * large * end))
    near, to = where(far, 1.0, a), where(far, 1.0, a + b)
    return where(far, series, digamma(to) - digamma(near))


def _poch_x(g: Any, x: Any, m: Any) -> Any:
    """Left of 0, where digammas of poles may differ by a finite number, of reflected arguments (DLMF 5.5.3)."""
    x, m = array(x, m), array(m, x)
    end = x + m
    both = (x < 0.5) & (end < 0.5) & (m == floor(m))  # gamma(x) and gamma(end) have their poles together
    one, at = (x < 0.5) & (both == 0), both & (x == floor(x))
    rise = where(at, -1.0, 1.0) * _rise(where(at, 1 - end, where(one, 1.0, x)), where(one, 1.0, m))
    to, left = where(one, end, 1.0), where(one, 1 - x, 1.0)
    size = gammasgn(to) * exp(gammaln(to) + gammaln(left))
    turn = math.pi * (1 - left)
    return g * where(one, size * (cos(turn) + (digamma(to) - digamma(left)) / math.pi * sin(turn)), poch(x, m) * rise)


finely(poch, x=_poch_x, m=lambda g, x, m: g * (poch(x, m) * digamma(x + m)))


@op("elementwise", "float")
def beta(xp: Any, a: Any, b: Any) -> Any:
    """The beta function gamma(a) gamma(b) / gamma(a + b) (DLMF 5.12.1). (...), (...) -> (...)"""
    return keep(special().beta(a, b), a, b)


finely(beta, a=lambda g, a, b: g * (-beta(a, b) * _rise(a, b)), b=lambda g, a, b: g * (-beta(a, b) * _rise(b, a)))


@op("elementwise", "float")
def betaln(xp: Any, a: Any, b: Any) -> Any:
    """log |beta(a, b)|. (...), (...) -> (...)"""
    return keep(special().betaln(a, b), a, b)


finely(
    betaln,
    a=lambda g, a, b: g * -_rise(a, b),
    b=lambda g, a, b: g * -_rise(b, a),
)  # fmt: skip


@op("elementwise", "float")
def zeta(xp: Any, x: Any, q: Any) -> Any:
    """Hurwitz' zeta function, the sum of (k + q)**-x over k = 0, 1, ...; q = 1 gives Riemann's (DLMF 25.11.1).

    nan for x < 1. It has a derivative in ``q`` alone; that in ``x`` is in no library. (...), (...) -> (...)
    """
    return keep(special().zeta(x, q), x, q)


finely(zeta, q=lambda g, x, q: g * (-x * where(array(x, q) < 1, math.nan, 1.0) * zeta(x + 1, q)))  # DLMF 25.11.17


def polygamma(n: int, input: Tensor) -> Tensor:
    """The ``n``-th derivative of digamma, element by element (DLMF 5.15). (...) -> (...)

    Raises:
        RuntimeError: ``n`` is negative. TypeError: it is no int.
    """
    n = order("polygamma", n)
    result: Tensor = digamma(input) if n == 0 else polygamma_op(input, n=n)
    return result


def multigammaln(a: Tensor, d: int) -> Tensor:
    """The logarithm of the gamma function of ``d`` dimensions (DLMF 35.3.4). (...) -> (...)

    Raises:
        RuntimeError: ``d`` is not positive. TypeError: it is no int.
    """
    d = order("multigammaln", d, "d", least=1)
    total: Tensor = gammaln(a)
    for j in range(1, d):
        total = total + gammaln(a - 0.5 * j)
    return total + d * (d - 1) / 4 * math.log(math.pi)
