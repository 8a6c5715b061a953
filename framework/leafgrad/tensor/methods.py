"""Functions that are methods of Tensor too. ``methods.pyi`` lists them for editors and type checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Methods:
    """Base of Tensor that holds the functions marked with ``@method``."""

    __slots__ = ()


def method(function: F) -> F:
    """Make a function of a Tensor a method of Tensor, under its own name."""
    attach(function.__name__, function)
    return function


def attach(name: str, function: Callable[..., Any]) -> None:
    """Make ``function`` the method ``name`` of Tensor."""
    if name in Methods.__dict__:
        raise TypeError(f"Tensor already has a method {name!r}")
    setattr(Methods, name, function)
