"""Whether executed code asks if two values are one object, where guards compare values alone: of numbers, say."""

from __future__ import annotations

import builtins
import types
from typing import Any

from leafgrad.compile.ir.attributes import attribute_of_class
from leafgrad.compile.record.compared import SINGLE, UNKNOWN, Operand, scan
from leafgrad.compile.record.watch import Codes, is_library, source_of

VALUES = (int, float, complex, str, bytes, tuple, list, dict, slice)  # of which guards may take an equal one
MODULES = frozenset({"builtins", "__builtins__", "__import__", "import_module"})  # who names these may reach ``id``
STORING = frozenset({"setattr", "__setattr__", "__dict__", "vars", "delattr"})  # which store by any name


def held(names: tuple[str, ...], scope: dict[str, Any]) -> Any:
    """The value of a global, or of an attribute of a module or a class, or UNKNOWN."""
    if not names:
        return UNKNOWN
    value = scope.get(names[0], vars(builtins).get(names[0], UNKNOWN))
    for name in names[1:]:
        if isinstance(value, types.ModuleType):
            value = vars(value).get(name, UNKNOWN)
        else:
            value = attribute_of_class(value, name) if isinstance(value, type) else UNKNOWN
    return value


def may_have_equals(side: Operand, scope: dict[str, Any]) -> bool:
    """Whether an operand may be of a type of which guards take an equal value for the same."""
    value = UNKNOWN if side.given else held(side.names, scope)
    return value is UNKNOWN or (isinstance(value, VALUES) and not isinstance(value, SINGLE))


def asks_identity(codes: Codes) -> bool:
    """Whether code of the user may ask if two numbers, strings, tuples, lists or dicts are one object."""
    users = [(code, scope) for code, scope in codes if not is_library(source_of(code, scope))]
    names = {name for code, _ in users for name in code.co_names}
    stored = None if not names.isdisjoint(STORING) else frozenset[str]().union(*(scan(code)[1] for code, _ in users))
    for code, scope in users:
        found, _, asking = scan(code)
        if any(is_asking(side, scope, names) for side in asking):
            return True
        of_equals = codes.sides_with_equals(code, scope) if found else set()
        for i, pair in enumerate(found):
            sides = [side for j, side in enumerate(pair) if (i, j) in of_equals or not stays(side, stored)]
            if len(sides) == 2 and all(may_have_equals(side, scope) for side in sides):
                return True
    return False


def stays(side: Operand, stored: frozenset[str] | None) -> bool:
    """Whether what a function was given is still that where it is compared, if these names get something else."""
    return side.given and stored is not None and stored.isdisjoint(side.names)


def is_asking(side: Operand, scope: dict[str, Any], names: set[str]) -> bool:
    """Whether a function that is named like one that asks may be it; held by an object, it is found there."""
    value = UNKNOWN if side.given else held(side.names, scope)
    if side.names[-1:] == ("id",) or not side.names:
        return value is id or (len(side.names) < 2 and value is UNKNOWN) or not names.isdisjoint(MODULES)
    return True
