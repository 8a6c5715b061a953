"""Two ops that are each other's gradients: the product of a sparse matrix with a dense one, and a product of two dense
matrices of which only the elements are computed that a sparse one has.

The places of a matrix's elements are constants: ``rows`` and ``columns`` (nnz,), by rows and in them by columns, and
``starts`` (m + 1,), where the elements of each row begin.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from leafgrad import op
from leafgrad.compile.schedule.axes import ChunkCall

if TYPE_CHECKING:
    from leafgrad.func import BatchedCall

Shape = tuple[int, int]


@cache
def library() -> Any:
    """scipy.sparse, imported at the first product."""
    from scipy import sparse

    return sparse


@cache
def cuda_library() -> Any:
    """cupyx.scipy.sparse."""
    from cupyx.scipy import sparse

    return sparse


@op("any_dtype", name="sparse_matmul")
def sparse_matmul(
    xp: Any, values: Any, dense: Any, rows: Any, columns: Any, starts: Any, *, shape: Shape, transposed: bool
) -> Any:
    """The sparse matrix (m, n) of these values, or its transpose, times ``dense``.

    (nnz,), (..., n, k) -> (..., m, k), or transposed (nnz,), (..., m, k) -> (..., n, k). Values may have the same
    dimensions in front: then each matrix is multiplied with its own.
    """
    return multiplied(xp, library(), values, dense, (columns, starts), shape, transposed)


@sparse_matmul.kernel("cupy")
def _on_cuda(
    xp: Any, values: Any, dense: Any, rows: Any, columns: Any, starts: Any, *, shape: Shape, transposed: bool
) -> Any:
    return multiplied(xp, cuda_library(), values, dense, (columns, starts), shape, transposed)


def multiplied(
    xp: Any, sparse: Any, values: Any, dense: Any, places: tuple[Any, Any], shape: Shape, transposed: bool
) -> Any:
    """The product by a library like scipy.sparse; float16, which these do not have, in float32."""
    if values.dtype == "float16":
        v, d = values.astype("float32"), dense.astype("float32")
        return multiplied(xp, sparse, v, d, places, shape, transposed).astype("float16")
    if values.ndim > 1:
        each = [multiplied(xp, sparse, v, d, places, shape, transposed) for v, d in zip(values, dense, strict=True)]
        size = shape[1] if transposed else shape[0]
        return xp.stack(each) if each else xp.zeros((0, *dense.shape[1:-2], size, dense.shape[-1]), dense.dtype)
    matrix = sparse.csr_matrix((values, *places), shape=shape)
    batch, k = dense.shape[:-2], dense.shape[-1]
    flat = xp.moveaxis(dense, -2, 0).reshape(dense.shape[-2], math.prod(batch) * k)
    out = (matrix.T if transposed else matrix) @ flat
    return xp.ascontiguousarray(xp.moveaxis(out.reshape(out.shape[0], *batch, k), 0, -2))


@op("any_dtype", name="sampled_matmul")
def sampled_matmul(xp: Any, left: Any, right: Any, rows: Any, columns: Any, starts: Any, *, shape: Shape) -> Any:
    """The elements of ``left @ right.T`` at the places of a sparse matrix. (..., m, k), (..., n, k) -> (..., nnz)"""
    a, b = left[..., rows, :], right[..., columns, :]
    if left.dtype == "float16":
        return xp.einsum("...k,...k->...", a.astype("float32"), b.astype("float32")).astype("float16")
    return xp.einsum("...k,...k->...", a, b)


def _values(g: Any, dense: Any, rows: Any, columns: Any, starts: Any, *, shape: Shape, transposed: bool) -> Any:
    left, right = (dense, g) if transposed else (g, dense)
    return sampled_matmul(left, right, rows, columns, starts, shape=shape)


def _dense(g: Any, values: Any, rows: Any, columns: Any, starts: Any, *, shape: Shape, transposed: bool) -> Any:
    return sparse_matmul(values, g, rows, columns, starts, shape=shape, transposed=not transposed)


def _left(g: Any, right: Any, rows: Any, columns: Any, starts: Any, *, shape: Shape) -> Any:
    return sparse_matmul(g, right, rows, columns, starts, shape=shape, transposed=False)


def _right(g: Any, left: Any, rows: Any, columns: Any, starts: Any, *, shape: Shape) -> Any:
    return sparse_matmul(g, left, rows, columns, starts, shape=shape, transposed=True)


@sparse_matmul.shape
def _product(values: Any, dense: Any, rows: Any, columns: Any, starts: Any, *, shape: Shape, transposed: bool) -> Any:
    return (*dense.shape[:-2], shape[transposed], dense.shape[-1])


@sampled_matmul.shape
def _sampled(left: Any, right: Any, rows: Any, columns: Any, starts: Any) -> Any:
    return (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), *rows.shape)


@sparse_matmul.chunk
def _matmul_in_parts(call: ChunkCall) -> Any:
    """Each column of each matrix is multiplied by itself, and each matrix of several is."""
    own, axis, *_ = call.axes
    if axis is None or axis == call.out.ndim - 2 or own not in (None, axis):
        return None
    return call.on(axis, own, axis)


@sampled_matmul.chunk
def _sampled_in_parts(call: ChunkCall) -> Any:
    """Of matrices each by itself; of columns, the products add up."""
    left: Any
    right: Any
    left, right, *_ = call.inputs
    columns = (left.ndim - 1, right.ndim - 1)
    if all(axis in (None, last) for axis, last in zip(call.axes, columns, strict=False)):
        return call.summed(*columns)
    return call.aligned(whole=[-2, -1])


sparse_matmul.vjp(values=_values, dense=_dense)
sampled_matmul.vjp(left=_left, right=_right)


@sparse_matmul.batched
def _matmul_of_batches(call: BatchedCall) -> Any:
    """Samples of the dense matrix are more columns; samples of values are so many matrices."""
    _expect_one_place(call)
    if not call.inside[0] and call.ndim(0) == 1:  # no batch of an inner vmap either
        return call.again(*call.args)
    return call.again(call.front(0), call.front(1), *call.args[2:])


@sampled_matmul.batched
def _sampled_of_batches(call: BatchedCall) -> Any:
    _expect_one_place(call)
    return call.again(call.front(0), call.front(1), *call.args[2:])


def _expect_one_place(call: BatchedCall) -> None:
    if any(call.inside[2:]):
        raise RuntimeError(f"vmap: {call.op.name}: expected the places of one matrix, got a batch of them")


OPS: Final = (sparse_matmul, sampled_matmul)
