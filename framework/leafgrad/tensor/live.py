"""Python numbers that change between calls of a traced function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.ops import dispatch
from leafgrad.tensor.tensor import Tensor


def live(read: Callable[[], Any]) -> Any:
    """``read()``: now, and in a compiled program anew at each call, where a plain number would be fixed for good.

    Args:
        read: gives a Python number, or a Tensor, which is returned as it is.

    Returns:
        The number itself, or while tracing a 0-d Tensor that stands for it and promotes like a number.
    """
    value = read()
    if modes.get() & modes.TRACE and not isinstance(value, Tensor):
        return dispatch.alias(modes.TRACER.get().live(read))
    return value
