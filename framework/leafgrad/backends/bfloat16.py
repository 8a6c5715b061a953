"""bfloat16 for NumPy: arrays of ml_dtypes' dtype, in a class of their own by which dispatch knows them.

Nothing computes in bfloat16. An op on these arrays runs in float32 and rounds its result (``leafgrad.ops.narrow``); a
ufunc that somebody calls on them directly does the same.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from leafgrad import dtypes
from leafgrad.backends.contract import BACKENDS

DTYPE: Final = np.dtype(ml_dtypes.bfloat16)


class BFloat16Array(np.ndarray):
    """An array of bfloat16."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method == "at":
            return NotImplemented
        exact = ufunc in (np.multiply, np.true_divide, np.floor_divide)  # as in leafgrad.ops.narrow
        made = getattr(ufunc, method)(*map(widen if exact else widen_numbers, inputs), **options)
        if out is None:
            return narrow(made) if alone(inputs) else made
        for target, result in zip(out, made if isinstance(made, tuple) else (made,), strict=True):
            target[...] = result
        return out if isinstance(made, tuple) else out[0]

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """A plain array of another dtype, or a copy of this one."""
        made = widen(self).astype(dtype, *args, **options) if np.dtype(dtype) != DTYPE else self.copy()
        return made


BACKENDS[BFloat16Array] = BACKENDS[DTYPE.type] = BACKENDS[np.ndarray]


def adopt(array: Any) -> Any:
    """An array or scalar of dtype bfloat16 as one of the class, in the same memory; anything else as it is."""
    if type(array) is BFloat16Array or getattr(array, "dtype", None) != DTYPE:
        return array
    return np.asarray(array).view(BFloat16Array)


def widen(value: Any) -> Any:
    """bfloat16 as float32, exactly, repeated in memory where it is; anything else as it is."""
    if type(value) is not BFloat16Array:
        return value
    plain = np.asarray(value)
    if 0 not in plain.strides:
        return plain.astype(np.float32)
    once = plain[tuple([slice(None) if step else slice(1) for step in plain.strides])]
    return np.broadcast_to(once.astype(np.float32), plain.shape)


def widen_numbers(value: Any) -> Any:
    """The same, and a Python number as the nearest bfloat16."""
    if type(value) in (int, float):
        return float(DTYPE.type(float(value)))
    return widen(value)


def bare(value: Any) -> Any:
    """bfloat16 as an array of NumPy's own class; anything else as it is."""
    return np.asarray(value) if type(value) is BFloat16Array else value


def narrow(made: Any) -> Any:
    """float32, in any of several results, rounded to the nearest bfloat16, ties to even; anything else as it is."""
    if isinstance(made, (tuple, list)):
        return tuple(map(narrow, made))
    if getattr(made, "dtype", None) == np.float32:
        return np.asarray(made).astype(DTYPE).view(BFloat16Array)
    return adopt(made)


def alone(values: Any) -> bool:
    """Whether no array among the values is of another floating dtype, so that results are bfloat16."""
    return not any(isinstance(v, np.ndarray | np.generic) and v.dtype.kind == "f" for v in values)


NAME: Final = dtypes.bfloat16.name  # read, so that dispatch knows the class even where a pickle has imported it
