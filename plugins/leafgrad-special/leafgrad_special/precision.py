"""The dtype of results: SciPy computes float16 in float32, and some numbers of no dimensions in float64.

And the precision of derivatives: formulas for those of special functions cancel and overflow where their values are
plain numbers. So derivatives in less than float64 are computed in float64, as SciPy does with most of its functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from leafgrad.ops.convert import new_full, to_dtype
from leafgrad.ops.op import Op
from leafgrad.ops.select import where

FAR = 1e9  # far enough for every series here


def keep(result: Any, *args: Any) -> Any:
    """``result`` in the dtype of the first array among ``args``, if that is a floating one."""
    dtype = next(a.dtype for a in args if hasattr(a, "dtype"))
    return result.astype(dtype, copy=False) if dtype.kind == "f" else result


def array(value: Any, like: Any) -> Any:
    """``value``, which may be a number, as something that ops take: a number as an array of the dtype of ``like``."""
    return new_full(like, shape=(), value=value) if isinstance(value, (int, float)) else value


def finely(op: Op, **rules: Callable[..., Any]) -> Op:
    """``op.vjp(**rules)``, with rules that compute in float64 and round only the gradient.

    They compute the op anew where they need its result, which was rounded.
    """
    return op.vjp(**{argument: _fine(rule) for argument, rule in rules.items()})


def _fine(rule: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def fine(g: Any, *args: Any, **params: Any) -> Any:
        return _cast(rule(_cast(g, "float64"), *[_cast(a, "float64") for a in args], **params), _dtype(g))

    return fine


def beyond(far: Any, x: Any, series: Callable[[Any], Any], near: Callable[[Any], Any], near_at: float = 1.0) -> Any:
    """``series(x)`` where ``far`` is True, elsewhere ``near(x)``; neither sees the numbers of the other.

    Far from 0, where a formula is a difference of near numbers, a series in 1 / x has derivatives of any order.
    """
    return where(far, series(where(far, x, FAR)), near(where(far, near_at, x)))


def polynomial(x: Any, coefficients: Iterable[float]) -> Any:
    """The sum of coefficients times powers of ``x``, from the 0-th up."""
    first, *rest = reversed([*coefficients])
    total = first + 0 * x
    for coefficient in rest:
        total = total * x + coefficient
    return total


def _dtype(x: Any) -> str:
    return getattr(x.dtype, "name", str(x.dtype))


def _cast(x: Any, dtype: str) -> Any:
    if type(x) in (int, float) or _dtype(x) == dtype:
        return x
    return to_dtype(x, dtype=dtype, source=_dtype(x))
