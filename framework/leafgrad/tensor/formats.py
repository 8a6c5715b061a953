"""Memory formats: ``contiguous``, ``is_contiguous`` and ``to`` with ``channels_last``.

A tensor in ``channels_last`` has the same elements under the same indices; its channels lie next to each other.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from leafgrad import dtypes, modes
from leafgrad.ops import dispatch, shape as ops
from leafgrad.ops.convert import clone, contiguous as in_order
from leafgrad.ops.geometry import inverse, memory_order
from leafgrad.ops.node import SymbolBase
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

F = TypeVar("F", bound=Callable[..., Any])

RANKS = {dtypes.channels_last: 4, dtypes.channels_last_3d: 5}
PLAIN = (None, dtypes.contiguous_format, dtypes.preserve_format)
_permute = ops.permute.function


def layout(input: Tensor) -> Any:
    """The raw data of a tensor, or in a trace an array with its strides."""
    tracer = modes.tracer()
    return tracer.layout(input) if tracer else input._data


def checked(memory_format: Any, function: str) -> Any:
    """``memory_format`` if it is one, or None; else a TypeError."""
    if memory_format is None or isinstance(memory_format, dtypes.memory_format):
        return memory_format
    raise TypeError(
        f"{function}(): argument 'memory_format' must be {dtypes.namespace}.memory_format, not "
        f"{type(memory_format).__name__}"
    )


def order(ndim: int, memory_format: Any, function: str) -> tuple[int, ...] | None:
    """The dimensions in the order of memory, outermost first; None if that is their own.

    Raises:
        RuntimeError: not as many dimensions as the format has. TypeError: it is no memory format.
    """
    if checked(memory_format, function) in PLAIN:
        return None
    rank = RANKS[memory_format]
    if ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")
    return (0, *range(2, rank), 1)


def strides(shape: tuple[int, ...], memory_format: Any, function: str) -> tuple[int, ...]:
    """The strides of a tensor of ``shape`` without gaps in a memory format, in elements."""
    steps, step = [0] * len(shape), 1
    for d in reversed(order(len(shape), memory_format, function) or range(len(shape))):
        steps[d], step = step, step * max(shape[d], 1)
    return tuple(steps)


@public(only="Tensor")
def is_contiguous(input: Tensor, memory_format: Any = dtypes.contiguous_format) -> bool:
    """Whether the elements lie in memory in order and without gaps: that of the dimensions, or of a memory format."""
    data = layout(input)
    plain = checked(memory_format, "is_contiguous") in PLAIN
    if plain and not isinstance(data, SymbolBase):
        return bool(data.flags.c_contiguous)
    if plain and 0 in data.shape:
        return True
    if not plain and input.ndim != RANKS[memory_format]:
        return False
    steps, expected = input.stride(), 1
    for d in reversed(order(input.ndim, memory_format, "is_contiguous") or range(input.ndim)):
        if input.shape[d] != 1 and steps[d] != expected:
            return False
        expected *= input.shape[d]
    return True


@public(only="Tensor")
def contiguous(input: Tensor, memory_format: Any = dtypes.contiguous_format) -> Tensor:
    """The tensor itself if it lies in memory like that, else a copy that does."""
    return input if is_contiguous(input, memory_format) else laid_out(input, memory_format, "contiguous")


def laid_out(input: Tensor, memory_format: Any, function: str) -> Tensor:
    """A copy in a memory format."""
    ordered = order(input.ndim, memory_format, function)
    if ordered is None:
        return in_order(input)
    return alone(_permute(in_order(_permute(input, dims=ordered)), dims=inverse(ordered)))


def in_format(input: Tensor, out: Tensor, memory_format: Any, copy: bool) -> Tensor:
    """``out``, which ``input`` became in another dtype or place, in a memory format; itself if that is what it has.

    ``input`` itself has the format of images only if its strides can be no others, as in PyTorch.
    """
    if out is not input:
        lies = out.stride() == strides(out.shape, memory_format, "to")
    elif images(out.shape, out.stride()) is None:
        lies = memory_format is dtypes.contiguous_format and not copy
    else:
        lies = RANKS.get(memory_format) == out.ndim and not copy
    return out if lies else laid_out(out, memory_format, "to")


def follow(out: Tensor, order: Sequence[int] | None) -> Tensor:
    """``out``, which nobody else has yet, with its dimensions in memory in this order, or in their own."""
    if tracer := modes.tracer():
        out = out if out._view is None else clone(out)  # memory of its own, which a view has not
        tracer.lay_out(out._data, order)
    else:
        out._data = dispatch.ordered(out._data, tuple(order or range(out._data.ndim)))
    return out


def preserved(out: Tensor, like: Tensor) -> Tensor:
    """``out``, which nobody else has yet, with its dimensions in memory in the order that those of ``like`` have."""
    data = dispatch.sample(layout(like))
    if data is None or data.flags.c_contiguous or like._data.shape != out._data.shape:
        return out
    return follow(out, memory_order(data.shape, (data.strides,)))


def channels_last(t: Any) -> tuple[int, ...] | None:
    """The order of a tensor's dimensions in memory, outermost first, if that is ``channels_last``."""
    data = layout(t) if isinstance(t, Tensor) else None
    if data is None or isinstance(data, SymbolBase) or data.flags.c_contiguous:  # as mostly
        return None
    return images(data.shape, data.strides)


def images(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """The order of dimensions in memory, outermost first, if strides say that it is ``channels_last``."""
    ndim = len(shape)
    if ndim not in RANKS.values() or not strides[1]:
        return None
    order, least = (0, *range(2, ndim), 1), 0
    for d in reversed(order):
        step = strides[d]
        if not shape[d] or step < least or (d == 0 and least == strides[1]):
            return None
        least = step * max(shape[d], 1)
    return order


def keeps_channels_last(function: F) -> F:
    """A function of channels whose results, where they are new, keep ``channels_last``, as in PyTorch.

    So they do where what it is called with as ``weight`` lies like that, if it has as many dimensions.
    """
    weighs = list(inspect.signature(function).parameters)[1:2] == ["weight"]

    @functools.wraps(function)
    def keeping(input: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(input, *args, **kwargs)
        order = None if in_rows(input) else channels_last(input)
        if order is None and weighs and args and not in_rows(args[0]):
            order = channels_last(args[0])
        return result if order is None else as_channels_last(result, input, order)

    return cast(F, keeping)


def in_rows(t: Any) -> bool:
    """Whether an argument is no tensor, or one that is known to lie in memory in the order of its dimensions."""
    data = t._data if isinstance(t, Tensor) else None
    return data is None or (not isinstance(data, SymbolBase) and data.flags.c_contiguous)


def as_channels_last(result: Any, input: Any, order: Sequence[int] | None) -> Any:
    """What a function gave of ``input``, one tensor or several, in an ``order`` of memory where it is new."""
    if order is None:
        return result
    if isinstance(result, tuple):
        return tuple([as_channels_last(out, input, order) for out in result])
    base = None if result._view is None else result._base
    known = result is input or (base is not None and (base is input or base is input._base))
    return result if known or result.ndim != len(order) else follow(result, order)


attach("layout", property(lambda self: dtypes.strided, doc="How the elements lie in memory: leafgrad.strided."))
