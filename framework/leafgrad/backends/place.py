"""Where an array lies."""

from __future__ import annotations

from typing import Any

from leafgrad.backends.contract import BACKENDS, backend_of


def place(array: Any) -> tuple[str, int]:
    """Device type and index of a raw array, e.g. ``("cuda", 0)``."""
    backend = BACKENDS.get(type(array)) or backend_of(array)
    return backend.device_type, 0 if backend.one_device else backend.device_index(array)
