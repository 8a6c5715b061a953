"""Numbers among an op's parameters that are known only when a program runs: they are inputs of it."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import SymbolicNumber, fixed
from leafgrad.ops.create import arange, constant
from leafgrad.ops.elementwise import add


def is_dynamic(part: Any) -> bool:
    """Whether a parameter, or a part of one, is a symbolic number that is no size, or has one among its parts."""
    if type(part) in (tuple, list):
        return any(map(is_dynamic, part))
    return type(part) is SymbolicNumber and not part._size and not part._items


def takes_dynamic(op: Any, params: dict[str, Any]) -> bool:
    """Whether an op takes such numbers, and has some among its parameters."""
    return getattr(op, "dynamic_form", None) is not None and any(map(is_dynamic, params.values()))


def with_dynamic(recorder: Any, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The Symbol of what an op makes where it takes some; None where all its parameters must be known."""
    if not takes_dynamic(op, params) or type(args[0]) is not Symbol:
        return None
    return op.dynamic_form(DynamicNumbers(recorder, args[0].value.place), *args, **params)


def fix_views(tensors: Iterable[Any], base: Any = None) -> None:
    """Bind the program to where those of ``tensors`` lie that are views, of a ``base`` perhaps.

    They are about to be written, or are tensors of the user's from now on.
    """
    known: dict[int, Any] = {}

    def fixed_path(path: Any) -> Any:
        if path is not None and id(path) not in known:
            before, (op, params) = path
            earlier = fixed_path(before)
            if earlier is not before or any(map(is_dynamic, params.values())):
                known[id(path)] = earlier, (op, {k: fixed(v, sizes=False) for k, v in params.items()})
            else:
                known[id(path)] = path  # which tells views of one memory from others
        return None if path is None else known[id(path)]

    for view in [t._view for t in tensors if t._view is not None]:
        if base is None or view.base is base:
            view.path = fixed_path(view.path)


class DynamicNumbers:
    """What an op's rule for them is given.

    Args:
        recorder: of the call.
        place: where arrays of them are to be.
    """

    def __init__(self, recorder: Any, place: tuple[str, int]) -> None:
        self.recorder, self.place = recorder, place

    def holds(self, number: Any) -> bool:
        """Whether a number is one of them."""
        return is_dynamic(number)

    def array(self, number: Any) -> Any:
        """A number as an array without dimensions, int64."""
        if not self.holds(number):
            return self.recorder.create(constant, self.place, {"value": number, "dtype": "int64"})
        return self.recorder.symbol(self.recorder.followed_input(number, ("int64", self.place)))

    def range(self, start: Any, count: Any) -> Any:
        """So many whole numbers from one on, int64, of which the count is known from here on. (count,)"""
        steps = {"start": 0, "step": 1, "count": operator.index(count), "dtype": "int64"}
        return add(self.recorder.create(arange, self.place, steps), self.array(start))
