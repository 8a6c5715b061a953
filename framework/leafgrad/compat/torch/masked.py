"""Reductions, running sums and softmax of the elements where a mask is True, as ``torch.masked`` has them.

    masked.mean(x, dim=1, mask=x > 0)

What is masked out is as if it were not there: it gets no gradient, whatever it is. A mask is broadcast to ``input``;
without one all elements count. ``dim`` is a dimension or several, and none or () stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import dtypes
from leafgrad.nn import functional as F
from leafgrad.tensor import comparison, differences, norms, pointwise, reductions, statistics
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

Dims = int | Sequence[int] | None


# ---- what takes the place of what is masked out ---------------------------------------------------------------------


def _of_input(input: Tensor, mask: Tensor, function: str) -> Tensor:
    """``mask`` as a bool tensor of the shape of ``input``."""
    if mask.ndim > input.ndim:
        raise IndexError(
            f"masked.{function}: mask: expected one that broadcasts to {list(input.shape)}, got {list(mask.shape)}"
        )
    return mask.to(dtypes.bool_).broadcast_to(input.shape)


def _filled(function: str, input: Tensor, mask: Tensor | None, value: float) -> Tensor:
    """``input`` with ``value`` where it is masked out; for integers their least or largest stands for infinity."""
    if mask is None:
        return input
    if math.isinf(value) and not input.dtype.is_differentiable:
        limits = dtypes.iinfo(input.dtype)
        value = limits.max if value > 0 else limits.min
    return input.masked_fill(~_of_input(input, mask, function), value)


def _dims(input: Tensor, dim: Dims) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(input.ndim))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _sum_dtype(input: Tensor) -> dtypes.dtype:
    return input.dtype if input.dtype.is_differentiable else dtypes.int64


# ---- reductions -----------------------------------------------------------------------------------------------------


def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum, 0 of nothing. (...) -> (...) of ``dtype``, by default that of ``input``, or int64."""
    x = _filled("sum", input, mask, 0)
    return reductions.sum(x, _dims(x, dim), keepdim, dtype=dtype or _sum_dtype(input))


def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The product, 1 of nothing. (...) -> (...) of ``dtype``, by default that of ``input``, or int64."""
    x = _filled("prod", input, mask, 1).to(dtype or _sum_dtype(input))
    dims = _dims(x, dim)
    for d in dims:
        x = reductions.prod(x, d, True)
    return x if keepdim or not dims else x.squeeze(dims)


def _extreme(name: str, nothing: float) -> Callable[..., Tensor]:
    def extreme(
        input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        x = _filled(name, input, mask, nothing)
        found: Tensor = getattr(statistics, name)(x, _dims(x, dim), keepdim)
        return found.to(dtype or input.dtype)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"``leafgrad.{name}``; of nothing, {nothing} or the integer next to it. (...) -> (...)"
    return extreme


amax, amin = _extreme("amax", -math.inf), _extreme("amin", math.inf)


def _place(name: str, nothing: float) -> Callable[..., Tensor]:
    def place(
        input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        found: Tensor = getattr(statistics, name)(_filled(name, input, mask, nothing), dim, keepdim)
        return found.to(dtype or input.dtype)

    place.__name__ = place.__qualname__ = name
    place.__doc__ = f"``leafgrad.{name}``, in the dtype of ``input`` unless ``dtype`` is given. (...) -> (...)"
    return place


argmax, argmin = _place("argmax", -math.inf), _place("argmin", math.inf)


def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean, nan of nothing. (...) -> (...)

    Raises:
        ValueError: ``dtype``, by default that of ``input``, has integers or bools.
    """
    kind = dtype or input.dtype
    if not kind.is_differentiable:
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{kind}; give a floating dtype"
        )
    return sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask) / _count("mean", input, dim, keepdim, mask)


def _count(function: str, input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements count."""
    counted = (
        input.detach().new_ones(input.shape, dtype=dtypes.int64) if mask is None else _of_input(input, mask, function)
    )
    return reductions.sum(counted, _dims(input, dim), keepdim)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median along a dimension, without nan; nan of nothing. (...) -> (...)

    Raises:
        ValueError: there is nothing in a row of integers.
    """
    floating = input.dtype.is_floating_point
    x = _filled("median", input if floating else input.to(dtypes.float32), mask, math.nan)
    found: Tensor = statistics.nanmedian(x, dim, keepdim).values
    if floating:
        return found
    if comparison.isnan(found).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype or input.dtype)


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials, -inf of nothing. (...) -> (...)"""
    x = _filled("logsumexp", input, mask, -math.inf)
    return reductions.logsumexp(x, _dims(x, dim), keepdim).to(dtype or input.dtype)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The logarithm of the sum of two exponentials, each with a mask of its own. (...), (...) -> (...)"""
    x, y = (_filled("logaddexp", t, m, -math.inf) for t, m in ((input, input_mask), (other, other_mask)))
    return pointwise.logaddexp(x, y).to(dtype or input.dtype)


def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``linalg.vector_norm``; of nothing 0, or for ``ord=-inf`` inf. (...) -> (...)"""
    x = _filled("norm", input, mask, math.inf if ord == -math.inf else 0)
    return norms.vector_norm(x, 2.0 if ord is None else ord, _dims(x, dim), keepdim, dtype=dtype or input.dtype)


def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance: squares of distances from the mean, over their number less ``correction``, by default 1.

    (...) -> (...), nan of nothing.

    Raises:
        ValueError: both ``unbiased`` and ``correction``, or a ``dtype`` of integers.
    """
    if unbiased is not None and correction is not None:
        raise ValueError("masked.var: expected one of unbiased and correction, got both")
    less = correction if correction is not None else 1.0 if unbiased is None else float(unbiased)
    kind = dtype or (input.dtype if input.dtype.is_differentiable else dtypes.float32)
    if not kind.is_differentiable:
        raise ValueError(f"masked.var: dtype: expected a floating or complex one, got {kind}")
    x = _filled("var", input, mask, 0)
    away = x - sum(x, dim, keepdim=True, dtype=kind, mask=mask) / _count("var", x, dim, True, mask)
    squares = sum((away * away.conj()).to(kind), dim, keepdim=keepdim, dtype=kind, mask=mask)
    count = _count("var", x, dim, keepdim, mask).to(kind.to_real())
    return squares / (count - less).clamp(min=0)


def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The root of ``var``, whose arguments it takes. (...) -> (...)"""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


# ---- along a dimension ----------------------------------------------------------------------------------------------


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """``leafgrad.cumsum``, in the dtype of ``input`` unless ``dtype`` is given. (...) -> (...)"""
    return differences.cumsum(_filled("cumsum", input, mask, 0), dim, dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """``leafgrad.cumprod``, in the dtype of ``input`` unless ``dtype`` is given. (...) -> (...)"""
    return differences.cumprod(_filled("cumprod", input, mask, 1), dim, dtype=dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """``functional.softmax``, 0 where masked out, and nan where all is. (...) -> (...)"""
    return F.softmax(_filled("softmax", input, mask, -math.inf), dim, dtype=dtype or input.dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """``functional.log_softmax``, -inf where masked out, and nan where all is. (...) -> (...)"""
    return F.log_softmax(_filled("log_softmax", input, mask, -math.inf), dim, dtype=dtype or input.dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """``functional.softmin``, 0 where masked out, and nan where all is. (...) -> (...)"""
    return F.softmin(_filled("softmin", input, mask, math.inf), dim, dtype=dtype or input.dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """``input`` over its norm, or over ``eps`` if that is larger; 0 where masked out. (...) -> (...)"""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("normalize", input, mask, 0) / size.clamp(min=eps)


publish(globals(), asking=True)
