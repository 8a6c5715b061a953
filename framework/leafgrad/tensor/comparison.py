"""Comparisons: equal or nearly so, order, sort and search."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.ops import compare, promotion, reduce, select, sort as ops
from leafgrad.ops.convert import contiguous
from leafgrad.ops.index import gather
from leafgrad.ops.marks import shown_as
from leafgrad.ops.traits import ALL
from leafgrad.tensor import arguments
from leafgrad.tensor.arguments import expect_tensor, number
from leafgrad.tensor.complex_numbers import imag
from leafgrad.tensor.creation import inferred
from leafgrad.tensor.data import tensor
from leafgrad.tensor.formats import preserved
from leafgrad.tensor.joining import piece
from leafgrad.tensor.pointwise import clamp, where
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.signatures import binary, unary
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

_all, _eq, _gather, _argsort = reduce.all.function, compare.eq.function, gather.function, ops.argsort.function
_argtop = ops.argtop.function
_in_order = contiguous.function

fmax = binary(select.fmax, out="cast")
fmin = binary(select.fmin, out="cast")
maximum = binary(select.maximum, out="cast")
minimum = binary(select.minimum, out="cast")
eq = binary(compare.eq, out="cast", inplace=True)
ge = binary(compare.ge, also="greater_equal", out="cast", inplace=True)
gt = binary(compare.gt, also="greater", out="cast", inplace=True)
le = binary(compare.le, also="less_equal", out="cast", inplace=True)
lt = binary(compare.lt, also="less", out="cast", inplace=True)
ne = binary(compare.ne, also="not_equal", out="cast", inplace=True)
isfinite = unary(compare.isfinite)
isinf = unary(compare.isinf)
isnan = unary(compare.isnan)


@public
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether ``abs(input - other) <= atol + rtol * abs(other)``. (...), (...) -> (...) bool

    Raises:
        RuntimeError: the dtypes differ, or a tolerance is negative.
    """
    if expect_tensor(input, "input", "isclose").dtype is not expect_tensor(other, "other", "isclose").dtype:
        raise RuntimeError(f"isclose: {input.dtype} did not match {other.dtype}; convert one with .to(dtype)")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"isclose: {name}: expected a tolerance of at least 0, got {tolerance}")
    return compare.isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@public
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether ``isclose`` holds for all elements, as a Python bool."""
    return _holds(isclose(input, other, rtol, atol, equal_nan))


def _holds(condition: Tensor) -> bool:
    return bool(_all(condition, dim=ALL[condition._data.ndim]))


@public
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same size and elements, as a Python bool. nan is not equal to nan."""
    if expect_tensor(input, "input", "equal")._data.shape != expect_tensor(other, "other", "equal")._data.shape:
        return False
    return _holds(_eq(input, other))


@public(out="exact")
def isposinf(input: Tensor) -> Tensor:
    """Whether elements are +inf. (...) -> (...) bool"""
    return isinf(expect_tensor(input, "input", "isposinf")) & (input > 0)


@public(out="exact")
def isneginf(input: Tensor) -> Tensor:
    """Whether elements are -inf. (...) -> (...) bool"""
    return isinf(expect_tensor(input, "input", "isneginf")) & (input < 0)


@public
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0. (...) -> (...) bool"""
    if expect_tensor(input, "input", "isreal").dtype.is_complex:
        return imag(input) == 0
    return (expect_tensor(input, "input", "isreal") == input) | (input != input)


@public(only="leafgrad", out="exact")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each of ``elements`` is among ``test_elements``; not, with ``invert``. One of the two may be a number.

    Args:
        assume_unique: accepted; the result does not depend on it.
        elements: a tensor or a number.
        test_elements: a tensor or a number.
        invert: whether the answer is the opposite.
    """
    one = elements if isinstance(elements, Tensor) else expect_tensor(test_elements, "test_elements", "isin")
    x, among = (
        t if isinstance(t, Tensor) else one.new_full((), number(t, name, "isin"), dtype=inferred(t))
        for name, t in (("elements", elements), ("test_elements", test_elements))
    )
    if not among.numel():
        return x.new_full(x.shape, invert, dtype=dtypes.bool_)
    ordered = sort(among.reshape(-1)).values
    if among.dtype.is_floating_point:  # among nan, which are last and equal nothing, searchsorted would be lost
        known = ordered == ordered
        ordered = where(known, ordered, ordered[known.sum().reshape(1) - 1])
    found: Tensor = ordered[clamp(searchsorted(ordered, x), max=ordered.shape[0] - 1)] == x
    return ~found if invert else found


@public
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size."""
    return bool(
        expect_tensor(input, "input", "is_same_size").shape == expect_tensor(other, "other", "is_same_size").shape
    )


@public
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Indices that sort along ``dim``; equal elements stay in order, with or without ``stable``. int64"""
    d = arguments.one_dim(arguments.expect_tensor(input, "input", "argsort"), dim, "argsort")
    if not input._data.ndim:
        return alone(reshaped(argsort(reshaped(input, (1,))), ()))
    return _argsort(input, dim=d, descending=bool(descending))


@public(out="cast")
@shown_as("SortBackward0")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> return_types.sort:
    """Values sorted along ``dim``, and the indices they had; equal elements stay in order. nan is the largest."""
    order = argsort(input, dim, descending)
    return return_types.sort(preserved(_taken(input, order, dim), input), preserved(order, input))


def _taken(input: Tensor, order: Tensor, dim: int) -> Tensor:
    """The values at ``order`` along ``dim``."""
    if not input._data.ndim:
        return input.clone()
    return _gather(input, order, dim=arguments.one_dim(input, dim), inside=True)


@public(out="exact")
def msort(input: Tensor) -> Tensor:
    """Values sorted along the first dimension."""
    return sort(input, 0).values


@public(out="cast")
@shown_as("TopkBackward0")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> return_types.topk:
    """The k largest (or smallest) along ``dim``, in order, and their indices.

    Raises:
        RuntimeError: k is negative or larger than the dimension.
    """
    d, shape = arguments.one_dim(expect_tensor(input, "input", "topk"), dim, "topk"), input._data.shape
    n, k = shape[d] if shape else 1, arguments.integer(k, "k", "topk")
    if not 0 <= k <= n:
        raise RuntimeError(f"selected index k out of range, got k={k} for a dimension of size {n}")
    if not shape:
        return return_types.topk(input.clone(), argsort(input))
    best = _in_order(_argtop(input, dim=d, count=k, descending=bool(largest)))
    return return_types.topk(_gather(input, best, dim=d, inside=True), best)


@public(out="cast")
@shown_as("KthvalueBackward0")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> return_types.kthvalue:
    """The k-th smallest along ``dim``, counted from 1, and its index.

    Raises:
        RuntimeError: k is not in 1, …, the size of the dimension.
    """
    order = argsort(input, dim)
    d = arguments.one_dim(input, dim, "kthvalue")
    n, k = input._data.shape[d] if input._data.ndim else 1, arguments.integer(k, "k", "kthvalue")
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}, got k={k} for size {n}")
    if not input._data.ndim:
        return return_types.kthvalue(input.clone(), order)
    indices = piece(order, d, k - 1, k).contiguous()
    values = _taken(input, indices, d)
    if keepdim:
        return return_types.kthvalue(values, alone(indices))
    return return_types.kthvalue(alone(values.squeeze(d)), alone(indices.squeeze(d)))


@public(only="leafgrad", out="exact")
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
        out_int32: whether the result is int32 instead of int64.
        side: "left" or "right", which is ``right=True``.

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
    found = ops.searchsorted.function(edges, x, right=right or side == "right")
    return arguments.cast(found, dtypes.int32 if out_int32 else dtypes.int64)


@public(only="leafgrad", out="exact")
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the interval between ascending ``boundaries`` (n,) that each element lies in, from 0 to n."""
    if arguments.expect_tensor(boundaries, "boundaries", "bucketize").ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
