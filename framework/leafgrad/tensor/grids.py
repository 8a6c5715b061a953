"""Numbers on grids: derivatives by differences, histograms with edges, powers of points, norms of slices bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.ops import index
from leafgrad.tensor.arguments import cast, expect_tensor, integer, number, one_dim
from leafgrad.tensor.creation import arange, linspace
from leafgrad.tensor.joining import cat
from leafgrad.tensor.norms import vector_norm
from leafgrad.tensor.pointwise import where
from leafgrad.tensor.public import public
from leafgrad.tensor.sorting import searchsorted
from leafgrad.tensor.tensor import Tensor


@public(only="leafgrad")
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Derivatives along dimensions by central differences, at the edges by one-sided ones.

    Args:
        spacing: the distance of neighbours, one for all dimensions or one for each; or for each the coordinates of the
            points, a 1-d tensor, of any distances.
        dim: along which; all by default.
        edge_order: 1 or 2, the order of the differences at the edges.

    Returns:
        for each dimension the derivatives, in the shape of ``input``.

    Raises:
        RuntimeError: not as many spacings as dimensions, a dimension of less than ``edge_order + 1`` points.
    """
    expect_tensor(input, "input", "gradient")
    wanted = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    over = [one_dim(input, d, "gradient") for d in wanted]
    if not isinstance(spacing, (int, float, list, tuple, type(None))):
        raise TypeError(
            f"gradient: spacing: expected a number or a list, got {type(spacing).__name__}; put it in a list"
        )
    one = 1 if spacing is None else spacing
    steps = list(one) if isinstance(one, (list, tuple)) else [one] * len(over)
    if len(steps) != len(over):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or one for each of {len(over)} dimensions, "
            f"got {len(steps)}"
        )
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: edge_order: expected 1 or 2, got {edge_order}")
    for d in over:
        if input.shape[d] <= edge_order:
            raise RuntimeError(
                f"gradient: each dimension size must be at least edge_order+1 = {edge_order + 1}, got {input.shape[d]}"
            )
    x = cast(input, None if input.dtype.is_floating_point else dtypes.get_default_dtype())
    return tuple([_slopes(x, d, step, edge_order) for d, step in zip(over, steps, strict=True)])


def _slopes(x: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    """The derivative along one dimension, from the parabola through each point and its neighbours."""
    n = x.shape[dim]
    if isinstance(step, Tensor):
        if step.shape != (n,):
            raise RuntimeError(f"gradient: spacing: expected {n} coordinates, got a tensor of size {list(step.shape)}")
        h = cast(step.diff(), x.dtype).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
    else:
        shape = [n - 1 if d == dim else 1 for d in range(x.ndim)]
        h = x.new_ones(shape) * number(step, "spacing", "gradient")
    secants = x.diff(dim=dim) / h
    left, right = secants.narrow(dim, 0, n - 2), secants.narrow(dim, 1, n - 2)
    before, after = h.narrow(dim, 0, n - 2), h.narrow(dim, 1, n - 2)
    inner = (left * after + right * before) / (before + after)
    first, last = secants.narrow(dim, 0, 1), secants.narrow(dim, n - 2, 1)
    if edge_order == 2:
        a, b = h.narrow(dim, 0, 1), h.narrow(dim, 1, 1)
        first = first - (secants.narrow(dim, 1, 1) - first) * a / (a + b)
        a, b = h.narrow(dim, n - 2, 1), h.narrow(dim, n - 3, 1)
        last = last + (last - secants.narrow(dim, n - 3, 1)) * a / (a + b)
    return cat([first, inner, last], dim)


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

    It has no gradient.

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
    each = x.new_ones(x.shape) if weight is None else cast(weight.detach().reshape(-1), x.dtype)
    hist = index.index_sum(where(inside, each, 0), at, shape=(n,), dims=(0,))
    if density:
        hist = hist / edges.diff() / hist.sum()
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


@public(only="leafgrad")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element in a row, N of them, from the highest to 1, or from 1. (n,) -> (n, N)"""
    if expect_tensor(x, "x", "vander").ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    powers = powers_of(x, x.shape[0] if N is None else integer(N, "N", "vander"), "vander")
    return powers if increasing else powers.flip(-1)


@public(name="linalg.vander")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers of each element, from 1 to the N-th, by default as many as elements. (..., n) -> (..., n, N)"""
    if not expect_tensor(x, "x", "linalg.vander").ndim:
        x = x.reshape(1)
    count = x.shape[-1] if N is None else integer(N, "N", "linalg.vander")
    if count <= 1 and N is not None:
        raise RuntimeError(f"N must be greater than 1, got {N}")
    return powers_of(x, count, "linalg.vander")


def powers_of(x: Tensor, N: int, function: str) -> Tensor:
    """1, x, x^2, … of each element. (...) -> (..., N)"""
    if N < 0:
        raise RuntimeError(f"{function}: N must be non-negative, got {N}")
    wide = cast(x, dtypes.int64 if x.dtype is dtypes.bool_ else None)
    return wide.unsqueeze(-1) ** arange(N, device=x.device)


@public(out="exact", inplace=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices along ``dim`` scaled down where their p-norm is larger than ``maxnorm``. (...) -> (...)

    Raises:
        RuntimeError: less than two dimensions, ``p`` is not positive, or ``maxnorm`` is negative.
    """
    if expect_tensor(input, "input", "renorm").ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if number(p, "p", "renorm") <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got {p}")
    if number(maxnorm, "maxnorm", "renorm") < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    d = one_dim(input, dim, "renorm")
    norms = vector_norm(input, p, [e for e in range(input.ndim) if e != d], keepdim=True)
    return input * where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)
