"""Operators of Fourier transforms; complex numbers are pairs of real ones along the last dimension."""

from __future__ import annotations

from typing import Any

import leafgrad
from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.operators.registry import axis_of, number, operator, room


@operator("DFT", host=(1, 2))
def dft(
    x: Any, length: Any = None, at: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0, opset: int
) -> Any:
    transforms: Any = getattr(leafgrad, "fft", None)
    if transforms is None:
        raise OnnxLoadError("Fourier transforms are those of leafgrad-fft; install it")
    d = axis_of(axis if opset < 20 else number(at, -2), x.ndim)
    n = number(length, 2 * (x.shape[d] - 1) if inverse and onesided else x.shape[d])
    room((*x.shape[:d], n, *x.shape[d + 1 :]), 8)
    numbers = x[..., 0] if x.shape[-1] == 1 else leafgrad.view_as_complex(x.contiguous())
    if inverse and onesided:
        return transforms.irfft(numbers, n, d).unsqueeze(-1)
    made = transforms.rfft if onesided else transforms.ifft if inverse else transforms.fft
    return leafgrad.view_as_real(made(numbers, n, d))
