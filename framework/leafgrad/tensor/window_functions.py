"""Window functions: weights that fade a stretch of a signal in and out. Harris (1978), Proc. IEEE 66, 51-83."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import dtypes
from leafgrad.tensor.arguments import integer, number
from leafgrad.tensor.creation import kind
from leafgrad.tensor.data import tensor
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor

DType = dtypes.dtype | None
TURN = 2 * math.pi


def window(
    name: str, length: int, periodic: bool, weight: Callable[[float], float], dtype: DType, device: Any, grad: bool
) -> Tensor:
    """``weight`` of ``length`` points evenly from 0 to 1; if ``periodic`` of one more, without the last. (length,)"""
    if integer(length, "window_length", name) < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    target = kind(dtype)
    if not target.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {target}")
    steps = length if periodic else length - 1
    weights = [1.0] if length == 1 else [weight(k / steps) for k in range(length)]
    return tensor(weights, dtype=target, device=device, requires_grad=grad)


def cosines(a: Sequence[float]) -> Callable[[float], float]:
    """a[0] - a[1] cos(2 pi t) + a[2] cos(4 pi t) - …"""
    return lambda t: math.fsum((-1) ** k * c * math.cos(TURN * k * t) for k, c in enumerate(a))


def triangle(t: float) -> float:
    """From 0 to 1 and back."""
    return 1 - abs(2 * t - 1)


def bessel(x: float) -> float:
    """The modified Bessel function I_0, by its power series, whose terms are all positive (DLMF 10.25.2)."""
    term = total = 1.0
    k = 1
    while term > total * 1e-17:
        term *= (x / (2 * k)) ** 2
        total += term
        k += 1
    return total


def kaiser(beta: float) -> Callable[[float], float]:
    """I_0(beta sqrt(1 - (2 t - 1)^2)) / I_0(beta)"""
    return lambda t: bessel(beta * math.sqrt(max(1 - (2 * t - 1) ** 2, 0.0))) / bessel(beta)


@public(only="leafgrad")
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """(1 - cos(2 pi t)) / 2. ``periodic`` for a signal that goes on, as spectra want it. (window_length,)"""
    weight = cosines((0.5, 0.5))
    return window("hann_window", window_length, periodic, weight, dtype, device, requires_grad)


@public(only="leafgrad")
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: DType = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - beta cos(2 pi t). (window_length,)

    Args:
        alpha, beta: the window is alpha - beta cos(2 pi n / N).
    """
    weight = cosines((number(alpha, "alpha", "hamming_window"), number(beta, "beta", "hamming_window")))
    return window("hamming_window", window_length, periodic, weight, dtype, device, requires_grad)


@public(only="leafgrad")
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t). (window_length,)"""
    weight = cosines((0.42, 0.5, 0.08))
    return window("blackman_window", window_length, periodic, weight, dtype, device, requires_grad)


@public(only="leafgrad")
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A triangle from 0 to 1 and back. (window_length,)"""
    return window("bartlett_window", window_length, periodic, triangle, dtype, device, requires_grad)


@public(only="leafgrad")
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DType = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Kaiser's window, the narrower the larger ``beta``. (window_length,)

    Args:
        beta: of the shape of the window.
    """
    weight = kaiser(number(beta, "beta", "kaiser_window"))
    return window("kaiser_window", window_length, periodic, weight, dtype, device, requires_grad)
