"""Arithmetic of shapes: operators on NumPy arrays alone, which a trace takes as the constants that they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.operators.registry import ints, room
from leafgrad_onnx.types import NAME

LARGEST: Final = 1 << 16  # elements of arrays that are computed so

Array = np.ndarray[Any, Any]


def divided(x: Array, y: Array) -> Any:
    """x / y; of integers rounded towards zero."""
    if x.dtype.kind == "f":
        return x / y
    if not np.all(y):
        raise OnnxLoadError("Div: division of integers by zero")
    return (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(x.dtype)


def unsqueezed(x: Array, dims: Any = None, axes: Any = None) -> Any:
    chosen = axes if dims is None else ints(dims)
    return np.expand_dims(x, tuple(chosen))


def squeezed(x: Array, dims: Any = None, axes: Any = None) -> Any:
    chosen = axes if dims is None else ints(dims)
    return np.squeeze(x, None if chosen is None else tuple(chosen))


def sliced(
    x: Array,
    begin: Any = None,
    stop: Any = None,
    dims: Any = None,
    step: Any = None,
    *,
    starts: Any = None,
    ends: Any = None,
    axes: Any = None,
) -> Any:
    first, last = (starts, ends) if begin is None else (ints(begin), ints(stop))
    chosen = axes if dims is None else ints(dims)
    chosen = range(len(first)) if chosen is None else chosen
    steps = [1] * len(first) if step is None else ints(step)
    key: list[Any] = [slice(None)] * x.ndim
    for d, a, b, s in zip(chosen, first, last, steps, strict=True):
        key[d] = slice(a, None if s < 0 and b < -x.shape[d] else b, s)
    return x[tuple(key)]


def reshaped(x: Array, shape: Any, allowzero: int = 0) -> Any:
    return x.reshape([x.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(ints(shape))])


def reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Array, dims: Any = None, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        chosen = axes if dims is None else ints(dims)
        if not chosen and noop_with_empty_axes:
            return x
        return function(x, axis=tuple(chosen) if chosen else None, keepdims=bool(keepdims)).astype(x.dtype)

    return run


def converted(x: Array, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    if to not in NAME:
        raise OnnxLoadError(f"leafgrad has no dtype like number {to} of ONNX's")
    return x.astype(ml_dtypes.bfloat16 if NAME[to] == "bfloat16" else NAME[to])


def gathered(x: Array, at: Array, axis: int = 0) -> Any:
    n = x.shape[axis]
    if at.size and (at.min() < -n or at.max() >= n):
        raise OnnxLoadError(f"Gather: an index is out of range for {n} elements")
    return np.take(x, at, axis)


def expanded(x: Array, shape: Any) -> Any:
    return np.broadcast_to(x, room(np.broadcast_shapes(x.shape, room(ints(shape), 1)), x.itemsize))


HOST: Final[dict[str, Callable[..., Any]]] = {
    "Abs": np.abs, "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": divided, "Neg": np.negative,
    "Mod": lambda x, y, fmod=0: (np.fmod if fmod else np.mod)(x, y),
    "Max": lambda *xs: np.maximum.reduce(np.broadcast_arrays(*xs)),
    "Min": lambda *xs: np.minimum.reduce(np.broadcast_arrays(*xs)),
    "Floor": np.floor, "Ceil": np.ceil, "Sqrt": np.sqrt, "Reciprocal": lambda x: (1 / x).astype(x.dtype),
    "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal, "Not": np.logical_not, "And": np.logical_and, "Or": np.logical_or,
    "Where": np.where, "Identity": lambda x: x, "Cast": converted, "Concat": lambda *xs, axis: np.concatenate(xs, axis),
    "Gather": gathered, "Slice": sliced, "Unsqueeze": unsqueezed, "Squeeze": squeezed, "Reshape": reshaped,
    "Expand": expanded, "ReduceProd": reduced(np.prod), "ReduceSum": reduced(np.sum), "ReduceMax": reduced(np.max),
    "ReduceMin": reduced(np.min), "Transpose": lambda x, perm=None: np.transpose(x, perm),
    "Shape": lambda x, start=0, end=None: np.array(x.shape[start:end], dtype="int64"),
    "Size": lambda x: np.array(math.prod(x.shape), dtype="int64"),
}  # fmt: skip
BROADCASTING: Final = frozenset(
    "Add Sub Mul Div Mod Max Min Equal Less LessOrEqual Greater GreaterOrEqual And Or Where".split()
)


def folded(kind: str, inputs: list[Any], attributes: dict[str, Any]) -> Any:
    """What an operator makes of NumPy arrays, if they are small; None where tensors must do it."""
    function = HOST.get(kind)
    if function is None or any(x.size > LARGEST for x in inputs):
        return None
    if kind in BROADCASTING and math.prod(np.broadcast_shapes(*[x.shape for x in inputs])) > LARGEST:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(function(*inputs, **attributes))
