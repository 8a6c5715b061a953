"""Window functions under the names and with the arguments of ``torch.signal.windows``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from leafgrad import dtypes
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.window_functions import cosines, kaiser as kaiser_of, triangle, window

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def made(
    name: str, M: int, weight: Callable[[float], float], sym: bool = True, *, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A window of ``M`` points, symmetric or periodic.

    Raises:
        ValueError: ``M`` is negative, or another layout or dtype than a strided one of float32 or float64.
    """
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, dtypes.strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (None, dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return window(name, M, not sym, weight, dtype, device, requires_grad)


def bartlett(M: int, **options: Any) -> Tensor:
    """A triangle. (M,)"""
    return made("bartlett", M, triangle, **options)


def blackman(M: int, **options: Any) -> Tensor:
    """Three terms of cosines. (M,)"""
    return made("blackman", M, cosines((0.42, 0.5, 0.08)), **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Half a period of a sine, without its ends. (M,)"""
    n = M if sym else M + 1
    weights = [math.sin(math.pi * (k + 0.5) / n) for k in range(M)]
    return made("cosine", M, listed(weights, sym), sym, **options)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-|k - center| / tau), by default around the middle. (M,)"""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = (M if not sym and M > 1 else M - 1) / 2 if center is None else center
    return made("exponential", M, listed([math.exp(-abs(k - middle) / tau) for k in range(M)], sym), sym, **options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-(k - middle)^2 / (2 std^2)). (M,)"""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    middle = (M if not sym and M > 1 else M - 1) / 2
    weights = [math.exp(-(((k - middle) / std) ** 2) / 2) for k in range(M)]
    return made("gaussian", M, listed(weights, sym), sym, **options)


def general_cosine(M: int, *, a: Iterable[float], **options: Any) -> Tensor:
    """a[0] - a[1] cos(2 pi t) + a[2] cos(4 pi t) - … (M,)"""
    terms = tuple(a)
    if not terms:
        raise ValueError("Coefficients cannot be empty")
    return made("general_cosine", M, cosines(terms), **options)


def general_hamming(M: int, *, alpha: float = 0.54, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi t). (M,)"""
    return made("general_hamming", M, cosines((alpha, 1 - alpha)), **options)


def hamming(M: int, **options: Any) -> Tensor:
    """0.54 - 0.46 cos(2 pi t). (M,)"""
    return made("hamming", M, cosines((0.54, 0.46)), **options)


def hann(M: int, **options: Any) -> Tensor:
    """(1 - cos(2 pi t)) / 2. (M,)"""
    return made("hann", M, cosines((0.5, 0.5)), **options)


def kaiser(M: int, *, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser's window. (M,)"""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return made("kaiser", M, kaiser_of(beta), **options)


def nuttall(M: int, **options: Any) -> Tensor:
    """Four terms of cosines, with the least side lobes. (M,)"""
    return made("nuttall", M, cosines((0.3635819, 0.4891775, 0.1365995, 0.0106411)), **options)


def listed(weights: list[float], sym: bool) -> Callable[[float], float]:
    """Weights by number, as a function of the point's place."""
    steps = len(weights) - 1 if sym else len(weights)
    return lambda t: weights[round(t * steps)]
