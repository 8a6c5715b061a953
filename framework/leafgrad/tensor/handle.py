"""The handle that register_hook returns."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

IDS: Final = itertools.count()


class RemovableHandle:
    """Takes a hook away again: call ``remove()``, or use it as a context manager."""

    def __init__(self, functions: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._functions = functions
        self.id = next(IDS)
        functions[self.id] = hook

    def remove(self) -> None:
        """Take the hook away. Doing it twice does no harm."""
        self._functions.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()
