"""The base of batch normalizations."""

from __future__ import annotations

from leafgrad.nn.batchnorm import BatchNorm as _BatchNorm, ChannelNorm as _NormBase

__all__ = ["_BatchNorm", "_NormBase"]
