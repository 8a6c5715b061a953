"""Counts and enumerations: how often values occur, runs of equal ones, and the ways to choose among elements."""

from __future__ import annotations

import itertools
import math
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import dispatch, extremes as ops, index, rounding
from leafgrad.tensor.arguments import cast, expect_tensor, integer, number, one_dim, shape as shape_of
from leafgrad.tensor.creation import zeros
from leafgrad.tensor.data import tensor
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.tensor import Tensor


@public
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often 0, 1, 2, … occur in ``input``. (n,) integers -> (max(largest + 1, minlength),)

    Args:
        weights: what each element counts instead of 1; (n,). The result then is float32 or float64, else int64.
        minlength: the least size of the result.

    Its size depends on values: the host waits for the device, and it cannot be traced. It has no gradient.

    Raises:
        RuntimeError: not a vector of integers that are at least 0, or sizes differ.
    """
    expect_tensor(input, "input", "bincount")
    if input.ndim != 1 or input.dtype.category != 1:
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs, got {input.ndim} dimensions of {input.dtype}"
        )
    if integer(minlength, "minlength", "bincount") < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input, got {list(weights.shape)} and "
            f"{list(input.shape)}"
        )
    at, n = cast(input.detach(), dtypes.int64), minlength
    if not input.numel():  # whatever the weights' dtype, as in PyTorch
        return at.new_zeros(n)
    low, high = at.aminmax()
    if low.item() < 0:
        raise RuntimeError(f"bincount only supports 1-d non-negative integral inputs, got {low.item()}")
    n = max(n, int(high.item()) + 1)
    if weights is None:
        each = at.new_ones(at.shape)
    else:
        each = cast(weights.detach(), dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64)
    return index.index_sum(each, at, shape=(n,), dims=(0,))


@public(out="exact")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of ``bins`` intervals of one width from ``min`` to ``max``. -> (bins,)

    Args:
        min, max: the ends; if they are equal, the smallest and the largest element. What lies beyond is not counted.

    Raises:
        RuntimeError: ``bins`` is not positive, ``min`` above ``max``, or an end is not finite or beyond the dtype.
        NotImplementedError: bools.
    """
    if expect_tensor(input, "input", "histc").dtype is dtypes.bool_:
        raise NotImplementedError("histc: input: expected floats or integers, got bools; convert them with .long()")
    if integer(bins, "bins", "histc") <= 0:
        raise RuntimeError(f"histc: bins must be > 0, got {bins}")
    low, high = (float(number(v, name, "histc")) for v, name in ((min, "min"), (max, "max")))
    x = reshaped(input.detach(), (input.numel(),))
    if low == high and x.shape[0]:
        low, high = (float(end.item()) for end in x.aminmax())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"histc: range of [{low}, {high}] is not finite")
    if not low < high:
        raise RuntimeError(f"histc: max must be larger than min, got {high} and {low}")
    wide = cast(x, None if x.dtype in (dtypes.float32, dtypes.float64) else dtypes.float64)
    most = dtypes.finfo(wide.dtype).max
    if -low > most or high > most:
        raise RuntimeError(f"histc: range of [{low}, {high}] is beyond {wide.dtype}; convert input with .double()")
    inside = (wide >= low) & (wide <= high)
    if (high - low) * bins > most:
        small = 0.25 / 2 ** bins.bit_length()  # a power of two, so nothing is rounded
        wide, low, high = wide * small, low * small, high * small
    bin_of = rounding.floor((where(inside, wide, low) - low) * bins / (high - low))
    at = cast(bin_of.clamp(max=bins - 1), dtypes.int64)
    return index.index_sum(cast(inside, x.dtype), at, shape=(bins,), dims=(0,))


@public
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first element, or slice along ``dim``, of each run of equal ones.

    Args:
        return_inverse: give also, for each element (slice), the number of its run.
        return_counts: give also how long each run is.

    Returns:
        The values, or a tuple with what else was asked for. Their size depends on values, so a device is waited for.
    """
    expect_tensor(input, "input", "unique_consecutive")
    x = input if dim is not None else reshaped(input, (input.numel(),))
    d = 0 if dim is None else one_dim(input, dim, "unique_consecutive")
    starts, inverse, counts = dispatch.computed(ops.runs, x.detach(), dim=d)
    values = index.index(x, starts, dims=(d,)) if x.ndim else x
    inverse = reshaped(inverse, tuple(input.shape)) if dim is None else inverse
    extra = ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return (values, *extra) if extra else values


@public(only="leafgrad")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements, in order; with ``with_replacement`` an element may be chosen again. (n,) -> (m, r)

    Raises:
        RuntimeError: ``input`` is not a vector, or ``r`` is negative.
    """
    if expect_tensor(input, "input", "combinations").ndim != 1:
        raise RuntimeError(f"combinations: Expect a 1D vector, but got shape {list(input.shape)}")
    if integer(r, "r", "combinations") < 0:
        raise RuntimeError(f"combinations: Expect a non-negative number, but got {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(input.shape[0]), r))
    if not places or not r:
        return zeros(0 if r == 0 else len(places), r, dtype=input.dtype, device=input.device)[:, :r]
    return input[tensor(places, device=input.device)]


@public(only="leafgrad")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates in an array of ``shape`` of indices into the flattened array, one tensor per dimension.

    Args:
        indices: integers, each less than the product of ``shape``; negative ones count from the end.
        shape: an int or a sequence of ints.

    Raises:
        ValueError: an index is out of range. TypeError: not integers. RuntimeError: a size is negative.
    """
    if expect_tensor(indices, "indices", "unravel_index").dtype.category != 1:
        raise ValueError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = shape_of((shape,), "unravel_index", "shape")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    count = math.prod(sizes)
    if indices.numel() and bool(((indices >= count) | (indices < -count)).any()):
        raise ValueError(f"unravel_index: indices: expected indices below {count}, the product of shape {sizes}")
    flat = where(indices < 0, indices + count, indices)
    found = []
    for n in reversed(sizes):
        n = max(n, 1)
        found.append(flat % n)
        flat = flat // n
    return tuple(reversed(found))
