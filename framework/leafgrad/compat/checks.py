"""What ``torch`` has for programs that are compiled with numbers unknown, and where all numbers are known: checks of
conditions, and functions of integers, floats and bools."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from leafgrad.tensor.tensor import Tensor

Message = Callable[[], object] | str | None


def _check_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """An error of a type, with what ``message`` says or returns, unless the condition holds.

    Raises:
        TypeError: ``cond`` is not a bool.
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        text = message() if callable(message) else message
        raise error_type("Expected cond to be True, but got False." if text is None else str(text))


def _raising(name: str, error_type: type[Exception]) -> Callable[[Any, Message], None]:
    def function(cond: Any, message: Message = None) -> None:
        _check_with(error_type, cond, message)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{error_type.__name__}, with what ``message`` says or returns, unless the condition holds."
    return function


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """An error of a type unless all elements of a tensor of bools hold."""
    if not isinstance(cond, Tensor) or cond.dtype.name != "bool":
        raise TypeError(f"cond must be a tensor with dtype torch.bool, but got {getattr(cond, 'dtype', type(cond))}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """RuntimeError unless all elements of a tensor of bools hold."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """RuntimeError unless a number is not negative, and at most ``max``."""
    _check_with(RuntimeError, bool(i >= 0 and (max is None or i <= max)), message)


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """RuntimeError unless a tensor of one element is other than zero."""
    if not input.item():
        raise RuntimeError(assert_msg)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The shape, as integers. (...) -> (dim,) int64"""
    from leafgrad.tensor.data import tensor

    return tensor(list(self.shape), dtype=tensor(0).dtype)


def sym_int(a: Any) -> int:
    """The integer towards zero."""
    return math.trunc(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float if one of them is."""
    return _alike(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float if one of them is."""
    return _alike(min(a, b), a, b)


def _alike(found: Any, a: Any, b: Any) -> Any:
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_not(a: Any) -> bool:
    """Not ``a``."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """``t`` if ``b``, else ``f``."""
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum."""
    return sum(args)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        _check_with, _check_tensor_all_with, _check_tensor_all, _check_is_size, _assert_async, _shape_as_tensor,
        sym_int, sym_max, sym_min, sym_not, sym_ite, sym_sum,
        _raising("_check", RuntimeError), _raising("_check_index", IndexError), _raising("_check_value", ValueError),
        _raising("_check_type", TypeError), _raising("_check_not_implemented", NotImplementedError),
    )
} | {"sym_float": float, "sym_sqrt": math.sqrt}  # fmt: skip
