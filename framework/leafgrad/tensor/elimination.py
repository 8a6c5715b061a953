"""Gaussian elimination: LU factors, what they solve, and factorisations that tell of failure instead of raising."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.errors import LinAlgError
from leafgrad.ops import linalg, lu as ops
from leafgrad.ops.convert import new_full
from leafgrad.ops.marks import shown_as
from leafgrad.ops.matmul import matmul, swap
from leafgrad.ops.shape import tril, triu
from leafgrad.tensor.arguments import cast, expect_tensor
from leafgrad.tensor.factorizations import check_matrices, check_square
from leafgrad.tensor.joining import narrow
from leafgrad.tensor.linalg import identity, solve, solve_triangular
from leafgrad.tensor.matrices import linalg_diagonal
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public(name="linalg.lu_factor_ex", out="cast")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> return_types.linalg_lu_factor_ex:
    """L below and U on and above the diagonal of one matrix, P A = L U, and with which row each row was exchanged.

    Args:
        A: (..., m, n).
        pivot: only True; without exchanges elimination is unstable.
        check_errors: raise where a pivot is 0.

    Returns:
        LU, (..., m, n); pivots, from 1, (..., min(m, n)) int32; info: 0, or the number of the first pivot that is 0.

    Raises:
        LinAlgError: asked to, where a pivot is 0.
    """
    check_matrices(A, "linalg.lu_factor")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented; leave pivot=True")
    packed, pivots = ops.lu(A)
    info = first_zero(packed)
    if check_errors:
        expect_whole("linalg.lu_factor", info, "U[{0},{0}] is zero and using it on lu_solve would divide by zero")
    return return_types.linalg_lu_factor_ex(packed, cast(pivots + 1, dtypes.int32), info)


@public(name="linalg.lu_factor", out="cast")
def lu_factor(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu_factor:
    """``lu_factor_ex`` without info. LinAlgError: a pivot is 0."""
    packed, pivots, _ = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return return_types.linalg_lu_factor(packed, pivots)


@public(name="linalg.lu", out="cast")
@shown_as("LinalgLuBackward0")
def lu(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu:
    """P, L and U with A = P L U: a permutation, and triangular matrices, L with ones on its diagonal.

    (..., m, n) -> (..., m, m), (..., m, k), (..., k, n), k = min(m, n)
    """
    packed, pivots, _ = lu_factor_ex(A, pivot=pivot)
    return return_types.linalg_lu(*lu_unpack(packed, pivots))


@public(only="leafgrad")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> return_types.lu_unpack:
    """P, L and U from what ``lu_factor`` returns; empty where they are not wanted."""
    check_matrices(LU_data, "lu_unpack", "LU_data")
    check_pivots(LU_pivots, LU_data, "lu_unpack", "LU_pivots")
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    P = L = U = new_full(LU_data, shape=(0,), value=0)
    if unpack_pivots:
        P = ops.exchanges(cast(LU_pivots, dtypes.int64) - 1, LU_data)
    if unpack_data:
        left = tril(narrow(LU_data, -1, 0, k), diagonal=-1)
        ones = new_full(left, shape=tuple(left.shape), value=1)
        L, U = left + tril(triu(ones, diagonal=0), diagonal=0), triu(narrow(LU_data, -2, 0, k), diagonal=0)
    return return_types.lu_unpack(P, L, U)


@public(name="linalg.lu_solve", out="exact")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A X = B, or X A = B if not ``left``, from what ``lu_factor(A)`` returns; ``adjoint`` takes A^T for A.

    (..., n, n), (..., n), (..., n, k) -> (..., n, k), or (..., k, n) -> (..., k, n)
    """
    check_square(LU, "linalg.lu_solve", "LU")
    check_pivots(pivots, LU, "linalg.lu_solve", "pivots")
    P, L, U = lu_unpack(LU, pivots)
    if not left:
        return swap(lu_solve(LU, pivots, swap(B), adjoint=not adjoint))
    if adjoint:
        return matmul(P, solve_triangular(swap(L), solve_triangular(swap(U), B, upper=False), upper=True))
    return solve_triangular(U, solve_triangular(L, matmul(swap(P), B), upper=False), upper=True)


@public(name="linalg.cholesky_ex", out="cast")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> return_types.linalg_cholesky_ex:
    """``linalg.cholesky``, and for each matrix 0, or the order of its first leading minor that is not positive.

    Of matrices with such a minor the factor is nan.
    """
    check_square(A, "linalg.cholesky")
    info = ops.first_bad_minor(swap(A) if upper else A)
    if check_errors:
        expect_whole("linalg.cholesky", info, "the leading minor of order {0} is not positive-definite")
    good = spread(info == 0)
    factor = where(good, linalg.cholesky(where(good, swap(A) if upper else A, identity(A))), float("nan"))
    factor = tril(factor, diagonal=0)
    return return_types.linalg_cholesky_ex(swap(factor) if upper else factor, info)


@public(name="linalg.inv_ex", out="cast")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> return_types.linalg_inv_ex:
    """``linalg.inv``, and for each matrix 0, or the number of its first pivot that is 0; its inverse then is nan."""
    check_square(A, "linalg.inv")
    info = first_zero(ops.lu(A.detach())[0])
    if check_errors:
        expect_whole("linalg.inv", info, "the diagonal element {0} is zero, the inversion could not be completed")
    good = spread(info == 0)
    inverse = where(good, linalg.inv(where(good, A, identity(A))), float("nan"))
    return return_types.linalg_inv_ex(inverse, info)


@public(name="linalg.solve_ex", out="cast")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> return_types.linalg_solve_ex:
    """``linalg.solve``, and for each matrix 0, or the number of its first pivot that is 0; its solution then is nan."""
    check_square(A, "linalg.solve")
    info = first_zero(ops.lu(A.detach())[0])
    if check_errors:
        expect_whole("linalg.solve", info, "the solver failed because the input matrix is singular, at pivot {0}")
    good = spread(info == 0)
    spoilt = where(good, 0.0, float("nan"))
    return return_types.linalg_solve_ex(solve(where(good, A, identity(A)) + spoilt, B, left=left), info)


# ---- failures -----------------------------------------------------------------------------------------------------


def first_zero(packed: Tensor) -> Tensor:
    """The number of the first 0 on the diagonal, from 1, or 0. (..., m, n) -> (...) int32"""
    zero = linalg_diagonal(packed.detach()) == 0
    if not zero.shape[-1]:
        return cast(zero.any(-1), dtypes.int32)
    found: Tensor = where(zero.any(-1), cast(zero, dtypes.int64).argmax(-1) + 1, 0)
    return cast(found, dtypes.int32)


def expect_whole(function: str, info: Tensor, why: str) -> None:
    """A LinAlgError if something failed."""
    if info.any():
        flat: list[Any] = info.reshape(-1).tolist()
        at, number = next((i, n) for i, n in enumerate(flat) if n)
        which = f"(Batch element {at}): " if info.ndim else ""
        raise LinAlgError(f"{function}: {which}{why.format(number)}")


def check_pivots(pivots: Any, LU: Tensor, function: str, name: str) -> None:
    """A RuntimeError unless ``pivots`` have the dtype and shape that ``lu_factor`` gives; TypeError if no Tensor."""
    expect_tensor(pivots, name, function)
    expected = [*LU.shape[:-2], min(LU.shape[-2:])]
    if pivots.dtype is not dtypes.int32 or list(pivots.shape) != expected:
        raise RuntimeError(
            f"{function}: {name}: expected torch.int32 of shape {expected}, got {pivots.dtype} of shape "
            f"{list(pivots.shape)}; pass what linalg.lu_factor returned"
        )


def spread(good: Tensor) -> Tensor:
    """(...) -> (..., 1, 1)"""
    return good.unsqueeze(-1).unsqueeze(-1)
