"""``torch.utils._contextlib``: context managers that are decorators, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _DecoratorContextManager:
    """Base of context managers; as a decorator, each call runs in a clone of it."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(orig_func)
        def function(*args: Any, **kwargs: Any) -> Any:
            with self.clone():  # type: Any
                return orig_func(*args, **kwargs)

        return function

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another one of the same class, made without arguments."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that is a decorator without parentheses, as well."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        made = object.__new__(cls)
        return made if orig_func is None else made(orig_func)
