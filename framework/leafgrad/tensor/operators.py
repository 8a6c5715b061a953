"""Python's operators, for every carrier that is not a raw array: Tensor and Symbol share them."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from leafgrad import backends, dtypes
from leafgrad.ops import call, compare, dispatch, elementwise as ew, rounding
from leafgrad.ops.matmul import matmul
from leafgrad.ops.node import SymbolBase, TensorBase
from leafgrad.ops.op import Op
from leafgrad.tensor import overrides


def _compared(op: Any, x: Any, y: Any) -> Any:
    """``==`` and ``!=``, by element. None, strings and the like are merely not equal to a tensor."""
    if isinstance(y, (TensorBase, SymbolBase, numbers.Number)):
        return op(x, y)
    if not hasattr(y, "__array__"):
        return NotImplemented
    converts = defers(y, "") and not isinstance(x, SymbolBase)
    return op(x, x.new_tensor(y, dtype=dtypes.of(y)) if converts else y)


def _operator(op: Op, reflected: str) -> Any:
    """The function of an op as Python's operator, which leaves what it does not know to that one's ``reflected``."""

    def general(args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not isinstance(args[0], TensorBase) and not isinstance(args[1], TensorBase):
            return op.compute(args, params)
        others = [] if isinstance(args[1], (TensorBase, numbers.Number)) else overrides.overriding(args)
        if others:
            return overrides.ask(operator, others, args, params)
        left = defers(args[1], reflected) or (reflected == "__rmul__" and _repeats(*args))
        return NotImplemented if left else op.apply(args, params)

    operator = call.function(op, general)
    return operator


def _reflected(op: Op) -> Any:
    return lambda y, x: op.function(x, y)


def _repeats(count: Any, other: Any) -> bool:
    """Whether Python takes the product for a sequence several times: ``[0] * n``, where n is an integer."""
    return (
        isinstance(other, (str, bytes, list, tuple))
        and isinstance(count, TensorBase)
        and count._data.size == 1
        and not dtypes.of(count._data).is_differentiable
    )


def defers(other: Any, reflected: str) -> bool:
    """Whether an operand is of a class that has a reflected operator: a NumPy array, or unknown to leafgrad."""
    if isinstance(other, (TensorBase, SymbolBase, numbers.Number)):
        return False
    if hasattr(other, "__array__"):
        return isinstance(other, backends.by_device_type("cpu").array_type)
    return any(reflected in vars(c) for c in type(other).__mro__ if c.__module__ != "builtins")


class Operators:
    """Arithmetic and comparison operators in terms of ops."""

    __slots__ = ()

    if not TYPE_CHECKING:  # methods.pyi has them with their types
        __add__ = _operator(ew.add, "__radd__")
        __radd__ = ew.add.function
        __sub__ = _operator(ew.sub, "__rsub__")
        __rsub__ = _reflected(ew.sub)
        __mul__ = _operator(ew.mul, "__rmul__")
        __rmul__ = _operator(ew.mul, "__rmul__")
        __truediv__ = _operator(ew.div, "__rtruediv__")
        __rtruediv__ = _reflected(ew.div)
        __floordiv__ = _operator(rounding.floor_divide, "__rfloordiv__")
        __rfloordiv__ = _reflected(rounding.floor_divide)
        __matmul__ = _operator(matmul, "__rmatmul__")
        __rmatmul__ = _reflected(matmul)
        __mod__ = _operator(rounding.remainder, "__rmod__")
        __rmod__ = _reflected(rounding.remainder)
        __pow__ = _operator(ew.pow, "__rpow__")
        __rpow__ = _reflected(ew.pow)
        __neg__ = ew.neg.function
        __abs__ = ew.abs.function

        __and__ = _operator(compare.bitwise_and, "__rand__")
        __rand__ = _reflected(compare.bitwise_and)
        __or__ = _operator(compare.bitwise_or, "__ror__")
        __ror__ = _reflected(compare.bitwise_or)
        __xor__ = _operator(compare.bitwise_xor, "__rxor__")
        __rxor__ = _reflected(compare.bitwise_xor)
        __invert__ = compare.bitwise_not.function
        __lshift__ = _operator(compare.bitwise_left_shift, "__rlshift__")
        __rlshift__ = _reflected(compare.bitwise_left_shift)
        __rshift__ = _operator(compare.bitwise_right_shift, "__rrshift__")
        __rrshift__ = _reflected(compare.bitwise_right_shift)

        __lt__ = _operator(compare.lt, "__gt__")
        __le__ = _operator(compare.le, "__ge__")
        __gt__ = _operator(compare.gt, "__lt__")
        __ge__ = _operator(compare.ge, "__le__")

        def __eq__(self, other: Any) -> Any:
            return _compared(compare.eq.function, self, other)

        def __ne__(self, other: Any) -> Any:
            return _compared(compare.ne.function, self, other)

        __hash__ = object.__hash__  # by identity: ``==`` compares elements

        def __pos__(self) -> Any:
            return self


class SymbolOperators(Operators):
    """The same, and indexing, for what stands for an array: rules may use it as they use arrays."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return dispatch.alias(self)[key]._data
