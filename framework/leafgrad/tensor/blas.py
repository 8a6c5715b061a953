"""Products of vectors and matrices, all of them by the one op ``matmul``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.ops import matmul as products, messages
from leafgrad.ops.elementwise import mul
from leafgrad.ops.marks import shown_as
from leafgrad.ops.matmul import rows, swap
from leafgrad.ops.promotion import result_type
from leafgrad.ops.shape import reshape
from leafgrad.tensor.arguments import cast, expect_tensor
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone


def check_ndim(function: str, name: str, value: Any, ndim: int) -> None:
    """A RuntimeError unless ``value``, the argument ``name``, has ``ndim`` dimensions; TypeError if no Tensor."""
    if not isinstance(value, Tensor):
        expect_tensor(value, name, function)
    if value.ndim != ndim:
        what = {1: "a vector", 2: "a matrix"}.get(ndim, f"a {ndim}D tensor")
        raise RuntimeError(f"{function}: {name} must be {what}, got {value.ndim}D of size {list(value.shape)}")


@public(also="linalg.matmul", out="exact")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product, also ``input @ other``.

    Args:
        input: (..., n, k), or a vector (k), taken as a row.
        other: (..., k, m), or a vector (k), taken as a column. Leading dimensions are a batch and broadcast.

    Returns:
        (..., n, m), without the dimensions that vectors lack.

    Raises:
        RuntimeError: sizes do not go together, dtypes differ, or a tensor has no dimensions.
    """
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        expect_tensor(input, "input", "matmul")
        expect_tensor(other, "other", "matmul")
    return products.matmul(input, other)


@public(out="exact")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Product of two matrices. (n, k), (k, m) -> (n, m)"""
    check_ndim("mm", "input", input, 2)
    check_ndim("mm", "mat2", mat2, 2)
    return products.matmul(input, mat2)


@public(out="exact")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Products of matrices, pair by pair; nothing broadcasts. (b, n, k), (b, k, m) -> (b, n, m)"""
    return _bmm("bmm", input, mat2, "input", "mat2")


def _bmm(function: str, x: Tensor, y: Tensor, x_name: str, y_name: str) -> Tensor:
    check_ndim(function, x_name, x, 3)
    check_ndim(function, y_name, y, 3)
    expected, got = [x.shape[0], x.shape[2]], list(y.shape[:2])
    if expected != got:
        raise RuntimeError(
            f"{function}: Expected size for first two dimensions of {y_name} to be: {expected} but got: {got}."
        )
    return products.matmul(x, y)


@public(out="exact")
@autocast("given")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Product of a matrix and a vector. (n, k), (k) -> (n)"""
    check_ndim("mv", "input", input, 2)
    check_ndim("mv", "vec", vec, 1)
    return products.matmul(input, vec)


@public(out="exact")
@autocast("given")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Inner product of two vectors. (n), (n) -> ()"""
    return _dot("dot", input, tensor, "tensor")


@public(out="exact")
@autocast("given")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Inner product of two vectors, the first conjugated. (n), (n) -> ()"""
    if isinstance(input, Tensor) and input.dtype.is_complex:
        input = input.conj()
    return _dot("vdot", input, other, "other")


def _dot(function: str, x: Tensor, y: Tensor, y_name: str) -> Tensor:
    expect_tensor(x, "input", function)
    expect_tensor(y, y_name, function)
    if x.ndim != 1 or y.ndim != 1:
        raise RuntimeError(f"{function}: 1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    if x.shape != y.shape:
        raise RuntimeError(
            f"{function}: inconsistent tensor size, expected tensor [{x.shape[0]}] and {y_name} [{y.shape[0]}] to have "
            "the same number of elements"
        )
    return products.matmul(x, y)


@public(also="ger", out="cast")
@shown_as("MulBackward0", "input", "vec2")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Every element of one vector times every element of another. (n), (m) -> (n, m)"""
    check_ndim("outer", "input", input, 1)
    check_ndim("outer", "vec2", vec2, 1)
    return mul(reshape(input, shape=(input.shape[0], 1)), vec2)


@public(out="cast")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Inner products over the last dimensions. (..., k), (+++, k) -> (..., +++); a 0-d tensor multiplies.

    Raises:
        RuntimeError: the last dimensions differ.
    """
    expect_tensor(input, "input", "inner")
    expect_tensor(other, "other", "inner")
    if not input.ndim or not other.ndim:
        return mul(input, other)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    if input.ndim == other.ndim == 1:
        return dot(input, other)
    result = products.matmul(rows(input), swap(rows(other)))
    return _shaped(result, (*input.shape[:-1], *other.shape[:-1]))


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if tuple(x.shape) == shape else reshape(x, shape=shape)


# ---- a matrix plus a product --------------------------------------------------------------------------------------


def _plus(function: str, input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """``beta * input + alpha * product``. With ``beta=0``, nan and inf of ``input`` do not count."""
    expect_tensor(input, "input", function)
    if modes.get() & modes.AUTOCAST:
        input = cast(input, product.dtype)
    if input.dtype is not product.dtype:
        raise RuntimeError(
            f"{function}: expected input to have the dtype of the product, {product.dtype}, got {input.dtype}; "
            "convert one with .to(dtype)"
        )
    if not product.dtype.is_differentiable:
        for name, value in (("beta", beta), ("alpha", alpha)):
            if isinstance(value, float):
                raise RuntimeError(
                    f"{function}: For integral input tensors, argument {name} must not be a floating point number."
                )
    if product.dtype is dtypes.bool_:
        beta, alpha = bool(beta), bool(alpha)
    if input.shape != product.shape:
        input = input.expand(tuple(product.shape))
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return scaled + (input if beta == 1 else input * beta)  # in order, as the first


@public(out="exact", inplace=True)
@shown_as("AddmmBackward0", "input", "mat1", "mat2")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``. input broadcasts to (n, m); (n, k), (k, m) -> (n, m)"""
    check_ndim("addmm", "mat1", mat1, 2)
    check_ndim("addmm", "mat2", mat2, 2)
    return _plus("addmm", input, products.matmul(mat1, mat2), beta, alpha)


@public(out="exact", inplace=True)
@shown_as("AddmvBackward0", "input", "mat", "vec")
@autocast("given")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``. input broadcasts to (n); (n, k), (k) -> (n)"""
    check_ndim("addmv", "mat", mat, 2)
    check_ndim("addmv", "vec", vec, 1)
    return _plus("addmv", input, products.matmul(mat, vec), beta, alpha)


@public(out="cast", inplace=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``, in the dtype of all. (n, m), (n), (m) -> (n, m)"""
    if not expect_tensor(input, "input", "addr").dtype is vec1.dtype is vec2.dtype:
        kind = result_type((input, vec1, vec2))
        input, vec1, vec2 = (cast(x, kind) for x in (input, vec1, vec2))
    return _plus("addr", input, outer(vec1, vec2), beta, alpha)


@public(out="exact", inplace=True)
@shown_as("BaddbmmBackward0", "input", "batch1", "batch2")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)``. (b, n, k), (b, k, m) -> (b, n, m)"""
    return _plus("baddbmm", input, _bmm("baddbmm", batch1, batch2, "batch1", "batch2"), beta, alpha)


@public(out="exact", inplace=True)
@shown_as("AddbmmBackward0", "input", "batch1", "batch2")
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * sum(batch1 @ batch2)`` over the batch. (b, n, k), (b, k, m) -> (n, m)"""
    product = _bmm("addbmm", batch1, batch2, "batch1", "batch2")
    return _plus("addbmm", input, product.sum(0).to(product.dtype), beta, alpha)


# ---- several matrices ---------------------------------------------------------------------------------------------


@public(name="linalg.multi_dot", out="exact")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two or more matrices, multiplied in the order that takes the fewest operations.

    Args:
        tensors: matrices (n0, n1), (n1, n2), …; the first and the last may be vectors.

    Raises:
        RuntimeError: fewer than two tensors, or sizes that do not go together.

    The order is found by dynamic programming (Cormen et al., Introduction to Algorithms, matrix-chain
    multiplication).
    """
    chain = list(tensors)
    if len(chain) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(chain)}")
    for i, t in enumerate(chain):
        expect_tensor(t, f"tensors[{i}]", "multi_dot")
        if t.ndim != 2 and not (t.ndim == 1 and i in (0, len(chain) - 1)):
            where = "1D or 2D" if i in (0, len(chain) - 1) else "2D"
            raise RuntimeError(f"multi_dot(): tensor {i} must be {where} but got {t.ndim}D")
        if i and chain[i - 1].shape[-1] != t.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i - 1} and {i} with shapes {list(chain[i - 1].shape)} and {list(t.shape)} "
                "cannot be multiplied"
            )
    sizes = [t.shape[0] if t.ndim == 2 else 1 if i == 0 else t.shape[0] for i, t in enumerate(chain)]
    sizes.append(chain[-1].shape[1] if chain[-1].ndim == 2 else 1)
    split = _best_splits(sizes)

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return chain[i]
        return products.matmul(product(i, split[i, j]), product(split[i, j] + 1, j))

    return product(0, len(chain) - 1)


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices i..j, of sizes[i] x sizes[i + 1] and so on."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(options)
    return split


@public(only="leafgrad", out="exact")
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices. Deprecated, as in PyTorch: use ``linalg.multi_dot``."""
    messages.warn("chain_matmul is deprecated; use leafgrad.linalg.multi_dot, which takes a list of matrices")
    for i, m in enumerate(matrices):
        check_ndim("chain_matmul", f"matrices[{i}]", m, 2)
    return matrices[0].clone() if len(matrices) == 1 else multi_dot(matrices)


@public(out="cast")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: blocks of ``other``, each times one element of ``input``. (n, m), (p, q) -> (n p, m q)"""
    expect_tensor(input, "input", "kron")
    expect_tensor(other, "other", "kron")
    n = max(input.ndim, other.ndim)
    a = (1,) * (n - input.ndim) + tuple(input.shape)
    b = (1,) * (n - other.ndim) + tuple(other.shape)
    product = mul(
        reshape(input, shape=tuple(size for pair in zip(a, (1,) * n, strict=True) for size in pair)),
        reshape(other, shape=tuple(size for pair in zip((1,) * n, b, strict=True) for size in pair)),
    )
    return alone(reshape(product, shape=tuple(map(math.prod, zip(a, b, strict=True)))))
