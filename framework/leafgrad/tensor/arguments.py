"""Checks of arguments shared by the public functions, and the words of their errors."""

from __future__ import annotations

import itertools
import numbers
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from leafgrad import devices, dtypes
from leafgrad.ops.convert import to_dtype
from leafgrad.ops.messages import describe, warn
from leafgrad.ops.node import SymbolBase, T, TensorBase
from leafgrad.ops.scalars import as_int
from leafgrad.ops.traits import ALL

if TYPE_CHECKING:
    from leafgrad.tensor.tensor import Tensor

Dim = int | Iterable[int] | None
INTS = frozenset({int})
_to_dtype = to_dtype.function


def expect_tensor(value: Any, name: str, function: str) -> Tensor:
    """``value`` if it is a Tensor, else a TypeError."""
    given: Any = value
    if not isinstance(value, TensorBase):
        kind = type(value).__name__
        raise TypeError(f"{function}(): argument {name!r} must be Tensor, not {kind}{no_tensor(value)}")
    return given


def no_tensor(value: Any) -> str:
    """The remedy for a value that should be a Tensor."""
    if value is None:
        return "; a function that ends without return gives None"
    parameters = [f".{name}" for name, _ in value.named_parameters()] if hasattr(value, "named_parameters") else []
    return f"; pass its {parameters[0]}" if parameters else "; make one with leafgrad.tensor(...)"


def integer(value: Any, name: str, function: str) -> int:
    """``value`` as an int, else a TypeError. Tensors of one integer are taken, floats and bools are not."""
    if type(value) is int:
        return value
    if (found := as_int(value)) is not None:
        return operator.index(found)
    raise TypeError(f"{function}(): argument {name!r} must be int, not {type(value).__name__}")


def number(value: Any, name: str, function: str, may_be_complex: bool = False) -> Any:
    """``value`` as a number, real unless it ``may_be_complex``, else a TypeError.

    NumPy's numbers are taken, and tensors of one without dimensions that do not require grad.
    """
    kind: Any = value.__class__  # what a compiled step follows says that it is a float
    if may_be_complex and isinstance(value, complex):
        return value
    if isinstance(value, (int, float, numbers.Real)):  # those of Python are known sooner
        if kind is float or isinstance(value, int):
            return value
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    given: Any = value
    if isinstance(value, TensorBase) and not given.shape and not given.requires_grad:
        return number(given.item(), name, function, may_be_complex)
    raise TypeError(f"{function}(): argument {name!r} must be Number, not {type(value).__name__}")


def one_dim(input: Any, dim: Any, function: str = "", *, name: str = "dim", extra: int = 0) -> int:
    """``dim`` of ``input`` as a non-negative int. A 0-d tensor has one dimension for this purpose.

    Args:
        function: whose argument ``name`` it is, for the error.
        extra: 1 where a dimension is inserted, so that ``dim`` may be one beyond the last.

    Raises:
        IndexError: ``dim`` is out of range. TypeError: it is not an int.
    """
    if type(dim) is not int:
        dim = integer(dim, name, function or "dim")
    ndim: int = (input._data.ndim + extra) or 1
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
            + (f", in {function}()" if function else "")
        )
    return dim + ndim if dim < 0 else dim


def dims(input: Any, dim: Dim, function: str = "") -> tuple[int, ...]:
    """The dimensions of ``input`` that ``dim`` names, non-negative and sorted; all for None and for ().

    Raises:
        IndexError: one is out of range. RuntimeError: one is named twice. TypeError: not ints.
    """
    ndim: int = input._data.ndim
    if dim is None:
        return ALL[ndim]
    if type(dim) is int:
        if 0 <= dim < ndim:
            return (dim,)
        found = [one_dim(input, dim, function)]
        return tuple(found) if ndim else ()
    if not isinstance(dim, (tuple, list)):
        return dims(input, integer(dim, "dim", function or "dim"), function)
    found = sorted([one_dim(input, d, function) for d in dim])
    for a, b in itertools.pairwise(found):
        if a == b:
            raise RuntimeError(f"dim {a} appears multiple times in the list of dims" + _inside(function))
    if not ndim:
        return ()
    return tuple(found) or tuple(range(ndim))


def _inside(function: str) -> str:
    return f", in {function}()" if function else ""


def shape(args: tuple[Any, ...], function: str = "size", name: str = "size") -> tuple[int, ...]:
    """The sizes in ``f(2, 3)``, ``f((2, 3))`` or ``f([2, 3])`` as a tuple of ints. -1 is let through.

    Raises:
        TypeError: something is not an int.
    """
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    if INTS.issuperset(map(type, args)):
        return args
    try:
        return tuple([a if a.__class__ is int else integer(a, name, function) for a in args])  # or says that it is one
    except TypeError:
        kinds = [a.__class__ for a in args]  # what a compiled step follows says that it is a float
        wrong, kind = next(
            (a, k)
            for a, k in zip(args, kinds, strict=True)
            if k is bool or not hasattr(k, "__index__") or hasattr(a, "ndim")
        )
        raise TypeError(
            f"{function}(): argument {name!r} must be tuple of ints, got {describe(wrong)} ({kind.__name__})"
        ) from None


def cast(input: T, dtype: Any) -> T:
    """``input`` converted to ``dtype``; unchanged if that is None or its own."""
    if dtype is None:
        return input
    source, target = dtypes.of(input._data), dtypes.check(dtype)
    if source.is_complex and not (target.is_complex or target is dtypes.bool_):
        raise RuntimeError(f"expected a tensor of real numbers, got {source}; take .real, .imag or abs() of it")
    return input if source is target else _to_dtype(input, dtype=target.name, source=source.name)


def discarding(input: Any, dtype: dtypes.dtype) -> Any:
    """``cast`` of what a caller asked for: complex numbers lose their imaginary part, with a warning."""
    source = dtypes.of(input._data)
    if not source.is_complex or dtype.is_complex or dtype is dtypes.bool_:
        return cast(input, dtype)
    warn("Casting complex values to real discards the imaginary part; write .real for it")
    return _to_dtype(input, dtype=dtype.name, source=source.name)


def widened(input: T, dtype: Any) -> T:
    """``input``, converted to ``dtype`` if given, as sums and products take it: integers and bools as int64."""
    x = input if dtype is None else discarding(input, dtypes.check(dtype))
    wide = x._data.dtype in dtypes.DIFFERENTIABLE or dtypes.of(x._data).is_differentiable
    return x if wide else cast(x, dtypes.int64)


def expect_real(input: T, function: str) -> T:
    """``input``, a Tensor, if it is not complex, else a NotImplementedError."""
    if (found := dtypes.of(input._data)).is_complex:
        raise NotImplementedError(
            f"{function}: not implemented for {found}; compute with .real and .imag, or with abs()"
        )
    return input


def expect_differentiable(input: T, function: str, error: type[Exception] = RuntimeError) -> T:
    """``input`` if its dtype is a floating or a complex one, else an ``error``."""
    if isinstance(input, TensorBase) and dtypes.of(input._data).is_complex:
        return input
    return expect_floating(input, function, error)


def expect_floating(input: T, function: str, error: type[Exception] = RuntimeError) -> T:
    """``input`` if its dtype is a floating one, else an ``error``."""
    if isinstance(input, TensorBase) and input._data.dtype in dtypes.FLOATING:
        return input
    found = dtypes.of((input if isinstance(input, TensorBase) else expect_tensor(input, "input", function))._data)
    if not found.is_floating_point:
        raise error(
            f"{function}(): input dtype: expected a floating point dtype, got {found}; convert it with .float()"
        )
    return input


def expect_fitting(value: Tensor, shape: tuple[int, ...], name: str, function: str) -> None:
    """A RuntimeError unless ``value`` broadcasts to ``shape`` and does not enlarge it."""
    given = expect_tensor(value, name, function)._data.shape
    sizes = zip(reversed(given), reversed(shape), strict=False)
    if given != shape and (len(given) > len(shape) or any(n not in (1, size) for n, size in sizes)):
        raise RuntimeError(f"{function}: {name}: expected a shape that broadcasts to {list(shape)}, got {list(given)}")


def _only(before: Any, value: Any, what: str) -> Any:
    if before is not None:
        raise TypeError(f"to(): expected one {what}, got {before} and {value}")
    return value


def destination(*args: Any, **kwargs: Any) -> tuple[devices.device | None, dtypes.dtype | None, bool]:
    """Device, dtype and whether to copy, of the arguments of ``to``; a TypeError if they are not its."""
    place, kind, copy = kwargs.pop("device", None), kwargs.pop("dtype", None), kwargs.pop("copy", False)
    kwargs.pop("non_blocking", None)
    switches: list[bool] = []  # PyTorch's positional non_blocking, and copy
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
    for a in args:
        if isinstance(a, TensorBase):
            like: Any = a
            place, kind = like.device, like.dtype
        elif isinstance(a, (str, int, devices.device)) and not isinstance(a, bool):
            place = _only(place, a, "device")
        elif isinstance(a, (dtypes.dtype, type)):  # one of Python's, as float
            kind = _only(kind, a, "dtype")
        elif isinstance(a, bool):
            switches.append(a)
        elif a is not None:
            raise TypeError(f"to(): expected a dtype, a device or a Tensor, got {a!r}")
    device, dtype = None if place is None else devices.given(place), None if kind is None else dtypes.check(kind)
    return device, dtype, bool(copy) or switches[1:] == [True]


def first_of(numbers: Any, fits: Callable[[int], bool]) -> str:
    """The first of some integers that ``fits``, behind a space; nothing where they are not known yet."""
    if isinstance(numbers._data, SymbolBase):
        return ""
    return next((f" {n}" for n in numbers.reshape(-1).tolist() if fits(n)), "")
