"""Spherical Bessel functions of integer order, Struve's functions, and Airy's."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import Tensor, op
from leafgrad.ops.select import where
from leafgrad_special.functions import special
from leafgrad_special.orders import order
from leafgrad_special.precision import finely, keep


@op("elementwise", "float", name="spherical_jn")
def spherical_jn_op(xp: Any, x: Any, *, n: int) -> Any:
    """The spherical Bessel function of the first kind, n >= 0 (DLMF 10.47.3). (...) -> (...)"""
    return keep(special().spherical_jn(n, x), x)


@op("elementwise", "float", name="spherical_yn")
def spherical_yn_op(xp: Any, x: Any, *, n: int) -> Any:
    """The spherical Bessel function of the second kind, n >= 0 (DLMF 10.47.4). (...) -> (...)"""
    return keep(special().spherical_yn(n, x), x)


@op("elementwise", "float", name="spherical_in")
def spherical_in_op(xp: Any, x: Any, *, n: int) -> Any:
    """The modified spherical Bessel function of the first kind, n >= 0 (DLMF 10.47.7). (...) -> (...)"""
    return keep(special().spherical_in(n, x), x)


@op("elementwise", "float", name="spherical_kn")
def spherical_kn_op(xp: Any, x: Any, *, n: int) -> Any:
    """The modified spherical Bessel function of the second kind, n >= 0 (DLMF 10.47.9). (...) -> (...)"""
    return keep(special().spherical_kn(n, x), x)


def _between(function: Any, sign: int) -> Any:
    """The rule of a function whose derivative is (n f_(n-1) + sign (n + 1) f_(n+1)) / (2 n + 1)."""

    def rule(g: Any, x: Any, *, n: int) -> Any:
        above = (sign * (n + 1) / (2 * n + 1)) * function(x, n=n + 1)
        return g * (above if n == 0 else above + n / (2 * n + 1) * function(x, n=n - 1))

    return rule


finely(spherical_jn_op, x=_between(spherical_jn_op, -1))  # DLMF 10.51.2
finely(spherical_yn_op, x=_between(spherical_yn_op, -1))
finely(spherical_in_op, x=_between(spherical_in_op, 1))  # DLMF 10.51.5


def _spherical_kn_x(g: Any, x: Any, *, n: int) -> Any:
    above = -(n + 1) / (2 * n + 1) * spherical_kn_op(x, n=n + 1)
    return g * (above if n == 0 else above - n / (2 * n + 1) * spherical_kn_op(x, n=n - 1))


finely(spherical_kn_op, x=_spherical_kn_x)  # DLMF 10.51.5 for (-1)**n k_n


@op("elementwise", "float", name="struve")
def struve_op(xp: Any, x: Any, *, n: int) -> Any:
    """Struve's function H_n, n >= 0 (DLMF 11.2.1). (...) -> (...)"""
    return keep(special().struve(n, x), x)


def _struve_x(g: Any, x: Any, *, n: int) -> Any:
    """From the order below, which does not cancel far from 0; near 0 between those beside it, without a division."""
    if n == 0:
        return g * (2 / math.pi - struve_op(x, n=1))  # DLMF 11.4.29
    far = abs(x) > 1
    away, near = where(far, x, 1.0), where(far, 0.0, x)
    power = near**n / (2**n * math.sqrt(math.pi) * math.gamma(n + 1.5))
    between = 0.5 * (struve_op(near, n=n - 1) - struve_op(near, n=n + 1) + power)  # DLMF 11.4.26
    return g * where(far, struve_op(away, n=n - 1) - n / away * struve_op(away, n=n), between)  # DLMF 11.4.27


finely(struve_op, x=_struve_x)


AI, AI_SLOPE, BI, BI_SLOPE = range(4)


@op("elementwise", "float", name="airy")
def airy_op(xp: Any, x: Any, *, kind: int) -> Any:
    """One of Ai, Ai', Bi, Bi' (DLMF 9.2). (...) -> (...)"""
    far = (x > 108) & (x < math.inf)  # where what vanishes is 0 in every dtype, and the rest infinite; nan in SciPy
    return keep(xp.where(far, 0.0 if kind in (AI, AI_SLOPE) else math.inf, special().airy(x)[kind]), x)


def _airy_x(g: Any, x: Any, *, kind: int) -> Any:
    if kind in (AI, BI):
        return g * airy_op(x, kind=kind + 1)
    return g * (x * airy_op(x, kind=kind - 1))  # DLMF 9.2.1


finely(airy_op, x=_airy_x)


# ---- by order -----------------------------------------------------------------------------------------------------


def spherical_jn(n: int, input: Tensor) -> Tensor:
    """The spherical Bessel function of the first kind, of order ``n``. (...) -> (...)

    Raises:
        RuntimeError: ``n`` is negative. TypeError: it is no int.
    """
    result: Tensor = spherical_jn_op(input, n=order("spherical_jn", n))
    return result


def spherical_yn(n: int, input: Tensor) -> Tensor:
    """The spherical Bessel function of the second kind; errors as of `spherical_jn`. (...) -> (...)"""
    result: Tensor = spherical_yn_op(input, n=order("spherical_yn", n))
    return result


def spherical_in(n: int, input: Tensor) -> Tensor:
    """The modified spherical Bessel function of the first kind; errors as of `spherical_jn`. (...) -> (...)"""
    result: Tensor = spherical_in_op(input, n=order("spherical_in", n))
    return result


def spherical_kn(n: int, input: Tensor) -> Tensor:
    """The modified spherical Bessel function of the second kind; errors as of `spherical_jn`. (...) -> (...)"""
    result: Tensor = spherical_kn_op(input, n=order("spherical_kn", n))
    return result


def struve(n: int, input: Tensor) -> Tensor:
    """Struve's function H of order ``n``; errors as of `spherical_jn`. (...) -> (...)"""
    result: Tensor = struve_op(input, n=order("struve", n))
    return result


def airy(input: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Airy's functions and their slopes: Ai, Ai', Bi, Bi'. (...) -> four times (...)"""
    return (
        airy_op(input, kind=AI),
        airy_op(input, kind=AI_SLOPE),
        airy_op(input, kind=BI),
        airy_op(input, kind=BI_SLOPE),
    )
