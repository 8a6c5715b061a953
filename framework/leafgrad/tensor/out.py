"""``out=``: the result of a function written into a tensor that is given."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, Literal

from leafgrad import dtypes, modes
from leafgrad.ops import messages
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.runtime import runtime
from leafgrad.tensor.arguments import cast
from leafgrad.tensor.door import asks, door
from leafgrad.tensor.tensor import Tensor

Out = Literal["cast", "exact", "flat", "in", "like"]
"""How the result of a function goes into ``out``: cast to its dtype, which is to be of the same kind or a wider one; of
exactly its dtype; cast, and in its shape if that has as many elements; computed in its dtype; cast, but made like the
tensors among the arguments if there are any, whatever ``out`` is.
"""


def with_out(function: Any, name: str, way: Out) -> Callable[..., Any]:
    """``function``, which writes its result into ``out``, in one of the ways, where that is given."""
    behind = getattr(function, "__globals__", {}).get("_door")
    made = door(behind.function if behind else function, name=name, into=functools.partial(into, way))
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return asks(made)


def into(
    way: Out,
    out: Any,
    checked: Callable[..., Any],
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """``out``, a tensor or several, after the results of ``checked(*args, **kwargs)`` are written there.

    Args:
        function: what ``checked`` calls.

    Raises:
        TypeError: ``out`` is no tensor, or not as many as there are results.
        RuntimeError: ``out`` or the result requires grad; or the result does not fit the dtype of ``out``.
    """
    targets = out if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    watched = modes.get() & modes.GRAD and any(t.requires_grad for t in tensors((*args, *kwargs.values())))
    if modes.get() & modes.GRAD:
        refuse_grad(targets, name)
    alike = way == "like" and next(tensors((*args, *kwargs.values())), None) is not None
    if makes(function) and len(targets) == 1 and not alike:  # out says what to make
        given = kwargs.get("dtype")
        if given is not None and dtypes.check(given) is not targets[0].dtype:
            raise RuntimeError(f"{name}(): dtype {given} does not match dtype of out parameter ({targets[0].dtype})")
        kwargs = {"dtype": targets[0].dtype, "device": targets[0].device, **kwargs}
    if way == "in":
        args, kwargs = in_dtype(targets[0].dtype, function, args, kwargs)
    with modes.autocast(0), nullcontext() if watched else modes.no_grad():  # which leaves calls with out alone
        made = checked(*args, **kwargs)
    results = made if isinstance(made, tuple) else (made,)
    if watched:
        refuse_grad(results, name)
    with modes.no_grad(), modes.autocast(0):
        if len(results) != len(targets):
            raise TypeError(f"{name}(): argument 'out': expected {len(results)} tensors, got {len(targets)}")
        for result, target in zip(results, targets, strict=True):
            exact = way == "exact" or len(targets) > 1 or (way == "in" and "dtype" in kwargs)
            if exact and target.dtype is not result.dtype:
                raise RuntimeError(f"Expected out tensor to have dtype {result.dtype}, but got {target.dtype} instead")
            if way == "flat" and result.numel() == target.numel():
                result = result.reshape(target.shape)
            store(result, target)
    if not isinstance(made, tuple):
        return out
    return type(made)(*targets) if hasattr(made, "_fields") else tuple(targets)


def refuse_grad(found: Iterable[Tensor], name: str) -> None:
    """A RuntimeError if something requires grad: a target, or a result because an argument does."""
    if any(t.requires_grad for t in found):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )


def makes(function: Callable[..., Any]) -> bool:
    """Whether a function makes a tensor of sizes or numbers, of a dtype and on a device."""
    return {"dtype", "device"} <= inspect.signature(function).parameters.keys()


def in_dtype(dtype: dtypes.dtype, function: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with which ``function`` computes in ``dtype``: that itself, or converted where nothing is lost."""
    if "dtype" in inspect.signature(function).parameters:
        return args, kwargs if kwargs.get("dtype") is not None else {**kwargs, "dtype": dtype}
    return tuple([finer(a, dtype) for a in args]), {name: finer(a, dtype) for name, a in kwargs.items()}


def finer(value: Any, dtype: dtypes.dtype) -> Any:
    """``value``, converted to ``dtype`` if it is a tensor of numbers that have less digits."""
    takes = isinstance(value, Tensor) and value.dtype.is_differentiable
    return cast(value, dtype) if takes and dtypes.promote_types(value.dtype, dtype) is dtype else value


def tensors(values: Any) -> Iterator[Tensor]:
    """The tensors among ``values`` and in lists, tuples and dicts there."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list, dict)):
            yield from tensors(value.values() if isinstance(value, dict) else value)


def store(result: Tensor, target: Tensor) -> None:
    """Write ``result`` into ``target``, which gets its shape."""
    from leafgrad.tensor.inplace import check

    if result.dtype.category > target.dtype.category:
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
    if result.device != target.device:
        raise RuntimeError(
            f"Expected all tensors to be on the same device: out is on {target.device}, the result on {result.device}"
        )
    check(target, "copy")
    if isinstance(result._data, SymbolBase):
        result._data.check_target(target._data)
    if result.shape != target.shape:
        if target.numel():
            messages.warn(
                f"An output with one or more elements was resized since it had shape {list(target.shape)}, which does "
                f"not match the required output shape {list(result.shape)}. This behavior is deprecated. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        target.resize_(result.shape)
    target.copy_(result)


runtime.with_out = with_out
