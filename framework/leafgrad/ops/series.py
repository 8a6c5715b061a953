"""Arithmetic of power series given as lists of coefficients, for jet rules: None is a coefficient that is zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def added(x: Any, y: Any) -> Any:
    """The sum of two coefficients."""
    return y if x is None else x if y is None else x + y


def product(op: Callable[..., Any], x: Sequence[Any], y: Sequence[Any], k: int, **params: Any) -> Any:
    """Coefficient k of a product: the sum of op(x[i], y[k - i]) over all i for which both are given."""
    total = None
    for i in range(max(0, k - len(y) + 1), min(k, len(x) - 1) + 1):
        if x[i] is not None and y[k - i] is not None:
            total = added(total, op(x[i], y[k - i], **params))
    return total


def half_square(x: Sequence[Any], k: int) -> Any:
    """Half of coefficient k of a square."""
    found = None
    for i in range((k + 1) // 2):
        if x[i] is not None and x[k - i] is not None:
            found = added(found, x[i] * x[k - i])
    if k % 2 == 0 and x[k // 2] is not None:
        found = added(found, x[k // 2] * x[k // 2] * 0.5)
    return found
