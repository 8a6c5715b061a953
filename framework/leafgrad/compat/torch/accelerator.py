"""``torch.accelerator``: CUDA where CuPy finds a device, else none."""

from __future__ import annotations

from typing import Any

from leafgrad import devices
from leafgrad.compat.torch import cuda
from leafgrad.compat.torch.cuda import device_count, is_available

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "empty_cache",
    "is_available",
    "synchronize",
]


def current_accelerator(check_available: bool = False) -> devices.device | None:
    """The device type "cuda", or None where there is no device."""
    return devices.device("cuda") if is_available() else None


def current_device_index() -> int:
    """The device that "cuda" stands for.

    Raises:
        RuntimeError: there is none.
    """
    return cuda.current_device()


current_device_idx = current_device_index


def synchronize(device: Any = None) -> None:
    """Wait until a device has finished what was asked of it; nothing where there is none."""
    if is_available():
        cuda.synchronize(device)


def empty_cache() -> None:
    """Nothing to do."""
