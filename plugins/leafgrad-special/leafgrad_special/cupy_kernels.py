"""The same ops on CuPy's arrays: cupyx.scipy.special, and what it lacks. CuPy is imported at the first call."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from leafgrad_special.bessel import iv_op, ive_op, jv_op
from leafgrad_special.entropy import entr, xlog1py
from leafgrad_special.error import erfc, erfcx, erfinv
from leafgrad_special.gamma import digamma, gammaln, polygamma_op
from leafgrad_special.normal import log_ndtr, mills, ndtr, ndtri
from leafgrad_special.precision import keep

PLAIN: Final = (digamma, entr, erfc, erfcx, erfinv, gammaln, log_ndtr, ndtr, ndtri, xlog1py)
OPS: Final = (*PLAIN, iv_op, ive_op, jv_op, mills, polygamma_op)


def library() -> Any:
    """cupyx.scipy.special."""
    from cupyx.scipy import special

    return special


def same_name(op: Any) -> Callable[..., Any]:
    """A kernel that calls the function of the op's own name."""

    def kernel(xp: Any, *args: Any) -> Any:
        return keep(getattr(library(), op.name)(*args), *args)

    vars(kernel)["__signature__"] = inspect.signature(op.forward)
    return kernel


for _op in PLAIN:
    _op.kernel("cupy")(same_name(_op))


@mills.kernel("cupy")
def _mills(xp: Any, x: Any) -> Any:
    return keep(math.sqrt(2 / math.pi) / library().erfcx(x * -math.sqrt(0.5)), x)


@polygamma_op.kernel("cupy")
def _polygamma(xp: Any, x: Any, *, n: int) -> Any:
    return keep((-1.0) ** (n + 1) * math.factorial(n) * library().zeta(n + 1.0, x), x)


@jv_op.kernel("cupy")
def _jv(xp: Any, x: Any, *, n: int) -> Any:
    return bessel_j()(n, x)


@cache
def bessel_j() -> Any:
    """J_n by CUDA's own jn, for n >= 0."""
    import cupy

    return cupy.ElementwiseKernel("int32 n, T x", "T y", "y = (T)jn(n, (double)x)", "leafgrad_special_jn")


@iv_op.kernel("cupy")
def _iv(xp: Any, x: Any, *, n: int) -> Any:
    if n < 2:
        return keep(getattr(library(), f"i{n}")(x), x)
    return scaled_bessel_i(xp, x, n) * xp.exp(xp.abs(x))


@ive_op.kernel("cupy")
def _ive(xp: Any, x: Any, *, n: int) -> Any:
    if n < 2:
        return keep(getattr(library(), f"i{n}e")(x), x)
    return scaled_bessel_i(xp, x, n)


NEAR: Final = 20.0
"""Up to here by the power series, beyond by Hankel's expansion: both are exact in float64 there, n up to 8."""


def scaled_bessel_i(xp: Any, x: Any, n: int) -> Any:
    """exp(-|x|) I_n(x) in functions that every array namespace has; n >= 0 and small."""
    a = xp.abs(x.astype("float32") if x.dtype == "float16" else x)
    near = xp.minimum(a, NEAR)
    term = xp.exp(-near)
    for k in range(1, n + 1):
        term = term * (near * (0.5 / k))
    series = term
    for k in range(1, 48):  # DLMF 10.25.2
        term = term * (near * near * (0.25 / (k * (k + n))))
        series = series + term
    far = xp.maximum(a, NEAR)
    term = 1 / xp.sqrt(far * (2 * math.pi))
    tail = term
    for k in range(1, 36):  # DLMF 10.40.1
        term = term * (((2 * k - 1) ** 2 - 4 * n * n) / (8 * k)) / far
        tail = tail + term
    value = xp.where(a < NEAR, series, tail).astype(x.dtype, copy=False)
    return value if n % 2 == 0 else xp.copysign(value, x)
