"""Running sums and products, differences and integrals along a dimension."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from leafgrad import dtypes, return_types
from leafgrad.ops import cumulative
from leafgrad.ops.marks import shown_as
from leafgrad.ops.scalars import as_ints
from leafgrad.tensor.arguments import cast, expect_differentiable, expect_tensor, integer, number, one_dim, widened
from leafgrad.tensor.joining import cat
from leafgrad.tensor.public import public
from leafgrad.tensor.statistics import as_floating, found_at
from leafgrad.tensor.tensor import Tensor

# ---- differences and integrals ------------------------------------------------------------------------------------


@public(out="cast")
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The ``n``-th differences of neighbours along ``dim``; != for bool. (..., m, ...) -> (..., m - n, ...)

    Args:
        prepend, append: tensors put before and after ``input`` along ``dim`` first, unless ``n`` is 0.

    Raises:
        RuntimeError: ``n`` is negative, or ``input`` has no dimension.
    """
    if not expect_tensor(input, "input", "diff").ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional, got a 0-d tensor")
    if integer(n, "n", "diff") < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = one_dim(input, dim, "diff")
    if n == 0:
        return input.clone()
    parts = [x for x in (prepend, input, append) if x is not None]
    result = cat(parts, d) if len(parts) > 1 else input
    for _ in range(min(n, result.shape[d])):
        later, earlier = result.narrow(d, 1, result.shape[d] - 1), result.narrow(d, 0, result.shape[d] - 1)
        result = later != earlier if result.dtype is dtypes.bool_ else later - earlier
    return result


def _areas(function: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[Tensor, int]:
    """The area under each pair of neighbours along ``dim``, and that dimension."""
    d = one_dim(expect_tensor(y, "y", function), dim, function)
    y = as_floating(y, x)
    if not y.ndim:
        raise RuntimeError(f"{function}: expected y to have at least one dimension, got a 0-d tensor")
    n = max(y.shape[d] - 1, 0)
    means = (y.narrow(d, min(1, y.shape[d]), n) + y.narrow(d, 0, n)) * 0.5
    if x is None:
        return means * number(1 if dx is None else dx, "dx", function), d
    if dx is not None:
        raise TypeError(f"{function}(): expected one of x and dx, got both")
    if expect_tensor(x, "x", function).ndim == 1:
        if x.shape[0] != y.shape[d]:
            raise RuntimeError(f"{function}: There must be one x value for each sample point, got {x.shape[0]}")
        x = x.reshape([-1 if i == d else 1 for i in range(y.ndim)])
    return means * diff(as_floating(x, y), dim=d - y.ndim), d


@public(only="leafgrad")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral of ``y`` along ``dim`` by the trapezoidal rule. (..., n, ...) -> (..., ...)

    Args:
        x: where ``y`` was sampled, (n,) or broadcastable to ``y``.
        dx: the distance of the samples instead; 1 by default.
        y: values of the function.

    Raises:
        RuntimeError: sizes do not go together. TypeError: both ``x`` and ``dx``.
    """
    areas, d = _areas("trapezoid", y, x, dx, dim)
    return areas.sum(d)


@public(only="leafgrad")
def trapz(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The same as ``trapezoid``."""
    return trapezoid(y, x, dx=dx, dim=dim)


@public(only="leafgrad")
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral of ``y`` up to each sample but the first. (..., n, ...) -> (..., n - 1, ...). As ``trapezoid``.

    Args:
        y: values of the function.
        x: their places.
        dx: the distance between them, without ``x``.
    """
    areas, d = _areas("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(d)


# ---- running ------------------------------------------------------------------------------------------------------


@public(out="in", inplace=True)
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running sums along ``dim``; integers and bools are added up in int64. (...) -> (...)"""
    x = widened(expect_tensor(input, "input", "cumsum"), dtype)
    result = cumulative.cumsum(x, dim=one_dim(x, dim, "cumsum"))
    return cast(result, dtype)


@public(out="in", inplace=True)
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running products along ``dim``; integers and bools are multiplied in int64. (...) -> (...)"""
    x = widened(expect_tensor(input, "input", "cumprod"), dtype)
    result = cumulative.cumprod(x, dim=one_dim(x, dim, "cumprod"))
    return cast(result, dtype)


@public(out="exact")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """log of the running sums of exp along ``dim``, without overflow. (...) -> (...). NotImplementedError: integers."""
    x = expect_differentiable(input, "logcumsumexp", NotImplementedError)
    return cumulative.logcumsumexp(x, dim=one_dim(x, dim, "logcumsumexp"))


@public(out="cast")
@shown_as("CummaxBackward0")
def cummax(input: Tensor, dim: int) -> return_types.cummax:
    """(values, indices) of the largest element so far along ``dim``, the last of equal ones. (...) -> (...)"""
    d = one_dim(expect_tensor(input, "input", "cummax"), dim, "cummax")
    return found_at(return_types.cummax, cumulative.cummax(input, dim=d), input, d, True)


@public(out="cast")
@shown_as("CumminBackward0")
def cummin(input: Tensor, dim: int) -> return_types.cummin:
    """(values, indices) of the smallest element so far along ``dim``, the last of equal ones. (...) -> (...)"""
    d = one_dim(expect_tensor(input, "input", "cummin"), dim, "cummin")
    return found_at(return_types.cummin, cumulative.cummin(input, dim=d), input, d, True)


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
    wanted = range(input.ndim) if dim is None else as_ints(dim)
    over = [one_dim(input, d, "gradient") for d in wanted]
    if len(set(over)) < len(over):
        raise RuntimeError(f"gradient: dim: a dimension appears multiple times in the list of dims, {list(wanted)}")
    if not isinstance(spacing, (numbers.Number, list, tuple, Tensor, type(None))):
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
    x = _exact(input)
    return tuple([
        _uneven(x, d, step, edge_order)
        if isinstance(step, Tensor) and step.ndim
        else _even(x, d, number(step, "spacing", "gradient", may_be_complex=True), edge_order)
        for d, step in zip(over, steps, strict=True)
    ])  # fmt: skip


def _exact(x: Tensor) -> Tensor:
    """``x``, in int64 if it is of integers or bools, where their differences are exact."""
    return cast(x, None if x.dtype.is_differentiable else dtypes.int64)


def _even(x: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    """The derivative along one dimension where neighbours are ``step`` apart: no inner point counts for itself."""
    n = x.shape[dim]

    def at(i: int) -> Tensor:
        return x.narrow(dim, i % n, 1)

    inner = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / step * 0.5
    if edge_order == 1:
        first, last = at(1) - at(0), at(-1) - at(-2)
    else:
        first, last = 2 * at(1) - 1.5 * at(0) - 0.5 * at(2), 1.5 * at(-1) - 2 * at(-2) + 0.5 * at(-3)
    return cat([first / step, inner, last / step], dim)


def _uneven(x: Tensor, dim: int, places: Tensor, edge_order: int) -> Tensor:
    """The derivative along one dimension at ``places``, from the parabola through each point and its neighbours."""
    n = x.shape[dim]
    if places.shape != (n,):
        raise RuntimeError(f"gradient: spacing: expected {n} coordinates, got a tensor of size {list(places.shape)}")
    h = _exact(places).diff().reshape([-1 if d == dim else 1 for d in range(x.ndim)])
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
