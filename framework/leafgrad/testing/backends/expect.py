"""What the checks of a backend say: what was done, what was expected, what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leafgrad.testing.conformance.report import Fault
from leafgrad.testing.conformance.subject import difference


def expect(holds: bool, what: str, expected: Any, got: Any) -> None:
    """A Fault unless something holds."""
    if not holds:
        raise Fault(f"{what}: expected {expected}, got {got!r}")


def equal(backend: Any, what: str, array: Any, want: Any) -> None:
    """A Fault unless an array of the backend has the shape, dtype and elements of a NumPy array."""
    expect(isinstance(array, backend.array_type), what, f"an array of {backend.array_type.__name__}", type(array))
    wrong = difference(backend.to_host(array), np.asarray(want), 1e-6)
    if wrong is not None:
        raise Fault(f"{what}: expected {wrong[0]}, got {wrong[1]}")


def raises(what: str, kinds: type[Exception] | tuple[type[Exception], ...], function: Callable[[], Any]) -> None:
    """A Fault unless a call raises one of these errors."""
    names = kinds.__name__ if isinstance(kinds, type) else " or ".join(k.__name__ for k in kinds)
    try:
        made = function()
    except kinds:
        return
    except Exception as error:
        raise Fault(f"{what}: expected {names}, got {type(error).__name__}: {error}") from error
    raise Fault(f"{what}: expected {names}, got {made!r} and no error")
