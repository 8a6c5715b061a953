"""New tensors: from Python and NumPy data, filled, evenly spaced, and like a given one."""

from __future__ import annotations

import math
import numbers
from typing import Any

from leafgrad import devices, dtypes
from leafgrad.ops import create, dispatch, half
from leafgrad.ops.conjugate import is_complex
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.scalars import as_int
from leafgrad.tensor import arguments, formats
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor

DType = dtypes.dtype | None


def new(op: Any, dtype: dtypes.dtype, device: Any, requires_grad: bool, **params: Any) -> Tensor:
    """Run an op of ``ops.create`` on a device."""
    place = devices.given(device).resolve()
    out: Tensor = dispatch.create(op, place, dtype=dtype.name, **params)
    return out._set_grad(True) if requires_grad else out


def kind(dtype: Any, inferred: dtypes.dtype | None = None) -> dtypes.dtype:
    """The dtype asked for, or the inferred one, or the default."""
    if dtype is not None:
        return dtypes.check(dtype)
    return dtypes.get_default_dtype() if inferred is None else inferred


def sizes(args: tuple[Any, ...], function: str) -> tuple[int, ...]:
    """``f(2, 3)`` or ``f((2, 3))`` as a shape; a RuntimeError if a size is negative."""
    if not args:
        raise TypeError(f"{function}() missing 1 required positional argument: 'size'")
    shape = arguments.shape(args, function)
    if shape and min(shape) < 0:
        raise RuntimeError(f"{function}: Dimension size must be non-negative, got {list(shape)}")
    return shape


def number(value: Any, argument: str, may_be_complex: bool = False) -> Any:
    """A Python number, from one, a scalar of NumPy's or a tensor of one element; real unless it ``may_be_complex``."""
    kind: Any = value.__class__  # what a compiled step follows says which it is
    if kind in (bool, int, float) or (may_be_complex and kind is complex):
        return value
    if isinstance(value, Tensor):
        found: Any = value.item()
        if isinstance(found, complex) and not may_be_complex:
            raise TypeError(f"{argument}: expected a real number, got a tensor of {value.dtype}")
        return found
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a bool of NumPy's is no numbers.Number
        return value.item()
    if may_be_complex and isinstance(value, numbers.Complex):
        return complex(value)
    raise TypeError(f"{argument}: expected a number, got {type(value).__name__}")


def beyond(value: float, dtype: dtypes.dtype) -> bool:
    """Whether a number is finite, and beyond all that a floating dtype holds."""
    return abs(value) > half.LARGEST and dtypes.finfo(dtype).max < abs(value) < math.inf


def converted(plain: Any, dtype: dtypes.dtype, argument: str) -> Any:
    """A number of the dtype's category; a RuntimeError if it is finite, and beyond all that the dtype holds."""
    if dtype.is_complex:
        return complex(plain)
    if isinstance(plain, complex):
        if plain.imag:
            raise RuntimeError(f"{argument}: value cannot be converted to type {dtype} without overflow, got {plain}")
        plain = plain.real
    if dtype.is_floating_point:
        plain = float(plain)
        if beyond(plain, dtype):
            raise RuntimeError(f"{argument}: value cannot be converted to type {dtype} without overflow, got {plain}")
        return plain
    if dtype is dtypes.bool_:
        return bool(plain)
    if isinstance(plain, float) and not math.isfinite(plain):
        raise RuntimeError(f"{argument}: value cannot be converted to type {dtype} without overflow, got {plain}")
    limits = dtypes.iinfo(dtype)
    if not limits.min <= int(plain) <= limits.max:
        raise RuntimeError(f"{argument}: value cannot be converted to type {dtype} without overflow, got {plain}")
    return int(plain)


def expect_within(low: int, high: int, target: dtypes.dtype, function: str) -> None:
    """A RuntimeError if not all of [low, high) are numbers of an integer dtype, which would count them around."""
    if target.is_differentiable:
        return
    count = 2 if target is dtypes.bool_ else 2 ** (8 * target.itemsize)
    least = -count // 2 if target.is_signed else 0
    most = least + count - 1
    if low < least or high - 1 > most:
        raise RuntimeError(
            f"{function}: expected low and high - 1 from {least} to {most}, which {target} holds, got low {low} and "
            f"high {high}; pass a wider dtype"
        )


def last_whole(target: dtypes.dtype) -> int:
    """The number up to which a dtype has all integers from 0 on."""
    bits = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53, dtypes.bool_: 1}
    return int(2 ** bits.get(target, 8 * target.itemsize - target.is_signed)) - (not target.is_floating_point)


def inferred(value: Any) -> dtypes.dtype:
    """The dtype of a tensor of a Python number."""
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, complex):
        return dtypes.get_default_dtype().to_complex()
    return dtypes.int64 if isinstance(value, int) else dtypes.get_default_dtype()


# ---- filled -------------------------------------------------------------------------------------------------------


@public(only="leafgrad", out="cast")
def zeros(*size: Any, dtype: DType = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of shape ``size``, given as integers or one sequence."""
    return new(create.zeros, kind(dtype), device, requires_grad, shape=sizes(size, "zeros"))


@public(only="leafgrad", out="cast")
def ones(*size: Any, dtype: DType = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of shape ``size``, given as integers or one sequence."""
    return new(create.full, kind(dtype), device, requires_grad, shape=sizes(size, "ones"), value=1)


@public(only="leafgrad", out="cast")
def empty(*size: Any, dtype: DType = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of shape ``size`` whose elements are arbitrary until they are written."""
    return new(create.empty, kind(dtype), device, requires_grad, shape=sizes(size, "empty"))


@public(only="leafgrad", out="cast")
def full(size: Any, fill_value: Any, *, dtype: DType = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """``fill_value`` everywhere, of shape ``size`` (a sequence); its type decides the dtype if none is given."""
    if isinstance(size, int):
        raise TypeError(f"full: size: expected a tuple of ints, got int; write ({size},)")
    value = number(fill_value, "full: fill_value", may_be_complex=True)
    target = kind(dtype, inferred(value))
    value = converted(value, target, "full: fill_value")
    return new(create.full, target, device, requires_grad, shape=sizes((size,), "full"), value=value)


@public(only="leafgrad", out="cast")
def eye(
    n: int, m: int | None = None, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere. (n, m), by default (n, n)"""
    columns = n if m is None else m
    for name, value in (("n", n), ("m", columns)):
        if value < 0:
            raise RuntimeError(f"eye: {name} must be greater or equal to 0, got {value}")
    return new(create.eye, kind(dtype), device, requires_grad, rows=n, columns=columns)


def beside(input: Tensor, made: Tensor) -> Tensor:
    """``made``; under vmap with memory for each sample where ``input`` has it, so that it can be written alike."""
    if isinstance(input._data, SymbolBase):
        made._data = input._data.beside(made._data)
    return made


@public(only="Tensor")
def new_zeros(
    input: Tensor, *size: Any, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros of shape ``size``, of this tensor's dtype and device unless others are given."""
    place = input.device if device is None else device
    return beside(input, zeros(*size, dtype=dtype or input.dtype, device=place, requires_grad=requires_grad))


@public(only="Tensor")
def new_ones(input: Tensor, *size: Any, dtype: DType = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of shape ``size``, of this tensor's dtype and device unless others are given."""
    place = input.device if device is None else device
    return beside(input, ones(*size, dtype=dtype or input.dtype, device=place, requires_grad=requires_grad))


@public(only="Tensor")
def new_empty(
    input: Tensor, *size: Any, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Arbitrary elements, of shape ``size``, of this tensor's dtype and device unless others are given."""
    place = input.device if device is None else device
    return beside(input, empty(*size, dtype=dtype or input.dtype, device=place, requires_grad=requires_grad))


@public(only="Tensor")
def new_full(
    input: Tensor, size: Any, fill_value: Any, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``fill_value`` everywhere, of shape ``size``, of this tensor's dtype and device unless others are given."""
    place = input.device if device is None else device
    return beside(input, full(size, fill_value, dtype=dtype or input.dtype, device=place, requires_grad=requires_grad))


def new_like(
    op: Any, function: str, input: Any, dtype: Any, device: Any, requires_grad: bool, memory_format: Any, **params: Any
) -> Tensor:
    """A new tensor in the shape, dtype and device of ``input`` unless others are given."""
    arguments.expect_tensor(input, "input", function)
    place = input.device if device is None else device
    made = new(op, kind(dtype, input.dtype), place, requires_grad, shape=tuple(input._data.shape), **params)
    return alike(input, beside(input, made), memory_format)


def alike(input: Tensor, made: Tensor, memory_format: Any) -> Tensor:
    """``made``, a new tensor of the shape of ``input``, in a memory format; by default it lies as that does."""
    if memory_format is not None and memory_format is not dtypes.preserve_format:
        return formats.in_format(input, made, memory_format, False)
    return formats.preserved(made, input)


@public(only="leafgrad")
def zeros_like(
    input: Tensor, *, dtype: DType = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Zeros of the shape, dtype and device of ``input``."""
    return new_like(create.zeros, "zeros_like", input, dtype, device, requires_grad, memory_format)


@public(only="leafgrad")
def ones_like(
    input: Tensor, *, dtype: DType = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Ones of the shape, dtype and device of ``input``."""
    return new_like(create.full, "ones_like", input, dtype, device, requires_grad, memory_format, value=1)


@public(only="leafgrad")
def empty_like(
    input: Tensor, *, dtype: DType = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Arbitrary elements, in the shape, dtype and device of ``input``."""
    return new_like(create.empty, "empty_like", input, dtype, device, requires_grad, memory_format)


@public(only="leafgrad")
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DType = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """``fill_value`` everywhere, in the shape, dtype and device of ``input``."""
    arguments.expect_tensor(input, "input", "full_like")
    made = new_full(input, input.shape, fill_value, dtype=dtype, device=device, requires_grad=requires_grad)
    return alike(input, made, memory_format)


# ---- evenly spaced ------------------------------------------------------------------------------------------------


@public(only="leafgrad", out="flat")
def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DType = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``start``, ``start + step``, … below ``end`` (above it if ``step`` is negative); ``arange(end)`` starts at 0.

    int64 if all three are integers, else the default dtype; of integer dtypes, ``start`` and ``step`` are cut to
    integers, and of int64 ``end``, too. (ceil((end - start) / step),)

    Raises:
        RuntimeError: ``step`` is zero, leads away from ``end``, or something is not finite.
        ValueError: ``step`` is cut to zero. TypeError: there is no bound.
    """
    if end is None:
        start, end = 0, start
    start = 0 if start is None else start
    whole = type(start) is type(end) is type(step) is int
    if not whole:
        given = ("start", start), ("end", end), ("step", step)
        start, end, step = [number(value, f"arange: {name}") for name, value in given]
        whole = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    if not whole and not (math.isfinite(start) and math.isfinite(end) and math.isfinite(step)):
        raise RuntimeError(f"arange: expected finite bounds and step, got {start}, {end}, {step}")
    if step == 0:
        raise RuntimeError("arange: step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"arange: upper bound and lower bound inconsistent with step sign, got {start}, {end}, {step}"
        )
    target = kind(dtype, dtypes.int64 if whole else None)
    if target is dtypes.int64 and not whole:
        start, end, step, whole = int(start), int(end), int(step), True
        if step == 0:
            raise ValueError("arange: step must be nonzero; in int64 it is cut to an integer")
    count = -((start - end) // step) if whole else math.ceil((end - start) / step)
    if not target.is_floating_point:
        start, step = int(start), int(step)
    return new(create.arange, target, device, requires_grad, start=start, step=step, count=count)


@public(only="leafgrad", out="flat")
def linspace(
    start: Any, end: Any, steps: int, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``steps`` points evenly from ``start`` to ``end``, both included. (steps,)

    Of integer dtypes, both are cut to integers, and so are the points.
    """
    target = _between(start, end, dtype)
    bounds = _bounds("linspace", start, end, steps, target)
    return new(create.linspace, target, device, requires_grad, **bounds)


@public(only="leafgrad", out="flat")
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` points from base**start to base**end, evenly in the exponent. (steps,)

    Of integer dtypes, ``start`` and ``end`` are cut to integers, and so are the points.
    """
    target = _between(start, end, dtype)
    bounds = _bounds("logspace", start, end, steps, target)
    return new(create.logspace, target, device, requires_grad, base=float(base), **bounds)


def _between(start: Any, end: Any, dtype: Any) -> dtypes.dtype:
    """The dtype asked for, or the default one, or the complex one of its size if a bound is complex."""
    usual = dtypes.get_default_dtype()
    return kind(dtype, usual.to_complex() if is_complex(start) or is_complex(end) else usual)


def _bounds(function: str, start: Any, end: Any, steps: int, kind: dtypes.dtype) -> dict[str, Any]:
    if (count := as_int(steps)) is None:
        raise TypeError(f"{function}: steps: expected an int, got {steps!r}")
    if count < 0:
        raise RuntimeError(f"{function}: number of steps must be non-negative, got {steps}")
    first, last = (number(v, f"{function}: {n}", kind.is_complex) for v, n in ((start, "start"), (end, "end")))
    if not kind.is_differentiable and count > 1:
        first, last = int(first), int(last)
    plain = complex if kind.is_complex else float
    return {"start": plain(first), "end": plain(last), "count": count}


@public(only="leafgrad")
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DType = dtypes.int64, device: Any = None) -> Tensor:
    """Row and column numbers of the lower triangle of a (row, col) matrix. (2, number of elements)

    Args:
        row, col: the shape of the matrix.
        offset: up to which diagonal: 0 is the main one.
    """
    return _triangle("tril_indices", row, col, offset, True, dtype, device)


@public(only="leafgrad")
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DType = dtypes.int64, device: Any = None) -> Tensor:
    """Row and column numbers of the upper triangle of a (row, col) matrix. (2, number of elements)

    Args:
        row, col: the shape of the matrix.
        offset: from which diagonal on: 0 is the main one.
    """
    return _triangle("triu_indices", row, col, offset, False, dtype, device)


def _triangle(function: str, row: int, col: int, offset: int, lower: bool, dtype: DType, device: Any) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"{function}: row and col must be non-negative, got {row} and {col}")
    target = kind(dtype, dtypes.int64)
    return new(create.triangle, target, device, False, rows=row, columns=col, offset=offset, lower=lower)
