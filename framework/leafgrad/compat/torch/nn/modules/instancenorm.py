"""The base of instance normalizations."""

from __future__ import annotations

from leafgrad.nn.batchnorm import InstanceNorm as _InstanceNorm

__all__ = ["_InstanceNorm"]
