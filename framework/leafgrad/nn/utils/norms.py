"""What weight norm and spectral norm compute, under both their interfaces."""

from __future__ import annotations

from leafgrad import modes
from leafgrad.nn.functional.normalization import normalize
from leafgrad.nn.module import Module
from leafgrad.tensor.arguments import one_dim
from leafgrad.tensor.random import randn
from leafgrad.tensor.tensor import Tensor


def norm_except(weight: Tensor, dim: int | None) -> Tensor:
    """The norms of the slices of ``weight`` along ``dim``, which broadcast against it; the norm of all for None or -1.

    Salimans and Kingma (2016) call it g where ``weight`` is v.

    Raises:
        IndexError: there is no such dimension.
    """
    if dim is None or dim == -1:
        return weight.norm()
    own = one_dim(weight, dim)
    others = tuple(d for d in range(weight.ndim) if d != own)
    return weight.norm(2, others, keepdim=True) if others else weight.abs()


def usual_dim(module: Module) -> int:
    """The dimension of a weight that counts outputs."""
    return 1 if getattr(module, "transposed", False) else 0


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """``weight`` with ``dim`` as its rows and all others as its columns."""
    return weight.movedim(dim, 0).flatten(1)


def vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Random unit vectors to begin with. (rows,), (columns,)"""
    rows, columns = (normalize(randn(n, dtype=matrix.dtype, device=matrix.device), 2, 0, eps) for n in matrix.shape)
    return rows, columns


def iterate(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """Move u and then v, in place, towards the vectors of the largest singular value. (n, m), (n,), (m,)"""
    with modes.no_grad():
        for _ in range(times):
            u.copy_(normalize(matrix @ v, 2, 0, eps))
            v.copy_(normalize(matrix.t() @ u, 2, 0, eps))


def over_largest(weight: Tensor, dim: int, u: Tensor, v: Tensor) -> Tensor:
    """``weight`` over its largest singular value, which belongs to u and v: Miyato et al. (2018)."""
    u, v = u.clone(), v.clone()  # they are written at the next call, perhaps before this one's backward
    return weight / u.dot(as_matrix(weight, dim) @ v)


def check_iterations(times: int) -> int:
    if times <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={times}")
    return times
