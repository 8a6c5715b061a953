"""The same ops on CuPy's arrays: cupyx.scipy.special, and what it lacks. CuPy is imported at the first call."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from leafgrad_special.bessel import iv_op, ive_op, jv_op
from leafgrad_special.entropy import entr, kl_div, rel_entr, xlog1py
from leafgrad_special.error import dawsn, erfc, erfcinv, erfcx, erfi, erfinv
from leafgrad_special.exponential import exp1, expi, expn_op, fresnel_op, lambertw_op, real_branch, shichi_op, sici_op
from leafgrad_special.gamma import beta, betaln, digamma, gamma, gammaln, gammasgn, poch, polygamma_op, zeta
from leafgrad_special.hypergeometric import ellipe, ellipk, hyp2f1_op, spence
from leafgrad_special.incomplete import betainc, betaincinv, gammainc, gammaincc, gammainccinv, gammaincinv
from leafgrad_special.normal import log_ndtr, mills, ndtr, ndtri
from leafgrad_special.precision import keep
from leafgrad_special.robust import boxcox, boxcox1p, huber
from leafgrad_special.second_kind import kv_op, kve_op, yn_op
from leafgrad_special.spherical import (
    airy_op,
    spherical_in_op,
    spherical_jn_op,
    spherical_kn_op,
    spherical_yn_op,
    struve_op,
)

PLAIN: Final = (
    *(beta, betainc, betaincinv, betaln, boxcox, boxcox1p, dawsn, digamma, ellipe, ellipk, entr, erfc, erfcinv, erfcx),
    *(erfi, erfinv, exp1, expi, expn_op, gamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, gammasgn),
    *(huber, hyp2f1_op, kl_div, log_ndtr, ndtr, ndtri, poch, rel_entr, spence, spherical_in_op),
    *(spherical_jn_op, spherical_kn_op, spherical_yn_op, struve_op, xlog1py, yn_op, zeta),
)
"""Ops that are functions of SciPy by name: their parameters first, then their arguments."""

PAIRS: Final = (fresnel_op, shichi_op, sici_op)
"""Ops that are one of the two results of a function."""

OPS: Final = (*PLAIN, *PAIRS, airy_op, iv_op, ive_op, jv_op, kv_op, kve_op, lambertw_op, mills, polygamma_op)


def library() -> Any:
    """cupyx.scipy.special."""
    from cupyx.scipy import special

    return special


def function(name: str) -> Any:
    """The function of a name, which need not be there: SciPy has many more, and only newer CuPy some of them."""
    found = getattr(library(), name, None)
    if found is None:
        raise NotImplementedError(f"cupyx.scipy.special has no {name}; compute it on the CPU, after .cpu()")
    return found


def as_kernel(op: Any, computed: Callable[..., Any]) -> None:
    """Make ``computed(*args, **params)`` the op's kernel for CuPy, in the dtype of the arguments."""

    def kernel(xp: Any, *args: Any, **params: Any) -> Any:
        return keep(computed(*args, **params), *args)

    vars(kernel)["__signature__"] = inspect.signature(op.forward)
    op.kernel("cupy")(kernel)


def same_name(op: Any) -> Callable[..., Any]:
    """The function of the op's own name, to which parameters come first."""

    def computed(*args: Any, **params: Any) -> Any:
        return function(op.name)(*[params[name] for name in op.signature.parameters], *args)

    return computed


def one_of_two(op: Any) -> Callable[..., Any]:
    """One result of the function of the op's own name."""
    return lambda x, *, cosine: function(op.name)(x)[cosine]


for _op in PLAIN:
    as_kernel(_op, same_name(_op))
for _op in PAIRS:
    as_kernel(_op, one_of_two(_op))
as_kernel(airy_op, lambda x, *, kind: function("airy")(x)[kind])


@lambertw_op.kernel("cupy")
def _lambertw(xp: Any, x: Any, *, k: int) -> Any:
    return keep(real_branch(xp, function("lambertw")(x, k), x, k), x)


@mills.kernel("cupy")
def _mills(xp: Any, x: Any) -> Any:
    return keep(math.sqrt(2 / math.pi) / function("erfcx")(x * -math.sqrt(0.5)), x)


@polygamma_op.kernel("cupy")
def _polygamma(xp: Any, x: Any, *, n: int) -> Any:
    return keep((-1.0) ** (n + 1) * math.factorial(n) * function("zeta")(n + 1.0, x), x)


@jv_op.kernel("cupy")
def _jv(xp: Any, x: Any, *, n: int) -> Any:
    return bessel_j()(n, x)


@cache
def bessel_j() -> Any:
    """J_n by CUDA's own jn, for n >= 0, which at 0 gives nan."""
    import cupy

    body = "y = x == T(0) ? T(n == 0) : (T)jn(n, (double)x)"
    return cupy.ElementwiseKernel("int32 n, T x", "T y", body, "leafgrad_special_jn")


@iv_op.kernel("cupy")
def _iv(xp: Any, x: Any, *, n: int) -> Any:
    if n < 2:
        return keep(function(f"i{n}")(x), x)
    return scaled_bessel_i(xp, x, n) * xp.exp(xp.abs(x))


@ive_op.kernel("cupy")
def _ive(xp: Any, x: Any, *, n: int) -> Any:
    if n < 2:
        return keep(function(f"i{n}e")(x), x)
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


@kv_op.kernel("cupy")
def _kv(xp: Any, x: Any, *, v: float) -> Any:
    return keep(bessel_k("kv", v, x, function("k0"), function("k1")), x)


@kve_op.kernel("cupy")
def _kve(xp: Any, x: Any, *, v: float) -> Any:
    return keep(bessel_k("kve", v, x, function("k0e"), function("k1e")), x)


def bessel_k(name: str, v: float, x: Any, zeroth: Callable[..., Any], first: Callable[..., Any]) -> Any:
    """K of the integer order v, upwards from those of orders 0 and 1, which is stable (DLMF 10.29.1)."""
    if v != int(v):
        raise NotImplementedError(f"{name} of order {v}: CuPy has integer orders; compute it on the CPU, after .cpu()")
    x = x.astype("float32") if x.dtype == "float16" else x
    below, value = zeroth(x), first(x)
    if v == 0:
        return below
    for n in range(1, int(v)):
        below, value = value, below + (2 * n / x) * value
    return value
