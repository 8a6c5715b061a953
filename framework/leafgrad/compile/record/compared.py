"""What code compares by ``is``, and whether an execution of it compared two values that may have equals."""

from __future__ import annotations

import dis
import enum
import functools
import inspect
import os
import types
from typing import Any, NamedTuple

from leafgrad.compile.ir.attributes import attribute_of, attribute_of_class
from leafgrad.compile.record.bytecode import instructions
from leafgrad.ops import messages
from leafgrad.ops.node import TensorBase

ASKING = frozenset({"id", "is_", "is_not"})  # functions that ask
ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
VARIABLE = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
SINGLE: tuple[Any, ...] = (bool, types.NoneType, types.EllipsisType, enum.Enum)
UNKNOWN: Any = object()
OURS = messages.PACKAGE + os.sep


class Operand(NamedTuple):
    """What is compared: a global or what a function is given, and its attributes; no names if it is something else."""

    given: bool
    names: tuple[str, ...]


OTHER = Operand(False, ())
Pair = tuple[Operand, Operand]
Side = tuple[int, int]  # of which comparison in code, and whether it is the right one


def operands(code: types.CodeType) -> tuple[Pair, ...]:
    """What code compares by ``is``, but for comparisons with None and its like."""
    return scan(code)[0]


@functools.cache
def scan(code: types.CodeType) -> tuple[tuple[Pair, ...], frozenset[str], tuple[Operand, ...]]:
    """What code compares by ``is``, what names it gives to attributes and variables of others, and what may ask."""
    found, asking, steps = list[Pair](), list[Operand](), list(instructions(code))
    bound = {step.argval for step in steps if step.opname.startswith(("STORE_", "DELETE_"))}
    for i, step in enumerate(steps):
        if step.opname == "IS_OP":
            right, k = operand(steps, i - 1, code, bound)
            left, _ = operand(steps, k, code, bound) if k is not None else (OTHER, None)
            if left is not None and right is not None:
                found.append((left, right))
        elif step.argval in ASKING and step.opname in ATTRIBUTE | VARIABLE | {"IMPORT_FROM"}:
            function = operand(steps, i, code, bound)[0] or OTHER
            of_unknown = function is OTHER and step.opname in ATTRIBUTE
            asking.append(Operand(False, ("", step.argval)) if of_unknown else function)
    own = {"STORE_FAST", "STORE_GLOBAL", "STORE_NAME"}
    stored = {s.argval for s in steps if s.opname.startswith("STORE_") and s.opname not in own}
    return tuple(found), frozenset(stored), tuple(asking)


def operand(
    steps: list[dis.Instruction], k: int, code: types.CodeType, bound: set[str]
) -> tuple[Operand | None, int | None]:
    """The operand that step ``k`` has put on the stack, None for None and its like, and the step before it."""
    names = []
    while steps[k].opname in ATTRIBUTE:
        names.append(steps[k].argval)
        k -= 1
    step = steps[k]
    if not names and step.opname.startswith("LOAD_") and "CONST" in step.opname:
        return (None if isinstance(step.argval, SINGLE) else OTHER), k - 1
    if step.opname in VARIABLE:
        return Operand(False, (step.argval, *reversed(names))), k - 1
    if not step.opname.startswith("LOAD_") or not isinstance(step.argval, str):
        return OTHER, None
    count = code.co_argcount + code.co_kwonlyargcount
    known = step.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) and step.argval not in bound
    if known and step.argval in (*code.co_varnames[:count], *code.co_freevars):
        return Operand(True, (step.argval, *reversed(names))), k - 1
    return OTHER, k - 1


def sides_with_equals(code: types.CodeType, variables: dict[str, Any]) -> set[Side]:
    """Which sides of comparisons in code may be of values that have equals, by the variables with which it begins."""
    return {
        (i, j)
        for i, pair in enumerate(operands(code))
        for j, side in enumerate(pair)
        if not side.given or has_equals(value_in(side.names, variables))
    }


def value_in(names: tuple[str, ...], variables: dict[str, Any]) -> Any:
    """The value of a variable, or of attributes that no code of a class computes, or UNKNOWN."""
    value = variables.get(names[0], UNKNOWN)
    for name in names[1:]:
        kind = type(value)
        if attribute_of_class(kind, "__getattribute__") is not object.__getattribute__:
            return UNKNOWN
        asked = attribute_of_class(kind, "__getattr__")
        held = inspect.getattr_static(value, name, UNKNOWN)
        if held is UNKNOWN and isinstance(asked, types.FunctionType) and asked.__code__.co_filename.startswith(OURS):
            tables = [
                (attribute_of(value, "__dict__") or {}).get(table, {})
                for table in ("_parameters", "_buffers", "_modules")
            ]
            held = next((table[name] for table in tables if name in table), UNKNOWN)
        if attribute_of_class(type(held), "__get__") is not None:
            return UNKNOWN
        value = held
    return value


def has_equals(value: Any) -> bool:
    """Whether another object may be equal to a value, as far as guards see."""
    kind = type(value)
    single = issubclass(kind, (*SINGLE, TensorBase)) or attribute_of_class(kind, "__eq__") is object.__eq__
    return value is UNKNOWN or not single
