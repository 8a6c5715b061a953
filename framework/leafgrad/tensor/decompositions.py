"""Matrix decompositions of ``leafgrad.linalg``: Cholesky, QR, LU, LDL, eigenvalues, singular values."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.errors import LinAlgError
from leafgrad.ops import elimination, linalg, linalg as ops, messages
from leafgrad.ops.convert import new_full
from leafgrad.ops.diagonals import diagonal, tril, triu
from leafgrad.ops.linalg import adjoint
from leafgrad.ops.marks import shown_as
from leafgrad.ops.matmul import matmul
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.refuse import refuse
from leafgrad.ops.shape import cat
from leafgrad.tensor.arguments import cast, expect_tensor, one_dim
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import eye
from leafgrad.tensor.joining import narrow
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

# ---- checks -------------------------------------------------------------------------------------------------------


def check_matrices(A: Any, function: str, name: str = "A") -> None:
    """A RuntimeError unless ``A`` holds matrices of a dtype that factorisations take; TypeError if no Tensor."""
    expect_tensor(A, name, function)
    if A.ndim < 2:
        raise RuntimeError(
            f"{function}: The input tensor {name} must have at least 2 dimensions, got size {list(A.shape)}"
        )
    check_floating(A, function, name)
    if A.dtype in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(
            f"{function}: Low precision dtypes not supported. Got {A.dtype} for {name}; convert it with .float()"
        )


def check_floating(A: Tensor, function: str, name: str = "A") -> None:
    """A RuntimeError unless ``A`` is of a floating or complex dtype."""
    if not A.dtype.is_differentiable:
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as {name}. Got {A.dtype}; "
            "convert it with .float()"
        )


def check_square(A: Any, function: str, name: str = "A") -> None:
    """The same, and a RuntimeError unless the matrices are square."""
    check_matrices(A, function, name)
    m, n = A.shape[-2:]
    if m != n:
        raise RuntimeError(f"{function}: {name} must be batches of square matrices, but they are {m} by {n} matrices")


def unit(A: Tensor) -> Tensor:
    """Unit matrices like ``A``, as a function of it, whose gradient is zero. (..., m, n) -> (..., m, n)"""
    ones = eye(*A.shape[-2:], dtype=A.dtype, device=A.device)
    made: Tensor = where(new_full(A, shape=tuple(A.shape), value=1, dtype="bool"), ones, A)
    return made


# ---- factorisations -----------------------------------------------------------------------------------------------


@public(name="linalg.cholesky", out="exact")
@autocast("float32")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L with A = L L^H, lower triangular; or L^H if ``upper``. (..., n, n) -> (..., n, n)

    A is symmetric, Hermitian if complex, and positive-definite; only its lower triangle is read, and its gradient is
    Hermitian.

    Raises:
        LinAlgError: a matrix is not positive-definite.
    """
    check_square(A, "linalg.cholesky")
    factor = ops.cholesky(A)
    return alone(adjoint(factor)) if upper else factor


@public(name="linalg.qr", out="cast")
@autocast("float32")
def qr(A: Tensor, mode: str = "reduced") -> return_types.linalg_qr:
    """Q and R with A = Q R, Q of orthonormal columns, R upper triangular.

    Args:
        A: (..., m, n).
        mode: "reduced": Q is (..., m, k), R is (..., k, n) with k = min(m, n); "complete": k = m, whose gradient needs
            m <= n; "r": Q is empty.
    """
    check_matrices(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode {mode!r} but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    m, n = A.shape[-2:]
    if m < n:  # the factors of the first m columns decide the rest
        last = A.ndim - 1
        q, r = ops.qr(ops.span(A, last, 0, m), mode="reduced")
        r = cat(r, matmul(adjoint(q), ops.span(A, last, m, n)), dim=last)
    else:
        q, r = ops.qr(A, mode="complete" if mode == "complete" and m > n else "reduced")
    return return_types.linalg_qr(new_full(A, shape=(0,), value=0) if mode == "r" else q, r)


@public(name="linalg.svd", out="cast")
@autocast("float32")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """U, S and Vh with A = U diag(S) Vh: singular values, descending, and orthonormal singular vectors.

    Args:
        A: (..., m, n).
        full_matrices: U is (..., m, m) and Vh (..., n, n), else (..., m, k) and (..., k, n) with k = min(m, n).
            The vectors beyond k are arbitrary and get no gradient.
        driver: only None; others belong to cuSOLVER.

    Gradients through U and Vh are those of functions that do not depend on the signs of the vectors, or on their phases
    if complex, which is an error in the backward pass, and exist only where singular values are distinct.
    """
    check_matrices(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError(f"linalg.svd: driver: expected None, got {driver!r}")
    full = full_matrices and A.shape[-2] != A.shape[-1]
    return return_types.linalg_svd(*ops.svd(A, full=full))


@public(name="linalg.svdvals", out="exact")
@autocast("float32")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values, descending. (..., m, n) -> (..., min(m, n))

    Args:
        A: matrices.
        driver: accepted, and not used.
    """
    return svd(A, full_matrices=False, driver=driver).S


@public(name="linalg.eigh", out="cast")
@autocast("float32")
def eigh(A: Tensor, UPLO: str = "L") -> return_types.linalg_eigh:
    """Eigenvalues, ascending, and orthonormal eigenvectors, in columns, of Hermitian matrices.

    Args:
        A: (..., n, n), symmetric, or Hermitian if complex.
        UPLO: which triangle is read, "L" or "U". The gradient is Hermitian all the same.

    Gradients through the vectors are those of functions that do not depend on their signs, or on their phases if
    complex, which is an error in the backward pass, and exist only where eigenvalues are distinct.
    """
    check_square(A, "linalg.eigh")
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO!r}")
    return return_types.linalg_eigh(*ops.eigh(A, lower=UPLO.upper() == "L"))


@public(name="linalg.eigvalsh", out="exact")
@autocast("float32")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices, ascending. (..., n, n) -> (..., n)

    Args:
        A: Hermitian matrices.
        UPLO: "L" reads the lower triangles alone, "U" the upper ones.
    """
    return eigh(A, UPLO).eigenvalues


@public(name="linalg.eig", out="exact")
@autocast("float32")
def eig(A: Tensor) -> return_types.linalg_eig:
    """Eigenvalues and eigenvectors of square matrices, complex even of real ones.

    (..., n, n) -> (..., n), (..., n, n): the vectors are columns of norm 1, and the order is that of LAPACK.

    Gradients through the vectors are those of functions that depend neither on their phases, which is an error in the
    backward pass, nor on their norms, and exist only where eigenvalues are distinct.

    Args:
        A: square matrices.

    Raises:
        LinAlgError: the iteration did not converge, or A has infinite numbers or nan.
    """
    check_square(A, "linalg.eig")
    return return_types.linalg_eig(*ops.eig(A))


@public(name="linalg.eigvals", out="cast")
@autocast("float32")
def eigvals(A: Tensor) -> Tensor:
    """Eigenvalues of square matrices, complex even of real ones. (..., n, n) -> (..., n)

    Args:
        A: square matrices.
    """
    check_square(A, "linalg.eigvals")
    return eig(A).eigenvalues


@public(name="linalg.diagonal")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The elements A[i, i + offset] of two dimensions, as the last dimension. ``linalg.diagonal``.

    Args:
        A: of at least two dimensions.
        offset: 0 for the main diagonal, above it if positive.
        dim1, dim2: the dimensions in which it runs.
    """
    expect_tensor(A, "A", "linalg.diagonal")
    i, j = one_dim(A, dim1, "linalg.diagonal"), one_dim(A, dim2, "linalg.diagonal")
    if i == j:
        raise RuntimeError(f"linalg.diagonal: dimensions cannot be identical {dim1}, {dim2}")
    return diagonal(A, offset=offset, dims=(i, j))


# ---- LU factors -----------------------------------------------------------------------------------------------------


def identity(A: Tensor) -> Tensor:
    """Identity matrices of the shape of ``A``."""
    ones = new_full(A, shape=tuple(A.shape), value=1)
    return tril(triu(ones, diagonal=0), diagonal=0)


@public(name="linalg.lu_factor_ex", out="cast")
@autocast("float32")
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
    packed, pivots = elimination.lu(A)
    info = first_zero(packed)
    if check_errors:
        expect_whole("linalg.lu_factor", info, "U[{0},{0}] is zero and using it on lu_solve would divide by zero")
    return return_types.linalg_lu_factor_ex(packed, cast(pivots + 1, dtypes.int32), info)


@public(name="linalg.lu_factor", out="cast")
@autocast("float32")
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


@public(name="lu")
def lu_factored(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """``linalg.lu_factor``, or with ``get_infos`` ``linalg.lu_factor_ex``, under its former name."""
    messages.warn("torch.lu is deprecated; use leafgrad.linalg.lu_factor or linalg.lu_factor_ex")
    return tuple(lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot=pivot))


@public(only="leafgrad")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> return_types.lu_unpack:
    """P, L and U from what ``lu_factor`` returns; empty where they are not wanted.

    Args:
        LU_data, LU_pivots: of ``lu_factor``.
        unpack_data: whether L and U are wanted.
        unpack_pivots: whether P is.
    """
    check_matrices(LU_data, "lu_unpack", "LU_data")
    check_pivots(LU_pivots, LU_data, "lu_unpack", "LU_pivots")
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    P = L = U = new_full(LU_data, shape=(0,), value=0)
    if unpack_pivots:
        P = elimination.exchanges(cast(LU_pivots, dtypes.int64) - 1, LU_data)
    if unpack_data:
        left = tril(narrow(LU_data, -1, 0, k), diagonal=-1)
        ones = new_full(left, shape=tuple(left.shape), value=1)
        L, U = left + tril(triu(ones, diagonal=0), diagonal=0), triu(narrow(LU_data, -2, 0, k), diagonal=0)
    return return_types.lu_unpack(P, L, U)


@public(name="linalg.cholesky_ex", out="cast")
@autocast("float32")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> return_types.linalg_cholesky_ex:
    """``linalg.cholesky``, and for each matrix 0, or the order of its first leading minor that is not positive.

    Of matrices with such a minor the factor is nan.

    Args:
        A: Hermitian matrices.
        upper: whether the factor is an upper triangle.
    """
    check_square(A, "linalg.cholesky")
    read = adjoint(A) if upper else A
    info = elimination.first_bad_minor(read)
    if check_errors:
        expect_whole("linalg.cholesky", info, "the leading minor of order {0} is not positive-definite")
    good = spread(info == 0)
    factor = where(good, linalg.cholesky(where(good, read, identity(A))), float("nan"))
    factor = tril(factor, diagonal=0)
    return return_types.linalg_cholesky_ex(alone(adjoint(factor)) if upper else factor, info)


# ---- failures -----------------------------------------------------------------------------------------------------


def first_zero(packed: Tensor) -> Tensor:
    """The number of the first 0 on the diagonal, from 1, or 0. (..., m, n) -> (...) int32"""
    zero = linalg_diagonal(packed.detach()) == 0
    if not zero.shape[-1]:
        return cast(zero.any(-1), dtypes.int32)
    found: Tensor = where(zero.any(-1), cast(zero, dtypes.int64).argmax(-1) + 1, 0)
    return cast(found, dtypes.int32)


def expect_whole(function: str, info: Tensor, why: str) -> None:
    """A LinAlgError if something failed; where numbers are not known yet, as soon as they are."""
    if isinstance(info._data, SymbolBase):
        refuse(info != 0, error=LinAlgError, message=f"{function}: {why.format('i')}")
    elif info.any():
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


# ---- LDL ----------------------------------------------------------------------------------------------------------


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
    LD, pivots, info = elimination.ldl(A, hermitian=hermitian)
    if check_errors:
        expect_whole("linalg.ldl_factor", info, "D[{0},{0}] is zero, so that ldl_solve would divide by zero")
    return return_types.linalg_ldl_factor_ex(LD, pivots, info)


@public(name="linalg.ldl_factor", out="cast")
@autocast("float32")
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
    found: Tensor = elimination.ldl_solve(LD, pivots, B, hermitian=hermitian)
    return found
