"""The base of convolutions."""

from __future__ import annotations

from leafgrad.nn.convolution import Convolution as _ConvNd

__all__ = ["_ConvNd"]
