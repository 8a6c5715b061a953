"""Whether the forward of an op keeps or reads state, so that running it more often than a call does would show."""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from collections.abc import Iterator
from numbers import Number
from pathlib import PurePath
from typing import Any

from leafgrad import devices, dtypes
from leafgrad.compile.ir.keys import ProgramPart
from leafgrad.compile.record import pure
from leafgrad.compile.record.bytecode import instructions
from leafgrad.compile.record.names import global_names, words
from leafgrad.compile.record.symbolic import SymbolicNumber
from leafgrad.compile.record.watch import is_library, is_ours, is_python
from leafgrad.ops.op import Op
from leafgrad.tensor.random import Generator

STORES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")
STATEFUL = frozenset("random secrets time datetime uuid os".split())
CONSTANT = (
    enum.Enum, Number, types.NoneType, types.EllipsisType, dtypes.dtype, devices.device, Generator,
    PurePath, SymbolicNumber, ProgramPart,
)  # fmt: skip
KNOWN: dict[Op, str | None] = {}


def keeps_state(op: Op) -> str | None:
    """What state the forward of an op has, in a few words; None if none is seen."""
    forward = op.forward
    if is_ours(forward.__code__.co_filename):
        return None
    if op not in KNOWN:
        found: str | None = None
        for function in (forward, *op.kernels.values()):
            if isinstance(function, types.FunctionType):
                found = found or next(state_of(function), None)
        KNOWN[op] = found
    return KNOWN[op]


def state_of(forward: types.FunctionType) -> Iterator[str]:
    """The state that a function and those that it calls reach by their globals and closures."""
    waiting, seen = [forward], {forward}
    while waiting:
        function = waiting.pop()
        code = function.__code__
        if any(i.opname in STORES and i.argval not in code.co_cellvars for i in instructions(code)):
            yield f"{code.co_name} assigns a variable from outside"
        for name, value in reached(function):
            if isinstance(value, types.MethodType):
                yield f"{name} is a method"
            elif isinstance(value, types.FunctionType):
                if value not in seen and not is_library(value.__code__.co_filename):
                    seen.add(value)
                    waiting.append(value)
                elif is_python(value.__code__.co_filename) and value.__module__ in STATEFUL:
                    yield f"{name} is a function of {value.__module__}"
            elif isinstance(value, types.ModuleType):
                if value.__name__.partition(".")[0] in STATEFUL:
                    yield f"the module {value.__name__} is used"
            elif isinstance(value, types.BuiltinFunctionType):
                owner = value.__self__
                if (
                    owner is not None and not isinstance(owner, (types.ModuleType, type))
                ) or value.__module__ in STATEFUL:
                    yield f"{name} is {pure.callee_name(value)}"
            elif not (is_constant(value) or callable(value) or is_table(value)):
                yield f"{name} is a {type(value).__name__}"
        if "random" in words(code):
            yield "random numbers are drawn"


def changes(params: dict[str, Any]) -> str | None:
    """What a parameter is, in a few words, that may be something else when a program reads it; None if none is.

    Of lists, sets and dicts a program has copies.
    """
    for name, value in params.items():
        for part in parts_of(value):
            if isinstance(part, types.FunctionType) and (found := next(variables_of(part), None)) is not None:
                return f"in whose parameter {name!r} {found}"
            if not is_constant(part):
                return f"whose parameter {name!r} has a {type(part).__name__}"
    return None


def variables_of(function: types.FunctionType) -> Iterator[str]:
    """The state of a function, and what it reads that others may assign: variables around it, and globals of data."""
    yield from state_of(function)
    for name, value in reached(function):
        fixed = isinstance(value, types.ModuleType) or callable(value)
        if name in function.__code__.co_freevars or not fixed:
            yield f"{name} is a variable"


def is_constant(value: Any) -> bool:
    """Whether nothing can change an object: it has no attributes of its own, and is equal by its value."""
    kind: Any = type(value)
    if isinstance(value, types.FunctionType):
        return next(variables_of(value), None) is None
    if isinstance(value, (tuple, frozenset)):
        return not getattr(value, "__dict__", None) and all(map(is_constant, value))
    if isinstance(value, types.BuiltinFunctionType):
        return isinstance(value.__self__, types.ModuleType) or is_constant(value.__self__)
    if isinstance(value, type):
        return not value.__flags__ & pure.HEAP
    if kind is functools.partial:
        return not vars(value) and all(map(is_constant, (value.func, *value.args, *value.keywords.values())))
    params = vars(kind).get("__dataclass_params__")
    if params is not None and params.frozen:
        return all(is_constant(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, CONSTANT) or kind.__name__ in pure.OF_NUMPY:
        return True
    own = hasattr(value, "__dict__") or any("__slots__" in vars(base) for base in kind.__mro__)
    return not own and kind.__hash__ not in (None, object.__hash__)


def parts_of(value: Any) -> Iterator[Any]:
    """A value, or what is in containers."""
    plain = isinstance(value, (tuple, frozenset)) and not getattr(value, "__dict__", None)
    if plain or value.__class__ in (list, set):
        for part in value:
            yield from parts_of(part)
    elif type(value) is dict:  # others are not copied
        yield from parts_of([*value, *value.values()])
    elif isinstance(value, slice):
        yield from parts_of([value.start, value.stop, value.step])
    else:
        yield value


def is_table(value: Any) -> bool:
    """Whether an object is an array, of which ops mostly read numbers that stay."""
    return hasattr(value, "dtype") and hasattr(value, "strides")


def reached(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals and closure cells of a function."""
    for name in global_names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue
    yield from [("a default", value) for value in function.__defaults__ or ()]
    yield from (function.__kwdefaults__ or {}).items()
