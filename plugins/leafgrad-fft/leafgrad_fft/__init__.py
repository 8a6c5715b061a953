"""Fourier transforms with derivatives of any order, by NumPy and, on CUDA devices, CuPy; and spectral layers.

Names are those of `torch.fft`. leafgrad has no complex dtype: a complex number is a pair (real, imaginary), the last
dimension of a tensor, as `torch.view_as_real` makes it.
"""

from __future__ import annotations

from leafgrad.ops.op import Op
from leafgrad.plugins import hookimpl
from leafgrad_fft.layers import SpectralConv
from leafgrad_fft.ops import OPS
from leafgrad_fft.transforms import (
    fft,
    fft2,
    fftfreq,
    fftn,
    ifft,
    ifft2,
    ifftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

__all__ = [
    "SpectralConv",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "ifft",
    "ifft2",
    "ifftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

leafgrad_api_version = 1


@hookimpl
def leafgrad_ops() -> list[Op]:
    """The ops of this package."""
    return [*OPS]
