"""The logarithm of the gamma function, and its derivatives of every order."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import Tensor, op
from leafgrad_special.functions import special
from leafgrad_special.precision import keep


@op("elementwise", "float", name="polygamma")
def polygamma_op(xp: Any, x: Any, *, n: int) -> Any:
    """The n-th derivative of digamma, n >= 1, by Hurwitz' zeta function (DLMF 25.11.12). (...) -> (...)"""
    return keep((-1.0) ** (n + 1) * math.factorial(n) * special().zeta(n + 1, x), x)


polygamma_op.vjp(x=lambda g, x, *, n: g * polygamma_op(x, n=n + 1))


@op("elementwise", "float")
def digamma(xp: Any, x: Any) -> Any:
    """The derivative of gammaln (DLMF 5.2.2). (...) -> (...)"""
    return keep(special().digamma(x), x)


digamma.vjp(x=lambda g, x: g * polygamma_op(x, n=1))


@op("elementwise", "float")
def gammaln(xp: Any, x: Any) -> Any:
    """log |gamma(x)|; infinite at 0, -1, -2, ... (DLMF 5.2.1). (...) -> (...)"""
    return keep(special().gammaln(x), x)


gammaln.vjp(x=lambda g, x: g * digamma(x))  # DLMF 5.2.2


def polygamma(n: int, input: Tensor) -> Tensor:
    """The ``n``-th derivative of digamma, element by element (DLMF 5.15). (...) -> (...)

    Raises:
        RuntimeError: ``n`` is negative. TypeError: it is no int.
    """
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"polygamma: n: expected an int, got {n!r}")
    if n < 0:
        raise RuntimeError(f"polygamma: n: expected an order >= 0, got {n}")
    result: Tensor = digamma(input) if n == 0 else polygamma_op(input, n=n)
    return result
