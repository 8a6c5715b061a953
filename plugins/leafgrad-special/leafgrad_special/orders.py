"""Checks of the orders of functions, which are integers."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.scalars import as_int


def order(function: str, n: Any, name: str = "n", least: int = 0) -> int:
    """``n`` as an int, the argument ``name`` of ``function``.

    Raises:
        RuntimeError: it is below ``least``. TypeError: it is no int.
    """
    if (found := as_int(n)) is None:
        raise TypeError(f"{function}: {name}: expected an int, got {n!r}")
    if found < least:
        raise RuntimeError(f"{function}: {name}: expected an order >= {least}, got {n}")
    return found
