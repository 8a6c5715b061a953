"""Quotients that tend to a limit where they divide 0 by 0, with derivatives that are right there and nearby.

A formula for the limit alone would have no derivative by what tends to 0; that of the quotient nearby is a difference
of large like terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leafgrad.tensor.pointwise import where
from leafgrad.tensor.tensor import Tensor

SMALL = 0.03  # below it series are used
LOG1P = [(-1) ** n / (n + 1) for n in range(12)]  # of log(1 + u) / u, by powers of u
EXPM1 = [1 / math.factorial(n + 1) for n in range(9)]  # of (exp(u) - 1) / u


def log1p_over(x: Tensor | float, k: Tensor) -> Tensor:
    """log(1 + k x) / k, x where k is 0."""
    return _over(Tensor.log1p, LOG1P, x, k)


def expm1_over(x: Tensor | float, k: Tensor) -> Tensor:
    """(exp(k x) - 1) / k, x where k is 0."""
    return _over(Tensor.expm1, EXPM1, x, k)


def _over(function: Callable[[Tensor], Tensor], powers: Sequence[float], x: Tensor | float, k: Tensor) -> Tensor:
    u = k * x
    size = u.abs()
    far, small = size >= SMALL, where(size < SMALL, u, 0.0)  # neither, where infinity is multiplied with 0
    series = small * powers[-1] + powers[-2]
    for c in powers[-3::-1]:
        series = series * small + c
    found: Tensor = where(far, function(where(far, u, 0.0)) / where(far, k, 1.0), x * series)
    return found
