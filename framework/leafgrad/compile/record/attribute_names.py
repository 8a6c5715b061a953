"""Which names code gives to ``getattr`` and its like: those that stand in it, or ones that it computes."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterable

from leafgrad.compile.record.bytecode import instructions

FUNCTIONS = frozenset({"getattr", "hasattr", "setattr", "delattr"})
METHODS = {"__getattribute__": 1, "__getattr__": 1, "__delattr__": 1, "__setattr__": 2}  # how much each is given
BY_NAME = FUNCTIONS | METHODS.keys()
OF_EXPRESSIONS = tuple("LOAD_ BINARY_ COMPARE_ IS_ CONTAINS_ UNARY_ BUILD_ FORMAT_ TO_BOOL PUSH_NULL".split())
OF_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
UNSEEN = ("CACHE", "PRECALL", "EXTENDED_ARG", "NOP", "NOT_TAKEN")


@functools.cache
def names_given(code: types.CodeType) -> frozenset[str] | None:
    """The names of attributes that a code object reads or writes by functions; None if it computes one of them.

    A method of ``METHODS`` may ask its own object for the name that it was called with, which other code has.
    """
    found: set[str] = set()
    steps = [step for step in instructions(code) if step.opname not in UNSEEN]
    for i, step in enumerate(steps):
        if step.argval not in BY_NAME:
            continue
        arguments = _arguments(steps[i + 1 :])
        at = len(arguments) - METHODS.get(step.argval, len(arguments) - 1)
        if not 0 <= at < min(len(arguments), 2):
            return None
        of_self = at == 1 and _variable(arguments[0]) in code.co_varnames[:1]
        if at == 1 and step.argval in METHODS and not of_self:
            return None
        name = arguments[at]
        if name is not None and name.opname == "LOAD_CONST" and str(name.argval).isidentifier():
            found.add(str(name.argval))
        elif not (_was_given(code, name) and (of_self or _is_of_super(steps[: i + 1]))):
            return None
    return frozenset(found)


def _was_given(code: types.CodeType, step: dis.Instruction | None) -> bool:
    """Whether a step loads the name with which a method of ``METHODS`` was called."""
    takes = METHODS.get(code.co_name)
    if takes is None or code.co_argcount != takes + 1 or _variable(step) != code.co_varnames[1]:
        return False
    uses = [step.opname for step in instructions(code) if step.argval == code.co_varnames[1]]
    return all(use.startswith("LOAD_") for use in uses)


def _is_of_super(steps: list[dis.Instruction]) -> bool:
    """Whether the last step reads a method of ``super()``."""
    last = steps[-1]
    return last.opname.startswith("LOAD_SUPER") or (len(steps) > 2 and steps[-3].argval == "super")


def _variable(step: dis.Instruction | None) -> str:
    return step.argval if step is not None and step.opname.startswith("LOAD_FAST") else ""


def _arguments(steps: Iterable[dis.Instruction]) -> list[dis.Instruction | None]:
    """What loads each argument of the call of what has just been read, None for more than a load.

    Empty if it is not called at once, or its arguments are more than plain expressions.
    """
    stack: list[dis.Instruction | None] = []
    branched, target = False, 0
    for step in steps:
        if step.offset < target:
            continue
        if step.opname == "CALL":
            count = step.arg or 0
            if len(stack) == count:
                return stack
            if len(stack) < count + 2:
                break
            change, loads = -1 - count, False
        elif step.opname.startswith("POP_JUMP_") and stack:
            stack.pop()
            branched = True
            continue
        elif step.opname == "JUMP_FORWARD" and branched:
            target = step.argval
            continue
        elif step.opname == "PUSH_NULL" and not stack and sys.version_info >= (3, 13):  # behind what is called there
            continue
        elif step.opname.startswith(OF_EXPRESSIONS):
            change = dis.stack_effect(step.opcode, step.arg)
            loads = step.opname.startswith(("LOAD_", "PUSH_")) and step.opname not in OF_ATTRIBUTES
        else:
            break
        if not loads and len(stack) + min(change, 0) < 1:  # it takes what is called itself
            break
        del stack[len(stack) + min(change, 0) - (not loads) :]
        known = loads and not branched and change == 1
        stack += [step] if known else [None] * (max(change, 0) + (not loads))
    return []
