"""Python's operators, for every carrier that is not a raw array. Tensor has them as methods that come when used."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from leafgrad import backends, dtypes
from leafgrad.ops import call, compare, dispatch, elementwise as ew, rounding
from leafgrad.ops.matmul import matmul
from leafgrad.ops.node import SymbolBase, TensorBase
from leafgrad.ops.op import Op
from leafgrad.ops.runtime import runtime
from leafgrad.tensor import overrides
from leafgrad.tensor.methods import attach


def _compared(op: Op, x: Any, y: Any) -> Any:
    """``==`` and ``!=``, by element. None, strings and the like are merely not equal to a tensor."""
    if isinstance(y, (TensorBase, SymbolBase, int, float, numbers.Number)):
        return op.function(x, y)
    if not isinstance(x, SymbolBase) and overrides.overriding((y,)):
        return ask(f"__{op.name}__", x, y)
    if not hasattr(y, "__array__"):
        return NotImplemented
    converts = defers(y, "") and not isinstance(x, SymbolBase)
    return op.function(x, x.new_tensor(y, dtype=dtypes.of(y)) if converts else y)


def ask(operator: str, x: Any, y: Any) -> Any:
    """What the class of ``y`` answers to an operator of a tensor: from now on that asks first."""
    overrides.begin()
    return getattr(runtime.tensor, operator)(x, y)


def _operator(op: Op, name: str, reflected: str = "") -> Any:
    """The function of an op as Python's operator ``name``, which leaves what it does not know to ``reflected``.

    NumPy's arrays answer operators like ``__radd__`` alone; beside others they are bad arguments.
    """
    answered = reflected.startswith("__r")

    def general(args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not isinstance(args[0], TensorBase) and not isinstance(args[1], TensorBase):
            return op.compute(args, params)
        others = [] if isinstance(args[1], (TensorBase, int, float, numbers.Number)) else overrides.overriding(args)
        if others:
            return ask(name, *args)
        theirs = defers(args[1], reflected) and (answered or not _is_array(args[1]))
        left = theirs or (op is ew.mul and _repeats(*args))
        return NotImplemented if left else op.apply(args, params)

    return call.function(op, general)


def _reflected(op: Op, name: str) -> Any:
    """The function of an op as Python's reflected operator ``name``."""

    def reflected(y: Any, x: Any) -> Any:
        try:
            return op.function(x, y)
        except TypeError:
            if isinstance(y, TensorBase) and overrides.overriding((x,)):
                return ask(name, y, x)
            if isinstance(y, TensorBase) and op is ew.div and defers(x, ""):
                return ew.div.function(1, y) * x  # as PyTorch, whose other reflected operators take no arrays
            raise

    return reflected


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
    if isinstance(other, (TensorBase, SymbolBase, int, float, numbers.Number)):
        return False
    if hasattr(other, "__array__"):
        return _is_array(other)
    return any(reflected in vars(c) for c in type(other).__mro__ if c.__module__ != "builtins")


def _is_array(other: Any) -> bool:
    return isinstance(other, backends.by_device_type("cpu").array_type)


class Operators:
    """Arithmetic and comparison operators in terms of ops."""

    __slots__ = ()

    if not TYPE_CHECKING:  # methods.pyi has them with their types
        __add__ = _operator(ew.add, "__add__", "__radd__")
        __radd__ = _operator(ew.add, "__radd__")
        __sub__ = _operator(ew.sub, "__sub__", "__rsub__")
        __rsub__ = _reflected(ew.sub, "__rsub__")
        __mul__ = _operator(ew.mul, "__mul__", "__rmul__")
        __rmul__ = _operator(ew.mul, "__rmul__")
        __truediv__ = _operator(ew.div, "__truediv__", "__rtruediv__")
        __rtruediv__ = _reflected(ew.div, "__rtruediv__")
        __floordiv__ = _operator(rounding.floor_divide, "__floordiv__", "__rfloordiv__")
        __rfloordiv__ = _reflected(rounding.floor_divide, "__rfloordiv__")
        __matmul__ = _operator(matmul, "__matmul__", "__rmatmul__")
        __rmatmul__ = _reflected(matmul, "__rmatmul__")
        __mod__ = _operator(rounding.remainder, "__mod__", "__rmod__")
        __rmod__ = _reflected(rounding.remainder, "__rmod__")
        __pow__ = _operator(ew.pow, "__pow__", "__rpow__")
        __rpow__ = _reflected(ew.pow, "__rpow__")
        __neg__ = ew.neg.function
        __abs__ = ew.abs.function

        __and__ = _operator(compare.bitwise_and, "__and__", "__rand__")
        __rand__ = _operator(compare.bitwise_and, "__rand__")
        __or__ = _operator(compare.bitwise_or, "__or__", "__ror__")
        __ror__ = _operator(compare.bitwise_or, "__ror__")
        __xor__ = _operator(compare.bitwise_xor, "__xor__", "__rxor__")
        __rxor__ = _operator(compare.bitwise_xor, "__rxor__")
        __invert__ = compare.bitwise_not.function
        __lshift__ = _operator(compare.bitwise_left_shift, "__lshift__", "__rlshift__")
        __rlshift__ = _reflected(compare.bitwise_left_shift, "__rlshift__")
        __rshift__ = _operator(compare.bitwise_right_shift, "__rshift__", "__rrshift__")
        __rrshift__ = _reflected(compare.bitwise_right_shift, "__rrshift__")

        __lt__ = _operator(compare.lt, "__lt__", "__gt__")
        __le__ = _operator(compare.le, "__le__", "__ge__")
        __gt__ = _operator(compare.gt, "__gt__", "__lt__")
        __ge__ = _operator(compare.ge, "__ge__", "__le__")

        def __eq__(self, other: Any) -> Any:
            return _compared(compare.eq, self, other)

        def __ne__(self, other: Any) -> Any:
            return _compared(compare.ne, self, other)

        __hash__ = object.__hash__  # by identity: ``==`` compares elements

        def __pos__(self) -> Any:
            return self


for _name, _function in vars(Operators).items():
    if callable(_function) and _name[:2] == "__" and _name != "__hash__":
        attach(_name, _function, checked=True, module=__name__)


class SymbolOperators(Operators):
    """The same, and indexing, for what stands for an array: rules may use it as they use arrays."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return dispatch.alias(self)[key]._data
