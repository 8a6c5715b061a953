"""The dtype of results: SciPy computes float16 in float32, and some numbers of no dimensions in float64."""

from __future__ import annotations

from typing import Any


def keep(result: Any, *args: Any) -> Any:
    """``result`` in the dtype of the first array among ``args``, if that is a floating one."""
    dtype = next(a.dtype for a in args if hasattr(a, "dtype"))
    return result.astype(dtype, copy=False) if dtype.kind == "f" else result
