"""Householder reflections of ``leafgrad.linalg``: QR as LAPACK keeps it, and products with its unitary factor."""

from __future__ import annotations

from leafgrad import return_types
from leafgrad.ops.complex import conj
from leafgrad.ops.linalg import adjoint, reflected
from leafgrad.ops.matmul import matmul
from leafgrad.ops.shape import tril
from leafgrad.tensor.arguments import expect_tensor, flag
from leafgrad.tensor.creation import eye
from leafgrad.tensor.decompositions import check_matrices, unit
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


def reflections(A: Tensor, tau: Tensor, function: str, names: tuple[str, str]) -> list[tuple[Tensor, Tensor]]:
    """Each v and tau v of the reflections 1 - tau v v^H: columns of A below the diagonal, with 1 on it."""
    check_matrices(A, function, names[0])
    expect_tensor(tau, names[1], function)
    m, k = A.shape[-2], tau.shape[-1] if tau.ndim else 0
    if k > min(A.shape[-2:]) or tau.shape[:-1] != A.shape[:-2] or not tau.ndim:
        raise RuntimeError(
            f"{function}: expected {names[0]} (..., m, n) and {names[1]} (..., k) with k <= m and k <= n, got "
            f"{list(A.shape)} and {list(tau.shape)}"
        )
    if tau.dtype is not A.dtype:
        raise RuntimeError(
            f"{function}: tau dtype {tau.dtype} does not match {names[0]} dtype {A.dtype}; convert it with .to(dtype)"
        )
    vectors = tril(A[..., :k], diagonal=-1) + eye(m, k, dtype=A.dtype, device=A.device)
    each = [vectors[..., i : i + 1] for i in range(k)]
    return [(v, v * tau[..., i, None, None]) for i, v in enumerate(each)]


@public(name="linalg.householder_product", out="cast")
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of the product of reflections, as ``geqrf`` returns them.

    (..., m, n), (..., k) -> (..., m, n), k <= n <= m

    Args:
        A: each reflection, 1 - tau v v^H, has a column, with v below the diagonal; above 1 it is 0.
        tau: of each reflection.

    Raises:
        RuntimeError: shapes or dtypes do not fit.
    """
    found = reflections(A, tau, "linalg.householder_product", ("A", "tau"))
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(
            f"linalg.householder_product: A: expected (..., m, n) with m >= n, got {list(A.shape)}; ormqr takes others"
        )
    out = unit(A)
    for v, scaled in reversed(found):
        out = out - matmul(scaled, matmul(adjoint(v), out))
    return out


@public(out="cast")
def orgqr(input: Tensor, tau: Tensor) -> Tensor:
    """The same as ``linalg.householder_product``, under LAPACK's name. (..., m, n), (..., k) -> (..., m, n)

    Args:
        input, tau: as there A and tau.
    """
    return householder_product(input, tau)


@public(out="cast")
def geqrf(input: Tensor) -> return_types.geqrf:
    """R on and above the diagonal, and reflections below it and in tau, whose product is Q. It has no gradient.

    (..., m, n) -> (..., m, n), (..., min(m, n))

    Args:
        input: (..., m, n).
    """
    check_matrices(input, "geqrf", "input")
    return return_types.geqrf(*reflected(input))


@public(out="cast")
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q times ``other``, or ``other`` times Q if not ``left``, of the whole Q that ``geqrf`` returned.

    Args:
        input, tau: as of ``geqrf``, (..., m, k) and (..., k).
        other: (..., m, n), or (..., n, m) if not ``left``.
        left: whether Q stands on the left of ``other``.
        transpose: Q^H instead of Q.

    Raises:
        RuntimeError: shapes or dtypes do not fit.
    """
    left, transpose = flag(left, "ormqr", "left"), flag(transpose, "ormqr", "transpose")
    found = reflections(input, conj(tau) if transpose else tau, "ormqr", ("input", "tau"))
    size = expect_tensor(other, "other", "ormqr").shape[-2 if left else -1] if other.ndim > 1 else None
    if size != input.shape[-2] or other.dtype is not input.dtype:
        raise RuntimeError(
            f"ormqr: other: expected {input.shape[-2]} {'rows' if left else 'columns'} of {input.dtype}, got "
            f"{list(other.shape)} of {other.dtype}"
        )
    out = other
    for v, scaled in found if left == transpose else reversed(found):
        out = out - (matmul(scaled, matmul(adjoint(v), out)) if left else matmul(matmul(out, scaled), adjoint(v)))
    return out
