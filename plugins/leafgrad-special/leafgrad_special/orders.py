"""Checks of the orders of functions, which are integers."""

from __future__ import annotations

from typing import Any


def order(function: str, n: Any, name: str = "n", least: int = 0) -> int:
    """``n`` itself, the argument ``name`` of ``function``.

    Raises:
        RuntimeError: it is below ``least``. TypeError: it is no int.
    """
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"{function}: {name}: expected an int, got {n!r}")
    if n < least:
        raise RuntimeError(f"{function}: {name}: expected an order >= {least}, got {n}")
    return n
