"""Special functions: erf, erfc, products with logarithms, and sinc."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.exponential import exp, log, xlogy
from leafgrad.ops.select import where

# Rational approximations of erf on [-1, 1] and of erfc(x) exp(x**2) on [1, 6], with relative errors below 1e-15:
# W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969), in the
# coefficients of the Cephes library (S. L. Moshier). Highest power first.
_ERF_P = (
    9.60497373987051638749e0,
    9.00260197203842689217e1,
    2.23200534594684319226e3,
    7.00332514112805075473e3,
    5.55923013010394962768e4,
)
_ERF_Q = (
    1.0,
    3.35617141647503099647e1,
    5.21357949780152679795e2,
    4.59432382970980127987e3,
    2.26290000613890934246e4,
    4.92673942608635921086e4,
)
_ERFC_P = (
    2.46196981473530512524e-10,
    5.64189564831068821977e-1,
    7.46321056442269912687e0,
    4.86371970985681366614e1,
    1.96520832956077098242e2,
    5.26445194995477358631e2,
    9.34528527171957607540e2,
    1.02755188689515710272e3,
    5.57535335369399327526e2,
)
_ERFC_Q = (
    1.0,
    1.32281951154744992508e1,
    8.67072140885989742329e1,
    3.54937778887819891062e2,
    9.75708501743205489753e2,
    1.82390916687909736289e3,
    2.24633760818710981792e3,
    1.65666309194161350182e3,
    5.57535340817727675546e2,
)

# erfc(x) exp(x**2) beyond 8, from the same source.
_FAR_P = (
    5.64189583547755073984e-1,
    1.27536670759978104416e0,
    5.01905042251180477414e0,
    6.16021097993053585195e0,
    7.40974269950448939160e0,
    2.97886665372100240670e0,
)
_FAR_Q = (
    1.0,
    2.26052863220117276590e0,
    9.39603524938001434673e0,
    1.20489539808096656605e1,
    1.70814450747565897222e1,
    9.60896809063285878198e0,
    3.36907645100081516050e0,
)

# erf(x) / x on [-4, 4] in x**2, to the accuracy of float32: the coefficients of the Eigen library.
_SHORT_P = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_SHORT_Q = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    y = x * coefficients[0]
    y += coefficients[1]
    for c in coefficients[2:]:
        y *= x
        y += c
    return y


def erf_of(xp: Any, x: Any) -> Any:
    """erf on arrays; float16 is computed in float32."""
    if x.dtype == "float16":
        return erf_of(xp, x.astype("float32")).astype("float16")
    if x.dtype == "float32":
        near = xp.minimum(xp.maximum(x, -4), 4)
        z = near * near
        near *= _polynomial(_SHORT_P, z)
        near /= _polynomial(_SHORT_Q, z)
        return xp.minimum(xp.maximum(near, -1), 1)
    small = xp.minimum(xp.maximum(x, -1), 1)
    z = small * small
    inner = small * (_polynomial(_ERF_P, z) / _polynomial(_ERF_Q, z))
    a = xp.minimum(xp.maximum(xp.abs(x), 1), 6)  # beyond 6, erf is 1 in every dtype
    outer = 1 - xp.exp(-a * a) * (_polynomial(_ERFC_P, a) / _polynomial(_ERFC_Q, a))
    return xp.where(xp.abs(x) > 1, xp.copysign(outer, x), inner)


@op("elementwise", "float", c="erf(x)")
def erf(xp: Any, x: Any) -> Any:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x. (...) -> (...)"""
    return erf_of(xp, x)


erf.vjp(x=lambda g, x: g * (2 / math.sqrt(math.pi) * exp(-(x * x))))


@op("elementwise", "float", name="complementary_erf", c="erfc(x)")
def erfc(xp: Any, x: Any) -> Any:
    """1 - erf(x), which keeps its digits where erf is close to 1. (...) -> (...)"""
    if x.dtype == "float16":
        return erfc.forward(xp, x.astype("float32")).astype("float16")
    a = xp.minimum(xp.maximum(xp.abs(x), 1), 30)  # beyond 30 it is 0 in every dtype
    coarse = xp.floor(a * 16) / 16  # whose square is exact
    fade = xp.exp(-coarse * coarse) * xp.exp((coarse - a) * (coarse + a))
    near, far = xp.minimum(a, 8), xp.maximum(a, 8)
    outer = fade * xp.where(
        a < 8,
        _polynomial(_ERFC_P, near) / _polynomial(_ERFC_Q, near),
        _polynomial(_FAR_P, far) / _polynomial(_FAR_Q, far),
    )
    return xp.where(x > 1, outer, xp.where(x < -1, 2 - outer, 1 - erf_of(xp, x)))


erfc.label = "ErfcBackward0"
erfc.vjp(x=lambda g, x: g * (-2 / math.sqrt(math.pi) * exp(-(x * x))))


@op("elementwise", "float", name="entropy_term")
def entr(xp: Any, x: Any) -> Any:
    """-x log(x): 0 at 0, where its slope is infinite, and -inf below. (...) -> (...)"""
    return xp.where(x < 0, -math.inf, -xlogy.forward(xp, x, x))


entr.vjp(x=lambda g, x: g * (-log(x) - 1))


@op("elementwise", "float", name="x_log1p", c="x == 0 && y == y ? 0 : x * log1p(y)")
def xlog1py(xp: Any, x: Any, y: Any) -> Any:
    """x log(1 + y), and 0 where x is 0 unless y is nan. Arrays alone. (...), (...) -> (...)"""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log1p(y))


xlog1py.vjp(
    x=lambda g, x, y: where((x == 0) & (y <= -1), 0, xlog1py(g, y)),
    y=lambda g, x, y: g * x / (y + 1),
)  # fmt: skip


@op("elementwise", "float", "holomorphic")
def sinc(xp: Any, x: Any, *, order: int = 0) -> Any:
    """The derivative of the given order of sin(pi x) / (pi x); smooth at 0, where the series is summed."""
    if x.dtype == "float16":
        return sinc.forward(xp, x.astype("float32"), order=order).astype("float16")
    z = math.pi * x
    far = xp.abs(z) > order + 1
    safe = xp.where(far, z, 1)
    value = xp.sin(safe) / safe
    for k in range(1, order + 1):  # (z f)^(k) = z f^(k) + k f^(k-1) = sin^(k)
        value = (xp.sin(safe + k * (math.pi / 2)) - k * value) / safe
    near = xp.where(far, 0, z)
    first = order + order % 2  # power of z in the series whose derivative is the first that does not vanish
    term = (-1.0) ** (first // 2) * math.factorial(first) / math.factorial(first + 1)
    term = term / math.factorial(first - order) * near ** (first - order)
    total = term
    for n in range(first + 2, first + 2 * (12 + order), 2):
        term = term * (near * near) * (-(n - 1.0) / ((n + 1.0) * (n - order) * (n - order - 1.0)))
        total = total + term
    return xp.where(far, value, total) * math.pi**order


sinc.vjp(x=lambda g, x, *, order: g * sinc(x, order=order + 1))
