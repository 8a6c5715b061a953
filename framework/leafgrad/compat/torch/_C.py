"""``torch._C``: the few of PyTorch's private functions that other libraries call, and that have an answer here."""

from __future__ import annotations

from leafgrad.tensor.kinds import unwrapped as _disabled_torch_function_impl

__all__ = ["_disabled_torch_function_impl", "_get_tracing_state", "_is_tracing", "_log_api_usage_once"]


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _is_tracing() -> bool:
    """False."""
    return False
