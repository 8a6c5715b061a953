"""How the transforms leave as ONNX: by its operator DFT, of pairs of real numbers along a last dimension.

Rules are given the writer of leafgrad-onnx and an equation, as ``op.lower("onnx of pairs", rule)`` has it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leafgrad_fft.ops import counts, fft_complex, fft_real, fft_real_inverse

POWERS = {"backward": 0, "ortho": 0.5, "forward": 1}


def transform(w: Any, name: str, shape: tuple[int, ...], dim: int, inverse: bool, half: bool = False) -> str:
    """A transform along ``dim``, counted from behind, of a value of this shape with one or two parts behind.

    The operator is given three dimensions: in all opsets it then takes the second.
    """
    at, n = len(shape) + dim, shape[dim]
    order = [i for i in range(len(shape)) if i != at] + [at, len(shape)]
    rest = tuple([shape[i] for i in order[:-2]])
    name = w.reshape(w.emit("Transpose", name, perm=order), (math.prod(rest), n, 1 if half else 2))
    name = w.emit("DFT", name, inverse=int(inverse), onesided=int(half))
    name = w.reshape(name, (*rest, n // 2 + 1 if half else n, 2))
    return str(w.emit("Transpose", name, perm=[order.index(i) for i in range(len(order))]))


def scaled(w: Any, name: str, n: int, norm: str, inverse: bool, kind: str) -> str:
    """What the operator gives, by ``norm``: it divides by n only what it transforms back."""
    power = POWERS[norm] if inverse else -POWERS[norm]
    return str(w.emit("Mul", name, w.scalar(float(n) ** power, kind))) if power else name


def weights(w: Any, n: int, dim: int, kind: str) -> str:
    """How many coefficients each of the first n // 2 + 1 stands for, ready to broadcast over what has parts."""
    return str(w.array(counts(np, n, dim - 1, np.empty(0, kind))))


@fft_complex.lower("onnx of pairs")
def _complex(w: Any, e: Any) -> str:
    (x,), inverse, norm, kind = e.values, e.params["inverse"], e.params["norm"], real_kind(e.out.dtype)
    name = w(x)
    for dim in e.params["dims"]:
        name = scaled(w, transform(w, name, x.shape, dim, inverse), x.shape[dim], norm, inverse, kind)
    return name


@fft_real.lower("onnx of pairs")
def _real(w: Any, e: Any) -> str:
    (x,), dim, norm = e.values, e.params["dim"], e.params["norm"]
    n = x.shape[dim]
    name = transform(w, w.emit("Unsqueeze", w(x), w.ints([-1])), x.shape, dim, False, half=True)
    name = scaled(w, name, n, norm, False, x.dtype)
    return str(w.emit("Mul", name, weights(w, n, dim, x.dtype))) if e.params["doubled"] else name


@fft_real_inverse.lower("onnx of pairs")
def _real_inverse(w: Any, e: Any) -> str:
    """By the other coefficients, which are conjugates of the first in reverse."""
    (x,), dim, norm, kind, n = e.values, e.params["dim"], e.params["norm"], e.out.dtype, e.params["n"]
    at, name = x.ndim + dim, w(x)
    if e.params["halved"]:
        name = w.emit("Div", name, weights(w, n, dim, kind))
    others = w.emit("Slice", name, w.ints([(n - 1) // 2]), w.ints([0]), w.ints([at]), w.ints([-1]))
    others = w.emit("Mul", others, w.array(np.array([1, -1], kind)))
    whole = w.emit("Concat", name, others, axis=at)
    found = transform(w, whole, e.out.shape, dim, True)
    return scaled(w, w.emit("Gather", found, w.scalar(0, "int64"), axis=-1), n, norm, True, kind)


def real_kind(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}[dtype]
