"""``torch._C``: the few of PyTorch's private functions that other libraries call, and that have an answer here."""

from __future__ import annotations

from typing import Any

from leafgrad import modes
from leafgrad.tensor.arguments import destination
from leafgrad.tensor.overrides import (
    STATE,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    unwrapped as _disabled_torch_function_impl,
)
from leafgrad.tensor.tensor import Tensor

_TensorMeta = type(Tensor)

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_TensorMeta",
    "_are_functorch_transforms_active",
    "_debug_only_are_vmap_fallback_warnings_enabled",
    "_debug_only_display_vmap_fallback_warnings",
    "_disabled_torch_function_impl",
    "_get_tracing_state",
    "_is_torch_function_enabled",
    "_is_tracing",
    "_log_api_usage_once",
    "_nn",
]


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _is_torch_function_enabled() -> bool:
    """Whether classes with ``__torch_function__`` are asked now."""
    return STATE.get().classes


def _is_tracing() -> bool:
    """False."""
    return False


def _are_functorch_transforms_active() -> bool:
    """Whether ``vmap`` or a derivative of ``func`` is at work."""
    return bool(modes.DERIVATIVES.get() or modes.get() & modes.BATCH)


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Has no effect: there is no slow way of ``vmap`` to warn of."""


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """False."""
    return False


class _nn:
    """``torch._C._nn``"""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, None]:
        """Device, dtype, whether not to wait, and memory format, of the arguments of ``to``."""
        place, kind, _ = destination(*args, **kwargs)
        return place, kind, False, None
