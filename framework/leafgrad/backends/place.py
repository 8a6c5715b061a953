"""Where an array lies."""

from __future__ import annotations

from typing import Any

from leafgrad.backends.contract import backend_of


def place(array: Any) -> tuple[str, int]:
    """Device type and index of a raw array, e.g. ``("cuda", 0)``."""
    backend = backend_of(array)
    return backend.device_type, backend.device_index(array)
