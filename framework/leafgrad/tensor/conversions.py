"""Conversions of dtype, copies, and questions about dtypes."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes
from leafgrad.ops import promotion
from leafgrad.tensor import arguments
from leafgrad.tensor.arguments import expect_tensor, number
from leafgrad.tensor.kinds import TYPES, TensorType
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public(only="leafgrad", asks=False)
def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a Tensor.

    Args:
        obj: anything.
    """
    return isinstance(obj, Tensor)


@public
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is float16, bfloat16, float32 or float64."""
    return input.dtype.is_floating_point


@public
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero. RuntimeError if there are more, or none."""
    return bool(arguments.expect_tensor(input, "input", "is_nonzero"))


@public(only="Tensor")
def double(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As float64."""
    return self.to(dtypes.float64, memory_format=memory_format)


@public(only="Tensor")
def cfloat(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As complex64."""
    return self.to(dtypes.complex64, memory_format=memory_format)


@public(only="Tensor")
def cdouble(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As complex128."""
    return self.to(dtypes.complex128, memory_format=memory_format)


@public(only="Tensor")
def chalf(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """PyTorch's complex32, which leafgrad has not: always a NotImplementedError."""
    raise NotImplementedError(
        "chalf(): leafgrad has no complex32; cfloat() gives complex64, and view_as_real(x).half() the parts in 16 bits"
    )


@public(only="Tensor")
def half(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As float16."""
    return self.to(dtypes.float16, memory_format=memory_format)


@public(only="Tensor")
def bfloat16(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As bfloat16."""
    return self.to(dtypes.bfloat16, memory_format=memory_format)


@public(only="Tensor")
def short(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As int16."""
    return self.to(dtypes.int16, memory_format=memory_format)


@public(only="Tensor")
def long(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As int64."""
    return self.to(dtypes.int64, memory_format=memory_format)


@public(only="Tensor")
def char(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As int8."""
    return self.to(dtypes.int8, memory_format=memory_format)


@public(only="Tensor")
def byte(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As uint8."""
    return self.to(dtypes.uint8, memory_format=memory_format)


@public(only="Tensor")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """As the dtype of ``other``, on its device."""
    return self.to(arguments.expect_tensor(other, "other", "type_as"))


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Converted to ``dtype``, given as such, as FloatTensor or by name; without it, the name of the own type."""
    if dtype is None:
        place = self.device.type
        name = next(name for name, kind in TYPES.items() if kind.dtype is self.dtype)
        return f"{dtypes.namespace}.{name}" if place == "cpu" else f"{dtypes.namespace}.{place}.{name}"
    if isinstance(dtype, str):
        name = dtype.removeprefix(f"{dtypes.namespace}.")
        if name not in TYPES:
            raise ValueError(f"type: dtype: invalid type: {dtype!r}; expected one of {', '.join(TYPES)}")
        return self.to(TYPES[name].dtype)
    if isinstance(dtype, TensorType):
        return self.to(dtype.dtype)
    return self.to(dtypes.check(dtype))


def _int(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As int32."""
    return self.to(dtypes.int32, memory_format=memory_format)


def _float(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As float32."""
    return self.to(dtypes.float32, memory_format=memory_format)


def _bool(self: Tensor, memory_format: dtypes.memory_format = dtypes.preserve_format) -> Tensor:
    """As bool: whether each element is not zero."""
    return self.to(dtypes.bool_, memory_format=memory_format)


attach("type", _type)
attach("int", _int)
attach("float", _float)
attach("bool", _bool)


@public(only="leafgrad")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in memory of its own, laid out alike or in a memory format; gradients flow through it. (...) -> (...)"""
    return expect_tensor(input, "input", "clone").clone(memory_format=memory_format)


@public(only="leafgrad")
def detach(input: Tensor) -> Tensor:
    """The same memory as a tensor that does not require grad. (...) -> (...)"""
    return expect_tensor(input, "input", "detach").detach()


# ---- types --------------------------------------------------------------------------------------------------------


@public(only="leafgrad")
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype in which arithmetic on two tensors or numbers would be done.

    Args:
        tensor1, tensor2: tensors or numbers.
    """
    for name, value in (("tensor1", tensor1), ("tensor2", tensor2)):
        if not isinstance(value, Tensor):
            number(value, name, "result_type")
    return promotion.result_type((tensor1, tensor2))


@public(only="leafgrad")
def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> bool:
    """Whether promotion allows a conversion: to the same category (bool < integer < floating) or a higher one.

    Args:
        from_, to: dtypes.
    """
    return dtypes.check(from_, "from_").category <= dtypes.check(to, "to").category


attach("itemsize", property(lambda self: self.dtype.itemsize, doc="Bytes of one element."))
attach("nbytes", property(lambda self: self.numel() * self.dtype.itemsize, doc="Bytes of all elements."))
