"""Which functions were looked at, so that a lambda in a loop, which is made anew each time, is not looked at again."""

from __future__ import annotations

from dis import get_instructions
from functools import lru_cache
from inspect import isfunction
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from leafgrad import Tensor

EQUAL = (int, float, complex, str, bytes, tuple, type(None), np.generic, CodeType)  # what is the same if it is equal
LASTING = (FunctionType, BuiltinFunctionType, ModuleType, np.ufunc)
SMALL = 2**12  # elements of an array, or of a tensor, that are compared
IMMUTABLE = 1 << 8  # the flag of classes that nobody changes, as those of C are
GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")


class Remembered:
    """For each object that was asked for functions which these were, as long as the object is there.

    A function is another if anything that it is made of is: its code, or what this finds by name, such as another
    function or a number. Of one that is made of what may change unseen, as a list may, nothing is remembered.
    """

    def __init__(self) -> None:
        self.parts: WeakKeyDictionary[Any, dict[CodeType, list[Any]]] = WeakKeyDictionary()

    def has(self, asked: Any, function: Any) -> bool:
        """Whether an object was asked for a function that is the same."""
        parts = made_of(function)
        before = self.parts.get(asked, {}).get(function.__code__) if parts else None
        return before is not None and len(before) == len(parts) and all(map(same, before, parts))

    def add(self, asked: Any, function: Any) -> None:
        if parts := made_of(function):
            self.parts.setdefault(asked, {})[function.__code__] = parts


def made_of(function: Any) -> list[Any]:
    """What a function of Python computes with; [] of others, and of those with parts that may change unseen."""
    todo, found, seen = [function], list[Any](), set[FunctionType]()
    while todo and isfunction(function):
        part = todo.pop()
        if isinstance(part, Tensor) and part.device.type == "cpu":
            part = part.detach().numpy()
        if isinstance(part, tuple):
            todo += part
        elif isinstance(part, np.ndarray) and part.size <= SMALL and not part.dtype.hasobject:
            found += [part.shape, part.dtype.str, part.tobytes()]
        elif not (isinstance(part, (*EQUAL, *LASTING)) or (isinstance(part, type) and part.__flags__ & IMMUTABLE)):
            return []
        elif isfunction(part) and part.__globals__ is function.__globals__:  # else it is a library's
            found.append(part.__code__)
            todo += [] if part in seen else taken_by(part)
            seen.add(part)
        else:
            found.append(part)
    return found


def taken_by(function: FunctionType) -> list[Any]:
    """What a function finds by name, in modules, too, and what it has as defaults and from around it."""
    names, attributes = names_in(function.__code__)
    found = [function.__globals__[name] for name in names if name in function.__globals__]
    for module in [part for part in found if isinstance(part, ModuleType)]:
        inside = [vars(module)[name] for name in attributes if name in vars(module)]
        found += [part for part in inside if isinstance(part, (*EQUAL, *LASTING, np.ndarray, Tensor, type))]
    cells = [contents(cell) for cell in function.__closure__ or ()]
    return [*found, *cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def contents(cell: CellType) -> Any:
    """What a cell holds; None of a variable that has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


@lru_cache(maxsize=256)
def names_in(code: CodeType) -> tuple[list[str], list[str]]:
    """The global names in code and in what it defines, and all others that it looks up."""
    names, every, codes = set[str](), set[str](), [code]
    for part in codes:
        names |= {step.argval for step in get_instructions(part) if step.opname in GLOBAL}
        every |= set(part.co_names)
        codes += [constant for constant in part.co_consts if isinstance(constant, CodeType)]
    return sorted(names), sorted(every - names)


def same(one: Any, other: Any) -> bool:
    """Whether a function computes the same kind of thing with either: with any two floats, unless one is zero."""
    if isinstance(one, float) and isinstance(other, float):
        return bool(one) == bool(other)
    return one is other or (isinstance(one, EQUAL) and type(one) is type(other) and bool(one == other))
