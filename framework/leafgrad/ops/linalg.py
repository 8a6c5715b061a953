"""Inverses, systems of equations, factorisations and exponentials of batches of matrices.

Gradients of inverses, systems and ``cholesky`` after Giles (2008), "An extended collection of matrix
derivative results for forward and reverse mode automatic differentiation"; ``eigh`` and ``qr`` after Seeger et al.
(2017), "Auto-differentiating linear algebra"; ``svd`` after Townsend (2016), "Differentiating the singular value
decomposition"; ``eig`` after Boeddeker et al. (2017), "On the computation of complex-valued gradients with application
to statistically optimum beamforming"; ``pinv`` after Golub and Pereyra (1973), "The differentiation of pseudo-inverses
and nonlinear least squares problems whose variables separate".

For complex matrices ``adjoint`` takes the place of the transpose. The vectors of a complex ``eigh``, ``svd`` or ``eig``
are determined up to a phase, as real ones are up to a sign, and a loss that depends on it has no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad import backends
from leafgrad.errors import LinAlgError
from leafgrad.ops.complex import imag, real
from leafgrad.ops.conjugate import conjugated, is_complex
from leafgrad.ops.define import op
from leafgrad.ops.diagonals import diagonal, tril, triu
from leafgrad.ops.elementwise import abs
from leafgrad.ops.matmul import swap
from leafgrad.ops.refuse import refuse
from leafgrad.ops.select import where
from leafgrad.ops.shape import cat, part, reshape
from leafgrad.ops.shifted import shifted


def checked(function: Callable[..., Any], why: str, *args: Any) -> Any:
    """``function(*args)``; where the array library finds no answer, a LinAlgError that says why."""
    try:
        with backends.backend_of(args[0]).linalg_errors():
            return function(*args)
    except ValueError as error:
        if type(error).__name__ != "LinAlgError":
            raise
        raise LinAlgError(why) from None


def decomposed(xp: Any, x: Any, full: bool = True) -> tuple[Any, Any, Any]:
    """u, s and vh of x. LAPACK's divide and conquer fails at some matrices in good order, seldom at their adjoint."""
    why = "the singular value decomposition did not converge"
    try:
        return tuple(checked(xp.linalg.svd, why, x, full))
    except LinAlgError:
        v, s, uh = checked(xp.linalg.svd, why, xp.conj(x).swapaxes(-1, -2), full)
    return xp.conj(uh).swapaxes(-1, -2), s, xp.conj(v).swapaxes(-1, -2)


SINGULAR = "the input matrix is singular; leafgrad.linalg.pinv and lstsq take such matrices"


def row(x: Any) -> Any:
    """(..., k) -> (..., 1, k)"""
    return reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


def column(x: Any) -> Any:
    """(..., k) -> (..., k, 1)"""
    return reshape(x, shape=(*x.shape, 1))


def adjoint(x: Any) -> Any:
    """x transposed, and conjugated if complex. (..., n, m) -> (..., m, n)"""
    return swap(conjugated(x))


def span(x: Any, dim: int, start: int, stop: int) -> Any:
    """x[start:stop] along ``dim``."""
    return part(x, at=(*((0, n, 1) for n in x.shape[:dim]), (start, stop, 1)))


def nonzero(x: Any) -> Any:
    """x with a tiny number for zeros: 0 / 0 becomes 0, and anything else remains too large to be overlooked."""
    return where(x == 0, 1e-30, x)


def on_diagonal(x: Any) -> Any:
    """The diagonal of matrices. (..., n, n) -> (..., n)"""
    n = len(x.shape)
    return diagonal(x, offset=0, dims=(n - 2, n - 1))


def phases(m: Any, what: str, *others: Any) -> Any:
    """The imaginary diagonal of ``m``, V^H gV of vectors V: how the loss changes as their phases do.

    Raises:
        RuntimeError: it changes, with those of ``others`` turned alike, so that there is no derivative.
    """
    phase = total = imag(on_diagonal(m))
    for other in others:
        total = total + imag(on_diagonal(other))
    message = (
        f"linalg.{what}: in the complex case vectors are determined up to a factor exp(i phi), their phase, and the "
        "specified loss function depends on it, so that its gradient is ill-defined. Compute the loss with what does "
        "not depend on it, such as abs() or products v v^H"
    )
    refuse(abs(total) > 1e-2, error=RuntimeError, message=message)
    return phase


# ---- inverses and systems -----------------------------------------------------------------------------------------


@op("raises", "holomorphic")
def inv(xp: Any, x: Any) -> Any:
    """Inverse. (..., n, n) -> (..., n, n)"""
    return checked(xp.linalg.inv, SINGULAR, x)


inv.label = "LinalgInvExBackward0"
inv.vjp(x=lambda g, out: -(swap(out) @ g @ swap(out)))


@op("raises", "holomorphic")
def solve(xp: Any, x: Any, y: Any) -> Any:
    """x^-1 y. (..., n, n), (..., n, k) -> (..., n, k); both have the same batch."""
    return checked(xp.linalg.solve, SINGULAR, x, y)


solve.label = "LinalgSolveExBackward0"
solve.vjp(
    x=lambda g, out, x: -(solve(swap(x), g) @ swap(out)),
    y=lambda g, x: solve(swap(x), g),
)  # fmt: skip


@op("raises", "complex")
def pinv(xp: Any, x: Any, *, atol: float, rtol: float, hermitian: bool = False) -> Any:
    """Moore-Penrose inverse, of the lower triangle alone if ``hermitian``. (..., m, n) -> (..., n, m)

    Singular values up to ``max(atol, rtol * the largest)`` count as zero. The gradient holds while their number
    stays the same.
    """
    if hermitian:
        below = xp.tril(x, -1)
        x = xp.where(xp.eye(x.shape[-1], dtype=bool), x.real, below + xp.conj(below).swapaxes(-1, -2))
    u, s, vh = decomposed(xp, x, False)
    largest = s.max(axis=-1, keepdims=True) if s.size else s
    kept = s > xp.maximum(largest * rtol, atol)
    inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0)
    return (xp.conj(vh).swapaxes(-1, -2) * inverse[..., None, :]) @ xp.conj(u).swapaxes(-1, -2)


def _pinv(g: Any, out: Any, x: Any) -> Any:
    p, pt, gt = out, adjoint(out), adjoint(g)
    across = gt @ p @ pt
    along = pt @ p @ gt
    return across - x @ (p @ across) + along - (along @ p) @ x - pt @ g @ pt


pinv.vjp(x=_pinv)


# ---- factorisations -----------------------------------------------------------------------------------------------


WITHOUT_FACTOR = "the input is not positive-definite"


@op("raises", "complex")
def cholesky(xp: Any, x: Any) -> Any:
    """Lower triangular factor, x = out out^H, from the lower triangle of x. (..., n, n) -> (..., n, n)"""
    factor = checked(xp.linalg.cholesky, WITHOUT_FACTOR, x)
    if not bool(xp.isfinite(xp.diagonal(factor, axis1=-2, axis2=-1)).all()):  # of nan libraries make nan
        raise LinAlgError(WITHOUT_FACTOR)
    return factor


def lower_half(x: Any) -> Any:
    """Lower triangle with half the diagonal."""
    return (tril(x, diagonal=0) + tril(x, diagonal=-1)) / 2


def _cholesky(g: Any, out: Any) -> Any:
    upper = adjoint(out)
    inner = lower_half(upper @ g)
    return solve(upper, adjoint(solve(upper, inner + adjoint(inner)))) / 2


cholesky.label = "LinalgCholeskyExBackward0"
cholesky.vjp(x=_cholesky)


@op("complex")
def qr(xp: Any, x: Any, *, mode: str = "reduced") -> Any:
    """Orthogonal, or unitary, and upper triangular factors, x = q r. (..., m, n) -> (..., m, k), (..., k, n)

    ``mode`` is "reduced", k = min(m, n), or "complete", k = m. The gradient needs m >= n and m = k or "reduced".
    """
    return tuple(xp.linalg.qr(x, mode))


def _qr(g: Any, out: Any) -> Any:
    (gq, gr), (q, r) = g, out
    if r.shape[-2] > r.shape[-1]:
        raise RuntimeError(
            "qr: The QR decomposition is not differentiable when mode='complete' and nrows > ncols; use mode='reduced'"
        )
    half = lower_half(r @ adjoint(gr) - adjoint(gq) @ q)
    return adjoint(solve(r, adjoint(gq + q @ (half + adjoint(half)))))


qr.label = "LinalgQrBackward0"
qr.vjp(x=_qr)


@op("complex")
def reflected(xp: Any, x: Any) -> Any:
    """QR as LAPACK's geqrf leaves it, without a gradient. (..., m, n) -> (..., m, n), (..., min(m, n))"""
    shape, k = x.shape, min(x.shape[-2:])
    found = [xp.linalg.qr(a, "raw") for a in x.reshape(math.prod(shape[:-2]), *shape[-2:])]  # CuPy's takes one matrix
    if not found:
        return xp.empty(shape, dtype=x.dtype), xp.empty((*shape[:-2], k), dtype=x.dtype)
    a, tau = (xp.stack(parts) for parts in zip(*found, strict=True))
    return a.swapaxes(-1, -2).reshape(shape).astype(x.dtype), tau.reshape(*shape[:-2], k).astype(x.dtype)


reflected.shape(lambda x: [x.shape, x.like((*x.shape[:-2], min(x.shape[-2:])), x.dtype)])
reflected.batched(shifted())
reflected.label = "GeqrfBackward0"


def _skew_quotient(m: Any, e: Any) -> Any:
    """(m - m^H) / e for antisymmetric real e, elementwise, with a zero diagonal. Hermitian."""
    lower = tril((m - adjoint(m)) / nonzero(e), diagonal=-1)
    return lower + adjoint(lower)


@op("raises", "complex")
def eigh(xp: Any, x: Any, *, lower: bool = True) -> Any:
    """Eigenvalues, ascending, and eigenvectors in columns, of a Hermitian matrix, from one of its triangles.

    (..., n, n) -> (..., n) real, (..., n, n). The gradient is Hermitian.
    """
    values, vectors = checked(xp.linalg.eigh, "the eigenvalues did not converge", x, "L" if lower else "U")
    return values, vectors


def _eigh(g: Any, out: Any) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    m = adjoint(vectors) @ g_vectors
    if is_complex(m):
        phases(m, "eigh")
    turned = _skew_quotient(m, row(values) - column(values)) / 2
    return (vectors * row(g_values) + vectors @ turned) @ adjoint(vectors)


eigh.label = "LinalgEighBackward0"
eigh.vjp(x=_eigh)


@op("raises", "complex")
def eig(xp: Any, x: Any) -> Any:
    """Eigenvalues and eigenvectors, in columns of norm 1. (..., n, n) -> (..., n), (..., n, n), both complex"""
    why = "the eigenvalues did not converge, or the input has infinite numbers or nan"
    kind = "complex64" if x.dtype in ("float32", "complex64") else "complex128"
    return tuple([a.astype(kind, copy=False) for a in checked(xp.linalg.eig, why, x)])


def _eig(g: Any, out: Any, x: Any) -> Any:
    (g_values, g_vectors), (values, vectors) = g, out
    vh = adjoint(vectors)
    m = vh @ g_vectors
    phases(m, "eig")
    m = (m - (vh @ vectors) * row(real(on_diagonal(m)))) / nonzero(conjugated(row(values) - column(values)))
    turned = tril(m, diagonal=-1) + triu(m, diagonal=1)
    gx = solve(vh, column(g_values) * vh + turned @ vh)
    return gx if is_complex(x) else real(gx)


eig.vjp(x=_eig)
eig.makes = "complex"


@op("raises", "complex")
def svd(xp: Any, x: Any, *, full: bool = False) -> Any:
    """Singular values, descending, and singular vectors: x = u diag(s) vh.

    (..., m, n) -> (..., m, k), (..., k), (..., k, n) with k = min(m, n); u and vh are square if ``full``, and the
    vectors beyond k, which are arbitrary, get no gradient.
    """
    return decomposed(xp, x, full)


@svd.kernel("cupy")
def _svd_on_gpus(xp: Any, x: Any, *, full: bool = False) -> Any:
    """As above; cuSOLVER has no error for nan."""
    why = "the singular value decomposition did not converge"
    u, s, vh = checked(xp.linalg.svd, why, x, full)
    if not xp.isfinite(s).all():
        raise LinAlgError(why)
    return u, s, vh


def _svd(g: Any, out: Any) -> Any:
    (gu, gs, gvh), (u, s, vh) = g, out
    k, last = s.shape[-1], len(u.shape) - 1
    if u.shape[-1] > k:
        u, gu = span(u, last, 0, k), span(gu, last, 0, k)
    if vh.shape[-2] > k:
        vh, gvh = span(vh, last - 1, 0, k), span(gvh, last - 1, 0, k)
    along, down = row(s), column(s)
    e = (along - down) * (along + down)
    m_u, m_v = adjoint(u) @ gu, vh @ adjoint(gvh)
    turned_u, turned_v = _skew_quotient(m_u, e), _skew_quotient(m_v, e)
    if is_complex(m_u):
        gs = gs + 1j * phases(m_u, "svd", m_v) / nonzero(s)
    gx = (u * row(gs) + u @ (turned_u * along + down * turned_v)) @ vh
    if u.shape[-2] > k:
        outside = gu / nonzero(along)
        gx = gx + (outside - u @ (adjoint(u) @ outside)) @ vh
    if vh.shape[-1] > k:
        outside = gvh / nonzero(down)
        gx = gx + u @ (outside - (outside @ adjoint(vh)) @ vh)
    return gx


svd.label = "LinalgSvdBackward0"
svd.vjp(x=_svd)


# ---- the exponential ----------------------------------------------------------------------------------------------

# Coefficients of the [13/13] Padé approximant, and the 1-norm up to which it is exact to float64.
PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
REACH = 5.371920351148152


@op("holomorphic")
def matrix_exp(xp: Any, x: Any) -> Any:
    """Sum of x^k / k!. (..., n, n) -> (..., n, n)

    Scaling and squaring with a Padé approximant: Higham (2005), "The scaling and squaring method for the matrix
    exponential revisited". Each matrix is halved as often as it needs; the largest number of times is read on the
    host.
    """
    if not x.size:
        return x.copy()
    norm = xp.abs(x).sum(axis=-2).max(axis=-1)
    ratio = xp.maximum(norm / REACH, 1)
    halvings = xp.ceil(xp.log2(ratio))[..., None, None]
    worst: Any = backends.backend_of(x).item(halvings.max())
    scaled = x / 2**halvings
    result = _pade(xp, scaled)
    for k in range(int(worst) if math.isfinite(worst) else 0):
        result = xp.where(halvings > k, result @ result, result)
    return result


def _pade(xp: Any, x: Any) -> Any:
    b = [c / PADE[0] for c in PADE]  # of order one, so that no power overflows float32
    one = xp.broadcast_to(xp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x2 @ x4
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    return xp.linalg.solve(even - odd, even + odd)


def _matrix_exp(g: Any, x: Any) -> Any:
    """The corner of the exponential of a block matrix: Mathias (1996), "A chain rule for matrix functions"."""
    xt = swap(x)
    rows, columns = len(x.shape) - 2, len(x.shape) - 1
    n = x.shape[-1]
    top = cat(xt, g, dim=columns)
    bottom = cat(g * 0, xt, dim=columns)
    whole = matrix_exp(cat(top, bottom, dim=rows))
    return span(span(whole, rows, 0, n), columns, n, 2 * n)


matrix_exp.vjp(x=_matrix_exp)


# ---- batches --------------------------------------------------------------------------------------------------------

# Leading dimensions are a batch.
for _op in (inv, solve, pinv, cholesky, qr, eigh, eig, svd, matrix_exp):
    _op.batched(shifted())
