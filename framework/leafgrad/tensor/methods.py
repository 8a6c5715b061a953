"""Functions that are methods of Tensor too. ``methods.pyi`` lists them for editors and type checkers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from types import FunctionType
from typing import Any

from leafgrad import plugins
from leafgrad.docstrings import show
from leafgrad.lazy import own
from leafgrad.ops.runtime import runtime
from leafgrad.plugins.added import listed_methods
from leafgrad.tensor.door import explained
from leafgrad.tensor.listed import METHODS


class Methods:
    """Base of Tensor that holds what ``attach`` gives it."""

    __slots__ = ()


class Later:
    """Stands in Tensor for a method or property until its module, which puts that in this place, is imported."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __get__(self, tensor: Any, kind: type) -> Any:
        import_module(self.module)
        return vars(Methods)[self.name].__get__(tensor, kind)  # no subclass's, which may have asked for it by super()

    def __set__(self, tensor: Any, value: Any) -> None:
        import_module(self.module)
        setattr(tensor, self.name, value)

    def __delete__(self, tensor: Any) -> None:
        import_module(self.module)
        delattr(tensor, self.name)


class Listed:
    """Stands in Tensor for a method that a plugin lists, until plugins are loaded."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, kind: type) -> Any:
        plugins.load()
        if (found := vars(Methods).get(self.name)) is not self:
            return getattr(kind, self.name) if found is None else found.__get__(tensor, kind)
        left_out = "".join(f"; {plugin.error}" for plugin in plugins.status() if plugin.error)
        what = f"a plugin lists it, but no op of one that was loaded declares it{left_out}"
        raise AttributeError(
            f"{kind.__name__!r} object has no attribute {self.name!r}: {what}", name=self.name, obj=tensor
        )


CLAIMS: dict[str, dict[str, tuple[str, Any]]] = {"leafgrad": {}, "Tensor": {}}
"""The functions and methods that have been declared, with the names of the modules that did, and these as they were."""


def claim(owner: str, name: str, module: str) -> None:
    """Note that a module declares a function or method. One whose import was cut does so again when it is made anew.

    Raises:
        TypeError: there is one of this name.
    """
    claims, now = CLAIMS[owner], (module, sys.modules.get(module))
    former = claims.get(name)
    if former is not None and (former[0] != module or former[1] is now[1]):
        raise TypeError(f"{owner} already has a {'method' if owner == 'Tensor' else 'function'} {name!r}")
    claims[name] = now


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
    DECLARED[name] = runtime.with_out(function, name, "cast") if hasattr(function, "op") else function


def attach(
    name: str, function: Callable[..., Any] | property, *, checked: bool = False, module: str = "", shows: str = ""
) -> None:
    """Make ``function`` the method ``name`` of Tensor.

    Args:
        checked: whether it has checked all arguments itself.
        module: where that is said, if not in the module that defines the function.
        shows: the function whose example it shows, if it has none.
    """
    claim("Tensor", name, module or (function.fget if isinstance(function, property) else function).__module__)
    if isinstance(function, FunctionType):
        if "<" in function.__qualname__ or function.__name__ == f"_{name}":  # errors name it
            function.__name__ = function.__qualname__ = name
        function = function if checked else explained(function, bound=True)
    show({name: function}, "leafgrad.Tensor")
    for each in (name, shows):  # most are functions, too
        show({each: function}, "leafgrad")
    setattr(Methods, name, function)


runtime.attach = declare
for _module, _names in METHODS.items():
    for _name in _names.split():
        setattr(Methods, _name, Later(_module, _name))
expect(listed_methods())
