"""Reductions: sums, means, spread, norms, softmax, logic and counts.

``dim`` is an int, or several where PyTorch allows it; None reduces all. ``keepdim=True`` keeps what was reduced at
size 1.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import dtypes
from leafgrad.dtypes import DIFFERENTIABLE, FLOATING
from leafgrad.ops import compare, elementwise as ew, messages, reduce as ops, softmax as softmaxes
from leafgrad.ops.complex import imag, real
from leafgrad.ops.marks import shown_as
from leafgrad.ops.op import Op
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import Dim, cast, dims, discarding, expect_floating, expect_tensor, one_dim, widened
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor

_sum, _mean, _var = ops.sum.function, ops.mean.function, ops.var.function
_softmax, _log_softmax = softmaxes.softmax.function, softmaxes.log_softmax.function


# ---- sums, products, means ----------------------------------------------------------------------------------------


@public(out="in")
def sum(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over ``dim``; integers and bools are added up in int64.

    Args:
        dtype: the input is converted to it first.

    Raises:
        IndexError: ``dim`` is out of range. RuntimeError: a dimension is named twice.
    """
    if not isinstance(input, Tensor):
        expect_tensor(input, "input", "sum")
    x = input if dtype is None and input._data.dtype in DIFFERENTIABLE else widened(input, dtype)
    over = dims(x, dim, "sum")
    result = _sum(x, dim=over, keepdim=keepdim)
    return result if dtype is None else cast(result, dtype)


@public(out="in")
def nansum(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over ``dim`` of what is not nan."""
    x = expect_tensor(input, "input", "nansum")
    if dtype is not None and x.dtype.is_differentiable:  # before it becomes a number that nobody knows
        x = where(compare.isnan(x), 0, x)
    x = widened(x, dtype)
    result = ops.nansum(x, dim=dims(x, dim, "nansum"), keepdim=keepdim)
    return cast(result, dtype)


@public(out="in")
def mean(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over ``dim``. RuntimeError for integers, unless ``dtype`` says how to take them."""
    if not isinstance(input, Tensor):
        expect_tensor(input, "input", "mean")
    x = input if dtype is None else discarding(input, dtypes.check(dtype))
    if x._data.dtype not in DIFFERENTIABLE and not dtypes.of(x._data).is_differentiable:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {x.dtype}; convert it with .float(), or pass dtype"
        )
    over = dims(x, dim, "mean")
    return _mean(x, dim=over, keepdim=keepdim)


@public(out="in")
def nanmean(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over ``dim`` of what is not nan. RuntimeError for integers."""
    x = cast(expect_tensor(input, "input", "nanmean"), dtype)
    expect_floating(x, "nanmean")
    over = dims(x, dim, "nanmean")
    number = ops.sum(cast(compare.logical_not(compare.isnan(x)), x.dtype), dim=over, keepdim=keepdim)
    return ops.nansum(x, dim=over, keepdim=keepdim) / number


@public(out="in")
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Product over ``dim``, one dimension or all; integers and bools are multiplied in int64."""
    x = widened(expect_tensor(input, "input", "prod"), dtype)
    over = dims(x, None if dim is None else one_dim(x, dim, "prod"), "prod")
    result = ops.prod(x, dim=over, keepdim=keepdim)
    return cast(result, dtype)


# ---- spread -------------------------------------------------------------------------------------------------------


def _spread_arguments(
    input: Tensor, dim: Any, unbiased: Any, correction: Any, function: str
) -> tuple[tuple[int, ...], float]:
    """``dim`` and ``correction`` of var and std, in any of PyTorch's forms: var(x, unbiased), var(x, dim, unbiased)."""
    if not isinstance(input, Tensor):
        expect_tensor(input, "input", function)
    if input._data.dtype not in DIFFERENTIABLE and not dtypes.of(input._data).is_differentiable:
        raise RuntimeError(f"{function}: std and var only support floating point and complex dtypes, got {input.dtype}")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is not None and unbiased is not None:
        raise TypeError(f"{function}(): expected one of unbiased and correction, got both")
    correction = (1 if unbiased in (None, True) else 0) if correction is None else correction
    over = dims(input, dim, function)
    if math.prod(map(input._data.shape.__getitem__, over)) - correction <= 0:
        messages.warn(
            f"{function}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel)."
        )
    return over, correction


def _spread(op: Op, input: Tensor, **params: Any) -> Tensor:
    """``op``, var or std, of ``input``; of complex numbers from the variances of their two parts."""
    result: Tensor
    if input._data.dtype.kind != "c":
        result = op(input, **params)
    elif op is ops.var:
        result = ops.var(real(input), **params) + ops.var(imag(input), **params)
    else:  # not the root of that, whose gradient at 0 is nan
        left = max(ops.count(input.shape, params["dim"]) - params["correction"], 0)
        centred = input - ops.mean(input, dim=params["dim"], keepdim=True)
        length = ops.norm(centred, p=2.0, dim=params["dim"], keepdim=params["keepdim"])
        result = length * (left**-0.5 if left else math.inf)
    return result


@public(out="cast")
def var(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Variance over ``dim``: squared deviations from the mean, summed, over n - ``correction``.

    Args:
        unbiased: True is ``correction=1``, the default; False is ``correction=0``.

    Raises:
        RuntimeError: the dtype is not a floating one. TypeError: both ``unbiased`` and ``correction``.
    """
    over, left = _spread_arguments(input, dim, unbiased, correction, "var")
    if input._data.dtype.kind == "c":
        return _spread(ops.var, input, dim=over, correction=left, keepdim=keepdim)
    return _var(input, dim=over, correction=left, keepdim=keepdim)


@public(out="cast")
def std(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Standard deviation over ``dim``, the square root of ``var``; arguments as there.

    Args:
        unbiased: whether ``correction`` is 1, or 0.
        correction: what is subtracted from the number of elements.
    """
    over, left = _spread_arguments(input, dim, unbiased, correction, "std")
    return _spread(ops.std, input, dim=over, correction=left, keepdim=keepdim)


@public(only="leafgrad")
def var_mean(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """``var`` and ``mean`` over ``dim``.

    Args:
        unbiased: whether ``correction`` is 1, or 0.
        correction: what is subtracted from the number of elements.
    """
    over, left = _spread_arguments(input, dim, unbiased, correction, "var_mean")
    spread = _spread(ops.var, input, dim=over, correction=left, keepdim=keepdim)
    return spread, ops.mean(input, dim=over, keepdim=keepdim)


@public(only="leafgrad")
def std_mean(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """``std`` and ``mean`` over ``dim``.

    Args:
        unbiased: whether ``correction`` is 1, or 0.
        correction: what is subtracted from the number of elements.
    """
    over, left = _spread_arguments(input, dim, unbiased, correction, "std_mean")
    spread = _spread(ops.std, input, dim=over, correction=left, keepdim=keepdim)
    return spread, ops.mean(input, dim=over, keepdim=keepdim)


@public(out="cast")
def norm(
    input: Tensor, p: float | str | None = "fro", dim: Dim = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm of the elements over ``dim``, ``(sum of abs(x)**p) ** (1/p)``.

    Args:
        p: a number, ``inf``, ``-inf``, 0 (the count of nonzero elements), ``"fro"``, which is 2, or ``"nuc"``, the sum
            of the singular values of matrices in two dimensions.

    Raises:
        RuntimeError: the dtype is not a floating one.
    """
    x = cast(expect_tensor(input, "input", "norm"), dtype)
    if p == "nuc":
        from leafgrad.tensor import norms  # which is made of reductions

        return norms.matrix_norm(x, "nuc", dims(x, dim, "norm"), keepdim)
    if not x.dtype.is_complex:
        expect_floating(x, "norm")
    over = dims(x, dim, "norm")
    if p in ("fro", None):
        p = 2.0
    if isinstance(p, str):
        raise RuntimeError(f"norm(): p: expected a number, 'fro' or 'nuc', got {p!r}")
    result: Tensor
    if math.isinf(p):
        result = (ops.amax if p > 0 else ops.amin)(ew.abs(x), dim=over, keepdim=keepdim)
    else:
        result = ops.norm(x, p=float(p), dim=over, keepdim=keepdim)
    return result


@public
@shown_as("DistBackward0", "input", "other")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of ``input - other``."""
    return norm(expect_tensor(input, "input", "dist") - expect_tensor(other, "other", "dist"), p)


# ---- exponential --------------------------------------------------------------------------------------------------


@public(also="special.logsumexp", out="in")
def logsumexp(input: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
    """log of the sum of exp over ``dim``, without overflow."""
    over = dims(expect_tensor(input, "input", "logsumexp"), dim, "logsumexp")
    return softmaxes.logsumexp(input, dim=over, keepdim=keepdim)


@public(out="exact")
@public(name="special.softmax")
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """exp over its sum along ``dim``. (...) -> (...). RuntimeError for integers, unless ``dtype`` is given."""
    x = input if dtype is None else discarding(expect_tensor(input, "input", "softmax"), dtypes.check(dtype))
    if not (isinstance(x, Tensor) and x._data.dtype in FLOATING):
        expect_floating(x, "softmax", NotImplementedError)
    d = dim if type(dim) is int and 0 <= dim < x._data.ndim else one_dim(x, dim, "softmax")
    return _softmax(x, dim=d)


@public(out="exact")
@public(name="special.log_softmax")
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """log of ``softmax``, without overflow. (...) -> (...)"""
    x = input if dtype is None else discarding(expect_tensor(input, "input", "log_softmax"), dtypes.check(dtype))
    if not (isinstance(x, Tensor) and x._data.dtype in FLOATING):
        expect_floating(x, "log_softmax", NotImplementedError)
    d = dim if type(dim) is int and 0 <= dim < x._data.ndim else one_dim(x, dim, "log_softmax")
    return _log_softmax(x, dim=d)


# ---- logic and counts ---------------------------------------------------------------------------------------------


@public(out="exact")
def any(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether some element over ``dim`` is nonzero. bool, but uint8 for uint8"""
    return _logic(ops.any, input, dim, keepdim)


@public(out="exact")
def all(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether no element over ``dim`` is zero. bool, but uint8 for uint8"""
    return _logic(ops.all, input, dim, keepdim)


def _logic(op: Op, input: Tensor, dim: Dim, keepdim: bool) -> Tensor:
    expect_tensor(input, "input", op.name)
    over = () if isinstance(dim, (tuple, list)) and not dim else dims(input, dim, op.name)
    result = op(input, dim=over, keepdim=keepdim)
    return cast(result, dtypes.uint8) if input.dtype is dtypes.uint8 else result


@public
def count_nonzero(input: Tensor, dim: Dim = None) -> Tensor:
    """How many elements over ``dim`` are nonzero. int64"""
    over = dims(expect_tensor(input, "input", "count_nonzero"), dim, "count_nonzero")
    return ops.count_nonzero(input, dim=over)
