"""How a tensor prints, as PyTorch prints it."""

from __future__ import annotations

from typing import Any


def text(t: Any) -> str:
    """The repr of a tensor."""
    return f"tensor({t.tolist()})"
