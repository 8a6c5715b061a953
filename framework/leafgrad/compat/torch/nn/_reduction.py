"""``torch.nn._reduction``: PyTorch's numbers for ways to reduce a loss."""

from __future__ import annotations

__all__ = ["get_enum"]


def get_enum(reduction: str) -> int:
    """0 for "none", 1 for "mean", 2 for "sum".

    Raises:
        ValueError: it is none of these.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction; expected 'none', 'mean' or 'sum'")
    return ("none", "mean", "sum").index(reduction)
