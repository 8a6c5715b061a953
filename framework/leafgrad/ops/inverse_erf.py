"""The inverse of the error function."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.exponential import exp
from leafgrad.ops.special import erf_of, erfc

# The inverse at x, divided by x, as polynomials in w = -log(1 - x**2): of w - 2.5 up to w = 5, of sqrt(w) - 3 beyond,
# to the accuracy of float32. M. Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2011), table 5.
# Highest power first.
_NEAR = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    2.1858087e-04,
    -1.25372503e-03,
    -4.17768164e-03,
    2.46640727e-01,
    1.50140941e00,
)
_FAR = (
    -2.00214257e-04,
    1.00950558e-04,
    1.34934322e-03,
    -3.67342844e-03,
    5.73950773e-03,
    -7.6224613e-03,
    9.43887047e-03,
    1.00167406e00,
    2.83297682e00,
)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    y = x * 0 + coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


def _refined(xp: Any, x: Any, y: Any) -> Any:
    """The inverse at x >= 0 to the accuracy of float64, from y, which has that of float32 up to 1 - 1e-7.

    Newton's steps on erf, and from 1/2 on those on the logarithm of erfc, by which 1 - x keeps its digits.
    """
    rest = 1 - x
    scale = -xp.log(xp.minimum(rest, 1e-6) * math.sqrt(math.pi))  # asymptotically y**2 + log(y) + 1 / (2 * y**2)
    square = scale - xp.log(scale) / 2
    y = xp.where(rest < 1e-7, xp.sqrt(scale - xp.log(square) / 2 - 0.5 / square), y)
    for _ in range(2):
        over_slope = math.sqrt(math.pi) / 2 * xp.exp(y * y)
        left = erfc.forward(xp, y)
        y = y + over_slope * xp.where(x < 0.5, x - erf_of(xp, y), left * xp.log(left / rest))
    return y


@op("elementwise", "float")
def inverse_erf(xp: Any, x: Any) -> Any:
    """The number whose error function is x; infinite at -1 and 1, nan beyond. (...) -> (...)"""
    if x.dtype == "float16":
        return inverse_erf.forward(xp, x.astype("float32")).astype("float16")
    size = xp.abs(x)
    inside = xp.where(size < 1, size, 0)
    w = -xp.log((1 - inside) * (1 + inside))
    near, far = _polynomial(_NEAR, xp.minimum(w, 5) - 2.5), _polynomial(_FAR, xp.sqrt(xp.maximum(w, 5)) - 3)
    y = inside * xp.where(w < 5, near, far)
    if x.dtype == "float64":
        y = _refined(xp, inside, y)
    y = xp.copysign(y, x)
    return xp.where(size < 1, y, xp.where(size == 1, x * math.inf, math.nan))


inverse_erf.label = "ErfinvBackward0"
inverse_erf.vjp(x=lambda g, out: g * (math.sqrt(math.pi) / 2 * exp(out * out)))
