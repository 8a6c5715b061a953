"""Exponential, sine, cosine and Fresnel integrals, the relative error exponential, Lambert's W."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import Tensor, cos, cosh, exp, op, sin
from leafgrad.ops.special import sinc
from leafgrad_special.functions import special
from leafgrad_special.orders import order
from leafgrad_special.precision import finely, keep


@op("elementwise", "float")
def expi(xp: Any, x: Any) -> Any:
    """The exponential integral Ei; -inf at 0 (DLMF 6.2.5). (...) -> (...)"""
    return keep(special().expi(x), x)


finely(expi, x=lambda g, x: g * (exp(x) / x))


@op("elementwise", "float", name="expn")
def expn_op(xp: Any, x: Any, *, n: int) -> Any:
    """The exponential integral E_n, n >= 0; nan below 0 (DLMF 8.19.3). (...) -> (...)"""
    return keep(special().expn(n, x), x)


def _expn_x(g: Any, x: Any, *, n: int) -> Any:
    if n == 0:
        return g * (-expn_op(x, n=0) * (1 + 1 / x))  # E_0 = exp(-x) / x, DLMF 8.19.5
    return g * -expn_op(x, n=n - 1)  # DLMF 8.19.13


finely(expn_op, x=_expn_x)


@op("elementwise", "float")
def exp1(xp: Any, x: Any) -> Any:
    """The exponential integral E_1(x) ; nan below 0 (DLMF 6.2.1). (...) -> (...)"""
    return keep(special().exp1(x), x)


finely(exp1, x=lambda g, x: g * -expn_op(x, n=0))


@op("elementwise", "float")
def exprel(xp: Any, x: Any, *, order: int = 0) -> Any:
    """The derivative of the given order of (exp(x) - 1) / x: the integral of t**order exp(x t) from 0 to 1.

    Near 0 it is the sum of x**k / (k! (k + order + 1)), else it follows from the orders below. (...) -> (...)
    """
    if x.dtype == "float16":
        return exprel.forward(xp, x.astype("float32"), order=order).astype("float16")
    far = xp.abs(x) > order + 1
    safe = xp.where(far, x, 1)
    power = xp.exp(safe)
    value = xp.expm1(safe) / safe
    for k in range(1, order + 1):
        value = (power - k * value) / safe
    near = xp.where(far, 0, x)
    term = xp.ones_like(near)
    series = term / (order + 1)
    for k in range(1, 20 + 6 * order):
        term = term * (near / k)
        series = series + term / (k + order + 1)
    return xp.where(xp.isinf(power), power, xp.where(far, value, series))


finely(exprel, x=lambda g, x, *, order: g * exprel(x, order=order + 1))


@op("elementwise", "float", name="sici")
def sici_op(xp: Any, x: Any, *, cosine: bool) -> Any:
    """The sine integral Si, or the cosine integral Ci of abs(x) (DLMF 6.2.9, 6.2.11). (...) -> (...)"""
    return keep(special().sici(x)[cosine], x)


finely(sici_op, x=lambda g, x, *, cosine: g * (cos(x) / x if cosine else sinc(x / math.pi)))


@op("elementwise", "float", name="shichi")
def shichi_op(xp: Any, x: Any, *, cosine: bool) -> Any:
    """The hyperbolic sine integral Shi, or the cosine integral Chi of abs(x) (DLMF 6.2.15, 6.2.16). (...) -> (...)"""
    return keep(special().shichi(x)[cosine], x)


finely(shichi_op, x=lambda g, x, *, cosine: g * (cosh(x) / x if cosine else 0.5 * (exprel(x) + exprel(-x))))


@op("elementwise", "float", name="fresnel")
def fresnel_op(xp: Any, x: Any, *, cosine: bool) -> Any:
    """The Fresnel integral S, or C (DLMF 7.2.7, 7.2.8). (...) -> (...)"""
    return keep(special().fresnel(x)[cosine], x)


finely(fresnel_op, x=lambda g, x, *, cosine: g * (cos if cosine else sin)(x * x * (math.pi / 2)))


@op("elementwise", "float", name="lambertw")
def lambertw_op(xp: Any, x: Any, *, k: int) -> Any:
    """A real branch of the W with W exp(W) = x: 0 from -1 up, -1 from -1 down; nan where there is none (DLMF 4.13.1).

    (...) -> (...)
    """
    return keep(real_branch(xp, special().lambertw(x, k), x, k), x)


def real_branch(xp: Any, w: Any, x: Any, k: int) -> Any:
    """The real part of a complex W, where its imaginary part is 0."""
    inside = x >= -math.exp(-1)
    return xp.where(inside if k == 0 else inside & (x <= 0), w.real, math.nan)


def _lambertw_x(g: Any, x: Any, *, k: int) -> Any:
    w = lambertw_op(x, k=k)
    return g * (exp(-w) / (1 + w))  # DLMF 4.13.4


finely(lambertw_op, x=_lambertw_x)


# ---- functions ----------------------------------------------------------------------------------------------------


def expn(n: int, input: Tensor) -> Tensor:
    """The exponential integral of order ``n``. (...) -> (...)

    Raises:
        RuntimeError: ``n`` is negative. TypeError: it is no int.
    """
    result: Tensor = expn_op(input, n=order("expn", n))
    return result


def sici(input: Tensor) -> tuple[Tensor, Tensor]:
    """The sine and the cosine integral, Si(x) and Ci(abs(x)). (...) -> (...), (...)"""
    return sici_op(input, cosine=False), sici_op(input, cosine=True)


def shichi(input: Tensor) -> tuple[Tensor, Tensor]:
    """The hyperbolic sine and cosine integral, Shi(x) and Chi(abs(x)). (...) -> (...), (...)"""
    return shichi_op(input, cosine=False), shichi_op(input, cosine=True)


def fresnel(input: Tensor) -> tuple[Tensor, Tensor]:
    """The Fresnel integrals S and C. (...) -> (...), (...)"""
    return fresnel_op(input, cosine=False), fresnel_op(input, cosine=True)


def lambertw(input: Tensor, k: int = 0) -> Tensor:
    """The branch 0 or -1 of Lambert's W on real numbers: W exp(W) = x; nan where there is none. (...) -> (...)

    Raises:
        RuntimeError: ``k`` is neither.
    """
    if k not in (0, -1):
        raise RuntimeError(f"lambertw: k: expected 0 or -1, the branches that are real, got {k!r}")
    result: Tensor = lambertw_op(input, k=k)
    return result
