"""Functions that are methods of Tensor too. ``methods.pyi`` lists them for editors and type checkers."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from leafgrad.tensor.public import public

F = TypeVar("F", bound=Callable[..., Any])


class Methods:
    """Base of Tensor that holds the functions marked with ``@method``."""

    __slots__ = ()


def method(function: F) -> F:
    """Make a function of a Tensor a method of Tensor, under its own name."""
    attach(function.__name__, function)
    return function


def attach(name: str, function: Callable[..., Any] | property) -> None:
    """Make ``function`` the method ``name`` of Tensor."""
    if name in Methods.__dict__:
        raise TypeError(f"Tensor already has a method {name!r}")
    if isinstance(function, FunctionType):
        if "<" in function.__qualname__:  # a lambda or a closure; errors name it
            function.__name__ = function.__qualname__ = name
        function = public(function, bound=True)
    setattr(Methods, name, function)
