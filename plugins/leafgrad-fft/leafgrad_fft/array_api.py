"""The extension ``fft`` of the Python array API standard, under its names and signatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import Tensor
from leafgrad_fft import transforms

Axes = int | Sequence[int] | None


def _along_one(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return function(x, n, axis, norm)

    return _named(transform, function)


def _along_several(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def transform(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Tensor:
        return function(x, s, axes, norm)

    return _named(transform, function)


def _named(made: Callable[..., Tensor], function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    made.__name__ = made.__qualname__ = function.__name__
    made.__doc__ = function.__doc__
    return made


fft, ifft, rfft, irfft, hfft, ihfft = (
    _along_one(getattr(transforms, name)) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
)
fftn, ifftn, rfftn, irfftn = (
    _along_several(getattr(transforms, name)) for name in ("fftn", "ifftn", "rfftn", "irfftn")
)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each coefficient of `fft`. -> (n,)"""
    return transforms.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each coefficient of `rfft`. -> (n // 2 + 1,)"""
    return transforms.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """The coefficient of frequency 0 in the middle. (...) -> (...)"""
    return transforms.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """The inverse of `fftshift`. (...) -> (...)"""
    return transforms.ifftshift(x, axes)
