"""``torch.overrides``: classes of others cannot change what leafgrad's functions do, so none has done so."""

from __future__ import annotations

from typing import Any

from leafgrad.compat.absent import refused, refused_class
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
handle_torch_function = refused("torch.overrides.handle_torch_function", REMEDY)


def has_torch_function(relevant_args: Any) -> bool:
    """False."""
    return False


def has_torch_function_unary(arg: Any) -> bool:
    """False."""
    return False


def has_torch_function_variadic(*args: Any) -> bool:
    """False."""
    return False


def is_tensor_like(inp: Any) -> bool:
    """Whether ``inp`` is a Tensor, or of a class with ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether ``func`` is a method of Tensor, or the getter of a property."""
    name = getattr(func, "__name__", "")
    return name == "__get__" or getattr(Tensor, name, None) is func
