"""``torch.xpu``: there is none."""

from __future__ import annotations

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed"]


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def empty_cache() -> None:
    """Nothing to do."""


def manual_seed(seed: int) -> None:
    """Nothing to seed."""
