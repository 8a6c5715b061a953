"""Sparse matrices: constant places, and values that are a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_sparse.ops import sparse_matmul


class SparseMatrix:
    """A matrix of which only some elements are stored, by rows (CSR). What is made of it is another; it never changes.

    Made by `from_scipy`, `from_coo` or `from_dense`. ``A @ x`` multiplies it with a tensor (n,), (n, k) or (..., n, k),
    ``x @ A`` a tensor (m,) or (..., k, m) with it; derivatives of every order flow to its values and to ``x``.

    Attributes:
        values: the stored elements, by rows and in them by columns; (nnz,).
        rows, columns: where they are; (nnz,), integers, constants.
        shape: (m, n).
    """

    def __init__(
        self, values: Tensor, places: tuple[Tensor, Tensor, Tensor], stored: tuple[int, int], transposed: bool
    ):
        self.values = values
        self._places = places
        self._stored = stored
        self._transposed = transposed

    __array_ufunc__ = None  # of NumPy's arrays it wants nothing to do with

    # ---- what it is -------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self._stored
        return (n, m) if self._transposed else (m, n)

    @property
    def rows(self) -> Tensor:
        """The row of each value. (nnz,)"""
        return self._places[1 if self._transposed else 0]

    @property
    def columns(self) -> Tensor:
        """The column of each value. (nnz,)"""
        return self._places[0 if self._transposed else 1]

    @property
    def nnz(self) -> int:
        """How many elements are stored."""
        return self.values.shape[0]

    @property
    def dtype(self) -> Any:
        """That of the values."""
        return self.values.dtype

    @property
    def device(self) -> Any:
        """Where values and places are."""
        return self.values.device

    def __repr__(self) -> str:
        return f"SparseMatrix(shape={self.shape}, nnz={self.nnz}, dtype={self.dtype}, device='{self.device}')"

    # ---- others made of it ------------------------------------------------------------------------------------

    @property
    def T(self) -> SparseMatrix:
        """The transpose, of the same values in the same order."""
        return SparseMatrix(self.values, self._places, self._stored, not self._transposed)

    def with_values(self, values: Tensor) -> SparseMatrix:
        """The matrix with other values, in the order of `values`, at the same places.

        Raises:
            RuntimeError: another number of values, or on another device.
        """
        if not isinstance(values, Tensor):
            raise TypeError(f"with_values: values: expected a Tensor, got {type(values).__name__}")
        if tuple(values.shape) != (self.nnz,) or not values.dtype.is_floating_point:
            raise RuntimeError(
                f"with_values: values: expected floating numbers of shape ({self.nnz},), got {values.dtype} of shape "
                f"{tuple(values.shape)}"
            )
        if values.device != self.device:
            raise RuntimeError(f"with_values: values: expected them on {self.device}, got {values.device}; use .to()")
        return SparseMatrix(values, self._places, self._stored, self._transposed)

    def to(self, device: Any = None, dtype: Any = None) -> SparseMatrix:
        """The matrix on another device, its values in another dtype; gradients flow back."""
        values = self.values if dtype is None else self.values.to(dtype)
        if device is None:
            return SparseMatrix(values, self._places, self._stored, self._transposed)
        rows, columns, starts = (p.to(device) for p in self._places)
        return SparseMatrix(values.to(device), (rows, columns, starts), self._stored, self._transposed)

    def requires_grad_(self, requires_grad: bool = True) -> SparseMatrix:
        """Let its values, a leaf, collect gradients; returns the matrix."""
        self.values.requires_grad_(requires_grad)
        return self

    def to_dense(self) -> Tensor:
        """The same with its zeros. -> (m, n)"""
        zeros = leafgrad.zeros(*self.shape, dtype=self.dtype, device=self.device)
        return zeros.index_put((self.rows, self.columns), self.values)

    def to_scipy(self) -> Any:
        """A copy as scipy.sparse.csr_array on the host, without history."""
        from scipy import sparse

        values, _, columns, starts = (t.detach().cpu().numpy() for t in (self.values, *self._places))
        matrix = sparse.csr_array((values.copy(), columns.copy(), starts.copy()), shape=self._stored)
        return matrix.T.tocsr() if self._transposed else matrix

    # ---- products ---------------------------------------------------------------------------------------------

    def __matmul__(self, other: Tensor) -> Tensor:
        """The product with (n,), (n, k) or (..., n, k). -> (m,), (m, k) or (..., m, k)

        Raises:
            RuntimeError: sizes, dtypes or devices that do not go together. TypeError: no Tensor.
        """
        self._check("A @ x", other, 0 if isinstance(other, Tensor) and other.ndim == 1 else -2, self.shape[1])
        return self._times(other)

    def __rmatmul__(self, other: Tensor) -> Tensor:
        """The product of (m,) or (..., k, m) with the matrix. -> (n,) or (..., k, n); errors as for ``A @ x``"""
        self._check("x @ A", other, -1, self.shape[0])
        return self.T._times(other) if other.ndim == 1 else self.T._times(other.mT).mT

    def _times(self, other: Tensor) -> Tensor:
        vector = other.ndim == 1
        dense = other.unsqueeze(-1) if vector else other
        product: Tensor = sparse_matmul(
            self.values, dense, *self._places, shape=self._stored, transposed=self._transposed
        )
        return product.squeeze(-1) if vector else product

    def _check(self, product: str, other: Any, dim: int, size: int) -> None:
        if not isinstance(other, Tensor):
            raise TypeError(f"{product}: x: expected a Tensor, got {type(other).__name__}")
        if other.ndim == 0 or other.shape[dim] != size:
            raise RuntimeError(
                f"{product}: A of shape {self.shape} and x of shape {tuple(other.shape)} do not go together; expected "
                f"{size} elements in dimension {dim} of x"
            )
        if other.dtype is not self.dtype or other.device != self.device:
            raise RuntimeError(
                f"{product}: expected both of one dtype on one device, got A: {self.dtype} on {self.device}, x: "
                f"{other.dtype} on {other.device}; convert one of them with .to()"
            )


# ---- making one -----------------------------------------------------------------------------------------------------


def from_coo(rows: Any, columns: Any, values: Tensor, shape: tuple[int, int]) -> SparseMatrix:
    """The matrix with ``values[k]`` at ``(rows[k], columns[k])``, those at one place summed up.

    Gradients flow back to ``values``, and so through the assembly of a matrix.

    Args:
        rows, columns: integers on the host (an array, a list, a Tensor), in any order; (N,).
        values: floating numbers, (N,).
        shape: of the matrix, (m, n).

    Raises:
        RuntimeError: different lengths, a negative size, or a place out of range. TypeError: places, values or a shape
            of a wrong kind.
    """
    if not isinstance(values, Tensor) or not values.dtype.is_floating_point:
        kind = values.dtype if isinstance(values, Tensor) else type(values).__name__
        raise TypeError(f"from_coo: values: expected a Tensor of floating numbers, got {kind}")
    if not isinstance(shape, Sequence) or len(shape) != 2 or not all(isinstance(size, Integral) for size in shape):
        raise TypeError(f"from_coo: shape: expected two integers (m, n), got {shape!r}")
    m, n = shape
    if min(m, n) < 0:
        raise RuntimeError(f"from_coo: shape: expected no negative sizes, got {shape!r}")
    if m * n > np.iinfo("int64").max:  # by whose numbers places are compared
        raise RuntimeError(f"from_coo: shape: expected less than 2**63 places, got {shape!r}")
    at = []
    for name, given, size in (("rows", rows, m), ("columns", columns, n)):
        try:
            places = given.cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
        except ValueError as error:  # lists of several lengths
            raise TypeError(f"from_coo: {name}: expected integers in one dimension, got {error}") from error
        if places.dtype.kind not in "iu" and places.size:
            raise TypeError(f"from_coo: {name}: expected integers, got {places.dtype}")
        if places.shape != tuple(values.shape) or places.ndim != 1:
            raise RuntimeError(
                f"from_coo: {name}: expected one for each value, shape {tuple(values.shape)}, got {places.shape}"
            )
        if places.size and not (places.min() >= 0 and places.max() < size):
            raise RuntimeError(
                f"from_coo: {name}: expected integers from 0 to {size - 1}, got {places.min()} to {places.max()}"
            )
        at.append(places.astype("int64"))
    distinct, inverse = np.unique(at[0] * n + at[1], return_inverse=True)
    target = leafgrad.tensor(inverse.reshape(-1), device=values.device)
    summed = leafgrad.zeros(len(distinct), dtype=values.dtype, device=values.device).index_add(0, target, values)
    return SparseMatrix(
        summed, _places(distinct // max(n, 1), distinct % max(n, 1), m, n, values.device), (m, n), False
    )


def _places(rows: Any, columns: Any, m: int, n: int, device: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, columns and starts, of the smaller integers that will do, since libraries convert the larger."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=m))])
    kind = "int32" if max(m, n, len(rows)) < 2**31 else "int64"
    made = [leafgrad.tensor(a.astype(kind), device=device) for a in (rows, columns, starts)]
    return made[0], made[1], made[2]


def from_scipy(matrix: Any, *, dtype: Any = None, device: Any = None) -> SparseMatrix:
    """A copy of a matrix or array of scipy.sparse, in any of its formats: sorted, with duplicates summed up.

    Args:
        dtype: of the values; that of ``matrix`` if None, or the default for integers.
        device: where it shall be; the CPU if None.

    Raises:
        TypeError: no sparse matrix, or one of complex numbers.
    """
    from scipy import sparse

    if not sparse.issparse(matrix):
        raise TypeError(f"from_scipy: expected a matrix of scipy.sparse, got {type(matrix).__name__}")
    if matrix.dtype.kind == "c":
        raise TypeError(f"from_scipy: expected real numbers, got {matrix.dtype}")
    if dtype is None and matrix.dtype.kind != "f":
        dtype = leafgrad.get_default_dtype()
    coo = matrix.tocoo()
    values = leafgrad.tensor(coo.data.copy(), dtype=dtype, device=device)
    return from_coo(coo.row, coo.col, values, coo.shape)


def from_dense(matrix: Tensor) -> SparseMatrix:
    """The elements of a Tensor (m, n) that are not zero; gradients flow back to them.

    Raises:
        RuntimeError: not of two dimensions.
    """
    if matrix.ndim != 2:
        raise RuntimeError(f"from_dense: expected a Tensor of 2 dimensions, got {matrix.ndim}")
    rows, columns = np.nonzero(matrix.detach().cpu().numpy())
    at = [leafgrad.tensor(a, device=matrix.device) for a in (rows, columns)]
    return from_coo(rows, columns, matrix[at[0], at[1]], (matrix.shape[0], matrix.shape[1]))
