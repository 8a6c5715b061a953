"""Bessel functions of the first kind of integer order: J, and the modified I, as they are and scaled.

One op serves every order n, and so every derivative: those of an order are the orders beside it. This form has
no division by x, so derivatives are right at 0 as well.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import Tensor, op, sign, sqrt
from leafgrad_special.functions import special
from leafgrad_special.orders import order
from leafgrad_special.precision import FAR, beyond, finely, keep, polynomial

NEAR = 1e-300  # below, SciPy's I_n is nan


@op("elementwise", "float", name="jv")
def jv_op(xp: Any, x: Any, *, n: int) -> Any:
    """The Bessel function J_n, n >= 0 (DLMF 10.2.2). (...) -> (...)"""
    fast = {0: special().j0, 1: special().j1}.get(n)
    return keep(fast(x) if fast else special().jv(n, x), x)


def _jv_x(g: Any, x: Any, *, n: int) -> Any:
    if n == 0:
        return -g * jv_op(x, n=1)  # DLMF 10.6.3
    return g * (0.5 * (jv_op(x, n=n - 1) - jv_op(x, n=n + 1)))  # DLMF 10.6.1


finely(jv_op, x=_jv_x)


@op("elementwise", "float", name="iv")
def iv_op(xp: Any, x: Any, *, n: int) -> Any:
    """The modified Bessel function I_n, n >= 0 (DLMF 10.25.2). (...) -> (...)"""
    fast = {0: special().i0, 1: special().i1}.get(n)
    return keep(fast(x) if fast else xp.where(xp.abs(x) < NEAR, 0, special().iv(n, x)), x)


def _iv_x(g: Any, x: Any, *, n: int) -> Any:
    if n == 0:
        return g * iv_op(x, n=1)  # DLMF 10.29.3
    return g * (0.5 * (iv_op(x, n=n - 1) + iv_op(x, n=n + 1)))  # DLMF 10.29.1


finely(iv_op, x=_iv_x)


@op("elementwise", "float", name="ive")
def ive_op(xp: Any, x: Any, *, n: int) -> Any:
    """exp(-|x|) I_n(x), n >= 0, which does not overflow. (...) -> (...)"""
    fast = {0: special().i0e, 1: special().i1e}.get(n)
    return keep(fast(x) if fast else xp.where(xp.abs(x) < FAR, special().ive(n, x), _ive_far(xp, n, x)), x)


def _ive_far(xp: Any, n: int, x: Any) -> Any:
    """The same of large numbers, of which libraries give nan, by Hankel's expansion (DLMF 10.40.1)."""
    size = xp.maximum(xp.abs(x), FAR)
    total = term = 1.0
    for k in range(1, 9):
        term = term * (((2 * k - 1) ** 2 - 4 * n * n) / (8 * k)) / size
        total = total + term
    return total / math.sqrt(2 * math.pi) / xp.sqrt(size) * xp.sign(x) ** n


def hankel(v: float, sign: int) -> list[float]:
    """The coefficients of x**(-k - 3/2) in the derivative of exp(-x) I_v (sign -1) or exp(x) K_v (1), DLMF 10.40.

    But for a factor; 12 of them are exact to float64 from 50 (1 + v**2) on.
    """
    terms = [1.0]
    for k in range(1, 12):
        terms.append(terms[-1] * sign * (4 * v * v - (2 * k - 1) ** 2) / (8 * k))
    return [-(k + 0.5) * term for k, term in enumerate(terms)]


def _ive_x(g: Any, x: Any, *, n: int) -> Any:
    def series(x: Any) -> Any:
        u = 1 / abs(x)
        return polynomial(u, hankel(n, -1)) * u * sqrt(u) / math.sqrt(2 * math.pi) * sign(x) ** (n + 1)

    def near(x: Any) -> Any:
        below = ive_op(x, n=abs(n - 1))  # I_-1 = I_1, DLMF 10.27.1
        return 0.5 * (below + ive_op(x, n=n + 1)) - sign(x) * ive_op(x, n=n)

    return g * beyond(abs(x) > 50 * (1 + n * n), x, series, near)


finely(ive_op, x=_ive_x)


# ---- by order -----------------------------------------------------------------------------------------------------


def jv(n: int, input: Tensor) -> Tensor:
    """The Bessel function J of order ``n`` (DLMF 10.2.2). (...) -> (...)

    Raises:
        RuntimeError: ``n`` is negative. TypeError: it is no int.
    """
    result: Tensor = jv_op(input, n=order("jv", n))
    return result


def iv(n: int, input: Tensor) -> Tensor:
    """The modified Bessel function I of order ``n`` (DLMF 10.25.2); errors as of `jv`. (...) -> (...)"""
    result: Tensor = iv_op(input, n=order("iv", n))
    return result


def ive(n: int, input: Tensor) -> Tensor:
    """exp(-|x|) times I of order ``n``; errors as of `jv`. Its derivative at 0 is taken as that of I. (...) -> (...)"""
    result: Tensor = ive_op(input, n=order("ive", n))
    return result


def j0(input: Tensor) -> Tensor:
    """J of order 0. (...) -> (...)"""
    return jv(0, input)


def j1(input: Tensor) -> Tensor:
    """J of order 1. (...) -> (...)"""
    return jv(1, input)


def i0(input: Tensor) -> Tensor:
    """I of order 0. (...) -> (...)"""
    return iv(0, input)


def i1(input: Tensor) -> Tensor:
    """I of order 1. (...) -> (...)"""
    return iv(1, input)


def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) times I of order 0. (...) -> (...)"""
    return ive(0, input)


def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) times I of order 1. (...) -> (...)"""
    return ive(1, input)
