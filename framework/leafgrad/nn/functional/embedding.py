"""Look-ups in tables of vectors: one vector for each number, or one for each bag of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from leafgrad import modes
from leafgrad.dtypes import int64
from leafgrad.ops import classes as ops
from leafgrad.ops.marks import shown_as
from leafgrad.ops.refuse import refuse
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_real, expect_tensor, first_of, integer
from leafgrad.tensor.comparison import searchsorted
from leafgrad.tensor.creation import arange, full, ones, zeros
from leafgrad.tensor.tensor import Tensor

_one_hot = ops.one_hot.function

__all__ = ["embedding", "embedding_bag", "one_hot"]

POSITIVE = (1 << 62) - 1


@shown_as("EmbeddingBackward0", "weight")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` that ``input`` names. (...) integer, (rows, dim) -> (..., dim)

    Args:
        padding_idx: a row that gets no gradient; negative counts from the end.
        max_norm: rows of a greater norm are scaled down to it first, in the table itself.
        norm_type: p of that p-norm.
        scale_grad_by_freq: divide the gradient of a row by how often ``input`` names it.
        sparse: not available.

    Raises:
        RuntimeError: ``input`` is not an integer tensor. IndexError: an index is outside the table.
        NotImplementedError: ``sparse``, since there are no sparse tensors.
    """
    at = _numbers(input, weight, "embedding", sparse)
    with _within(weight, input):
        if max_norm is not None:
            _shorten(weight, at, max_norm, norm_type)
        rows = weight[at]
    if scale_grad_by_freq:
        flat = at.reshape(-1)
        times = zeros(weight.shape[0], dtype=weight.dtype, device=weight.device).index_add(
            0, flat, ones(flat.shape, dtype=weight.dtype, device=weight.device)
        )
        finite = rows.detach().nan_to_num(0.0, 0.0, 0.0)  # inf - inf would be nan
        rows = finite + (rows - finite) / times[at].unsqueeze(-1)
    if padding_idx is not None:
        rows = where((at == padding_row(padding_idx, weight)).unsqueeze(-1), rows.detach(), rows)
    return rows


def padding_row(padding_idx: int, weight: Tensor) -> int:
    """``padding_idx`` counted from the front."""
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise ValueError(f"padding_idx must be within num_embeddings={rows}, got {padding_idx}")
    return padding_idx % rows


def _numbers(input: Tensor, weight: Tensor, function: str, sparse: bool) -> Tensor:
    """``input`` as int64, a negative number far out of range: it must not count from the end."""
    expect_tensor(input, "input", function)
    expect_tensor(weight, "weight", function)
    if sparse:
        raise NotImplementedError(
            f"{function}: sparse=True: there are no sparse tensors; leave it False, gradients of tables are dense"
        )
    if input.dtype.category != 1:
        raise RuntimeError(f"{function}: input: expected an integer tensor of row numbers, got {input.dtype}")
    if weight.ndim != 2:
        raise RuntimeError(f"{function}: weight: expected 2 dimensions (rows, size), got {weight.ndim}")
    return input.to(int64) & POSITIVE


@contextmanager
def _within(weight: Tensor, input: Tensor) -> Iterator[None]:
    try:
        yield
    except IndexError:
        rows = weight.shape[0]
        wrong = first_of(input, lambda n: not 0 <= n < rows)
        raise IndexError(f"index{wrong} out of range in self: expected row numbers from 0 to {rows - 1}") from None


def _shorten(weight: Tensor, at: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are longer than ``max_norm`` down to it, in place."""
    with modes.no_grad():
        table, flat = weight.detach(), at.reshape(-1)
        rows = table[flat]
        length = rows.norm(norm_type, -1, keepdim=True)
        table[flat] = rows * where(length > max_norm, max_norm / (length + 1e-7), 1.0)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of ``weight`` that each bag names. -> (bags, dim); empty bags give 0

    Args:
        input: integers: (bags, n), or (n,) with ``offsets``.
        offsets: where in ``input`` each bag begins, the first at 0. (bags,)
        mode: "sum", "mean" or "max".
        per_sample_weights: a factor for each element of ``input``; for "sum" alone.
        include_last_offset: ``offsets`` has one element more, the length of ``input``.
        padding_idx: a row that counts for nothing, as if it were not in its bag.

    Raises:
        ValueError: shapes or ``mode`` do not fit. NotImplementedError: ``sparse``, or weights without "sum".
        IndexError: an index is outside the table. RuntimeError: ``offsets`` do not ascend from 0 within ``input``.
    """
    at = _numbers(input, weight, "embedding_bag", sparse)
    expect_real(weight, "embedding_bag")
    _check_bag(at, offsets, mode, per_sample_weights)
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("embedding_bag: mode 'max' does not scale gradients by frequency: no scale_grad_by_freq")
    rows = embedding(at, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    if offsets is None:
        bags = at.shape[0]
        bag = arange(bags, device=at.device).unsqueeze(-1).expand(at.shape).reshape(-1)
        at, rows = at.reshape(-1), rows.reshape(-1, weight.shape[1])
    else:
        starts = _starts(offsets, at.shape[0], include_last_offset)
        bags = starts.shape[0] + 1  # also what is before the first, which is empty
        bag = searchsorted(starts, arange(at.shape[0], device=at.device), right=True)
    counts = ones(at.shape[0], 1, dtype=weight.dtype, device=weight.device)
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1, 1)
    if padding_idx is not None:  # both factors are masked: the slope of each is the other, which may be inf
        padding = (at == padding_row(padding_idx, weight)).unsqueeze(-1)
        counts = where(padding, 0.0, counts)
        rows = where(padding, -math.inf if mode == "max" else 0.0, rows)
        factors = None if factors is None else where(padding, 0.0, factors)
    if factors is not None:
        rows = rows * factors
    out = _pooled(rows, counts, bag, bags, mode)
    return out if offsets is None else out[1 : bags - include_last_offset]


def _starts(offsets: Tensor, n: int, include_last_offset: bool) -> Tensor:
    """Where the bags of ``n`` elements start, and with ``include_last_offset`` the last one ends, if that may be."""
    if offsets.dtype.category != 1:
        raise RuntimeError(f"embedding_bag: offsets: expected an integer tensor, got {offsets.dtype}")
    if include_last_offset and not offsets.shape[0]:
        raise RuntimeError("include_last_offset: number of offset should be at least 1, but offsets is empty")
    starts = offsets.to(int64)
    first = "offsets[0] has to be 0, i.e., the first bag has to start at the first index of input"
    refuse(starts[:1] != 0, error=RuntimeError, message=first)
    falling = "offsets: expected the starts of the bags in ascending order, but one is before the previous one"
    refuse(starts[1:] < starts[:-1], error=RuntimeError, message=falling)
    beyond = f"offsets[-1] can not be greater than input's length {n}"
    refuse(starts[-1:] > n, error=RuntimeError, message=beyond)
    return starts


def _pooled(rows: Tensor, counts: Tensor, bag: Tensor, bags: int, mode: str) -> Tensor:
    """The rows of each bag together; ``counts`` says which rows count. (n, width) -> (bags, width)"""
    empty = zeros(bags, rows.shape[1], dtype=rows.dtype, device=rows.device)
    if mode == "sum":
        return empty.index_add(0, bag, rows)
    sizes = empty[:, :1].index_add(0, bag, counts)
    if mode == "mean":
        return empty.index_add(0, bag, rows) / sizes.clamp(min=1)
    return where(sizes > 0, empty.index_add(0, bag, where(_first(rows, bag, empty), rows, 0.0)), 0.0)


def _first(rows: Tensor, bag: Tensor, empty: Tensor) -> Tensor:
    """Whether an element is the largest of its bag, which is the first one of equals. -> (n, width)"""
    rows, place = rows.detach(), bag.unsqueeze(-1).expand(rows.shape)
    largest = (empty - math.inf).scatter_reduce(0, place, rows, "amax").gather(0, place)
    number = arange(rows.shape[0], device=rows.device).unsqueeze(-1)
    rank = where((rows == largest) | rows.isnan(), number, rows.shape[0])
    best = full(tuple(empty.shape), rows.shape[0], dtype=int64, device=rows.device)
    return best.scatter_reduce(0, place, rank, "amin").gather(0, place) == number


def _check_bag(at: Tensor, offsets: Tensor | None, mode: str, per_sample_weights: Tensor | None) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max, got {mode!r}")
    if at.ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}"
        )
    if at.ndim not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {at.ndim}")
    if at.ndim == 1 and (offsets is None or offsets.ndim != 1):
        raise ValueError("offsets has to be a 1D Tensor" + (" but got None" if offsets is None else ""))
    if per_sample_weights is None:
        return
    if mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights is only supported for mode='sum' (got mode={mode!r})"
        )
    if per_sample_weights.shape != at.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({at.shape})"
        )


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class that each element names, else 0. (...) int64 -> (..., num_classes) int64

    Args:
        num_classes: one more than the greatest class, if -1.

    Raises:
        RuntimeError: not int64, or an element names no class.
    """
    if expect_tensor(tensor, "tensor", "one_hot").dtype is not int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type int64, got {tensor.dtype}; use .long()")
    classes = integer(num_classes, "num_classes", "one_hot")
    if classes < -1:
        raise RuntimeError(f"one_hot: num_classes: expected the number of classes, or -1 to count them, got {classes}")
    return _one_hot(tensor, classes=int(tensor.max()) + 1 if classes == -1 else classes)
