"""What callers see: public functions and methods of Tensor, each declared once, where it is defined.

    @public(also="arccos", out="cast")
    def acos(input: Tensor) -> Tensor: ...

makes ``leafgrad.acos``, which takes ``out``, ``leafgrad.arccos``, and both methods of Tensor. ``python -m
leafgrad.testing.stubs`` writes what is declared into ``listed.py``, by which modules are imported when one of their
functions is first asked for, and into the stubs, by which editors and type checkers know them.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeVar, overload

from leafgrad.docstrings import show
from leafgrad.ops.node import TensorBase
from leafgrad.tensor.door import asks, explained
from leafgrad.tensor.listed import FUNCTIONS as LISTED
from leafgrad.tensor.methods import attach, claim
from leafgrad.tensor.out import Out, with_out

F = TypeVar("F", bound=Callable[..., Any])


class Public(NamedTuple):
    """A function as the package itself calls it, its first name, its module, and what else was declared of it."""

    function: Any
    name: str
    module: str
    out: Out | None
    asks: bool


FUNCTIONS: dict[str, Public] = {}
"""Those of the modules that are imported, by their names within leafgrad: ``add``, ``linalg.det``."""


@overload
def public(function: F) -> F: ...
@overload
def public(
    *,
    name: str = "",
    also: str = "",
    only: Literal["leafgrad", "Tensor"] | None = None,
    out: Out | None = None,
    inplace: bool = False,
    asks: bool = True,
    module: str = "",
) -> Callable[[F], F]: ...
def public(
    function: F | None = None,
    *,
    name: str = "",
    also: str = "",
    only: Literal["leafgrad", "Tensor"] | None = None,
    out: Out | None = None,
    inplace: bool = False,
    asks: bool = True,
    module: str = "",
) -> Any:
    """Make a function one of ``leafgrad``, and a method of Tensor.

    Args:
        name: its public name, if that is not its own. ``linalg.det`` is a function of ``leafgrad.linalg``, no method.
        also: more names that it has, separated by spaces.
        only: where it is, if not in both.
        out: how it takes ``out``, as a function.
        inplace: whether ``name_``, a method, writes the result into the tensor.
        asks: whether the function asks ``__torch_function__``.
        module: where it is declared, if not in its own module.
    """

    def declare(function: F) -> F:
        where, first = module or function.__module__, name or function.__name__
        for each in (first, *also.split()):
            if only != "Tensor":
                claim("leafgrad", each, where)
                FUNCTIONS[each] = Public(function, first, where, out, asks)
            if only != "leafgrad" and "." not in each:
                attach(each, getattr(function, "function", function), module=where, shows=first)
            if inplace and "." not in each:
                from leafgrad.tensor.inplace import in_place

                attach(f"{each}_", in_place(function, f"{each}_"), module=where)
        return function

    return declare if function is None else declare(function)


def listed(package: str) -> dict[str, str]:
    """The names of the functions of ``leafgrad`` or ``leafgrad.linalg``, and the modules that declare them."""
    room = package.partition(".")[2]
    split = [(*name.rpartition(".")[::2], module) for module, names in LISTED.items() for name in names.split()]
    return {name: module for prefix, name, module in split if prefix == room}


def seen(package: str, module: str, name: str) -> Any:
    """What callers see as the function ``name`` of a package, after its module is imported."""
    held = import_module(module)
    declared = FUNCTIONS.get(f"{package}.{name}".partition(".")[2])
    if declared is None:
        return getattr(held, name)
    value: Any = declared.function
    if isinstance(value, type):
        publish({"__name__": package, name: value})
        return value
    plain = getattr(value, "function", value)  # that of an op
    if declared.out:
        value = with_out(plain, name, declared.out)
    elif isinstance(plain, types.FunctionType):
        value = asks(explained(plain)) if declared.asks else explained(plain)
    if value is not declared.function:
        value.__module__, value.__qualname__, value.__wrapped__ = package, name, declared.function
    show({name: value}, package)
    room, _, first = f"leafgrad.{declared.name}".rpartition(".")
    show({first: value}, room)  # if it has no example of its own
    return value


_published: set[type] = set()


def publish(namespace: dict[str, Any], *, asking: bool = False, out: str = "") -> None:
    """Put functions and classes of a module's ``namespace`` behind the door, and their examples into their docstrings.

    These are those in ``__all__``, or all public ones.

    Args:
        asking: whether the functions ask ``__torch_function__``.
        out: those that take ``out``, of the very dtype of the result, separated by spaces.
    """
    for name in namespace.get("__all__") or [name for name in namespace if not name.startswith("_")]:
        value: Any = namespace.get(name)  # None: a module that is imported when it is first asked for
        plain = getattr(value, "function", value) if asking else value
        if isinstance(plain, types.FunctionType):
            found: Any = explained(plain)
            if asking:
                found = with_out(plain, name, "exact") if name in out.split() else asks(found)
            if found is not value:
                found.__module__, found.__qualname__ = namespace["__name__"], name
            namespace[name] = found
        elif isinstance(value, type) and not issubclass(value, TensorBase):
            for kind in set(value.__mro__) - _published:
                if kind.__module__.startswith("leafgrad."):
                    _published.add(kind)
                    _publish_methods(kind)
    show(namespace, namespace["__name__"])


def _publish_methods(kind: type) -> None:
    """Put the constructor and the public methods of a class behind the door, but ``forward``, which is called often."""
    for name, value in list(vars(kind).items()):
        if isinstance(value, types.FunctionType) and (name == "__init__" or name[0] != "_") and name != "forward":
            called = kind.__name__ if name == "__init__" else f"{kind.__name__}.{name}"
            setattr(kind, name, explained(value, bound=True, name=called))
