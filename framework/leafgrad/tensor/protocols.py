"""What Python asks of numbers and containers: ``bool(t)``, ``len(t)``, ``x in t``, ``f"{t:.3f}"``, …"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

from leafgrad.ops import messages
from leafgrad.tensor.methods import attach
from leafgrad.tensor.rearranging import flip
from leafgrad.tensor.tensor import Tensor


def to_bool(self: Tensor) -> bool:
    """Whether the only element is not zero."""
    size = self._data.size
    if size != 1:
        raise RuntimeError(
            f"Boolean value of Tensor with {'more than one value' if size else 'no values'} is ambiguous; use "
            ".any() or .all()"
        )
    return bool(self._number("bool()"))


def to_float(self: Tensor) -> float:
    """The only element as a float."""
    return float(_real(_scalar(self, "float()"), "double"))


def to_int(self: Tensor) -> int:
    """The only element as an int."""
    return int(_real(_scalar(self, "int()"), "int64_t"))


def to_complex(self: Tensor) -> complex:
    """The only element as a complex number."""
    return complex(_scalar(self, "complex()"))


def _real(value: Any, kind: str) -> Any:
    if not isinstance(value, complex):
        return value
    if value.imag:
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow, got {value}; take .real of it")
    return value.real


def _scalar(self: Tensor, what: str) -> Any:
    if self._data.size != 1:
        raise ValueError(
            f"only one element tensors can be converted to Python scalars, got {messages.describe(self)} for {what}"
        )
    return self._number(what)


def index(self: Tensor) -> int:
    """The only element of an integer tensor, as an index."""
    if self.dtype.is_differentiable or self._data.size != 1:
        raise TypeError(
            f"only integer tensors of a single element can be converted to an index, got {messages.describe(self)}"
        )
    return int(self._number("use as an index"))


def length(self: Tensor) -> int:
    """The size of the first dimension."""
    if not self._data.ndim:
        raise TypeError("len() of a 0-d tensor")
    return int(self._data.shape[0])


def slices(self: Tensor) -> Iterator[Tensor]:
    """The slices along the first dimension."""
    if not self._data.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def backwards(self: Tensor) -> Tensor:
    """The slices along the first dimension, last one first."""
    return flip(self, (0,)) if self._data.ndim else self


def contains(self: Tensor, element: Any) -> bool:
    """Whether some element equals a number, or those of a tensor that broadcasts."""
    if not isinstance(element, (Tensor, numbers.Number)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((self == element).any())


def formatted(self: Tensor, spec: str) -> str:
    """The only element of a tensor without dimensions, as a number is formatted."""
    number = not self._data.ndim and (spec or type(self) is Tensor) and not self.is_meta
    return format(self.item(), spec) if number else object.__format__(self, spec)


attach("__bool__", to_bool)
attach("__float__", to_float)
attach("__int__", to_int)
attach("__complex__", to_complex)
attach("__index__", index)
attach("__len__", length)
attach("__iter__", slices)
attach("__reversed__", backwards)
attach("__contains__", contains)
attach("__format__", formatted)
