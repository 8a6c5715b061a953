"""Results with names, as ``torch.return_types``: tuples that print as PyTorch's, one type for each function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from leafgrad import dtypes

if TYPE_CHECKING:
    from leafgrad.tensor.tensor import Tensor


def _shown(self: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"{dtypes.namespace}.return_types.{type(self).__name__}(\n{fields})"


# ---- chosen along a dimension -------------------------------------------------------------------------------------


class Found(NamedTuple):
    """Values along a dimension, and their indices (int64)."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class cummax(Found):
    """Of ``cummax``."""


class cummin(Found):
    """Of ``cummin``."""


class kthvalue(Found):
    """Of ``kthvalue``."""


class max(Found):
    """Of ``max`` along a dimension."""


class median(Found):
    """Of ``median`` along a dimension."""


class min(Found):
    """Of ``min`` along a dimension."""


class mode(Found):
    """Of ``mode``."""


class nanmedian(Found):
    """Of ``nanmedian`` along a dimension."""


class sort(Found):
    """Of ``sort``."""


class topk(Found):
    """Of ``topk``."""


class aminmax(NamedTuple):
    """The smallest and the largest."""

    min: Tensor
    max: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class frexp(NamedTuple):
    """Numbers of magnitude in [0.5, 1), and powers of two (int32)."""

    mantissa: Tensor
    exponent: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class histogram(NamedTuple):
    """How many elements lie in each bin, and the edges of the bins."""

    hist: Tensor
    bin_edges: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class histogramdd(NamedTuple):
    """How many points lie in each bin, and the edges of the bins along each coordinate."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]

    def __repr__(self) -> str:
        return _shown(self)


# ---- linear algebra -----------------------------------------------------------------------------------------------


class linalg_qr(NamedTuple):
    """An orthogonal factor and an upper triangular one."""

    Q: Tensor
    R: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class qr(linalg_qr):
    """Of ``qr``."""


class linalg_svd(NamedTuple):
    """Singular vectors and singular values: A = U diag(S) Vh."""

    U: Tensor
    S: Tensor
    Vh: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class svd(NamedTuple):
    """Singular vectors in columns and singular values: A = U diag(S) V^T."""

    U: Tensor
    S: Tensor
    V: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_eigh(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_eig(linalg_eigh):
    """Of ``linalg.eig``."""


class linalg_slogdet(NamedTuple):
    """Sign of the determinant, and logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class slogdet(linalg_slogdet):
    """Of ``slogdet``."""


class linalg_lstsq(NamedTuple):
    """The best solution of a system, and how good it is."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_lu(NamedTuple):
    """A permutation, a lower triangular matrix with ones on its diagonal, and an upper triangular one: A = P L U."""

    P: Tensor
    L: Tensor
    U: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class lu_unpack(linalg_lu):
    """Of ``lu_unpack``."""


class linalg_ldl_factor(NamedTuple):
    """L and D in one matrix, and with which row each row was exchanged."""

    LD: Tensor
    pivots: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_ldl_factor_ex(NamedTuple):
    """The same, and the number of the first element of D that is 0."""

    LD: Tensor
    pivots: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_lu_factor(NamedTuple):
    """L below and U on and above the diagonal of one matrix, and with which row each row was exchanged, from 1."""

    LU: Tensor
    pivots: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_lu_factor_ex(NamedTuple):
    """Those, and for each matrix 0 or the number of its first pivot that is 0."""

    LU: Tensor
    pivots: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_cholesky_ex(NamedTuple):
    """The factor, and for each matrix 0 or the order of its first minor that is not positive."""

    L: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_inv_ex(NamedTuple):
    """The inverse, and for each matrix 0 or the number of its first pivot that is 0."""

    inverse: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class linalg_solve_ex(NamedTuple):
    """The solution, and for each matrix 0 or the number of its first pivot that is 0."""

    result: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class triangular_solve(NamedTuple):
    """The solution, and the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor

    def __repr__(self) -> str:
        return _shown(self)


class geqrf(NamedTuple):
    """R on and above the diagonal with Householder's vectors below it, and their scales."""

    a: Tensor
    tau: Tensor

    def __repr__(self) -> str:
        return _shown(self)
