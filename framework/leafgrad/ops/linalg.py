"""Inverses, systems of equations, determinants and factorisations of batches of matrices.

Gradients of inverses, systems, determinants and ``cholesky`` after Giles (2008), "An extended collection of matrix
derivative results for forward and reverse mode automatic differentiation"; ``eigh`` and ``qr`` after Seeger et al.
(2017), "Auto-differentiating linear algebra"; ``svd`` after Townsend (2016), "Differentiating the singular value
decomposition"; ``pinv`` after Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least
squares problems whose variables separate".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.errors import LinAlgError
from leafgrad.ops.define import op
from leafgrad.ops.matmul import swap
from leafgrad.ops.reduce import sum
from leafgrad.ops.select import where
from leafgrad.ops.shape import part, reshape, tril
from leafgrad.ops.shifted import shifted


def checked(function: Callable[..., Any], why: str, *args: Any) -> Any:
    """``function(*args)``; where the array library finds no answer, a LinAlgError that says why."""
    try:
        return function(*args)
    except ValueError as error:
        if type(error).__name__ != "LinAlgError":
            raise
        raise LinAlgError(why) from None


SINGULAR = "the input matrix is singular; leafgrad.linalg.pinv and lstsq take such matrices"


def row(x: Any) -> Any:
    """(..., k) -> (..., 1, k)"""
    return reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


def column(x: Any) -> Any:
    """(..., k) -> (..., k, 1)"""
    return reshape(x, shape=(*x.shape, 1))


def span(x: Any, dim: int, start: int, stop: int) -> Any:
    """x[start:stop] along ``dim``."""
    return part(x, at=(*((0, n, 1) for n in x.shape[:dim]), (start, stop, 1)))


def nonzero(x: Any) -> Any:
    """x with a tiny number for zeros: 0 / 0 becomes 0, and anything else remains too large to be overlooked."""
    return where(x == 0, 1e-30, x)


# ---- inverses and systems -----------------------------------------------------------------------------------------


@op("raises", "holomorphic")
def inv(xp: Any, x: Any) -> Any:
    """Inverse. (..., n, n) -> (..., n, n)"""
    return checked(xp.linalg.inv, SINGULAR, x)


inv.vjp(x=lambda g, out: -(swap(out) @ g @ swap(out)))


@op("raises", "holomorphic")
def solve(xp: Any, x: Any, y: Any) -> Any:
    """x^-1 y. (..., n, n), (..., n, k) -> (..., n, k); both have the same batch."""
    return checked(xp.linalg.solve, SINGULAR, x, y)


solve.vjp(
    x=lambda g, out, x: -(solve(swap(x), g) @ swap(out)),
    y=lambda g, x: solve(swap(x), g),
)  # fmt: skip


@op("raises")
def pinv(xp: Any, x: Any, *, atol: float, rtol: float) -> Any:
    """Moore-Penrose inverse. (..., m, n) -> (..., n, m)

    Singular values up to ``max(atol, rtol * the largest)`` count as zero. The gradient holds while their number
    stays the same.
    """
    u, s, vh = checked(xp.linalg.svd, "the singular value decomposition did not converge", x, False)
    largest = s.max(axis=-1, keepdims=True) if s.size else s
    kept = s > xp.maximum(largest * rtol, atol)
    inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0)
    return (vh.swapaxes(-1, -2) * inverse[..., None, :]) @ u.swapaxes(-1, -2)


def _pinv(g: Any, out: Any, x: Any) -> Any:
    p, pt, gt = out, swap(out), swap(g)
    across = gt @ p @ pt
    along = pt @ p @ gt
    return across - x @ (p @ across) + along - (along @ p) @ x - pt @ g @ pt


pinv.vjp(x=_pinv)


# ---- determinants -------------------------------------------------------------------------------------------------


@op("holomorphic")
def det(xp: Any, x: Any) -> Any:
    """Determinant. (..., n, n) -> (...)"""
    return xp.linalg.det(x)


@op("raises", "holomorphic")
def cofactor(xp: Any, x: Any) -> Any:
    """Matrix of cofactors, det(x) x^-T, of singular matrices too. (..., n, n) -> (..., n, n)

    From the factors u s vh of x: those of u and vh are det(u) u and det(vh) vh, and each of s is the product of
    the other singular values.
    """
    u, s, vh = checked(xp.linalg.svd, "the singular value decomposition did not converge", x)
    n = s.shape[-1]
    others = xp.where(xp.eye(n, dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    sign = xp.linalg.det(u) * xp.linalg.det(vh)
    if x.dtype.kind == "c":  # det(u) u^-T
        u, vh = xp.conj(u), xp.conj(vh)
    return (u * (others * sign[..., None])[..., None, :]) @ vh


def _cofactor(g: Any, out: Any, x: Any) -> Any:
    k = swap(inv(x))
    n = len(g.shape)
    return sum(g * out, dim=(n - 2, n - 1), keepdim=True) * k - k @ swap(g) @ out


det.vjp(x=lambda g, x: column(column(g)) * cofactor(x))
cofactor.vjp(x=_cofactor)


@op
def slogdet(xp: Any, x: Any) -> Any:
    """Sign and logarithm of the absolute value of the determinant. (..., n, n) -> (...), (...)"""
    return tuple(xp.linalg.slogdet(x))


slogdet.vjp(x=lambda g, x: column(column(g[1])) * swap(inv(x)))


# ---- factorisations -----------------------------------------------------------------------------------------------


@op("raises")
def cholesky(xp: Any, x: Any) -> Any:
    """Lower triangular factor, x = out out^T, from the lower triangle of x. (..., n, n) -> (..., n, n)"""
    return checked(xp.linalg.cholesky, "the input is not positive-definite", x)


def lower_half(x: Any) -> Any:
    """Lower triangle with half the diagonal."""
    return (tril(x, diagonal=0) + tril(x, diagonal=-1)) / 2


def _cholesky(g: Any, out: Any) -> Any:
    upper, inner = swap(out), lower_half(swap(out) @ g)
    return solve(upper, swap(solve(upper, inner + swap(inner)))) / 2


cholesky.vjp(x=_cholesky)


@op
def qr(xp: Any, x: Any, *, mode: str = "reduced") -> Any:
    """Orthogonal and upper triangular factors, x = q r. (..., m, n) -> (..., m, k), (..., k, n)

    ``mode`` is "reduced", k = min(m, n), or "complete", k = m. The gradient needs m >= n and m = k or "reduced".
    """
    return tuple(xp.linalg.qr(x, mode))


def _qr(g: Any, out: Any) -> Any:
    (gq, gr), (q, r) = g, out
    if r.shape[-2] > r.shape[-1]:
        raise RuntimeError(
            "qr: The QR decomposition is not differentiable when mode='complete' and nrows > ncols; use mode='reduced'"
        )
    m = r @ swap(gr) - swap(gq) @ q
    symmetric = tril(m, diagonal=0) + swap(tril(m, diagonal=-1))
    return swap(solve(r, swap(gq + q @ symmetric)))


qr.vjp(x=_qr)


def _skew_quotient(m: Any, e: Any) -> Any:
    """(m - m^T) / e for antisymmetric e, elementwise, with a zero diagonal. Symmetric."""
    lower = tril((m - swap(m)) / nonzero(e), diagonal=-1)
    return lower + swap(lower)


@op("raises")
def eigh(xp: Any, x: Any, *, lower: bool = True) -> Any:
    """Eigenvalues, ascending, and eigenvectors in columns, of a symmetric matrix, from one of its triangles.

    (..., n, n) -> (..., n), (..., n, n). The gradient is symmetric.
    """
    values, vectors = checked(xp.linalg.eigh, "the eigenvalues did not converge", x, "L" if lower else "U")
    return values, vectors


def _eigh(g: Any, out: Any) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    turned = _skew_quotient(swap(vectors) @ g_vectors, row(values) - column(values)) / 2
    return (vectors * row(g_values) + vectors @ turned) @ swap(vectors)


eigh.vjp(x=_eigh)


@op("raises")
def svd(xp: Any, x: Any, *, full: bool = False) -> Any:
    """Singular values, descending, and singular vectors: x = u diag(s) vh.

    (..., m, n) -> (..., m, k), (..., k), (..., k, n) with k = min(m, n); u and vh are square if ``full``, and the
    vectors beyond k, which are arbitrary, get no gradient.
    """
    return tuple(checked(xp.linalg.svd, "the singular value decomposition did not converge", x, full))


def _svd(g: Any, out: Any) -> Any:
    (gu, gs, gvh), (u, s, vh) = g, out
    k, last = s.shape[-1], len(u.shape) - 1
    if u.shape[-1] > k:
        u, gu = span(u, last, 0, k), span(gu, last, 0, k)
    if vh.shape[-2] > k:
        vh, gvh = span(vh, last - 1, 0, k), span(gvh, last - 1, 0, k)
    along, down = row(s), column(s)
    e = (along - down) * (along + down)
    turned_u = _skew_quotient(swap(u) @ gu, e)
    turned_v = _skew_quotient(vh @ swap(gvh), e)
    gx = (u * row(gs) + u @ (turned_u * along + down * turned_v)) @ vh
    if u.shape[-2] > k:
        outside = gu / nonzero(along)
        gx = gx + (outside - u @ (swap(u) @ outside)) @ vh
    if vh.shape[-1] > k:
        outside = gvh / nonzero(down)
        gx = gx + u @ (outside - (outside @ swap(vh)) @ vh)
    return gx


svd.vjp(x=_svd)


# ---- batches --------------------------------------------------------------------------------------------------------

for _op in (inv, solve, pinv, det, cofactor, slogdet, cholesky, qr, eigh, svd):  # leading dimensions are a batch
    _op.batched(shifted())
