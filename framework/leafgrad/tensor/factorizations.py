"""Matrix factorisations of ``leafgrad.linalg``: Cholesky, QR, eigenvalues, singular values."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.ops import linalg as ops
from leafgrad.ops.convert import new_full
from leafgrad.ops.matmul import matmul, swap
from leafgrad.ops.shape import cat
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor

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


# ---- factorisations -----------------------------------------------------------------------------------------------


@public(name="linalg.cholesky", out="exact")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L with A = L L^T, lower triangular; or its transpose if ``upper``. (..., n, n) -> (..., n, n)

    A is symmetric and positive-definite; only its lower triangle is read, and its gradient is symmetric.

    Raises:
        LinAlgError: a matrix is not positive-definite.
    """
    check_square(A, "linalg.cholesky")
    factor = ops.cholesky(A)
    return swap(factor) if upper else factor


@public(name="linalg.qr", out="cast")
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
        r = cat(r, matmul(swap(q), ops.span(A, last, m, n)), dim=last)
    else:
        q, r = ops.qr(A, mode="complete" if mode == "complete" and m > n else "reduced")
    return return_types.linalg_qr(new_full(A, shape=(0,), value=0) if mode == "r" else q, r)


@public(name="linalg.svd", out="cast")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """U, S and Vh with A = U diag(S) Vh: singular values, descending, and orthonormal singular vectors.

    Args:
        A: (..., m, n).
        full_matrices: U is (..., m, m) and Vh (..., n, n), else (..., m, k) and (..., k, n) with k = min(m, n).
            The vectors beyond k are arbitrary and get no gradient.
        driver: only None; others belong to cuSOLVER.

    Gradients through U and Vh are those of functions that do not depend on the signs of the vectors, and exist only
    where singular values are distinct.
    """
    check_matrices(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError(f"linalg.svd: driver: expected None, got {driver!r}")
    full = full_matrices and A.shape[-2] != A.shape[-1]
    return return_types.linalg_svd(*ops.svd(A, full=full))


@public(name="linalg.svdvals", out="exact")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values, descending. (..., m, n) -> (..., min(m, n))"""
    return svd(A, full_matrices=False, driver=driver).S


@public(name="linalg.eigh", out="cast")
def eigh(A: Tensor, UPLO: str = "L") -> return_types.linalg_eigh:
    """Eigenvalues, ascending, and orthonormal eigenvectors, in columns, of symmetric matrices.

    Args:
        A: (..., n, n), symmetric.
        UPLO: which triangle is read, "L" or "U". The gradient is symmetric all the same.

    Gradients through the vectors are those of functions that do not depend on their signs, and exist only where
    eigenvalues are distinct.
    """
    check_square(A, "linalg.eigh")
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO!r}")
    return return_types.linalg_eigh(*ops.eigh(A, lower=UPLO.upper() == "L"))


@public(name="linalg.eigvalsh", out="exact")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric matrices, ascending. (..., n, n) -> (..., n)"""
    return eigh(A, UPLO).eigenvalues


@public(name="linalg.eig", also="linalg.eigvals")
def eig(A: Tensor) -> Any:
    """Not there: eigenvalues of a matrix that is not symmetric are complex, and there is no rule for them yet.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "linalg.eig and eigvals, whose results are complex, are not there yet; use linalg.eigh or eigvalsh for a "
        "symmetric matrix"
    )
