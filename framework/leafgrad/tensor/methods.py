"""Functions that are methods of Tensor too. ``methods.pyi`` lists them for editors and type checkers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

from leafgrad import plugins
from leafgrad.docstrings import show
from leafgrad.lazy import own
from leafgrad.ops import dispatch
from leafgrad.tensor.public import public

F = TypeVar("F", bound=Callable[..., Any])


class Methods:
    """Base of Tensor that holds the functions marked with ``@method``."""

    __slots__ = ()


class Later:
    """Stands in Tensor for a method until its module, which puts the method in this place, is imported."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __get__(self, tensor: Any, kind: type) -> Any:
        import_module(self.module)
        return getattr(kind if tensor is None else tensor, self.name)


class Listed:
    """Stands in Tensor for a method that a plugin lists, until plugins are loaded."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, kind: type) -> Any:
        plugins.load()
        if vars(Methods).get(self.name) is not self:
            return getattr(kind if tensor is None else tensor, self.name)
        left_out = "".join(f"; {plugin.error}" for plugin in plugins.status() if plugin.error)
        what = f"a plugin lists it, but no op of one that was loaded declares it{left_out}"
        raise AttributeError(
            f"{kind.__name__!r} object has no attribute {self.name!r}: {what}", name=self.name, obj=tensor
        )


def expect(names: Iterable[str]) -> None:
    """Expect methods that plugins list; those that Tensor has stay."""
    for name in names:
        if name not in vars(Methods):
            setattr(Methods, name, Listed(name))


# The functions of ops that plugins made methods: what `leafgrad` and the array API's namespace have besides their own.
DECLARED: dict[str, Callable[..., Any]] = {}


def declare(name: str, function: Callable[..., Any]) -> None:
    """Make the function of an op, or one of a plugin, a method of Tensor, and a function of the public namespaces.

    Where a module, or a cell of a notebook, runs again, the new op takes the place of the former one.
    """
    package = sys.modules["leafgrad"]
    listed, former = isinstance(vars(Methods).get(name), Listed), DECLARED.get(name)
    again = former is not None and all(
        getattr(former, a, None) == getattr(function, a, None) for a in ("__module__", "op")
    )
    if not again and (name in own(package.__name__) or (not listed and hasattr(package.Tensor, name))):
        raise TypeError(f"leafgrad has {name!r} already; choose another name")
    setattr(Methods, name, function)
    vars(package).pop(name, None)  # PyTorch's of this name, if it was asked for before
    DECLARED[name] = function


def method(function: F) -> F:
    """Make a function of a Tensor a method of Tensor, under its own name."""
    attach(function.__name__, function)
    return function


def attach(name: str, function: Callable[..., Any] | property, *, checked: bool = False) -> None:
    """Make ``function``, which may have ``checked`` all arguments itself, the method ``name`` of Tensor."""
    if name in Methods.__dict__ and not isinstance(Methods.__dict__[name], Later):
        raise TypeError(f"Tensor already has a method {name!r}")
    if isinstance(function, FunctionType):
        if "<" in function.__qualname__:  # a lambda or a closure; errors name it
            function.__name__ = function.__qualname__ = name
        function = function if checked else public(function, bound=True)
    for package in ("leafgrad", "leafgrad.Tensor"):  # most are functions, too
        show({name: function}, package)
    setattr(Methods, name, function)


dispatch.adopt_methods(declare)
