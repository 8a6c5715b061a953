"""Functions of several ops that autocast takes in one dtype as a whole, as PyTorch lists them for the CPU.

Ops declare by ``op.autocast`` what they take alone; within a function that is declared here autocast is off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, cast

from leafgrad import dtypes, modes
from leafgrad.ops import promotion
from leafgrad.tensor import arguments
from leafgrad.tensor.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
Way = Literal["lower", "float32", "widest", "given"]
"""That of autocast, float32, the widest that the tensors have, or whichever they have."""


def autocast(way: Way) -> Callable[[F], F]:
    """Decorate a function that autocast runs in one dtype; float64 stays, and so does what autocast is off for."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if not modes.get() & modes.AUTOCAST:
                return function(*args, **kwargs)
            values = _together((*args, *kwargs.values()), way)
            with modes.autocast(0):
                return function(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True)))

        return cast(F, called)

    return decorate


def _together(values: Iterable[Any], way: Way) -> list[Any]:
    """Arguments, of which tensors are in the dtype that they are to have."""
    found = [(value, promotion.lowest(value) if isinstance(value, Tensor) else None) for value in values]
    kinds = [value.dtype for value, low in found if low is not None]
    if way == "given" or not kinds:
        return [value for value, _ in found]
    kind = functools.reduce(dtypes.promote_types, kinds) if way == "widest" else dtypes.float32
    return [value if low is None else arguments.cast(value, low if way == "lower" else kind) for value, low in found]
