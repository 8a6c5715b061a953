"""Norms of vectors and matrices, and what is measured by singular values."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import elimination, reduce
from leafgrad.ops.compare import gt
from leafgrad.ops.convert import to_dtype
from leafgrad.ops.elementwise import abs as magnitude
from leafgrad.ops.linalg import inv
from leafgrad.ops.scalars import as_ints
from leafgrad.ops.select import maximum
from leafgrad.ops.shape import permute, reshape
from leafgrad.tensor.arguments import cast, dims, expect_real, expect_tensor, number, one_dim
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.decompositions import (
    check_floating,
    check_matrices,
    check_square,
    eigvalsh,
    first_zero,
    identity,
    spread,
    svdvals,
)
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor

Dim = int | Sequence[int] | None
Order = float | str | None
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


@public(name="linalg.vector_norm", out="exact")
def vector_norm(
    x: Tensor, ord: float = 2, dim: Dim = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None
) -> Tensor:
    """(sum of |x|^ord)^(1/ord) over ``dim``, all dimensions by default.

    Args:
        ord: any number; inf takes the largest magnitude, -inf the smallest, 0 counts what is not zero.
        dtype: convert x to it first.
        x: any tensor.
    """
    expect_tensor(x, "x", "linalg.vector_norm")
    ord = number(ord, "ord", "linalg.vector_norm")
    x = cast(x, dtype)
    check_floating(x, "linalg.vector_norm", "x")
    over = dims(x, dim, "linalg.vector_norm")
    if (ord < 0 or ord == math.inf) and not reduce.count(x.shape, over):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm of an empty tensor, got size {list(x.shape)} and "
            f"dimensions {list(over)}"
        )
    result: Tensor
    if math.isinf(ord):
        result = (reduce.amax if ord > 0 else reduce.amin)(magnitude(x), dim=over, keepdim=keepdim)
    else:
        result = reduce.norm(x, p=float(ord), dim=over, keepdim=keepdim)
    return result


@public(name="linalg.matrix_norm", out="exact")
def matrix_norm(
    A: Tensor, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *,
    dtype: dtypes.dtype | None = None,
) -> Tensor:  # fmt: skip
    """Norm of the matrices in the two dimensions ``dim``.

    Args:
        ord: "fro", root of the sum of squares; "nuc", sum of the singular values; 2 and -2, the largest and smallest
            singular value; 1 and -1, the largest and smallest sum of magnitudes of a column; inf and -inf, of a row.
        dtype: convert A to it first.
        A: matrices.
    """
    expect_tensor(A, "A", "linalg.matrix_norm")
    A = cast(A, dtype)
    if A.ndim < 2:
        raise RuntimeError(
            f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions, got size {list(A.shape)}"
        )
    check_floating(A, "linalg.matrix_norm")
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        kind = RuntimeError if isinstance(dim, (tuple, list)) else TypeError
        raise kind(f"linalg.matrix_norm: dim must be a 2-tuple, got {dim!r}")
    i, j = (one_dim(A, d, "linalg.matrix_norm") for d in dim)
    if i == j:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different, got ({i}, {j})")
    if ord == "fro":
        return vector_norm(A, 2, (i, j), keepdim)
    if ord not in ("nuc", 2, -2, 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    others = tuple(d for d in range(A.ndim) if d not in (i, j))
    A = permute(A, dims=(*others, i, j))
    last = len(others)
    value: Any
    if ord in ("nuc", 2, -2):
        check_matrices(A, "linalg.matrix_norm")
        value = svdvals(A)
    else:
        value = reduce.sum(magnitude(A), dim=(last if ord in (1, -1) else last + 1,))
    pick = reduce.sum if ord == "nuc" else reduce.amax if float(ord) > 0 else reduce.amin
    if pick is reduce.amax and not value.shape[last]:
        pick = reduce.sum  # the largest of nothing is 0 here
    value = pick(value, dim=(last,))
    if keepdim:
        value = reshape(value, shape=tuple(1 if d in (i, j) else n for d, n in enumerate(_unpermuted(A, i, j))))
    return value


def _unpermuted(A: Tensor, i: int, j: int) -> list[int]:
    """The sizes of ``A`` before its dimensions i and j were moved to the end."""
    sizes = list(A.shape[:-2])
    for d in sorted((i, j)):
        sizes.insert(d, 1)
    return sizes


@public(name="linalg.norm", out="cast")
def norm(
    A: Tensor, ord: Order = None, dim: Dim = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None
) -> Tensor:
    """Norm of vectors or matrices.

    Args:
        ord: as in ``vector_norm`` if ``dim`` is one dimension (or A has one), as in ``matrix_norm`` if two; by
            default the root of the sum of squares.
        dim: one or two dimensions; by default all.
        A: a vector or matrices.

    Raises:
        RuntimeError: ``ord`` is given without ``dim``, and A has not 1 or 2 dimensions.
    """
    expect_tensor(A, "A", "linalg.norm")
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if A.ndim not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D; pass dim."
            )
        dim = tuple(range(A.ndim))
    over = as_ints(dim)
    if isinstance(ord, str) or len(over) == 2:
        return matrix_norm(A, ord, over, keepdim, dtype=dtype)
    return vector_norm(A, ord, over, keepdim, dtype=dtype)


@public(name="linalg.cond", out="cast")
@autocast("float32")
def cond(A: Tensor, p: Order = None) -> Tensor:
    """Condition number, the norm of A times the norm of its inverse. (..., n, n) -> (...)

    Args:
        p: an order of ``matrix_norm``; by default 2, for which A need not be square. Matrices without elements have 0,
            singular ones infinity.
    """
    check_matrices(A, "linalg.cond")
    if isinstance(p, str) or (A.numel() and p not in (None, 2, -2)):
        check_square(A, "linalg.cond")
    if not A.numel():
        return matrix_norm(A)
    if p in (None, 2, -2):
        s = svdvals(A)
        last = s.ndim - 1
        ratio = reduce.amax(s, dim=(last,)) / reduce.amin(s, dim=(last,))
        return 1 / ratio if p == -2 else ratio
    regular = first_zero(elimination.lu(A.detach())[0]) == 0
    inverse = inv(where(spread(regular), A, identity(A)))
    return where(regular, matrix_norm(A, p) * matrix_norm(inverse, p), math.inf)


@public(name="linalg.matrix_rank", out="cast")
@autocast("float32")
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:  # fmt: skip
    """How many singular values exceed ``max(atol, rtol * largest)``, as int64. (..., m, n) -> (...)

    Args:
        atol, rtol: as in ``pinv``, or tensors (...). ``tol`` is an older name of atol.
        hermitian: the matrices are symmetric, Hermitian if complex; their lower triangle is read.
    """
    (check_square if hermitian else check_matrices)(A, "linalg.matrix_rank")
    s = abs(eigvalsh(A.detach())) if hermitian else svdvals(A.detach())
    atol = atol if tol is None else tol
    if any(isinstance(t, Tensor) and t.numel() != 1 for t in (atol, rtol)):  # each matrix has its own
        if rtol is None:
            rtol = where(gt(atol, 0), 0.0, tolerances(A, None, None, "linalg.matrix_rank")[1])
        return rank(s, *[t.unsqueeze(-1) if isinstance(t, Tensor) else t or 0.0 for t in (atol, rtol)])
    return rank(s, *tolerances(A, atol, rtol, "linalg.matrix_rank"))


def rank(s: Tensor, atol: float | Tensor, rtol: float | Tensor) -> Tensor:
    """The number of singular values above the tolerance."""
    over = (s.ndim - 1,)
    least = maximum(reduce.amax(s, dim=over, keepdim=True) * rtol, atol) if s.shape[-1] else atol
    return reduce.sum(to_dtype(gt(s, least), dtype="int64", source="bool"), dim=over)


def tolerances(A: Tensor, atol: Any, rtol: Any, function: str) -> tuple[float, float]:
    """Both tolerances, which may be tensors of one element, as floats, with PyTorch's defaults."""
    atol, rtol = (t.item() if isinstance(t, Tensor) and t.numel() == 1 else t for t in (atol, rtol))
    for name, value in (("atol", atol), ("rtol", rtol)):
        if value is not None and not isinstance(value, numbers.Real):
            raise TypeError(
                f"{function}: {name}: expected a number, a tensor of one or None, got {type(value).__name__}"
            )
    if rtol is None:
        rtol = 0.0 if atol else max(A.shape[-2:]) * EPS[A.dtype.to_real().name]
    return float(atol or 0.0), float(rtol)


@public(out="exact", inplace=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices along ``dim`` scaled down where their p-norm is larger than ``maxnorm``. (...) -> (...)

    Args:
        p: of the norm.
        maxnorm: what no slice is to exceed.

    Raises:
        RuntimeError: less than two dimensions, ``p`` is not positive, or ``maxnorm`` is negative.
    """
    if expect_tensor(input, "input", "renorm").ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if number(p, "p", "renorm") <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got {p}")
    if number(maxnorm, "maxnorm", "renorm") < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    d = one_dim(input, dim, "renorm")
    norms = vector_norm(input, p, [e for e in range(input.ndim) if e != d], keepdim=True)
    return input * where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)


@public(only="leafgrad")
@autocast("float32")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Distances between rows, the p-norms of their differences. (..., n, m), (..., k, m) -> (..., n, k)

    Args:
        p: any order >= 0, inf for the largest difference.
        compute_mode: accepted for PyTorch's sake. Differences are always formed, which loses no digits and takes
            memory for n k m numbers.
        x1: (..., m, d).
        x2: (..., n, d).
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
    return vector_norm(rows - columns, p if x1.shape[-1] else 2, -1)  # of nothing all are 0
