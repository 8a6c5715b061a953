"""Bessel functions of the second kind: Y of integer order, and the modified K of any, as it is and scaled.

They are infinite at 0. As with the first kind, the derivatives of an order are the orders beside it.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import Tensor, op, sqrt
from leafgrad_special.bessel import hankel
from leafgrad_special.functions import special
from leafgrad_special.orders import order
from leafgrad_special.precision import beyond, finely, keep, polynomial


@op("elementwise", "float", name="yn")
def yn_op(xp: Any, x: Any, *, n: int) -> Any:
    """The Bessel function Y_n, n >= 0; nan below 0 (DLMF 10.2.3). (...) -> (...)"""
    fast = {0: special().y0, 1: special().y1}.get(n)
    return keep(fast(x) if fast else special().yn(n, x), x)


def _yn_x(g: Any, x: Any, *, n: int) -> Any:
    if n == 0:
        return -g * yn_op(x, n=1)  # DLMF 10.6.3
    return g * (0.5 * (yn_op(x, n=n - 1) - yn_op(x, n=n + 1)))  # DLMF 10.6.1


finely(yn_op, x=_yn_x)


@op("elementwise", "float", name="kv")
def kv_op(xp: Any, x: Any, *, v: float) -> Any:
    """The modified Bessel function K_v, v >= 0; nan below 0 (DLMF 10.25.3). (...) -> (...)"""
    return keep(getattr(special(), f"k{int(v)}")(x) if v in (0, 1) else special().kv(v, x), x)


# DLMF 10.29.1, with K_-v = K_v from 10.27.3
finely(kv_op, x=lambda g, x, *, v: g * (-0.5 * (kv_op(x, v=abs(v - 1)) + kv_op(x, v=v + 1))))


@op("elementwise", "float", name="kve")
def kve_op(xp: Any, x: Any, *, v: float) -> Any:
    """exp(x) K_v(x), v >= 0, which does not underflow. (...) -> (...)"""
    return keep(getattr(special(), f"k{int(v)}e")(x) if v in (0, 1) else special().kve(v, x), x)


def _kve_x(g: Any, x: Any, *, v: float) -> Any:
    def series(x: Any) -> Any:
        u = 1 / x
        return polynomial(u, hankel(v, 1)) * u * sqrt(u) * math.sqrt(math.pi / 2)

    def near(x: Any) -> Any:
        return kve_op(x, v=v) - 0.5 * (kve_op(x, v=abs(v - 1)) + kve_op(x, v=v + 1))

    return g * beyond(x > 50 * (1 + v * v), x, series, near)


finely(kve_op, x=_kve_x)


# ---- by order -----------------------------------------------------------------------------------------------------


def yn(n: int, input: Tensor) -> Tensor:
    """The Bessel function Y of order ``n`` (DLMF 10.2.3). (...) -> (...)

    Raises:
        RuntimeError: ``n`` is negative. TypeError: it is no int.
    """
    result: Tensor = yn_op(input, n=order("yn", n))
    return result


def kv(v: float, input: Tensor) -> Tensor:
    """The modified Bessel function K of the real order ``v`` (DLMF 10.25.3). (...) -> (...)"""
    result: Tensor = kv_op(input, v=_real("kv", v))
    return result


def kve(v: float, input: Tensor) -> Tensor:
    """exp(x) times K of the real order ``v``. (...) -> (...)"""
    result: Tensor = kve_op(input, v=_real("kve", v))
    return result


def _real(function: str, v: Any) -> float:
    if not isinstance(v, (int, float)) or isinstance(v, bool):
        raise TypeError(f"{function}: v: expected a number, got {v!r}")
    return abs(v)  # K_-v = K_v, DLMF 10.27.3


def y0(input: Tensor) -> Tensor:
    """Y of order 0. (...) -> (...)"""
    return yn(0, input)


def y1(input: Tensor) -> Tensor:
    """Y of order 1. (...) -> (...)"""
    return yn(1, input)


def k0(input: Tensor) -> Tensor:
    """K of order 0. (...) -> (...)"""
    return kv(0, input)


def k1(input: Tensor) -> Tensor:
    """K of order 1. (...) -> (...)"""
    return kv(1, input)


def k0e(input: Tensor) -> Tensor:
    """exp(x) times K of order 0. (...) -> (...)"""
    return kve(0, input)


def k1e(input: Tensor) -> Tensor:
    """exp(x) times K of order 1. (...) -> (...)"""
    return kve(1, input)
