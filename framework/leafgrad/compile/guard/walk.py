"""The walk from a function over everything that executed code can have read, by the names in that code.

It fails closed: a type, or a route to executed code, that it does not know makes the step open.
"""

from __future__ import annotations

import abc
import builtins
import enum
import functools
import numbers
import os
import sys
import types
from collections import defaultdict, deque
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from leafgrad.backends import by_device_type
from leafgrad.compile.guard.environment import GONE, SCALARS, Class, Contents, Environment, Keys, Place, now
from leafgrad.compile.guard.known import (
    CODE,
    COMPARED,
    DESCRIPTORS,
    DICTS,
    FIELDS,
    HEAP,
    IMMUTABLE,
    LISTS,
    NAMESPACES,
    OF_NUMPY,
    OPAQUE,
    TABLES,
    file_of,
    function_in,
    is_plain,
)
from leafgrad.compile.record import pure
from leafgrad.compile.record.names import Names, global_names, imported_names, words_of
from leafgrad.compile.record.watch import Codes, is_library, is_ours, is_python, source_of
from leafgrad.ops.node import Leaf
from leafgrad.ops.op import Op
from leafgrad.tensor.tensor import Tensor


def look(roots: Iterable[tuple[Any, str]], codes: Codes, everything: bool = False) -> Environment:
    """What the executed ``codes`` can have read, starting from ``roots`` (value, path) and globals.

    ``everything``: all attributes of all objects, whether some name says that they were read or not.
    """
    walker = Walker(codes, everything)
    for value, path in roots:
        walker.push(value, path, frozenset())
    for code, scope in codes:
        if not is_library(source_of(code, scope)):
            walker.globals(code, scope)
    walker.run()
    walker.check_routes()
    walker.found.names = frozenset(walker.names.users)
    return walker.found


class Walker:
    """Breadth-first, so that paths are short."""

    def __init__(self, codes: Codes, everything: bool) -> None:
        self.codes = codes
        self.names = Names(codes, everything, file_of)
        self.found = Environment()
        self.seen: dict[int, Any] = self.found.seen
        self.read: set[tuple[int, str, Any]] = set()
        self.reached = Codes()
        self.queue: deque[tuple[Any, str, frozenset[str]]] = deque()

    def push(self, value: Any, path: str, live: frozenset[str]) -> None:
        if type(value) in SCALARS or id(value) in self.seen:
            return
        self.seen[id(value)] = value
        self.queue.append((value, path, live))

    def open(self, path: str, why: str) -> None:
        self.found.open.append((path, why))

    def place(self, kind: str, container: Any, key: Any, path: str, value: Any) -> None:
        self.found.places.append(Place(path, kind, container, key, value))

    def visit(self, kind: str, container: Any, key: Any, path: str, live: frozenset[str] = frozenset()) -> None:
        """Note a place, and follow what it holds."""
        mark = id(container), kind, key if isinstance(key, (str, int)) else id(key)
        if mark in self.read:
            return
        self.read.add(mark)
        value = now(Place(path, kind, container, key, None))
        if value is GONE:
            return
        self.place(kind, container, key, path, value)
        if isinstance(value, Tensor) and len(path) < len(self.found.tensors.get(id(value), path + " ")):
            self.found.tensors[id(value)] = path  # of several, the shortest
        self.push(value, path, live)

    def run(self) -> None:
        while self.queue:
            value, path, live = self.queue.popleft()
            self.expand(value, path, live | self.live_state(type(value)))

    def expand(self, value: Any, path: str, live: frozenset[str]) -> None:
        kind = type(value)
        if isinstance(value, Tensor):
            self.tensor(value, path, live)
        elif kind in DICTS:
            if kind is defaultdict:
                self.push(value.default_factory, f"{path}.default_factory", live)
            self.items(value, value, path, live)
        elif kind in LISTS:
            self.items(value, range(len(value)), path, live)
        elif kind is tuple or (isinstance(value, tuple) and (hasattr(kind, "_fields") or is_ours(file_of(kind)))):
            for i, item in enumerate(value):
                self.push(item, f"{path}[{i}]", live)
        elif kind in (set, frozenset):
            if all(type(item) in SCALARS for item in value):
                self.place("all", value, None, path, kind(value))
            else:
                self.open(path, "is a set of objects")
        elif isinstance(value, types.FunctionType):
            self.function(value, path, live)
        elif isinstance(value, types.MethodType):
            self.push(value.__self__, "self", live)
            self.push(value.__func__, path, live)
        elif kind is functools.partial:
            for part in (value.func, value.args, value.keywords):
                self.push(part, path, live)
            self.called_from_c(value.func, path)
        elif isinstance(value, types.ModuleType):
            self.module(value, path)
        elif isinstance(value, type):
            self.kind(value, path, live)
        elif isinstance(value, Op):
            self.op(value, path, live)
        elif isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                self.push(owner, path, live)
        elif isinstance(value, (staticmethod, classmethod, property)):
            self.push(function_in(value), path, live)
        elif isinstance(value, enum.Enum):
            self.kind(kind, path, live)
            self.own(value, vars(value), path, live, self.names.of(kind))
        elif kind is by_device_type("cpu").array_type:
            self.array(value, path)
        elif not isinstance(value, (*OPAQUE, *CODE, *SCALARS)) and not self.is_immutable(value):
            self.instance(value, path, live)
        elif isinstance(value, SCALARS) and kind not in SCALARS and not self.is_immutable(value):
            self.open(path, f"is of a class of its own, {kind.__name__}")

    def array(self, value: Any, path: str) -> None:
        """A NumPy array, which each call compares with what it was."""
        if value.dtype.hasobject or value.nbytes > COMPARED:
            self.open(
                path, f"is a NumPy array of {value.dtype}, {value.nbytes} bytes, too much to compare at each call"
            )
        else:
            self.place("array", value, None, path, Contents.of(value))

    @staticmethod
    def is_immutable(value: Any) -> bool:
        kind = type(value)
        if isinstance(value, numbers.Number):
            return kind is Fraction or (hasattr(value, "dtype") and not is_plain(kind))
        return isinstance(value, IMMUTABLE) and not is_plain(kind)

    def tensor(self, value: Tensor, path: str, live: frozenset[str]) -> None:
        self.found.tensors.setdefault(id(value), path)
        self.attributes(value, path, live, self.names.of(type(value)))
        node = value._node
        if type(node) is Leaf and node.hooks is not None:  # guards of tensors compare them
            for hook in node.hooks.all():
                self.push(hook, f"a hook of {path}", live)
        if value._view is not None:
            self.found.tensors.setdefault(id(value._view.base), f"{path}._base")
        if not is_ours(file_of(type(value))):
            self.kind(type(value), path, live)

    def items(self, container: Any, keys: Iterable[Any], path: str, live: frozenset[str]) -> None:
        if isinstance(container, dict) and len(container) > 1:
            self.place("keys", container, None, f"the keys of {path}", Keys.of(container))
        else:
            self.place("length", container, None, f"len({path})", len(container))
        dotted = path.rpartition(".")[2] in TABLES
        for key in list(keys):
            if isinstance(key, str) and self.is_live(key, live, container[key]):
                continue
            known = isinstance(key, (*SCALARS, tuple, enum.Enum, Tensor)) or is_ours(file_of(type(key)))
            if isinstance(container, dict) and not known and not isinstance(key, type):
                self.open(path, f"has a {type(key).__name__} as a key")
            name = repr(key) if type(key) in SCALARS else f"<{type(key).__name__}>"
            self.visit(
                "item", container, key, f"{path.rpartition('.')[0]}.{key}" if dotted else f"{path}[{name}]", live
            )
            held = now(Place(path, "item", container, key, None))
            self.called_from_c(held, path)

    def called_from_c(self, value: Any, path: str) -> None:
        """A function in C that something else may call, so that no call of it is seen."""
        if isinstance(value, types.BuiltinFunctionType) and not pure.is_pure(value):
            self.open(path, f"holds {pure.named(value)}")

    def live_state(self, kind: type) -> frozenset[str]:
        """The numbers that a class says it reads anew; none of a user's, if user code may read some unnamed."""
        found: frozenset[str] = getattr(kind, "live_state", frozenset())
        return frozenset() if self.names.picks and not is_library(file_of(kind)) else found

    def is_live(self, name: str, live: frozenset[str], value: Any) -> bool:
        """Whether programs read this number anew at each call; not if the user's own code may read it."""
        return name in live and not self.names.reads(name) and not isinstance(value, Tensor)

    # ---- code -------------------------------------------------------------------------------------------------

    def function(self, value: types.FunctionType, path: str, live: frozenset[str]) -> None:
        code = value.__code__
        ours = is_library(source_of(code, value.__globals__))
        if not ours:
            self.own(value, vars(value), path, live, self.names.of(types.FunctionType))
            self.fields(value, path, live)
        if value not in self.codes:
            return
        self.reached.add(code, value.__globals__)
        if not ours:
            self.place("attribute", value, "__code__", f"{path}.__code__", code)
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            if cell == types.CellType():
                self.place("empty", cell, None, name, True)
            self.visit("cell", cell, None, name, live)
        for name in ("__defaults__", "__kwdefaults__"):
            if not ours:
                self.visit("attribute", value, name, f"{path}.{name}", live)
            elif getattr(value, name):
                self.push(getattr(value, name), f"{path}.{name}", live)

    def fields(self, value: Any, path: str, live: frozenset[str]) -> None:
        """What every function or class has, such as ``__defaults__``, where the user's code names it."""
        for name in sorted(self.names.users & FIELDS[type if isinstance(value, type) else types.FunctionType]):
            if name in NAMESPACES:
                self.open(f"{path}.{name}", "holds all names of a module")
            elif name == "__closure__":
                for free, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                    self.visit("cell", cell, None, free, live)
            else:
                self.visit("attribute", value, name, f"{path}.{name}", live)

    def globals(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        wanted = global_names(code)
        for name in sorted(wanted & scope.keys()):
            self.visit("item", scope, name, name)
        own = vars(builtins)
        for name in sorted(wanted & own.keys() - scope.keys()):
            self.place("item", own, name, name, own[name])
        missing = tuple(sorted(wanted - scope.keys()))
        if missing:
            self.place("absent", scope, missing, "globals", True)
        for name in sorted(imported_names(code, scope)):
            if name in sys.modules:
                self.visit("item", sys.modules, name, name)

    def module(self, value: types.ModuleType, path: str) -> None:
        """What the user's code reads of a module; of a library's, functions and classes are known when called."""
        ours, held = is_library(file_of(value)), vars(value)
        for name in sorted(self.names.users & held.keys()):
            found = held[name]
            if not ours or not callable(found):
                self.visit("item", held, name, f"{path}.{name}")
            else:  # what it does is looked at when it is called
                self.place("item", held, name, f"{path}.{name}", found)
                self.loaded(found, f"{path}.{name}")
                if isinstance(found, type):
                    self.push(found, f"{path}.{name}", frozenset())
        if not ours:
            self.absent(held, f"{path}", self.names.users)

    def loaded(self, value: Any, path: str) -> None:
        """Something of a library that may be called: no call of it may go unseen."""
        kind = type(value)
        seen = isinstance(value, (types.FunctionType, *CODE, type, Op)) or is_ours(file_of(kind))
        if not seen and kind.__name__ not in OF_NUMPY:
            self.open(path, f"is of a type that is not known, {kind.__module__}.{kind.__qualname__}")

    def op(self, value: Op, path: str, live: frozenset[str]) -> None:
        """Of an op of the user's its rules, and the numbers that its forward reads; programs run the forward itself."""
        if is_ours(value.forward.__code__.co_filename):
            return
        for rule in (*[rule for rule, _ in value.calls.values()], value.batching):
            self.push(rule, f"{path}.{getattr(rule, '__name__', 'rule')}", live)
        for function in (value.forward, *value.kernels.values()):
            if isinstance(function, types.FunctionType):
                self.push(function, f"{path}.{function.__name__}", live)
                self.numbers_of(function)

    def numbers_of(self, forward: types.FunctionType) -> None:
        code, scope = forward.__code__, forward.__globals__
        for name in global_names(code) & scope.keys():
            if type(scope[name]) in SCALARS:
                self.visit("item", scope, name, name)
        for name, cell in zip(code.co_freevars, forward.__closure__ or (), strict=True):
            if cell != types.CellType() and type(cell.cell_contents) in SCALARS:
                self.visit("cell", cell, None, name)

    def kind(self, value: type, path: str, live: frozenset[str]) -> None:
        """A class: what instances and code may read of it, and its methods that were executed."""
        if is_ours(file_of(value)):
            return
        if not is_plain(value):
            array_library = is_library(file_of(value)) and not is_python(file_of(value))
            if value.__module__ not in pure.TYPES and not array_library:
                self.open(path, f"is a class that is not known, {value.__module__}.{value.__qualname__}")
            return
        self.place("attribute", value, "__mro__", f"{path}.__mro__", value.__mro__)
        self.fields(value, path, live)
        meta = type(value)
        if meta is abc.ABCMeta:
            self.place(
                "call", abc.get_cache_token, None, "what is registered with abstract classes", abc.get_cache_token()
            )
        if meta is not type and not is_library(file_of(meta)):
            self.push(meta, f"type({path})", live)
        names = self.names.of(value)
        for base in value.__mro__:
            held = vars(base)
            if is_library(file_of(base)):
                continue
            for name, found in list(held.items()):
                function = function_in(found)
                named = (names is None or name in names) and not name.startswith("__")
                if isinstance(function, types.FunctionType):
                    if named or function in self.codes:
                        self.visit("item", held, name, f"{base.__name__}.{name}", live)
                        self.push(function, f"{base.__name__}.{name}", live)
                elif named:
                    self.class_attribute(base, name, found, live)
            self.absent(held, base.__name__, self.names.users)

    def class_attribute(self, base: type, name: str, found: Any, live: frozenset[str]) -> None:
        if isinstance(found, CODE) or name.startswith("_abc_"):
            return
        known = isinstance(found, DESCRIPTORS) or is_ours(file_of(type(found)))  # as a compiled method is
        if hasattr(type(found), "__get__") and not known:
            self.open(f"{base.__name__}.{name}", f"is a descriptor, a {type(found).__name__}")
        self.visit("item", vars(base), name, f"{base.__name__}.{name}", live)

    def check_routes(self) -> None:
        """Executed code of the user must have been found by the walk, or be defined in code that was."""
        nested = {id(c) for code, _ in self.codes for c in code.co_consts}
        for code, scope in self.codes:
            if self.reached.has(code, scope) or id(code) in nested or is_library(source_of(code, scope)):
                continue
            where = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
            self.open(f"{code.co_name} at {where}", "is called by a way that is not known")

    # ---- objects ----------------------------------------------------------------------------------------------

    def instance(self, value: Any, path: str, live: frozenset[str]) -> None:
        kind = type(value)
        if kind is not types.SimpleNamespace:
            strange = next((b for b in kind.__mro__ if b is not object and not is_plain(b)), None)
            if strange is not None:
                self.open(path, f"is of a type that is not known, {kind.__module__}.{kind.__qualname__}")
                return
        names = self.names.of(kind)
        if not is_ours(file_of(kind)):
            self.place("class", value, None, f"type({path})", Class(kind, getattr(value, "__dict__", None)))
            self.kind(kind, path, live)
        self.shared_by_objects(kind, path, live, names)
        self.attributes(value, path, live, names)
        own, hidden = getattr(value, "__dict__", None), list[str]()
        for base in kind.__mro__:
            for name, method in list(vars(base).items()):
                function = function_in(method)
                if isinstance(function, types.FunctionType) and function in self.codes:
                    self.reached.add(function.__code__, function.__globals__)
                    if own is not None and name not in own and not name.startswith("__"):
                        hidden.append(name)
        if hidden:  # none is put in front of the class's
            self.place("absent", own, tuple(hidden), f"methods of {path}", True)
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            self.push(wrapped, path, live)

    def shared_by_objects(self, kind: type, path: str, live: frozenset[str], names: set[str] | None) -> None:
        """Attributes of this package's classes, such as the hooks of all modules."""
        for base in kind.__mro__:
            if is_ours(file_of(base)):
                for name, held in list(vars(base).items()):
                    plain = not hasattr(held, "__get__") and not name.startswith("__") and name != "live_state"
                    if plain and (names is None or name in names):
                        self.visit("item", vars(base), name, f"{base.__name__}.{name}", live)

    def attributes(self, value: Any, path: str, live: frozenset[str], names: set[str] | None) -> None:
        """The attributes of an object: its own, and those in slots."""
        own = getattr(value, "__dict__", None)
        if own is not None:
            self.own(value, own, path, live, names)
        for base in type(value).__mro__:
            if not base.__flags__ & HEAP or (isinstance(value, Tensor) and is_ours(file_of(base))):
                continue
            for name, held in list(vars(base).items()):
                if isinstance(held, types.MemberDescriptorType) and (names is None or name in names):
                    self.visit("attribute", value, name, f"{path}.{name}" if path else name, live)

    def own(self, value: Any, own: dict[str, Any], path: str, live: frozenset[str], names: set[str] | None) -> None:
        if names is not None and self.names.any_name:  # of an object of this package what its classes do not know
            kind: type = type(value)
            names = names | (own.keys() - words_of(kind))
        for name in list(own):
            if name == "live_state" or name.startswith("_compiled_") or (names is not None and name not in names):
                continue
            if not self.is_live(name, live, own[name]):
                where = f"{path}.{name}" if path else name
                self.visit("item", own, name, where, live)
                self.called_from_c(own[name], where)
        if names is None:  # which there are may be asked, too
            self.place("keys", own, None, f"the attributes of {path}", Keys.of(own))
        self.absent(own, path, self.names.users if names is None else names)

    def absent(self, held: Any, path: str, names: set[str]) -> None:
        """That names which code asks for, and that are not there, do not appear."""
        mark = id(held), "absent", ""
        if mark not in self.read:
            self.read.add(mark)
            missing = frozenset(names - held.keys())
            if missing:
                self.place("absent", held, missing, f"attributes of {path}", True)


__all__ = ["look"]
