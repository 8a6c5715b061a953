"""Matrix functions that PyTorch has outside ``linalg`` too, most of them under LAPACK's names."""

from __future__ import annotations

from leafgrad import return_types
from leafgrad.ops.complex import conj
from leafgrad.ops.diagonals import diagonal, tril
from leafgrad.ops.exponential import log
from leafgrad.ops.linalg import adjoint, reflected
from leafgrad.ops.matmul import matmul, swap
from leafgrad.ops.reduce import sum as sum_over
from leafgrad.tensor import decompositions, linalg
from leafgrad.tensor.arguments import expect_tensor, integer, widened
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import eye, zeros_like
from leafgrad.tensor.decompositions import (
    check_matrices,
    check_pivots,
    check_square,
    cholesky as linalg_cholesky,
    identity,
    unit,
)
from leafgrad.tensor.linalg import lu_solve as linalg_lu_solve, solve_triangular
from leafgrad.tensor.public import public
from leafgrad.tensor.random import randn
from leafgrad.tensor.tensor import Tensor


@public(out="exact")
@autocast("float32")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Succeeded by ``linalg.cholesky``. (..., n, n) -> (..., n, n)"""
    return linalg_cholesky(input, upper=upper)


@public(out="cast")
@autocast("float32")
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = ``input``, from L of A = L L^H, or if ``upper`` of A = L^H L. (..., n, k) -> (..., n, k)

    Args:
        L: the factor.
        upper: whether it is an upper triangle.
    """
    check_square(L, "cholesky_solve", "L")
    lower, above = (adjoint(L), L) if upper else (L, adjoint(L))
    return solve_triangular(above, solve_triangular(lower, input, upper=False), upper=True)


@public(out="cast")
@autocast("float32")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """A^-1 from the factor L of A = L L^H, or if ``upper`` of A = L^H L. (..., n, n) -> (..., n, n)

    Args:
        L: the factor.
        upper: whether it is an upper triangle.
    """
    check_square(L, "cholesky_inverse", "L")
    return cholesky_solve(identity(L), L, upper)


@public(out="exact")
@autocast("float32")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A X = ``b``, from what ``linalg.lu_factor(A)`` returns. (..., n, k) -> (..., n, k)

    Args:
        b: right sides.
        LU_data, LU_pivots: of ``lu_factor``.
    """
    check_square(LU_data, "lu_solve", "LU_data")
    check_pivots(LU_pivots, LU_data, "lu_solve", "LU_pivots")
    return linalg_lu_solve(LU_data, LU_pivots, b)


@public(out="cast")
@autocast("float32")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> return_types.triangular_solve:
    """X with A X = ``b``, where only one triangle of A counts, and A; succeeded by ``linalg.solve_triangular``.

    Args:
        b: right sides.
        A: triangular matrices.
        upper: whether the upper triangle counts.
        transpose: whether A^T stands for A.
        unitriangular: whether the diagonal counts as ones.
    """
    matrix = swap(A) if transpose else A
    x = solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    return return_types.triangular_solve(x, A.clone())


@public(only="leafgrad")
def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> return_types.svd:
    """U, S and V of the ``q`` largest singular values of A - M, from a random subspace; the last ones are rough.

    Halko, Martinsson and Tropp (2011), "Finding structure with randomness", algorithms 4.4 and 5.1.

    Args:
        A: (..., m, n).
        q: how many, a little more than the rank.
        niter: how often the subspace is improved.
        M: taken away from A first, if not None.
    """
    check_matrices(A, "svd_lowrank")
    difference = A if M is None else A - expect_tensor(M, "M", "svd_lowrank")
    n = difference.shape[-1]
    start = randn(n, integer(q, "q", "svd_lowrank"), dtype=difference.dtype, device=difference.device)
    Q = decompositions.qr(matmul(difference, start)).Q
    for _ in range(niter):
        Q = decompositions.qr(matmul(adjoint(difference), Q)).Q
        Q = decompositions.qr(matmul(difference, Q)).Q
    U, S, Vh = decompositions.svd(matmul(adjoint(Q), difference), full_matrices=False)
    return return_types.svd(matmul(Q, U), S, adjoint(Vh))


@public(only="leafgrad")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> return_types.svd:
    """``svd_lowrank`` of A, by default of min(6, m, n) values, with the mean of each column taken away first.

    V are the principal directions, S**2 / (m - 1) the variances along them. (..., m, n)

    Args:
        A: matrices.
        q: how many values.
        center: whether the mean of each column is taken away.
        niter: how often the estimate is improved.

    Raises:
        ValueError: ``q`` or ``niter`` is out of range.
    """
    check_matrices(A, "pca_lowrank")
    m, n = A.shape[-2:]
    count = min(6, m, n) if q is None else q
    if not 0 <= count <= min(m, n):
        raise ValueError(f"q(={count}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, count, niter)


@public
def det(input: Tensor) -> Tensor:
    """Determinant; see ``linalg.det``. (..., n, n) -> (...)"""
    return linalg.det(input)


@public(out="cast")
def slogdet(input: Tensor) -> return_types.slogdet:
    """Sign and logarithm of the magnitude of the determinant; see ``linalg.slogdet``. (..., n, n) -> (...), (...)"""
    return return_types.slogdet(*linalg.slogdet(input))


@public
def logdet(input: Tensor) -> Tensor:
    """Logarithm of the determinant: -inf where that is 0, nan where it is negative. (..., n, n) -> (...)"""
    sign, logabsdet = linalg.slogdet(input)
    return log(sign if sign.dtype.is_complex else sign.detach()) + logabsdet


@public(out="cast")
@autocast("float32")
def inverse(input: Tensor) -> Tensor:
    """Inverse; see ``linalg.inv``. (..., n, n) -> (..., n, n)"""
    return linalg.inv(input)


@public
@autocast("float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Moore-Penrose inverse; see ``linalg.pinv``. (..., m, n) -> (..., n, m)

    Args:
        rcond: singular values up to this part of the largest count as zero.
    """
    return linalg.pinv(input, rcond)


@public(out="cast")
@autocast("float32")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
    """U, S and V with ``input`` = U diag(S) V^H; succeeded by ``linalg.svd``, which gives V^H.

    Args:
        some: U is (..., m, k) and V (..., n, k) with k = min(m, n), else (..., m, m) and (..., n, n).
        compute_uv: False gives zeros for U (..., m, m) and V (..., n, n).
    """
    U, S, Vh = decompositions.svd(input, full_matrices=not some or not compute_uv)
    if not compute_uv:
        return return_types.svd(zeros_like(U.detach()), S, zeros_like(Vh.detach()))
    return return_types.svd(U, S, adjoint(Vh))


@public(out="cast")
@autocast("float32")
def qr(input: Tensor, some: bool = True) -> return_types.qr:
    """Q and R with ``input`` = Q R; succeeded by ``linalg.qr``. ``some`` reduces them to min(m, n) columns and rows.

    Args:
        some: whether Q and R are reduced.
    """
    return return_types.qr(*decompositions.qr(input, "reduced" if some else "complete"))


@public(out="cast")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The n-th power; see ``linalg.matrix_power``. (..., n, n) -> (..., n, n)"""
    return linalg.matrix_power(input, n)


@public
def matrix_exp(input: Tensor) -> Tensor:
    """Matrix exponential; see ``linalg.matrix_exp``. (..., n, n) -> (..., n, n)"""
    return linalg.matrix_exp(input)


@public(only="Tensor")
@autocast("float32")
def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix. (n, m) -> ()"""
    expect_tensor(input, "input", "trace")
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return sum_over(diagonal(widened(input, None), offset=0, dims=(0, 1)), dim=(0,))


# ---- Householder reflections --------------------------------------------------------------------------------------


def reflections(A: Tensor, tau: Tensor, function: str, names: tuple[str, str]) -> list[tuple[Tensor, Tensor]]:
    """Each v and tau v of the reflections 1 - tau v v^H: columns of A below the diagonal, with 1 on it."""
    check_matrices(A, function, names[0])
    expect_tensor(tau, names[1], function)
    m, k = A.shape[-2], tau.shape[-1] if tau.ndim else 0
    if k > min(A.shape[-2:]) or tau.shape[:-1] != A.shape[:-2] or not tau.ndim:
        raise RuntimeError(
            f"{function}: expected {names[0]} (..., m, n) and {names[1]} (..., k) with k <= m and k <= n, got "
            f"{list(A.shape)} and {list(tau.shape)}"
        )
    if tau.dtype is not A.dtype:
        raise RuntimeError(
            f"{function}: tau dtype {tau.dtype} does not match {names[0]} dtype {A.dtype}; convert it with .to(dtype)"
        )
    vectors = tril(A[..., :k], diagonal=-1) + eye(m, k, dtype=A.dtype, device=A.device)
    each = [vectors[..., i : i + 1] for i in range(k)]
    return [(v, v * tau[..., i, None, None]) for i, v in enumerate(each)]


@public(name="linalg.householder_product", out="cast")
@autocast("float32")
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of the product of reflections, as ``geqrf`` returns them.

    (..., m, n), (..., k) -> (..., m, n), k <= n <= m

    Args:
        A: each reflection, 1 - tau v v^H, has a column, with v below the diagonal; above 1 it is 0.
        tau: of each reflection.

    Raises:
        RuntimeError: shapes or dtypes do not fit.
    """
    found = reflections(A, tau, "linalg.householder_product", ("A", "tau"))
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(
            f"linalg.householder_product: A: expected (..., m, n) with m >= n, got {list(A.shape)}; ormqr takes others"
        )
    out = unit(A)
    for v, scaled in reversed(found):
        out = out - matmul(scaled, matmul(adjoint(v), out))
    return out


@public(out="cast")
@autocast("float32")
def orgqr(input: Tensor, tau: Tensor) -> Tensor:
    """The same as ``linalg.householder_product``, under LAPACK's name. (..., m, n), (..., k) -> (..., m, n)

    Args:
        input, tau: as there A and tau.
    """
    return householder_product(input, tau)


@public(out="cast")
@autocast("float32")
def geqrf(input: Tensor) -> return_types.geqrf:
    """R on and above the diagonal, and reflections below it and in tau, whose product is Q. It has no gradient.

    (..., m, n) -> (..., m, n), (..., min(m, n))

    Args:
        input: (..., m, n).
    """
    check_matrices(input, "geqrf", "input")
    return return_types.geqrf(*reflected(input))


@public(out="cast")
@autocast("float32")
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q times ``other``, or ``other`` times Q if not ``left``, of the whole Q that ``geqrf`` returned.

    Args:
        input, tau: as of ``geqrf``, (..., m, k) and (..., k).
        other: (..., m, n), or (..., n, m) if not ``left``.
        left: whether Q stands on the left of ``other``.
        transpose: Q^H instead of Q.

    Raises:
        RuntimeError: shapes or dtypes do not fit.
    """
    found = reflections(input, conj(tau) if transpose else tau, "ormqr", ("input", "tau"))
    size = expect_tensor(other, "other", "ormqr").shape[-2 if left else -1] if other.ndim > 1 else None
    if size != input.shape[-2] or other.dtype is not input.dtype:
        raise RuntimeError(
            f"ormqr: other: expected {input.shape[-2]} {'rows' if left else 'columns'} of {input.dtype}, got "
            f"{list(other.shape)} of {other.dtype}"
        )
    out = other
    for v, scaled in found if left == transpose else reversed(found):
        out = out - (matmul(scaled, matmul(adjoint(v), out)) if left else matmul(matmul(out, scaled), adjoint(v)))
    return out
