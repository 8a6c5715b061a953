"""How often values occur: bincount, histc, histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.ops import index, rounding
from leafgrad.ops.histogram import histogram as counted
from leafgrad.tensor.arguments import cast, expect_tensor, integer, number
from leafgrad.tensor.comparison import searchsorted
from leafgrad.tensor.creation import linspace
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

    Its size depends on values: the host waits for the device, and it cannot be traced. Gradients are by ``weights``.

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
        each = cast(weights, dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64)
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


@public(out="cast")
def histogram(
    input: Tensor, bins: Any, *, range: Sequence[float] | None = None, weight: Tensor | None = None,
    density: bool = False,
) -> return_types.histogram:  # fmt: skip
    """How many elements lie in each bin, and the edges of the bins; the last edge belongs to the last bin.

    Args:
        bins: how many of one width, or their edges, ascending; (bins + 1,).
        range: of a number of bins, the first and the last edge; by default the smallest and the largest element.
        weight: what each element counts instead of 1; of the shape of ``input``.
        density: divide, so that the integral over all bins is 1.

    Gradients are by ``weight`` alone.

    Raises:
        RuntimeError: the dtype is not a floating one, sizes differ, or the range is empty.
    """
    x = expect_tensor(input, "input", "histogram").detach().reshape(-1)
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"histogram: expected floats, got {x.dtype}; convert them with .float()")
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError(
            f"histogram: weight: expected size {list(input.shape)}, like input's, got {list(weight.shape)}"
        )
    edges = expect_edges(x, bins, range)
    n = edges.shape[0] - 1
    inside = (x >= edges[0]) & (x <= edges[n])
    at = (searchsorted(edges, where(inside, x, edges[0]), right=True) - 1).clamp(0, n - 1)
    each = x.new_ones(x.shape) if weight is None else cast(weight.reshape(-1), x.dtype)
    hist = index.index_sum(where(inside, each, 0), at, shape=(n,), dims=(0,))
    if density:
        hist = hist / edges.diff() / hist.sum()
    for source in (input, bins):
        if isinstance(source, Tensor) and source.requires_grad:
            hist, edges = counted(hist, source), counted(edges, source)
    return return_types.histogram(hist, edges)


def expect_edges(x: Tensor, bins: Any, range: Sequence[float] | None) -> Tensor:
    """The edges of the bins of ``histogram``."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or bins.shape[0] < 2 or bins.dtype is not x.dtype:
            raise RuntimeError(f"histogram: bins: expected a 1-d tensor of at least two edges, {x.dtype}")
        return bins.detach().clone()
    count = integer(bins, "bins", "histogram")
    if count < 1:
        raise RuntimeError(f"histogram: bins must be > 0, got {count}")
    if range is None:
        low, high = (float(end.item()) for end in x.aminmax()) if x.numel() else (0.0, 1.0)
    else:
        low, high = (float(number(end, "range", "histogram")) for end in range)
    if low == high:
        low, high = low - 0.5, high + 0.5
    if not low < high:
        raise RuntimeError(f"histogram: range: expected finite ends in ascending order, got {low}, {high}")
    return linspace(low, high, count + 1, dtype=x.dtype, device=x.device)
