"""``torch.overrides``: what classes and modes with ``__torch_function__`` are asked, and by whom."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from types import FunctionType
from typing import Any

from leafgrad.tensor.asking import SKIPPED, Asking, as_they_are, asking_names
from leafgrad.tensor.door import asks_first
from leafgrad.tensor.overrides import STATE, TorchFunctionMode, ask, begin, overriding
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the mode and the classes of arguments answer to a call of ``public_api``.

    Args:
        public_api: the function that was called.
        relevant_args: those of its arguments that may be of such classes.
        args, kwargs: all of them.

    Raises:
        TypeError: none of them knows the function.
    """
    return ask(public_api, overriding(relevant_args), args, kwargs)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether there is a mode, or one of them is of such a class.

    Args:
        relevant_args: arguments of a function.
    """
    return bool(STATE.get().modes or overriding(relevant_args))


def has_torch_function_unary(arg: Any) -> bool:
    """The same of one argument.

    Args:
        arg: it.
    """
    return has_torch_function((arg,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same of arguments.

    Args:
        args: they.
    """
    return has_torch_function(args)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """A decorator that makes a function of tensors ask first, too.

    Args:
        dispatcher: of the function's arguments, gives those that may be of classes that are asked.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether ``inp`` is a Tensor, or of a class with ``__torch_function__``.

    Args:
        inp: any object.
    """
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


# ---- what there is to override ------------------------------------------------------------------------------------


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results stay Tensors, where Tensor's own ``__torch_function__`` calls them."""
    return set(as_they_are(Tensor))


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Methods of Tensor that nobody is asked about."""
    return {getattr(Tensor, name) for name in SKIPPED}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that classes and modes are asked about, by the module or class that has them."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    for function, (place, _) in _overridable().items():
        found.setdefault(place, []).append(function)
    return found


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name of a function that can be overridden, ``"torch.Tensor.add"``; None of one that cannot.

    Args:
        f: a function, a method of Tensor, or the ``__get__``, ``__set__`` or ``__delete__`` of a property.
    """
    return _overridable()[f][1] if f in _overridable() else None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether ``func`` is a method of Tensor, or the getter of a property.

    Args:
        func: any function.
    """
    name = getattr(func, "__name__", "")
    return name == "__get__" or getattr(Tensor, name, None) == func


@functools.cache
def _overridable() -> dict[Callable[..., Any], tuple[Any, str]]:
    """The functions that ask, with the module or class that has them, and their full names."""
    begin()  # from here on they stay the same
    found: dict[Callable[..., Any], tuple[Any, str]] = {}
    for room in ("", ".nn.functional", ".nn.init", ".linalg", ".special", ".fft"):
        try:
            module = import_module(f"leafgrad{room}")
        except ImportError:  # of a plugin that is not installed
            continue
        for name in dir(module):
            function = getattr(module, name)
            if isinstance(function, FunctionType) and asks_first(function):
                found.setdefault(function, (module, f"{Tensor.__module__}{room}.{name}"))
    for name in asking_names(Tensor):
        value, shown = getattr(Tensor, name), f"{Tensor.__module__}.Tensor.{name}"
        if isinstance(value, property):
            for part, given in (("__get__", value.fget), ("__set__", value.fset), ("__delete__", value.fdel)):
                if given:
                    found[getattr(value, part)] = Tensor, f"{shown}.{part}"
        elif isinstance(value, Asking):
            found[value] = Tensor, shown
    return found
