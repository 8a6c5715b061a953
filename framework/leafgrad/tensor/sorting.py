"""Order and search: sort, topk, kthvalue; nonzero, searchsorted, bucketize."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.ops import dispatch, promotion, sort as ops
from leafgrad.ops.index import argwhere as argwhere_op, gather
from leafgrad.ops.marks import shown_as
from leafgrad.ops.shape import part
from leafgrad.tensor import arguments
from leafgrad.tensor.data import tensor
from leafgrad.tensor.joining import piece
from leafgrad.tensor.methods import method
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.tensor import Tensor

__all__ = ["argsort", "argwhere", "bucketize", "kthvalue", "msort", "nonzero", "searchsorted", "sort", "topk"]


@method
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Indices that sort along ``dim``; equal elements stay in order, with or without ``stable``. int64"""
    d = arguments.one_dim(arguments.expect_tensor(input, "input", "argsort"), dim, "argsort")
    if not input._data.ndim:
        return reshaped(argsort(reshaped(input, (1,))), ())
    out: Tensor = ops.argsort(input, dim=d, descending=bool(descending))
    return out


@method
@shown_as("SortBackward0")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> return_types.sort:
    """Values sorted along ``dim``, and the indices they had; equal elements stay in order. nan is the largest."""
    order = argsort(input, dim, descending)
    return return_types.sort(_taken(input, order, dim), order)


def _taken(input: Tensor, order: Tensor, dim: int) -> Tensor:
    """The values at ``order`` along ``dim``."""
    if not input._data.ndim:
        return input.clone()
    out: Tensor = gather(input, order, dim=arguments.one_dim(input, dim), inside=True)
    return out


@method
def msort(input: Tensor) -> Tensor:
    """Values sorted along the first dimension."""
    return sort(input, 0).values


@method
@shown_as("TopkBackward0")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> return_types.topk:
    """The k largest (or smallest) along ``dim``, in order, and their indices.

    Raises:
        RuntimeError: k is negative or larger than the dimension.
    """
    order = argsort(input, dim, largest)
    d = arguments.one_dim(input, dim, "topk")
    n = input._data.shape[d] if input._data.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError(f"selected index k out of range, got k={k} for a dimension of size {n}")
    if not input._data.ndim:
        return return_types.topk(input.clone(), order)
    best = piece(order, d, 0, k).contiguous()
    return return_types.topk(_taken(input, best, d), best)


@method
@shown_as("KthvalueBackward0")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> return_types.kthvalue:
    """The k-th smallest along ``dim``, counted from 1, and its index.

    Raises:
        RuntimeError: k is not in 1, …, the size of the dimension.
    """
    order = argsort(input, dim)
    d = arguments.one_dim(input, dim, "kthvalue")
    n = input._data.shape[d] if input._data.ndim else 1
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}, got k={k} for size {n}")
    if not input._data.ndim:
        return return_types.kthvalue(input.clone(), order)
    indices = piece(order, d, k - 1, k).contiguous()
    values = _taken(input, indices, d)
    if keepdim:
        return return_types.kthvalue(values, indices)
    return return_types.kthvalue(values.squeeze(d), indices.squeeze(d))


# ---- search -------------------------------------------------------------------------------------------------------


@method
def argwhere(input: Tensor) -> Tensor:
    """Indices of the elements that are not zero, in order. (how many, input.ndim), int64

    How many depends on values: the host waits for the device, and a compiled step is cut in two here.
    """
    out: Tensor = dispatch.computed(argwhere_op, arguments.expect_tensor(input, "input", "nonzero"))
    return out


@method
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Like ``argwhere``; with ``as_tuple`` one tensor (how many,) for each dimension, which can index ``input``."""
    found = argwhere(input if not as_tuple or input.ndim else reshaped(input, (1,)))
    if not as_tuple:
        return found
    every = (0, found.shape[0], 1)
    return tuple(part(found, at=(every, d)) for d in range(found.shape[1]))


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where ``input`` would be inserted into ascending sequences so that they stay ascending.

    Args:
        sorted_sequence: (n,), or (..., n) with one sequence for each row of ``input``.
        input: a number, or a tensor: of any shape, or (..., m) for several sequences.
        right: after equal elements rather than before; ``side="right"`` says the same.
        sorter: indices that sort the sequences, if they are not sorted.

    Returns:
        Positions from 0 to n, of the shape of ``input``; int64, or int32 with ``out_int32``.
    """
    if arguments.expect_tensor(sorted_sequence, "sorted_sequence", "searchsorted").ndim == 0:
        raise RuntimeError("searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None and (sorter.dtype is not dtypes.int64 or sorter.shape != sorted_sequence.shape):
        raise RuntimeError(
            "searchsorted(): boundary and sorter must have the same size and sorter must be int64, but got boundary "
            f"{list(sorted_sequence.shape)} and sorter {list(sorter.shape)} of {sorter.dtype}"
        )
    edges = sorted_sequence if sorter is None else gather(sorted_sequence, sorter, dim=sorted_sequence.ndim - 1)
    x = input
    if not isinstance(x, Tensor):
        value = arguments.number(input, "input", "searchsorted")
        x = tensor(value, dtype=promotion.result_type((edges, value)), device=edges.device)
    if edges.ndim != 1 and (edges.ndim != x.ndim or edges.shape[:-1] != x.shape[:-1]):
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(edges.shape)} and input value "
            f"tensor {list(x.shape)}"
        )
    found: Tensor = ops.searchsorted(edges, x, right=right or side == "right")
    return arguments.cast(found, dtypes.int32 if out_int32 else dtypes.int64)


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the interval between ascending ``boundaries`` (n,) that each element lies in, from 0 to n."""
    if arguments.expect_tensor(boundaries, "boundaries", "bucketize").ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
