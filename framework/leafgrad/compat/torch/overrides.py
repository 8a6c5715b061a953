"""``torch.overrides``: classes with ``__torch_function__`` that are no Tensors. Subclasses of Tensor are not asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from leafgrad.compat.absent import refused_class
from leafgrad.tensor.overrides import ask, overriding
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
]

REMEDY = "leafgrad.op defines operations, and vmap and autograd take them"

TorchFunctionMode = refused_class("torch.overrides.TorchFunctionMode", REMEDY)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the classes of arguments answer to a call of ``public_api``.

    Args:
        public_api: the function that was called. relevant_args: those of its arguments that may be of such classes.
        args, kwargs: all of them.

    Raises:
        TypeError: none of the classes knows the function.
    """
    return ask(public_api, overriding(relevant_args), args, kwargs)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of them is of such a class."""
    return bool(overriding(relevant_args))


def has_torch_function_unary(arg: Any) -> bool:
    """Whether it is of such a class."""
    return bool(overriding((arg,)))


def has_torch_function_variadic(*args: Any) -> bool:
    """Whether one of them is of such a class."""
    return bool(overriding(args))


def is_tensor_like(inp: Any) -> bool:
    """Whether ``inp`` is a Tensor, or of a class with ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether ``func`` is a method of Tensor, or the getter of a property."""
    name = getattr(func, "__name__", "")
    return name == "__get__" or getattr(Tensor, name, None) is func
