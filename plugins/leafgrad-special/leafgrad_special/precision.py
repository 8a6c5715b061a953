"""The dtype of results: SciPy computes float16 in float32, and some numbers of no dimensions in float64."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.convert import new_full


def keep(result: Any, *args: Any) -> Any:
    """``result`` in the dtype of the first array among ``args``, if that is a floating one."""
    dtype = next(a.dtype for a in args if hasattr(a, "dtype"))
    return result.astype(dtype, copy=False) if dtype.kind == "f" else result


def array(value: Any, like: Any) -> Any:
    """``value``, which may be a number, as something that ops take: a number as an array of the dtype of ``like``."""
    return new_full(like, shape=(), value=value) if isinstance(value, (int, float)) else value
