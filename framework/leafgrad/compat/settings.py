"""Switches of ``torch`` itself. What they ask for is so already, or they say that they cannot."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from leafgrad import dtypes

_precision = "highest"
_deterministic = _warn_only = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for the same numbers from the same program: all of leafgrad's operations on the CPU give them."""
    global _deterministic, _warn_only
    _deterministic, _warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What ``use_deterministic_algorithms`` was last told."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ``use_deterministic_algorithms`` was last asked for warnings alone."""
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """``use_deterministic_algorithms`` by the words "default", "warn" and "error", or their numbers."""
    modes = ("default", "warn", "error")
    if debug_mode not in (*modes, 0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected `default`, `warn`, `error`, 0, 1 or 2: {debug_mode}")
    number = modes.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """What ``set_deterministic_debug_mode`` was last told, as a number."""
    return (1 if _warn_only else 2) if _deterministic else 0


def get_device_module(device: Any = None) -> Any:
    """The module of functions of a device, ``torch.cpu`` or ``torch.cuda``.

    Raises:
        RuntimeError: there is none for this device.
    """
    kind = getattr(device, "type", str(device).partition(":")[0]) if device is not None else "cpu"
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"get_device_module: expected a CPU or CUDA device, got {device!r}")
    top = "torch" if dtypes.namespace == "torch" else "leafgrad"
    return import_module(f"{top}.{kind}")


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of less precision; leafgrad makes no use of it."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision!r} is not one of 'highest', 'high' or 'medium'")
    _precision = precision


def get_float32_matmul_precision() -> str:
    """What ``set_float32_matmul_precision`` was last told."""
    return _precision


def set_num_interop_threads(int: int) -> None:
    """Has no effect: operations run one after the other."""


def get_num_interop_threads() -> int:
    """1."""
    return 1


def set_default_tensor_type(t: Any) -> None:
    """Make the dtype of a tensor type, such as ``torch.DoubleTensor``, the default.

    Raises:
        TypeError: it is not the type of a floating dtype on the CPU.
    """
    known = {"FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16}
    name = t if isinstance(t, str) else getattr(t, "__name__", repr(t))
    if name.removeprefix("torch.") not in known:
        raise TypeError(f"set_default_tensor_type: expected one of {', '.join(known)}, got {name}")
    dtypes.set_default_dtype(known[name.removeprefix("torch.")])
