"""What Cholesky's and other triangular factors solve, under the names that PyTorch has outside ``linalg``."""

from __future__ import annotations

from leafgrad import return_types
from leafgrad.ops.matmul import matmul, swap
from leafgrad.tensor.arguments import expect_tensor, integer
from leafgrad.tensor.elimination import check_pivots, lu_solve as linalg_lu_solve
from leafgrad.tensor.factorizations import check_matrices, check_square, cholesky as linalg_cholesky, qr, svd
from leafgrad.tensor.linalg import identity, solve_triangular
from leafgrad.tensor.public import public
from leafgrad.tensor.random import randn
from leafgrad.tensor.tensor import Tensor


@public(out="exact")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Succeeded by ``linalg.cholesky``. (..., n, n) -> (..., n, n)"""
    return linalg_cholesky(input, upper=upper)


@public(out="cast")
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = ``input``, from L of A = L L^H, or if ``upper`` of A = L^H L. (..., n, k) -> (..., n, k)"""
    check_square(L, "cholesky_solve", "L")
    adjoint = swap(L).conj() if L.dtype.is_complex else swap(L)
    lower, adjoint = (adjoint, L) if upper else (L, adjoint)
    return solve_triangular(adjoint, solve_triangular(lower, input, upper=False), upper=True)


@public(out="cast")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """A^-1 from the factor L of A = L L^H, or if ``upper`` of A = L^H L. (..., n, n) -> (..., n, n)"""
    check_square(L, "cholesky_inverse", "L")
    return cholesky_solve(identity(L), L, upper)


@public(out="exact")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A X = ``b``, from what ``linalg.lu_factor(A)`` returns. (..., n, k) -> (..., n, k)"""
    check_square(LU_data, "lu_solve", "LU_data")
    check_pivots(LU_pivots, LU_data, "lu_solve", "LU_pivots")
    return linalg_lu_solve(LU_data, LU_pivots, b)


@public(out="cast")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> return_types.triangular_solve:
    """X with A X = ``b``, where only one triangle of A counts, and A; succeeded by ``linalg.solve_triangular``."""
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
    """
    check_matrices(A, "svd_lowrank")
    difference = A if M is None else A - expect_tensor(M, "M", "svd_lowrank")
    n = difference.shape[-1]
    start = randn(n, integer(q, "q", "svd_lowrank"), dtype=difference.dtype, device=difference.device)
    Q = qr(matmul(difference, start)).Q
    for _ in range(niter):
        Q = qr(matmul(swap(difference), Q)).Q
        Q = qr(matmul(difference, Q)).Q
    U, S, Vh = svd(matmul(swap(Q), difference), full_matrices=False)
    return return_types.svd(matmul(Q, U), S, swap(Vh))


@public(only="leafgrad")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> return_types.svd:
    """``svd_lowrank`` of A, by default of min(6, m, n) values, with the mean of each column taken away first.

    V are the principal directions, S**2 / (m - 1) the variances along them. (..., m, n)

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
