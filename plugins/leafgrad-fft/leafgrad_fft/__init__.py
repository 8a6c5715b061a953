"""Fourier transforms with derivatives of any order, by NumPy and, on CUDA devices, CuPy; and spectral layers.

Names are those of `torch.fft`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from leafgrad.ops.op import Op
from leafgrad.plugins import ModuleSpec, hookimpl
from leafgrad_fft import array_api as array_api, forms as forms
from leafgrad_fft.ops import OPS
from leafgrad_fft.short_time import istft, stft
from leafgrad_fft.transforms import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

if TYPE_CHECKING:
    from leafgrad_fft.layers import FNO, SpectralConv
else:

    def __getattr__(name: str) -> object:
        """The layers, and leafgrad.nn with them, are imported when they are first asked for."""
        if name in ("FNO", "SpectralConv"):
            globals()[name] = found = getattr(import_module("leafgrad_fft.layers"), name)
            return found
        raise AttributeError(f"module 'leafgrad_fft' has no attribute {name!r}", name=name, obj=sys.modules[__name__])

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "FNO",
    "SpectralConv",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "istft",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "stft",
]

leafgrad_api_version = 1


@hookimpl
def leafgrad_ops() -> list[Op]:
    """The ops of this package."""
    return [*OPS]


@hookimpl
def leafgrad_modules() -> list[ModuleSpec]:
    """``leafgrad.fft``, and ``torch.fft`` where leafgrad stands in for PyTorch."""
    return [ModuleSpec("fft", target="leafgrad_fft")]
