"""Whether executed code asks if two values are one object, where guards compare values alone: of numbers, say."""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import types
from typing import Any

from leafgrad.compile.ir.attributes import attribute_of_class
from leafgrad.compile.record.watch import Codes, is_library, source_of

ASKING = frozenset({"id", "is_", "is_not"})  # functions that ask
ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
VARIABLE = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
VALUES = (int, float, complex, str, bytes, tuple, list, dict, slice)  # of which guards may take an equal one
SINGLE: tuple[Any, ...] = (bool, types.NoneType, types.EllipsisType, enum.Enum)
UNKNOWN: Any = object()

Operand = tuple[str, ...]  # a global and its attributes; nothing if it is something else


@functools.cache
def operands(code: types.CodeType) -> tuple[tuple[Operand, Operand], ...]:
    """What code compares by ``is``, but for comparisons with None and its like."""
    found, steps = [], list(dis.get_instructions(code))
    for i, step in enumerate(steps):
        if step.opname == "IS_OP":
            right, k = operand(steps, i - 1)
            left, _ = operand(steps, k) if k is not None else ((), None)
            if left is not None and right is not None:
                found.append((left, right))
    return tuple(found)


def operand(steps: list[dis.Instruction], k: int) -> tuple[Operand | None, int | None]:
    """The operand that step ``k`` has put on the stack, None for None and its like, and the step before it."""
    names = []
    while steps[k].opname in ATTRIBUTE:
        names.append(steps[k].argval)
        k -= 1
    step = steps[k]
    if not names and step.opname.startswith("LOAD_") and "CONST" in step.opname:
        return (None if isinstance(step.argval, SINGLE) else ()), k - 1
    if step.opname in VARIABLE:
        return (step.argval, *reversed(names)), k - 1
    return (), k - 1 if step.opname.startswith("LOAD_") and isinstance(step.argval, str) else None


def held(names: Operand, scope: dict[str, Any]) -> Any:
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


def may_have_equals(names: Operand, scope: dict[str, Any]) -> bool:
    """Whether an operand may be of a type of which guards take an equal value for the same."""
    value = held(names, scope)
    return value is UNKNOWN or (isinstance(value, VALUES) and not isinstance(value, SINGLE))


def asks_identity(codes: Codes) -> bool:
    """Whether code of the user may ask if two numbers, strings, tuples, lists or dicts are one object."""
    return any(
        not ASKING.isdisjoint(code.co_names)
        or any(may_have_equals(left, scope) and may_have_equals(right, scope) for left, right in operands(code))
        for code, scope in codes
        if not is_library(source_of(code, scope))
    )
