"""``torch.nn.attention``: kernels among which PyTorch chooses; leafgrad has one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """PyTorch's kernels of scaled_dot_product_attention."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = range(-1, 5)


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Changes nothing: all kernels compute the same."""
    yield
