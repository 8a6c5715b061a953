"""``__torch_function__``: classes that are no Tensors say what functions of tensors do with their objects.

They are asked where the function has failed, so that calls of tensors pay nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from leafgrad.ops.node import TensorBase


def unwrapped(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The ``__torch_function__`` of classes that change nothing."""
    return func(*args, **(kwargs or {}))


def overrides(kind: type) -> bool:
    """Whether a class has a ``__torch_function__`` that may change something."""
    own = getattr(kind, "__torch_function__", None)
    return own is not None and getattr(own, "__func__", own) is not unwrapped


def overriding(values: Iterable[Any]) -> list[Any]:
    """Those among arguments, and in lists and tuples of them, whose classes are to be asked, one of each class.

    In the order of PyTorch: as they stand, but one of a subclass before one of its base.
    """
    found: list[Any] = []
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            kind = type(item)
            if kind.__module__ == "builtins" or isinstance(item, TensorBase) or not overrides(kind):
                continue
            if not any(type(other) is kind for other in found):
                place = (i for i, other in enumerate(found) if issubclass(kind, type(other)))
                found.insert(next(place, len(found)), item)
    return found


def ask(function: Callable[..., Any], others: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the first of ``others`` that knows ``function`` gives for a call of it.

    Raises:
        TypeError: none of them does.
    """
    kinds = tuple(type(other) for other in others)
    for other in others:
        result = other.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join(kind.__name__ for kind in kinds)
    raise TypeError(
        f"{function.__name__}: expected a Tensor, got {names}, whose __torch_function__ returned NotImplemented"
    )
