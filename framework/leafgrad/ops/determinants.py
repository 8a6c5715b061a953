"""Determinants of batches of matrices, and their derivatives, which singular matrices have, too: polynomials.

They are read off a singular value decomposition u s vh: in its bases the matrix is diagonal, and each derivative made
of products of the singular values that are left when some are taken out. Nothing is divided by.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import dtypes
from leafgrad.errors import LinAlgError
from leafgrad.ops.complex import imag
from leafgrad.ops.conjugate import conjugated, is_complex
from leafgrad.ops.define import op
from leafgrad.ops.elimination import lu
from leafgrad.ops.linalg import SINGULAR, checked, column, decomposed, inv, on_diagonal
from leafgrad.ops.matmul import swap
from leafgrad.ops.reduce import sum
from leafgrad.ops.select import zero
from leafgrad.ops.shifted import shifted


@op("holomorphic")
def det(xp: Any, x: Any) -> Any:
    """Determinant, nan of a matrix with nan. (..., n, n) -> (...)"""
    broken, x = without_nan(xp, x)
    return xp.where(broken, complex(math.nan, math.nan) if x.dtype.kind == "c" else math.nan, xp.linalg.det(x))


def without_nan(xp: Any, x: Any) -> tuple[Any, Any]:
    """Which matrices have nan, in which LAPACK takes a pivot for 0; and x with zeros for them."""
    broken = xp.isnan(x).any(axis=(-2, -1))
    return broken, xp.where(broken[..., None, None], 0, x)


def bases(xp: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """u, s, vh and det(u vh) with x = u^-T s vh^-T; u is nan where x is not finite."""
    finite = xp.isfinite(x).all(axis=(-2, -1), keepdims=True)
    u, s, vh = decomposed(xp, xp.where(finite, x, 0))
    if x.dtype.kind == "c":
        u, vh = xp.conj(u), xp.conj(vh)
    sign = xp.conj(xp.linalg.det(u) * xp.linalg.det(vh))
    return xp.where(finite, u, math.nan), s, vh, sign


@op("raises", "holomorphic")
def cofactor(xp: Any, x: Any) -> Any:
    """Matrix of cofactors, det(x) x^-T: the derivative of det. (..., n, n) -> (..., n, n)"""
    u, s, vh, sign = bases(xp, x)
    others = xp.where(xp.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    return (u * (others * sign[..., None])[..., None, :]) @ vh


@op("raises", "holomorphic")
def cofactor_slope(xp: Any, x: Any, y: Any) -> Any:
    """The gradient of sum(y cofactor(x)) by x, linear in y. (..., n, n), (..., n, n) -> (..., n, n)

    Cofactor (i, i) of a diagonal matrix s changes with s_j by the product of the others than i and j, cofactor (i, j)
    with element (j, i) by minus as much.
    """
    u, s, vh, sign = bases(xp, x)
    eye = xp.eye(s.shape[-1], dtype=bool)
    others = xp.where(eye[:, None] | eye, 1, s[..., None, None, :]).prod(axis=-1) * ~eye * sign[..., None, None]
    y = u.swapaxes(-1, -2) @ y @ vh.swapaxes(-1, -2)
    along = others @ y.diagonal(0, -2, -1)[..., None]
    return u @ (xp.where(eye, along, 0) - others * y.swapaxes(-1, -2)) @ vh


def diagonal_sum(x: Any) -> Any:
    """(..., n, n) -> (..., 1, 1)"""
    return column(sum(on_diagonal(x), dim=(len(x.shape) - 2,), keepdim=True))


def _cofactor_slope_x(g: Any, x: Any, y: Any) -> Any:
    """Of det(x) (tr(k g) tr(k y) - tr(k g k y)), k = x^-1, which is what sum(g cofactor_slope(x, y)) is."""
    n = x.shape[-1]
    if n < 3:
        return zero(g)
    if n == 3:  # one form of g, x and y, linear in each, which any two may change places in: x may be singular
        return cofactor_slope(g, y)
    k, c = inv(x), cofactor(x)
    left, right = k @ g, k @ y
    both = left @ right
    turned = both + right @ left - diagonal_sum(left) * right - diagonal_sum(right) * left
    return c * (diagonal_sum(left) * diagonal_sum(right) - diagonal_sum(both)) + c @ swap(turned)


det.label = "LinalgDetBackward0"
det.vjp(x=lambda g, x: column(column(g)) * cofactor(x))
cofactor.vjp(x=lambda g, x: cofactor_slope(x, g))
cofactor_slope.vjp(x=_cofactor_slope_x, y=lambda g, x: cofactor_slope(x, g))


@op("complex")
def slogdet(xp: Any, x: Any) -> Any:
    """Sign, or phase, and logarithm of the absolute value of the determinant. (..., n, n) -> (...), (...) real"""
    broken, x = without_nan(xp, x)
    sign, log = xp.linalg.slogdet(x)
    if x.dtype.kind == "c":
        sign = xp.where(broken, complex(math.nan, math.nan), sign)
    return xp.asarray(sign), xp.where(broken, math.nan, log)


@op("raises", "holomorphic")
def log_slope(xp: Any, x: Any) -> Any:
    """x^-T, the derivative of log(det(x)). (..., n, n) -> (..., n, n)

    Where x is singular it is its cofactors over the zero that elimination ends with, infinite or nan; of complex
    numbers nan.
    """
    try:
        return checked(xp.linalg.inv, SINGULAR, x).swapaxes(-1, -2)
    except LinAlgError:
        singular = ~(slogdet.forward(xp, x)[1] > -math.inf)[..., None, None]  # or nan
    n = x.shape[-1]
    out = checked(xp.linalg.inv, SINGULAR, xp.where(singular, xp.eye(n, dtype=x.dtype), x)).swapaxes(-1, -2)
    if x.dtype.kind == "c":
        return xp.where(singular, math.nan, out)
    packed, pivots = lu.forward(xp, x)
    minus = xp.signbit(packed.diagonal(0, -2, -1)).sum(axis=-1) + (pivots != xp.arange(n)).sum(axis=-1)
    cofactors = cofactor.forward(xp, x) * (1 - 2 * (minus % 2)).astype(x.dtype)[..., None, None]
    size = xp.abs(cofactors)
    rounding = n * dtypes.finfo(dtypes.of(x)).eps * size.max(axis=(-2, -1), keepdims=True)
    infinite = xp.where(size > rounding, xp.copysign(math.inf, cofactors), math.nan)
    return xp.where(singular, infinite, out)


log_slope.vjp(x=lambda g, out: -(out @ swap(g) @ out))


def _slogdet(g: Any, out: Any, x: Any) -> Any:
    g_sign, g_log = g
    if is_complex(x):
        g_log = g_log - 1j * imag(conjugated(g_sign) * out[0])
    return column(column(g_log)) * conjugated(log_slope(x))


slogdet.vjp(x=_slogdet)

# Leading dimensions are a batch.
for _op in (det, cofactor, cofactor_slope, slogdet, log_slope):
    _op.batched(shifted())
