"""Python's operators, for every carrier that is not a raw array: Tensor and Symbol share them."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from leafgrad.ops import compare, dispatch, elementwise as ew, rounding
from leafgrad.ops.matmul import matmul
from leafgrad.ops.node import SymbolBase, TensorBase


def _comparable(y: Any) -> bool:
    """Whether ``==`` compares elements. None, strings and the like are merely not equal to a tensor."""
    return isinstance(y, (TensorBase, SymbolBase, numbers.Number)) or hasattr(y, "__array__")


class Operators:
    """Arithmetic and comparison operators in terms of ops."""

    __slots__ = ()

    if not TYPE_CHECKING:  # methods.pyi has them with their types
        __add__ = ew.add.operator("__radd__")
        __radd__ = ew.add.function
        __sub__ = ew.sub.operator("__rsub__")
        __rsub__ = ew.sub.reflected
        __mul__ = ew.mul.operator("__rmul__")
        __rmul__ = ew.mul.operator("__rmul__")
        __truediv__ = ew.div.operator("__rtruediv__")
        __rtruediv__ = ew.div.reflected
        __floordiv__ = rounding.floor_divide.operator("__rfloordiv__")
        __rfloordiv__ = rounding.floor_divide.reflected
        __matmul__ = matmul.operator("__rmatmul__")
        __rmatmul__ = matmul.reflected
        __mod__ = rounding.remainder.operator("__rmod__")
        __rmod__ = rounding.remainder.reflected
        __pow__ = ew.pow.operator("__rpow__")
        __rpow__ = ew.pow.reflected
        __neg__ = ew.neg.function
        __abs__ = ew.abs.function

        __and__ = compare.bitwise_and.operator("__rand__")
        __rand__ = compare.bitwise_and.reflected
        __or__ = compare.bitwise_or.operator("__ror__")
        __ror__ = compare.bitwise_or.reflected
        __xor__ = compare.bitwise_xor.operator("__rxor__")
        __rxor__ = compare.bitwise_xor.reflected
        __invert__ = compare.bitwise_not.function
        __lshift__ = compare.bitwise_left_shift.operator("__rlshift__")
        __rlshift__ = compare.bitwise_left_shift.reflected
        __rshift__ = compare.bitwise_right_shift.operator("__rrshift__")
        __rrshift__ = compare.bitwise_right_shift.reflected

        __lt__ = compare.lt.operator("__gt__")
        __le__ = compare.le.operator("__ge__")
        __gt__ = compare.gt.operator("__lt__")
        __ge__ = compare.ge.operator("__le__")

        def __eq__(self, other: Any) -> Any:
            return compare.eq.function(self, other) if _comparable(other) else NotImplemented

        def __ne__(self, other: Any) -> Any:
            return compare.ne.function(self, other) if _comparable(other) else NotImplemented

        __hash__ = object.__hash__  # by identity: ``==`` compares elements

        def __pos__(self) -> Any:
            return self


class SymbolOperators(Operators):
    """The same, and indexing, for what stands for an array: rules may use it as they use arrays."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return dispatch.alias(self)[key]._data
