"""``torch.serialization``: ``save`` and ``load``, and whom ``load`` trusts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leafgrad.utils.serialization import load, save

DEFAULT_PROTOCOL = 2  # of pickles, none of which is written
MAP_LOCATION = FILE_LIKE = Any

__all__ = [
    "DEFAULT_PROTOCOL", "FILE_LIKE", "MAP_LOCATION", "add_safe_globals", "clear_safe_globals", "get_safe_globals",
    "load", "safe_globals", "save",
]  # fmt: skip


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Has no effect: ``load`` makes objects of no other classes than tensors and containers, trusted or not."""


def clear_safe_globals() -> None:
    """Has no effect."""


def get_safe_globals() -> list[Any]:
    """An empty list."""
    return []


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Has no effect, as ``add_safe_globals``."""
    yield
