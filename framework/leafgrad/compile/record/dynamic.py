"""Numbers among an op's parameters that are known only when a program runs: they are inputs of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leafgrad.compile.record.symbolic import SymbolicNumber, fixed
from leafgrad.ops.create import arange
from leafgrad.ops.elementwise import add


def is_dynamic(part: Any) -> bool:
    """Whether a parameter, or a part of one, is a symbolic number that is no size, or has one among its parts."""
    if type(part) in (tuple, list):
        return any(map(is_dynamic, part))
    return type(part) is SymbolicNumber and not part._size and not part._items


def takes_dynamic(op: Any, params: dict[str, Any]) -> bool:
    """Whether an op takes such numbers, and has some among its parameters."""
    return getattr(op, "dynamic_form", None) is not None and any(map(is_dynamic, params.values()))


def fix_views(tensors: Iterable[Any], base: Any = None) -> None:
    """Bind the program to where those of ``tensors`` lie that are views, of a ``base`` perhaps.

    They are about to be written, or are tensors of the user's from now on.
    """
    known: dict[int, Any] = {}

    def fixed_path(path: Any) -> Any:
        if path is not None and id(path) not in known:
            before, (op, params) = path
            known[id(path)] = fixed_path(before), (op, {k: fixed(v, sizes=False) for k, v in params.items()})
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
        """One as an array without dimensions, int64."""
        return self.recorder.symbol(self.recorder.followed_input(number, ("int64", self.place)))

    def range(self, start: Any, count: int) -> Any:
        """So many whole numbers from one of them on, int64. (count,)"""
        steps = self.recorder.create(arange, self.place, {"start": 0, "step": 1, "count": count, "dtype": "int64"})
        return add(steps, self.array(start))
