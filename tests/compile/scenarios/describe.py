"""What can be seen of a value, as plain data that two runs can be compared by."""

from __future__ import annotations

import contextlib
import functools
import math
import re
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

import leafgrad
from leafgrad import nn, optim

Description = Any
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
DEPTH = 12
SLOTS: weakref.WeakKeyDictionary[type, list[tuple[str, Any]]] = weakref.WeakKeyDictionary()


class Array:
    """The numbers of a tensor or array as they were."""

    def __init__(self, data: Any) -> None:
        self.data = np.array(data)

    def __repr__(self) -> str:
        return f"{self.data.tolist()} ({self.data.dtype}, {self.data.shape})"

    def agrees(self, other: Array) -> bool:
        a, b = self.data, other.data
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.tobytes() == b.tobytes():
            return True
        if a.dtype.kind not in "fc":
            return bool((a == b).all())
        tight = a.dtype.itemsize == 8
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
        return np.allclose(a, b, rtol=1e-9 if tight else 1e-4, atol=scale * (1e-11 if tight else 2e-6), equal_nan=True)


def describe(value: Any, memo: dict[int, Any], depth: int = 0) -> Description:
    """Types, numbers, flags, gradients, and which objects are one and the same."""
    kind = type(value)
    if kind.__module__.startswith("leafgrad.compile") and hasattr(value, "__wrapped__"):
        return describe(value.__wrapped__, memo, depth)
    if value is None or kind in (bool, int, str, bytes, float, complex):
        return (kind.__name__, value)
    if depth > DEPTH:
        return (kind.__name__, "...")
    if not issubclass(kind, (tuple, frozenset, np.generic, types.BuiltinFunctionType, types.MethodType)):
        if id(value) in memo:
            return ("the same as", memo[id(value)][0])
        memo[id(value)] = (len(memo), value)
    inside = issubclass(kind, leafgrad.Tensor) and kind.__module__.startswith("leafgrad.tensor")
    return ("Tensor" if inside else kind.__name__, *parts(value, kind, memo, depth + 1))


def parts(value: Any, kind: type, memo: dict[int, Any], depth: int) -> Iterator[Description]:
    def see(part: Any) -> Description:
        return describe(part, memo, depth)

    if issubclass(kind, leafgrad.Tensor):
        yield from (str(value.dtype), tuple(value.shape), str(value.device), value.requires_grad, value.is_leaf)
        yield Array(value.detach().numpy())
        yield see(value.grad if value.is_leaf or value.retains_grad else None)
        yield [(name, see(part)) for name, part in vars(value).items()]
    elif issubclass(kind, (np.ndarray, np.generic)):
        yield Array(value)
    elif issubclass(kind, nn.Module):
        yield from ([(name, see(part)) for name, part in members(value)])
    elif issubclass(kind, optim.Optimizer):
        yield [see(group) for group in value.param_groups]
        yield [(see(key), see(state)) for key, state in value.state.items()]
    elif issubclass(kind, leafgrad.Generator):
        yield repr(value.get_state().tolist())
    elif issubclass(kind, types.FunctionType):
        yield value.__name__
        yield see(vars(value))
        if not str(value.__module__).startswith("leafgrad."):  # some of which are made at their first call
            yield from (see(value.__defaults__), see(value.__kwdefaults__))
            yield [see(Cell(cell)) for cell in value.__closure__ or ()]
    elif issubclass(kind, types.MethodType):
        yield see(value.__self__)
    elif issubclass(kind, Cell):
        yield see(value.content)
    elif issubclass(kind, type):
        own = value.__module__.startswith("compile.scenarios")
        yield [(name, see(part)) for name, part in vars(value).items() if own and is_state(name, part)]
    elif issubclass(kind, (types.BuiltinFunctionType, types.ModuleType)):
        yield value.__name__
    elif kind.__name__ == "World" or kind.__module__.startswith(("_pytest", "threading", "_thread", "logging")):
        yield "of the harness"
    elif kind.__module__.startswith("leafgrad"):
        yield "of leafgrad"
    elif issubclass(kind, weakref.ref):
        yield value() is None
    else:
        yield from contents(value, kind, see)


def is_state(name: str, part: Any) -> bool:
    """Whether a member of a class is data."""
    return not name.startswith("__") and isinstance(part, int | float | str | list | dict | set | leafgrad.Tensor)


def contents(value: Any, kind: type, see: Any) -> Iterator[Description]:
    """Of containers and objects of any class: items, attributes, slots."""
    if issubclass(kind, dict):
        yield [(see(key), see(part)) for key, part in dict.items(value)]
    elif issubclass(kind, list):
        yield [see(part) for part in list.__iter__(value)]
    elif issubclass(kind, tuple):
        yield [see(part) for part in tuple.__iter__(value)]
    elif issubclass(kind, (set, frozenset)):
        yield sorted((see(part) for part in value), key=repr)
    elif issubclass(kind, (int, float, str, bytes, bytearray, slice, range)):
        yield repr(value)
    elif kind.__name__ in ("deque", "array"):
        yield [see(part) for part in value]
    with_attributes = vars_of(value)
    yield [(name, see(part)) for name, part in sorted(with_attributes.items())]


def vars_of(value: Any) -> dict[str, Any]:
    """Attributes and slots, without running code of the value's class."""
    found: dict[str, Any] = {}
    for name, member in slots_of(type(value)):
        with contextlib.suppress(AttributeError):
            found[name] = member.__get__(value)
    with contextlib.suppress(AttributeError, TypeError):
        found.update(object.__getattribute__(value, "__dict__"))
    return {name: part for name, part in found.items() if name not in ("__dict__", "__weakref__") and not code(part)}


def slots_of(kind: type) -> list[tuple[str, Any]]:
    """The slots of a class and its bases."""
    if kind not in SLOTS:
        SLOTS[kind] = [
            (name, member)
            for cls in kind.__mro__
            if cls.__module__ != "builtins"
            for name, member in vars(cls).items()
            if isinstance(member, types.MemberDescriptorType)
        ]
    return SLOTS[kind]


def code(part: Any) -> bool:
    """Whether an attribute is a function or method, compiled or not: a compiled method may be kept in its object."""
    return isinstance(part, types.FunctionType | types.MethodType) or type(part).__module__.startswith(
        "leafgrad.compile"
    )


def members(module: Any) -> Iterator[tuple[str, Any]]:
    yield "training", module.training
    yield from module.named_parameters(recurse=False)
    yield from module.named_buffers(recurse=False)
    yield from module.named_children()
    yield from ((name, part) for name, part in sorted(vars_of(module).items()) if not name.startswith("_"))


def reached(function: Any) -> list[Any]:
    """What tells about a step: the function with its closure, the object whose method it is, what a partial holds."""
    if isinstance(function, functools.partial):
        return [*reached(function.func), *function.args, *function.keywords.values()]
    if isinstance(function, types.MethodType):
        return [function.__self__, *reached(function.__func__)]
    return [function]


class Cell:
    """A variable of an enclosing function: what it holds is looked up at each call."""

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    @property
    def content(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return "unset"


def difference(ours: Description, theirs: Description) -> str:
    """Where two descriptions differ, and how; or an empty string."""
    if type(ours) is not type(theirs):
        return told(ours, theirs)
    if isinstance(ours, list | tuple):
        if len(ours) != len(theirs):
            return told(ours, theirs)
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a is not b and (found := difference(a, b)):
                named = isinstance(b, tuple) and len(b) == 2 and isinstance(b[0], str)
                return f".{b[0] if named else i}{found}"
        return ""
    if isinstance(ours, Array):
        return "" if ours.agrees(theirs) else told(ours, theirs)
    if isinstance(ours, float):
        same = math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=2e-6) or (ours != ours and theirs != theirs)
    else:
        same = same_text(ours, theirs) if isinstance(ours, str) else ours == theirs
    return "" if same else told(ours, theirs)


def told(ours: Description, theirs: Description) -> str:
    return f" is {short(ours)}, in eager {short(theirs)}"


def same_text(a: str, b: str) -> bool:
    """Equal, but for the last digits of numbers."""
    if a == b:
        return True
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
    return all(math.isclose(float(p), float(q), rel_tol=1e-3, abs_tol=1e-5) for p, q in pairs)


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else text[:300] + "..."
