"""``torch.cuda``: whether CuPy finds a device, and what programs ask of one."""

from __future__ import annotations

from typing import Any

from leafgrad import backends, devices
from leafgrad.tensor import random

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]


def device_count() -> int:
    """How many CUDA devices there are: 0 without CuPy or without a driver."""
    try:
        return backends.by_device_type("cuda").device_count()
    except (RuntimeError, ImportError):
        return 0


def is_available() -> bool:
    """Whether there is a CUDA device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Whether CUDA can be used, which needs no initialization here."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: leafgrad has no bfloat16."""
    return False


def current_device() -> int:
    """0, the device that "cuda" stands for.

    Raises:
        RuntimeError: there is none.
    """
    return devices.device("cuda").resolve()[1]


def get_device_name(device: Any = None) -> str:
    """The name of a device.

    Raises:
        RuntimeError: there is no such device.
    """
    place = devices.device("cuda" if device is None else device).resolve()
    return f"{place[0]}:{place[1]}"


def synchronize(device: Any = None) -> None:
    """Wait until a device has finished what was asked of it.

    Raises:
        RuntimeError: there is no such device.
    """
    kind, index = devices.device("cuda" if device is None else device).resolve()
    backends.by_device_type(kind).synchronize(index)


def empty_cache() -> None:
    """Nothing to do: CuPy's memory pool serves every allocation of this process."""


def manual_seed(seed: int) -> None:
    """Restart the generator of "cuda"; without a device, nothing."""
    if is_available():
        random.generator_of(("cuda", 0)).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Restart the generators of all CUDA devices."""
    for index in range(device_count()):
        random.generator_of(("cuda", index)).manual_seed(seed)
