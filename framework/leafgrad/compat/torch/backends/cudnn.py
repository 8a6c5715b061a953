"""``torch.backends.cudnn``: there is none."""

from __future__ import annotations

__all__ = ["allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled", "is_available", "version"]

enabled = benchmark = deterministic = allow_tf32 = False
benchmark_limit = 10


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None."""
    return None
