"""Linear algebra that PyTorch has outside ``linalg`` too: determinants, cross products, distances, traces."""

from __future__ import annotations

from leafgrad import return_types
from leafgrad.ops import matmul as products
from leafgrad.ops.elementwise import mul
from leafgrad.ops.exponential import log
from leafgrad.ops.reduce import sum as sum_over
from leafgrad.ops.shape import diagonal, reshape
from leafgrad.tensor import factorizations, linalg
from leafgrad.tensor.arguments import expect_real, expect_tensor, number, one_dim, widened
from leafgrad.tensor.creation import zeros_like
from leafgrad.tensor.norms import vector_norm
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor


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
    return log(sign.detach()) + logabsdet


@public(out="cast")
def inverse(input: Tensor) -> Tensor:
    """Inverse; see ``linalg.inv``. (..., n, n) -> (..., n, n)"""
    return linalg.inv(input)


@public
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Moore-Penrose inverse; see ``linalg.pinv``. (..., m, n) -> (..., n, m)"""
    return linalg.pinv(input, rcond)


@public(out="cast")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
    """U, S and V with ``input`` = U diag(S) V^T; succeeded by ``linalg.svd``, which gives V transposed.

    Args:
        some: U is (..., m, k) and V (..., n, k) with k = min(m, n), else (..., m, m) and (..., n, n).
        compute_uv: False gives zeros for U (..., m, m) and V (..., n, n).
    """
    U, S, Vh = factorizations.svd(input, full_matrices=not some or not compute_uv)
    if not compute_uv:
        return return_types.svd(zeros_like(U.detach()), S, zeros_like(Vh.detach()))
    return return_types.svd(U, S, Vh.mT)


@public(out="cast")
def qr(input: Tensor, some: bool = True) -> return_types.qr:
    """Q and R with ``input`` = Q R; succeeded by ``linalg.qr``. ``some`` reduces them to min(m, n) columns and rows."""
    return return_types.qr(*factorizations.qr(input, "reduced" if some else "complete"))


@public(out="cast")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The n-th power; see ``linalg.matrix_power``. (..., n, n) -> (..., n, n)"""
    return linalg.matrix_power(input, n)


@public
def matrix_exp(input: Tensor) -> Tensor:
    """Matrix exponential; see ``linalg.matrix_exp``. (..., n, n) -> (..., n, n)"""
    return linalg.matrix_exp(input)


@public(only="Tensor")
def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix. (n, m) -> ()"""
    expect_tensor(input, "input", "trace")
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return sum_over(diagonal(widened(input, None), offset=0, dims=(0, 1)), dim=(0,))


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


@public(name="linalg.diagonal")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The elements A[i, i + offset] of two dimensions, as the last dimension. ``linalg.diagonal``."""
    expect_tensor(A, "A", "linalg.diagonal")
    i, j = one_dim(A, dim1, "linalg.diagonal"), one_dim(A, dim2, "linalg.diagonal")
    if i == j:
        raise RuntimeError(f"linalg.diagonal: dimensions cannot be identical {dim1}, {dim2}")
    return diagonal(A, offset=offset, dims=(i, j))


@public(only="leafgrad")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Distances between rows, the p-norms of their differences. (..., n, m), (..., k, m) -> (..., n, k)

    Args:
        p: any order >= 0, inf for the largest difference.
        compute_mode: accepted for PyTorch's sake. Differences are always formed, which loses no digits and takes
            memory for n k m numbers.
    """
    for name, x in (("x1", x1), ("x2", x2)):
        expect_real(expect_tensor(x, name, "cdist"), "cdist")
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"cdist: x1 and x2 must have the same number of columns. x1: {x1.shape[-1]} x2: {x2.shape[-1]}"
        )
    if number(p, "p", "cdist") < 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    rows = reshape(x1, shape=(*x1.shape[:-1], 1, x1.shape[-1]))
    columns = reshape(x2, shape=(*x2.shape[:-2], 1, *x2.shape[-2:]))
    return vector_norm(rows - columns, p, -1)
