"""Classical orthogonal polynomials by their recurrences, in functions that every array library has.

The derivative of a polynomial is one of lower degree of the same or of a neighbouring family.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad import Tensor, op
from leafgrad_special.orders import order

# The factors p, q, r of y_k = (p x + q) y_(k-1) - r y_(k-2), by k.
Recurrence = Callable[[int], tuple[float, float, float]]


def recur(xp: Any, x: Any, n: int, recurrence: Recurrence) -> Any:
    """The polynomial of degree ``n`` at ``x``; float16 is computed in float32."""
    if x.dtype == "float16":
        return recur(xp, x.astype("float32"), n, recurrence).astype("float16")
    if n == 0:
        return xp.where(xp.isnan(x), x, xp.ones_like(x))
    below, value, lead = xp.zeros_like(x), xp.ones_like(x), 1.0
    for k in range(1, n + 1):
        p, q, r = recurrence(k)
        below, value, lead = value, (p * x + q) * value - r * below, math.copysign(lead, lead * p)
    far = lead * math.inf * xp.sign(x) ** n  # what it is where its terms are infinite, of either sign
    return xp.where(xp.isnan(value), far.astype(value.dtype), value)


@op("elementwise", "float")
def gegenbauer(xp: Any, x: Any, *, n: int, alpha: float) -> Any:
    """Gegenbauer's polynomial C_n^(alpha) (DLMF 18.9.1). (...) -> (...)"""
    return recur(xp, x, n, lambda k: (2 * (k + alpha - 1) / k, 0.0, (k + 2 * alpha - 2) / k))


@op("elementwise", "float")
def chebyt(xp: Any, x: Any, *, n: int) -> Any:
    """Chebyshev's polynomial of the first kind, T_n (DLMF 18.9.1). (...) -> (...)"""
    return recur(xp, x, n, lambda k: (1.0 if k == 1 else 2.0, 0.0, 1.0))


@op("elementwise", "float")
def hermite(xp: Any, x: Any, *, n: int) -> Any:
    """Hermite's polynomial H_n, as physicists have it (DLMF 18.9.1). (...) -> (...)"""
    return recur(xp, x, n, lambda k: (2.0, 0.0, 2.0 * (k - 1)))


@op("elementwise", "float")
def hermitenorm(xp: Any, x: Any, *, n: int) -> Any:
    """Hermite's polynomial He_n, as probabilists have it (DLMF 18.9.1). (...) -> (...)"""
    return recur(xp, x, n, lambda k: (1.0, 0.0, k - 1.0))


@op("elementwise", "float")
def genlaguerre(xp: Any, x: Any, *, n: int, alpha: float) -> Any:
    """Laguerre's polynomial L_n^(alpha) (DLMF 18.9.1). (...) -> (...)"""
    return recur(xp, x, n, lambda k: (-1.0 / k, (2 * k - 1 + alpha) / k, (k - 1 + alpha) / k))


# DLMF 18.9.19, 18.9.21, 18.9.25, 18.9.27 and 18.9.23. The derivative of degree 0 is zero, which None stands for.
gegenbauer.vjp(x=lambda g, x, *, n, alpha: g * (2 * alpha * gegenbauer(x, n=n - 1, alpha=alpha + 1)) if n else None)
chebyt.vjp(x=lambda g, x, *, n: g * (n * gegenbauer(x, n=n - 1, alpha=1.0)) if n else None)
hermite.vjp(x=lambda g, x, *, n: g * (2 * n * hermite(x, n=n - 1)) if n else None)
hermitenorm.vjp(x=lambda g, x, *, n: g * (n * hermitenorm(x, n=n - 1)) if n else None)
genlaguerre.vjp(x=lambda g, x, *, n, alpha: g * -genlaguerre(x, n=n - 1, alpha=alpha + 1) if n else None)


# ---- by degree ----------------------------------------------------------------------------------------------------


def eval_gegenbauer(n: int, alpha: float, input: Tensor) -> Tensor:
    """Gegenbauer's polynomial of degree ``n``, C_n^(alpha), alpha > -1/2 and not 0. (...) -> (...)

    Raises:
        RuntimeError: ``n`` is negative, or ``alpha`` out of range. TypeError: ``n`` is no int.
    """
    if not alpha > -0.5 or alpha == 0:
        raise RuntimeError(f"eval_gegenbauer: alpha: expected a number > -1/2 and not 0, got {alpha!r}")
    result: Tensor = gegenbauer(input, n=order("eval_gegenbauer", n), alpha=float(alpha))
    return result


def eval_legendre(n: int, input: Tensor) -> Tensor:
    """Legendre's polynomial of degree ``n``, P_n = C_n^(1/2); errors as of `eval_gegenbauer`. (...) -> (...)"""
    result: Tensor = gegenbauer(input, n=order("eval_legendre", n), alpha=0.5)
    return result


def eval_chebyt(n: int, input: Tensor) -> Tensor:
    """Chebyshev's polynomial of degree ``n`` of the first kind; errors as of `eval_gegenbauer`. (...) -> (...)"""
    result: Tensor = chebyt(input, n=order("eval_chebyt", n))
    return result


def eval_chebyu(n: int, input: Tensor) -> Tensor:
    """Chebyshev's polynomial of the second kind, U_n = C_n^(1); errors as of `eval_gegenbauer`. (...) -> (...)"""
    result: Tensor = gegenbauer(input, n=order("eval_chebyu", n), alpha=1.0)
    return result


def eval_hermite(n: int, input: Tensor) -> Tensor:
    """Hermite's polynomial of degree ``n``, for exp(-x**2); errors as of `eval_gegenbauer`. (...) -> (...)"""
    result: Tensor = hermite(input, n=order("eval_hermite", n))
    return result


def eval_hermitenorm(n: int, input: Tensor) -> Tensor:
    """Hermite's polynomial of degree ``n``, for exp(-x**2 / 2); errors as of `eval_gegenbauer`. (...) -> (...)"""
    result: Tensor = hermitenorm(input, n=order("eval_hermitenorm", n))
    return result


def eval_genlaguerre(n: int, alpha: float, input: Tensor) -> Tensor:
    """Laguerre's polynomial of degree ``n``, L_n^(alpha), alpha > -1. (...) -> (...)

    Raises:
        RuntimeError: ``n`` is negative, or ``alpha`` out of range. TypeError: ``n`` is no int.
    """
    if not alpha > -1:
        raise RuntimeError(f"eval_genlaguerre: alpha: expected a number > -1, got {alpha!r}")
    result: Tensor = genlaguerre(input, n=order("eval_genlaguerre", n), alpha=float(alpha))
    return result


def eval_laguerre(n: int, input: Tensor) -> Tensor:
    """Laguerre's polynomial of degree ``n``, L_n^(0); errors as of `eval_genlaguerre`. (...) -> (...)"""
    return eval_genlaguerre(n, 0.0, input)
