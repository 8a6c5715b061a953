"""DLPack under the names that it has in ``torch.utils.dlpack``."""

from __future__ import annotations

from typing import Any

from leafgrad.tensor.interop import export, from_dlpack
from leafgrad.tensor.tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule that shares the tensor's memory; it can be used once."""
    return export(tensor, max_version=(1, 0))  # an older capsule cannot say that its memory may be written
