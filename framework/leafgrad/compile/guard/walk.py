"""The walk from a function over everything that executed code can have read, by the names in that code.

It fails closed: a type, or a route to executed code, that it does not know makes the step open.
"""

from __future__ import annotations

import builtins
import enum
import functools
import numbers
import os
import sys
import types
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from leafgrad import modes
from leafgrad.backends import by_device_type
from leafgrad.compile.guard.environment import SCALARS, Class, Contents, Environment, GivenPlaces, Keys, Place, now
from leafgrad.compile.guard.known import (
    CODE,
    COMPARED,
    DICTS,
    IMMUTABLE,
    LISTS,
    OF_NUMPY,
    OPAQUE,
    SLOTS,
    TABLES,
    file_of,
    function_in,
    is_plain,
)
from leafgrad.compile.guard.objects import NOTHING_GIVEN, ObjectWalker
from leafgrad.compile.record.drawn import source_of_draws
from leafgrad.compile.record.names import global_names, imported_names, values
from leafgrad.compile.record.watch import Codes, is_library, is_ours, source_of
from leafgrad.ops.node import Leaf
from leafgrad.ops.op import Op
from leafgrad.tensor.tensor import Tensor


def look(
    roots: Iterable[tuple[Any, str]], codes: Codes, given: GivenPlaces = NOTHING_GIVEN, everything: bool = False
) -> Environment:
    """What the executed ``codes`` can have read, starting from ``roots`` (value, path) and globals.

    Args:
        given: places that are not read as others are.
        everything: all attributes of all objects, whether some name says that they were read or not.
    """
    walker = Walker(codes, everything, given)
    walker.begin(roots)
    if walker.found.renamed - {"type"} and not walker.names.any_name:  # getattr, say, is reached under another name
        walker = Walker(codes, everything, given)
        walker.names.any_name = True
        walker.begin(roots)
    walker.check_routes()
    for name, read in modes.SETTINGS.items():
        walker.place("call", read, None, name, read())
    walker.kind(Tensor, "Tensor")
    walker.methods()
    walker.found.names = frozenset(walker.names.users)
    return walker.found


def dict_of(value: functools.partial[Any]) -> dict[str, Any] | None:
    """What a partial function has been given as attributes, None if nothing ever."""
    state: Any = value.__reduce__()[2]
    found: dict[str, Any] | None = state[3]
    return found


GUARDED = 50_000  # places, of which a large network has a fifth; code that computes names may reach whole packages


class Walker(ObjectWalker):
    """Breadth-first, so that paths are short."""

    def begin(self, roots: Iterable[tuple[Any, str]]) -> None:
        """Go all ways from the roots, and from what the user's code names."""
        for value, path in roots:
            self.push(value, path)
        for code, scope in self.codes:
            if not is_library(source_of(code, scope)):
                self.globals(code, scope)
        self.run()

    def run(self) -> None:
        while self.queue:
            if len(self.found.places) > GUARDED:
                self.open(
                    "what its Python may read", f"is more than {GUARDED} places, too many to look at in each call"
                )
                return
            value, path = self.queue.popleft()
            self.expand(value, path)

    def expand(self, value: Any, path: str) -> None:
        kind = type(value)
        if isinstance(value, Tensor):
            self.tensor(value, path)
        elif kind in DICTS:
            if kind is defaultdict:
                self.visit("attribute", value, "default_factory", f"{path}.default_factory")
            self.items(value, value, path)
        elif kind in LISTS:
            self.items(value, range(len(value)), path)
        elif kind is tuple or (isinstance(value, tuple) and (hasattr(kind, "_fields") or is_ours(file_of(kind)))):
            for i, item in enumerate(value):
                self.push(item, f"{path}[{i}]")
                self.called_from_c(item, path)
            if kind is not tuple:
                self.push(kind, f"type({path})")
                self.attributes(value, path, self.names.of(kind))
        elif kind in (set, frozenset):
            if all(type(item) in SCALARS for item in value):
                self.place("all", value, None, path, kind(value))
            else:
                self.open(path, "is a set of objects")
        elif isinstance(value, types.FunctionType):
            self.function(value, path)
        elif isinstance(value, types.MethodType):
            self.push(value.__self__, "self")
            self.push(value.__func__, path)
        elif kind is functools.partial:
            for part in (value.func, value.args, value.keywords):
                self.push(part, path)
            self.called_from_c(value.func, path)
            self.attributes_of_partial(value, path)
        elif isinstance(value, types.ModuleType):
            self.module(value, path)
        elif isinstance(value, type):
            self.found.renamed |= {"type"} if value is type else set()
            self.kind(value, path)
        elif isinstance(value, Op):
            self.op(value, path)
        elif isinstance(value, (types.MethodWrapperType, *CODE)):
            self.in_c(value, path)
        elif isinstance(value, (staticmethod, classmethod, property)):
            self.push(function_in(value), path)
        elif isinstance(value, enum.Enum):
            self.instance(value, path)
            self.own(value, vars(value), path, None)  # its value has other names in it
        elif kind is by_device_type("cpu").array_type:
            self.array(value, path)
        elif not isinstance(value, (*OPAQUE, *SCALARS)) and not self.is_immutable(value):
            self.instance(value, path)
        elif isinstance(value, SCALARS) and kind not in SCALARS and not self.is_immutable(value):
            self.open(path, f"is of a class of its own, {kind.__name__}")

    def in_c(self, value: Any, path: str) -> None:
        """A function of C's, and what it belongs to."""
        self.renamed(value)
        if isinstance(value, SLOTS):  # it reads the attribute of whatever it is given
            self.found.renamed.add(value.__name__)
        owner = value.__self__ if isinstance(value, (types.MethodWrapperType, types.BuiltinFunctionType)) else None
        if type(value) is types.MethodWrapperType:  # no call of it is seen
            self.loose.add(id(owner))
        elif isinstance(owner, (types.ModuleType, type)):
            return
        for part in (owner, *getattr(value, "__args__", ())):  # of a union of classes, say
            if part is not None:
                self.push(part, path)

    def attributes_of_partial(self, value: functools.partial[Any], path: str) -> None:
        """Those that it was given; asked for by name, it makes a dict, and is another from then on."""
        held = dict_of(value)
        if held is None:
            self.place("call", functools.partial(dict_of, value), None, f"the attributes of {path}", None)
        else:
            self.own(value, held, path, self.names.of(functools.partial))

    def array(self, value: Any, path: str) -> None:
        """A NumPy array, which each call compares with what it was."""
        if value.dtype.hasobject or value.nbytes > COMPARED:
            self.open(
                path, f"is a NumPy array of {value.dtype}, {value.nbytes} bytes, too much to compare at each call"
            )
        else:
            self.place("array", value, None, path, Contents.of(value))
            if "base" in self.names.users and value.base is not None:
                self.push(value.base, f"{path}.base")

    @staticmethod
    def is_immutable(value: Any) -> bool:
        kind = type(value)
        if isinstance(value, numbers.Number):
            return kind is Fraction or (hasattr(value, "dtype") and not is_plain(kind))
        return isinstance(value, IMMUTABLE) and not is_plain(kind)

    def tensor(self, value: Tensor, path: str) -> None:
        self.found.tensors.setdefault(id(value), path)
        self.place("class", value, None, f"type({path})", Class(type(value), None))
        self.attributes(value, path, self.names.of(type(value)))
        node = value._history  # a leaf that is a view has one of its own
        if type(node) is Leaf and node.hooks is not None:  # guards of tensors compare them
            for hook in node.hooks.all():
                self.push(hook, f"a hook of {path}")
        if value._view is not None:
            self.found.tensors.setdefault(id(value._view.base), f"{path}._base")
        self.kind(type(value), path)

    def items(self, container: Any, keys: Iterable[Any], path: str) -> None:
        if isinstance(container, dict) and len(container) > 1:
            self.place("keys", container, None, f"the keys of {path}", Keys.of(container))
        else:
            self.place("length", container, None, f"len({path})", len(container))
        dotted = path.rpartition(".")[2] in TABLES
        for key in list(keys):
            known = isinstance(key, (*SCALARS, tuple, enum.Enum, Tensor)) or is_ours(file_of(type(key)))
            if isinstance(container, dict) and not known and not isinstance(key, type):
                self.open(path, f"has a {type(key).__name__} as a key")
            name = repr(key) if type(key) in SCALARS else f"<{type(key).__name__}>"
            if isinstance(container, dict):
                self.push(key, f"a key of {path}")
            self.visit("item", container, key, f"{path.rpartition('.')[0]}.{key}" if dotted else f"{path}[{name}]")
            held = now(Place(path, "item", container, key, None))
            self.called_from_c(held, path)

    # ---- code -------------------------------------------------------------------------------------------------

    def function(self, value: types.FunctionType, path: str) -> None:
        code = value.__code__
        ours = is_library(source_of(code, value.__globals__))
        if not ours:
            self.own(value, vars(value), path, self.names.of(types.FunctionType))
            self.fields(value, path)
        else:  # such as dispatch() of functools.singledispatch, which a method asks for by its name
            for name, found in list(vars(value).items()):
                if isinstance(found, types.FunctionType) and name != "__wrapped__" and found in self.codes:
                    self.visit("item", vars(value), name, f"{path}.{name}")
        if value not in self.codes:
            return
        self.reached.add(code, value.__globals__)
        if "_door" in value.__globals__:  # what it calls may be a plugin's
            self.push(value.__globals__["_function"], path)
        if not ours:
            self.place("attribute", value, "__code__", f"{path}.__code__", code)
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            if cell == types.CellType():
                self.place("empty", cell, None, name, True)
            self.visit("cell", cell, None, name)
            self.called_from_c(now(Place(name, "cell", cell, None, None)), name)
        for name in ("__defaults__", "__kwdefaults__"):
            if not ours:
                self.visit("attribute", value, name, f"{path}.{name}")
            elif getattr(value, name):
                self.push(getattr(value, name), f"{path}.{name}")

    def globals(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        wanted = global_names(code)
        for name in sorted(wanted & scope.keys()):
            self.visit("item", scope, name, name)
        own = vars(builtins)
        for name in sorted(wanted & own.keys() - scope.keys()):
            self.place("item", own, name, name, own[name])
        for name, *attributes in values(code):
            found = scope.get(name, own.get(name))
            for attribute in attributes:
                found = vars(found).get(attribute) if isinstance(found, types.ModuleType) else None
            self.called_from_c(found, ".".join([name, *attributes]))
        missing = tuple(sorted(wanted - scope.keys()))
        if missing:
            self.place("absent", scope, missing, "globals", True)
        if nowhere := tuple(sorted(wanted - scope.keys() - own.keys())):  # a NameError is met
            self.place("absent", own, nowhere, "builtins", True)
        for name in sorted(imported_names(code, scope)):
            if name in sys.modules:
                self.visit("item", sys.modules, name, name)

    def module(self, value: types.ModuleType, path: str) -> None:
        """What the user's code reads of a module; of a library's, functions and classes are known when called."""
        ours, held = is_library(file_of(value)), vars(value)
        self.place("class", value, None, f"type({path})", Class(type(value), None))
        names = self.names.users & held.keys()
        if self.names.any_name and not ours and id(value) in self.loose:
            self.place("keys", held, None, f"the names in {path}", Keys.of(held))
            names = names | {name for name in held if not name.startswith("__")}
        for name in sorted(names):
            found = held[name]
            if not ours or not callable(found):
                self.visit("item", held, name, f"{path}.{name}")
            else:  # what it does is looked at when it is called
                self.place("item", held, name, f"{path}.{name}", found)
                self.loaded(found, f"{path}.{name}")
                if isinstance(found, type):
                    self.push(found, f"{path}.{name}")
        if not ours or self.names.any_name or "AttributeError" in self.names.users:
            self.absent(held, f"{path}", self.names.users)

    def loaded(self, value: Any, path: str) -> None:
        """Something of a library that may be called: no call of it may go unseen."""
        kind = type(value)
        seen = isinstance(value, (types.FunctionType, *CODE, type, Op)) or is_ours(file_of(kind))
        if not seen and kind.__name__ not in OF_NUMPY and source_of_draws(value) is None:
            self.open(path, f"is of a type that is not known, {kind.__module__}.{kind.__qualname__}")

    def op(self, value: Op, path: str) -> None:
        """Of an op of the user's its rules, and the numbers that its forward reads; programs run the forward itself."""
        if is_ours(value.forward.__code__.co_filename):
            return
        for rule in (*[rule for rule, _ in value.calls.values()], value.batching):
            self.push(rule, f"{path}.{getattr(rule, '__name__', 'rule')}")
        for function in (value.forward, *value.kernels.values()):
            if isinstance(function, types.FunctionType):
                self.push(function, f"{path}.{function.__name__}")
                self.numbers_of(function)

    def numbers_of(self, forward: types.FunctionType) -> None:
        code, scope = forward.__code__, forward.__globals__
        for name in global_names(code) & scope.keys():
            if type(scope[name]) in SCALARS:
                self.visit("item", scope, name, name)
        for name, cell in zip(code.co_freevars, forward.__closure__ or (), strict=True):
            if cell != types.CellType() and type(cell.cell_contents) in SCALARS:
                self.visit("cell", cell, None, name)

    def check_routes(self) -> None:
        """Executed code of the user must have been found by the walk, or be defined in code that was."""
        nested = {id(c) for code, _ in self.codes for c in code.co_consts}
        for code, scope in self.codes:
            if self.reached.has(code, scope) or id(code) in nested or is_library(source_of(code, scope)):
                continue
            where = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
            self.open(f"{code.co_name} at {where}", "is called by a way that is not known")


__all__ = ["look"]
