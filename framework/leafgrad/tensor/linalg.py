"""Determinants, inverses, powers, products and systems of equations of ``leafgrad.linalg``, with PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.ops import determinants, elimination, linalg, linalg as ops, matmul as products
from leafgrad.ops.conjugate import conjugated, real_part
from leafgrad.ops.convert import contiguous, new_full
from leafgrad.ops.diagonals import tril, triu
from leafgrad.ops.elementwise import mul
from leafgrad.ops.linalg import adjoint as adjoint_of, column
from leafgrad.ops.matmul import matmul, swap
from leafgrad.ops.reduce import sum as sum_over
from leafgrad.ops.shape import expand, permute, reshape
from leafgrad.tensor.arguments import cast, expect_tensor, integer, one_dim
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import arange
from leafgrad.tensor.decompositions import (
    check_matrices,
    check_pivots,
    check_square,
    expect_whole,
    first_zero,
    identity,
    lu_unpack,
    spread,
    svdvals,
    unit,
)
from leafgrad.tensor.norms import rank, tolerances
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

# ---- determinants, inverses, powers -------------------------------------------------------------------------------


@public(name="linalg.det", out="exact")
def det(A: Tensor) -> Tensor:
    """Determinant. (..., n, n) -> (...). Singular matrices have derivatives, too, up to the second."""
    check_square(A, "linalg.det")
    return determinants.det(A)


@public(name="linalg.slogdet", out="cast")
def slogdet(A: Tensor) -> return_types.linalg_slogdet:
    """Sign and natural logarithm of the absolute value of the determinant. (..., n, n) -> (...), (...)

    The gradient at a singular matrix is infinite or nan.
    """
    check_square(A, "linalg.slogdet")
    return return_types.linalg_slogdet(*determinants.slogdet(A))


@public(name="linalg.inv", out="exact")
@autocast("float32")
def inv(A: Tensor) -> Tensor:
    """Inverse. (..., n, n) -> (..., n, n)

    Raises:
        LinAlgError: a matrix is singular.
    """
    check_square(A, "linalg.inv")
    return ops.inv(A)


@public(name="linalg.pinv", out="cast")
def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Moore-Penrose inverse. (..., m, n) -> (..., n, m)

    Args:
        atol, rtol: numbers, or tensors of one; singular values up to ``max(atol, rtol * largest)`` count as zero. By
            default atol is 0 and rtol is max(m, n) times the dtype's eps, or 0 if atol is given. ``rcond`` is an older
            name of rtol.
        hermitian: the matrices are symmetric, Hermitian if complex; their lower triangle is read.
    """
    (check_square if hermitian else check_matrices)(A, "linalg.pinv")
    a, r = tolerances(A, atol, rtol if rcond is None else rcond, "linalg.pinv")
    return ops.pinv(A, atol=a, rtol=r, hermitian=bool(hermitian))


@public(name="linalg.matrix_power", out="cast")
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The n-th power by repeated squaring; of the inverse if n < 0. (..., n, n) -> (..., n, n)"""
    expect_tensor(A, "A", "linalg.matrix_power")
    n = integer(n, "n", "linalg.matrix_power")
    check_square(A, "linalg.matrix_power")
    if n in (0, 1):
        return A.clone() if n else unit(A)
    base, result = A if n > 0 else inv(A), None
    n = abs(n)
    while True:
        if n % 2:
            result = base if result is None else matmul(result, base)
        n //= 2
        if not n:
            assert result is not None
            return result
        base = matmul(base, base)


@public(name="linalg.matrix_exp")
def matrix_exp(A: Tensor) -> Tensor:
    """Matrix exponential, the sum of A^k / k!. (..., n, n) -> (..., n, n)"""
    check_square(A, "linalg.matrix_exp")
    return ops.matrix_exp(A)


# ---- systems ------------------------------------------------------------------------------------------------------


@public(name="linalg.solve", out="exact")
@autocast("float32")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B, or X A = B if not ``left``.

    Args:
        A: (..., n, n).
        B: (..., n, k), or (..., k, n) if not left; a vector (n), or vectors (..., n) with the batch of A, are columns.
        left: whether A stands before X.

    Raises:
        LinAlgError: a matrix is singular. RuntimeError: sizes do not fit.
    """
    check_square(A, "linalg.solve")
    expect_tensor(B, "B", "linalg.solve")
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    x = _solve(A, column(B) if vector else B, left, "linalg.solve")
    return alone(reshape(x, shape=tuple(x.shape[:-1]))) if vector else x


def _solve(A: Tensor, B: Tensor, left: bool, function: str) -> Tensor:
    check_matrices(B, function, "B")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{function}: Expected A and B to have the same dtype, but found A of type {A.dtype} and B of type "
            f"{B.dtype} instead"
        )
    if A.shape[-1] != B.shape[-2 if left else -1]:
        sizes = f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} {sizes}"
        )
    A, B = _one_batch(A, B, function)
    x: Tensor = ops.solve(A, B) if left else contiguous(swap(ops.solve(swap(A), swap(B))))
    return x


def _one_batch(A: Tensor, B: Tensor, function: str) -> tuple[Tensor, Tensor]:
    """Both with the batch dimensions that theirs broadcast to."""
    a, b = tuple(A.shape[:-2]), tuple(B.shape[:-2])
    if a == b:
        return A, B
    n = max(len(a), len(b))
    batch = []
    for p, q in zip((1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b, strict=True):
        if p != q and 1 not in (p, q):
            raise RuntimeError(
                f"{function}: expected batch dimensions of A and B that broadcast, got {list(a)} and {list(b)}"
            )
        batch.append(q if p == 1 else p)
    return expand(A, shape=(*batch, *A.shape[-2:])), expand(B, shape=(*batch, *B.shape[-2:]))


@public(name="linalg.solve_triangular", out="exact")
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with A X = B, or X A = B if not ``left``, where only one triangle of A counts.

    Args:
        A: (..., n, n). B: (..., n, k), or (..., k, n) if not left.
        upper: which triangle. unitriangular: take the diagonal to be ones.
        B: right sides.
        left: whether A stands before X.
        unitriangular: whether the diagonal counts as ones.
    """
    check_square(A, "linalg.solve_triangular")
    off = (triu if upper else tril)(A, diagonal=(1 if upper else -1) if unitriangular else 0)
    return _solve(off + identity(A) if unitriangular else off, B, left, "linalg.solve_triangular")


@public(name="linalg.lstsq", out="cast")
@autocast("float32")
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> return_types.linalg_lstsq:
    """X that minimises the Frobenius norm of A X - B, the smallest one if there are many.

    Args:
        A: (..., m, n).
        B: (..., m, k), or vectors (..., m) with the batch of A.
        rcond: singular values up to rcond times the largest count as zero; max(m, n) times the dtype's eps by default.
        driver: one of LAPACK's, "gelsy" by default. All are served by the singular value decomposition; "gels"
            leaves out the rank, and only "gelsd" and "gelss" return singular values, as in PyTorch.

    Returns:
        solution, (..., n, k); residuals, the squared norms of the columns of A X - B, (..., k), empty unless m > n, and
        of "gelsy";
        rank, (...); singular_values. Where A has not full rank, PyTorch leaves the residuals out.
    """
    check_matrices(A, "linalg.lstsq")
    expect_tensor(B, "B", "linalg.lstsq")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"linalg.lstsq: driver: expected one of gels, gelsy, gelsd, gelss, got {driver!r}")
    vector = A.ndim - 1 == B.ndim and B.shape == A.shape[:-1]
    if vector:
        B = column(B)
    check_matrices(B, "linalg.lstsq", "B")
    if A.dtype is not B.dtype or A.shape[-2] != B.shape[-2]:
        raise RuntimeError(
            f"linalg.lstsq: expected A and B of one dtype and as many rows, got A: {A.dtype} {list(A.shape)}, "
            f"B: {B.dtype} {list(B.shape)}"
        )
    _, r = tolerances(A, None, rcond, "linalg.lstsq")
    solution = matmul(ops.pinv(A, atol=0.0, rtol=r), B)
    empty = new_full(A, shape=(0,), value=0, dtype=A.dtype.to_real().name)
    residuals = empty
    if A.shape[-2] > A.shape[-1] and driver not in (None, "gelsy"):
        miss = matmul(A, solution) - B
        residuals = sum_over(real_part(conjugated(miss) * miss), dim=(miss.ndim - 2,))
    s = svdvals(A).detach()
    ranks = new_full(A, shape=(0,), value=0, dtype="int64") if driver == "gels" else rank(s, 0.0, r)
    if vector:
        solution = alone(reshape(solution, shape=tuple(solution.shape[:-1])))
        residuals = residuals if residuals is empty else reshape(residuals, shape=tuple(residuals.shape[:-1]))
    return return_types.linalg_lstsq(solution, residuals, ranks, s if driver in ("gelsd", "gelss") else empty)


@public(name="linalg.tensorinv", out="cast")
@autocast("float32")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of ``tensordot(A, ., ind)``: A as a matrix of its first ``ind`` by its other dimensions, inverted.

    Args:
        A: the product of its first ``ind`` dimensions is that of the others.
        ind: at least 1.

    Raises:
        RuntimeError: that matrix is not square, or ``ind`` is not positive. LinAlgError: it is singular.
    """
    expect_tensor(A, "A", "linalg.tensorinv")
    if integer(ind, "ind", "linalg.tensorinv") < 1:
        raise RuntimeError(f"linalg.tensorinv: Expected a strictly positive integer for 'ind', got {ind}")
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    n = math.prod(first)
    if n != math.prod(last):
        raise RuntimeError(
            "linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(last)} != {n}"
        )
    return reshape(inv(reshape(A, shape=(n, n))), shape=(*last, *first))


@public(name="linalg.tensorsolve", out="cast")
@autocast("float32")
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X with ``tensordot(A, X, X.ndim) == B``.

    Args:
        A: of shape B.shape + X.shape, after ``dims`` are moved to the end.
        B: the right side.
        dims: dimensions of A that are moved behind the others first.

    Raises:
        RuntimeError: sizes do not fit. LinAlgError: there is no unique solution.
    """
    expect_tensor(A, "A", "linalg.tensorsolve")
    expect_tensor(B, "B", "linalg.tensorsolve")
    if dims is not None:
        moved = tuple(one_dim(A, d, "linalg.tensorsolve") for d in dims)
        if len(set(moved)) < len(moved):
            raise RuntimeError(f"linalg.tensorsolve: dims: repeated dim in {tuple(dims)}")
        A = permute(A, dims=(*(d for d in range(A.ndim) if d not in moved), *moved))
    shape = tuple(A.shape[B.ndim :])
    n = math.prod(shape)
    if math.prod(B.shape) != n or math.prod(A.shape) != n * n:
        raise RuntimeError(
            "linalg.tensorsolve: Expected A to satisfy the requirement prod(A.shape[B.ndim:]) == "
            f"prod(A.shape[:B.ndim]) == B.numel(), got A of size {list(A.shape)} and B of size {list(B.shape)}"
        )
    x = solve(reshape(A, shape=(n, n)), reshape(B, shape=(n,)))
    return reshape(x, shape=shape)


@public(name="linalg.lu_solve", out="exact")
@autocast("float32")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A X = B, or X A = B if not ``left``, from what ``lu_factor(A)`` returns; ``adjoint`` takes A^H for A.

    (..., n, n), (..., n), (..., n, k) -> (..., n, k), or (..., k, n) -> (..., k, n)

    Args:
        LU, pivots: of ``lu_factor``.
        B: right sides.
        left: whether A stands before X.
        adjoint: whether A^H stands for A.
    """
    check_square(LU, "linalg.lu_solve", "LU")
    check_pivots(pivots, LU, "linalg.lu_solve", "pivots")
    P, L, U = lu_unpack(LU, pivots)
    if not left:
        return contiguous(adjoint_of(lu_solve(LU, pivots, adjoint_of(B), adjoint=not adjoint)))
    if adjoint:
        half = solve_triangular(adjoint_of(U), B, upper=False)
        return matmul(P, solve_triangular(adjoint_of(L), half, upper=True))
    return solve_triangular(U, solve_triangular(L, matmul(swap(P), B), upper=False), upper=True)


@public(name="linalg.inv_ex", out="cast")
@autocast("float32")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> return_types.linalg_inv_ex:
    """``linalg.inv``, and for each matrix 0, or the number of its first pivot that is 0; its inverse then is nan.

    Args:
        A: square matrices.
    """
    check_square(A, "linalg.inv")
    info = first_zero(elimination.lu(A.detach())[0])
    if check_errors:
        expect_whole("linalg.inv", info, "the diagonal element {0} is zero, the inversion could not be completed")
    good = spread(info == 0)
    inverse = where(good, linalg.inv(where(good, A, identity(A))), float("nan"))
    return return_types.linalg_inv_ex(inverse, info)


@public(name="linalg.solve_ex", out="cast")
@autocast("float32")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> return_types.linalg_solve_ex:
    """``linalg.solve``, and for each matrix 0, or the number of its first pivot that is 0; its solution then is nan.

    Args:
        A: square matrices.
        B: right sides.
        left: whether A stands before X.
    """
    check_square(A, "linalg.solve")
    info = first_zero(elimination.lu(A.detach())[0])
    if check_errors:
        expect_whole("linalg.solve", info, "the solver failed because the input matrix is singular, at pivot {0}")
    good = spread(info == 0)
    spoilt = where(good, 0.0, float("nan"))
    return return_types.linalg_solve_ex(solve(where(good, A, identity(A)) + spoilt, B, left=left), info)


@public(only="leafgrad")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element in a row, N of them, from the highest to 1, or from 1. (n,) -> (n, N)

    Args:
        x: a vector.
        N: how many powers; by default as many as elements.
        increasing: whether they begin with 1.
    """
    if expect_tensor(x, "x", "vander").ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    powers = powers_of(x, x.shape[0] if N is None else integer(N, "N", "vander"), "vander")
    return powers if increasing else powers.flip(-1)


@public(name="linalg.vander")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers of each element, from 1 to the N-th, by default as many as elements. (..., n) -> (..., n, N)

    Args:
        x: vectors.
        N: how many powers; by default as many as elements.
    """
    if not expect_tensor(x, "x", "linalg.vander").ndim:
        x = x.reshape(1)
    count = x.shape[-1] if N is None else integer(N, "N", "linalg.vander")
    if count <= 1 and N is not None:
        raise RuntimeError(f"N must be greater than 1, got {N}")
    return powers_of(x, count, "linalg.vander")


def powers_of(x: Tensor, N: int, function: str) -> Tensor:
    """1, x, x^2, … of each element. (...) -> (..., N)"""
    if N < 0:
        raise RuntimeError(f"{function}: N must be non-negative, got {N}")
    wide = cast(x, dtypes.int64 if x.dtype is dtypes.bool_ else None)
    return wide.unsqueeze(-1) ** arange(N, device=x.device)


@public(out="exact")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross product of vectors along a dimension of size 3; other dimensions broadcast.

    Args:
        dim: by default the first dimension of size 3.

    Raises:
        RuntimeError: the dimension is not of size 3, or the tensors have different numbers of dimensions.
    """
    if dim is not None:
        return linalg_cross(input, other, dim=dim)
    expect_tensor(input, "input", "cross")
    sizes = list(input.shape)
    if 3 not in sizes:
        raise RuntimeError(f"cross: no dimension of size 3 in input, got size {sizes}")
    return linalg_cross(input, other, dim=sizes.index(3))


@public(name="linalg.cross", out="exact")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Cross product of vectors along ``dim``, of size 3; other dimensions broadcast. ``linalg.cross``."""
    expect_tensor(input, "input", "linalg.cross")
    expect_tensor(other, "other", "linalg.cross")
    if input.ndim != other.ndim:
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions, got {input.ndim} and {other.ndim}"
        )
    d = one_dim(input, dim, "linalg.cross")
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[d]} and {other.shape[d]}"
        )
    broadcast_shapes(input.shape, other.shape)
    return products.cross(input, other, dim=d)


@public(name="linalg.vecdot", out="exact")
@autocast("lower")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Inner products of vectors along ``dim``, of ``x`` conjugated; other dimensions broadcast. ``linalg.vecdot``."""
    expect_tensor(x, "x", "linalg.vecdot")
    expect_tensor(y, "y", "linalg.vecdot")
    if x.dtype is not y.dtype and (x.dtype.is_complex or y.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype} and y of type "
            f"{y.dtype}"
        )
    product = mul(x.conj() if x.dtype.is_complex else x, y)
    return sum_over(product, dim=(one_dim(product, dim, "linalg.vecdot"),))
