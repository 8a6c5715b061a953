"""``torch.cuda``: whether CuPy finds a device, and what programs ask of one."""

from __future__ import annotations

from typing import Any

from leafgrad import backends, devices
from leafgrad.compat.torch.cuda.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from leafgrad.tensor import random

__all__ = [
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_name",
    "get_rng_state",
    "get_rng_state_all",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]

OutOfMemoryError = MemoryError


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
    """False: leafgrad has bfloat16 on the CPU only."""
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
    """Give the memory that no array takes back to the devices; without one, nothing."""
    if is_available():
        backends.by_device_type("cuda").free_cache()


def manual_seed(seed: int) -> None:
    """Restart the generator of "cuda"; without a device, nothing."""
    if is_available():
        random.generator_of(("cuda", 0)).manual_seed(seed)


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator, as a tensor.

    Raises:
        RuntimeError: there is no such device.
    """
    return random.generator_of(devices.device(device).resolve()).get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Make a device's generator go on from there."""
    random.generator_of(devices.device(device).resolve()).set_state(new_state)


class device:
    """A ``with`` block on a device: 0, which "cuda" stands for, or None, or -1, which is none.

    Raises:
        RuntimeError: at its beginning, another device, or there is none.
    """

    def __init__(self, device: Any) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None and self.idx != -1:
            set_device(self.idx)

    def __exit__(self, *_: object) -> None:
        """Nothing to undo."""


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all devices, as tensors."""
    return [random.generator_of(("cuda", index)).get_state() for index in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Make the generators go on from there."""
    for index, state in enumerate(new_states):
        random.generator_of(("cuda", index)).set_state(state)


def manual_seed_all(seed: int) -> None:
    """Restart the generators of all CUDA devices."""
    for index in range(device_count()):
        random.generator_of(("cuda", index)).manual_seed(seed)


def set_device(device: Any) -> None:
    """Accepts device 0, which "cuda" stands for.

    Raises:
        RuntimeError: another device, or there is none.
    """
    kind, index = devices.device(device).resolve()
    if (kind, index) != ("cuda", 0):
        raise RuntimeError(f"set_device: device: expected cuda:0, got {device}; pass device= where tensors are made")


def is_current_stream_capturing() -> bool:
    """False."""
    return False


def get_arch_list() -> list[str]:
    """Empty: CuPy compiles for the device that is there."""
    return []


def memory(device: Any) -> backends.DeviceMemory:
    """What arrays take of a device; nothing where there is none."""
    if not is_available():
        return backends.DeviceMemory(0, 0, 0)
    kind, index = devices.device("cuda" if device is None else device).resolve()
    return backends.by_device_type(kind).memory(index)


def memory_allocated(device: Any = None) -> int:
    """Bytes of a device that arrays of this process take; 0 where there is none."""
    return memory(device).used


def memory_reserved(device: Any = None) -> int:
    """Bytes of a device that this process holds, for arrays that are there or to come."""
    return memory(device).held


def max_memory_allocated(device: Any = None) -> int:
    """The most that `memory_allocated` was, since this was first asked or `reset_peak_memory_stats` was called.

    Until then nothing counts peaks, which takes a little time at each allocation.
    """
    return memory(device).most


def max_memory_reserved(device: Any = None) -> int:
    """What `memory_reserved` is: memory is held until `empty_cache`."""
    return memory(device).held


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let `max_memory_allocated` count from what is allocated now."""
    if is_available():
        kind, index = devices.device("cuda" if device is None else device).resolve()
        backends.by_device_type(kind).forget_peak(index)


reset_max_memory_allocated = reset_peak_memory_stats
