"""Factors of symmetric and Hermitian matrices that need not be positive definite, of ``leafgrad.linalg``."""

from __future__ import annotations

from leafgrad import return_types
from leafgrad.ops import ldl as ops
from leafgrad.tensor.arguments import expect_tensor, flag
from leafgrad.tensor.decompositions import check_pivots, check_square, expect_whole
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public(name="linalg.ldl_factor_ex", out="cast")
def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> return_types.linalg_ldl_factor_ex:
    """L below and D on the diagonal, A = L D L^T, and with which row each row was exchanged, as LAPACK has them.

    D has blocks of two by two where two pivots are negative. It has no gradient. (..., n, n)

    Args:
        A: symmetric matrices; their lower triangle is read.
        hermitian: A is Hermitian if it is complex, A = L D L^H.
        check_errors: raise where an element of D is 0.

    Returns:
        LD; pivots, from 1, (..., n) int32; info: 0, or the number of the first element of D that is 0.

    Raises:
        LinAlgError: asked to, where an element of D is 0.
    """
    check_square(A, "linalg.ldl_factor_ex")
    LD, pivots, info = ops.ldl(A, hermitian=flag(hermitian, "linalg.ldl_factor_ex", "hermitian"))
    if check_errors:
        expect_whole("linalg.ldl_factor", info, "D[{0},{0}] is zero, so that ldl_solve would divide by zero")
    return return_types.linalg_ldl_factor_ex(LD, pivots, info)


@public(name="linalg.ldl_factor", out="cast")
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> return_types.linalg_ldl_factor:
    """``ldl_factor_ex`` without info. LinAlgError: an element of D is 0.

    Args:
        A, hermitian: as there.
    """
    return return_types.linalg_ldl_factor(*ldl_factor_ex(A, hermitian=hermitian, check_errors=True)[:2])


@public(name="linalg.ldl_solve", out="cast")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, from what ``ldl_factor(A, hermitian=hermitian)`` returns. (..., n, k) -> (..., n, k)

    Args:
        LD, pivots: what was returned.
        B: (..., n, k).
        hermitian: as it was there.

    Raises:
        RuntimeError: shapes or dtypes do not fit.
    """
    check_square(LD, "linalg.ldl_solve", "LD")
    check_pivots(pivots, LD, "linalg.ldl_solve", "pivots")
    if expect_tensor(B, "B", "linalg.ldl_solve").ndim < 2 or B.shape[-2] != LD.shape[-1] or B.dtype is not LD.dtype:
        raise RuntimeError(
            f"linalg.ldl_solve: B: expected (..., {LD.shape[-1]}, k) of {LD.dtype} as LD, got {list(B.shape)} of "
            f"{B.dtype}"
        )
    found: Tensor = ops.ldl_solve(LD, pivots, B, hermitian=flag(hermitian, "linalg.ldl_solve", "hermitian"))
    return found
