"""``torch._tensor``, where PyTorch defines Tensor."""

from __future__ import annotations

from leafgrad.tensor.tensor import Tensor

__all__ = ["Tensor"]
