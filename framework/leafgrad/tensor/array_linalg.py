"""The extension ``linalg`` of the Python array API standard, under its names and signatures, on batches of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad import return_types
from leafgrad.tensor import decompositions, einsum, linalg, norms, reductions
from leafgrad.tensor.blas import matmul as matmul, outer as outer
from leafgrad.tensor.complex_numbers import conj
from leafgrad.tensor.tensor import Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of positive definite matrices; of ``upper``, the one whose transpose comes first."""
    return decompositions.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements."""
    return linalg.linalg_cross(x1, x2, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal; with ``offset`` above the main one, or below it."""
    return decompositions.linalg_diagonal(x, offset=offset)


def eig(x: Tensor, /) -> return_types.linalg_eig:
    """Eigenvalues and eigenvectors, which are complex."""
    return decompositions.eig(x)


def eigh(x: Tensor, /) -> return_types.linalg_eigh:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return decompositions.eigh(x)


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues, which are complex."""
    return decompositions.eigvals(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices."""
    return decompositions.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse."""
    return linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices: "fro", "nuc", 1, 2, inf, or one of the last three negative."""
    return norms.matrix_norm(x, ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The ``n``-th power, which may be negative."""
    return linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are larger than the largest times ``rtol``."""
    return norms.matrix_rank(x, rtol=rtol)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """With the last two dimensions exchanged."""
    return x.transpose(-2, -1)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudoinverse, without singular values below the largest times ``rtol``."""
    return linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> return_types.linalg_qr:
    """An orthogonal factor and an upper triangular one."""
    return decompositions.qr(x, mode)


def slogdet(x: Tensor, /) -> return_types.linalg_slogdet:
    """Sign of the determinant, and logarithm of its magnitude."""
    return linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of ``x1 @ y = x2``, where an ``x2`` of one dimension is a vector."""
    return linalg.solve(x1, x2) if x2.ndim != 1 else linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> return_types.linalg_svd:
    """The singular value decomposition ``U, S, Vh``."""
    return decompositions.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values, the largest first."""
    return decompositions.svdvals(x)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over some dimensions."""
    return einsum.tensordot(x1, x2, axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal."""
    return reductions.sum(diagonal(x, offset=offset), -1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot product along a dimension, over which nothing is broadcast, of the conjugate of ``x1`` and ``x2``."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis: expected the same size in both, got {x1.shape[axis]} and {x2.shape[axis]}")
    return reductions.sum(conj(x1) * x2, axis, dtype=x1.dtype if x1.dtype is x2.dtype else None)


def vector_norm(
    x: Tensor, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """A norm of vectors along dimensions, by default of all elements."""
    return norms.vector_norm(x, ord, axis, keepdims)
