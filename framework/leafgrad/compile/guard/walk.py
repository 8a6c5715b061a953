"""The walk from a function over everything that executed code can have read, by the names in that code.

It fails closed: a type, or a route to executed code, that it does not know makes the step open.
"""

from __future__ import annotations

import enum
import functools
import numbers
import os
import types
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, time
from fractions import Fraction
from typing import Any

from leafgrad import modes
from leafgrad.backends import by_device_type
from leafgrad.compile.guard.environment import SCALARS, Contents, Environment, GivenPlaces, Keys, Place, now
from leafgrad.compile.guard.known import (
    CODE,
    COMPARED,
    DICTS,
    IMMUTABLE,
    LISTS,
    NAMESPACES,
    OPAQUE,
    SLOTS,
    TABLES,
    dict_of,
    file_of,
    is_plain,
)
from leafgrad.compile.guard.modules import ModuleWalker, builtins_of
from leafgrad.compile.guard.objects import NOTHING_GIVEN
from leafgrad.compile.ir.attributes import attribute_of
from leafgrad.compile.record.compared import ASKING
from leafgrad.compile.record.identity import asks_identity
from leafgrad.compile.record.names import global_names
from leafgrad.compile.record.watch import Codes, is_library, is_ours, source_of
from leafgrad.ops.node import Leaf
from leafgrad.ops.op import Op
from leafgrad.signals import raised_by_handler
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
    try:
        walker.begin(roots)
        if (
            walker.found.renamed - {"type", *ASKING} and not walker.names.computed
        ):  # getattr, say, is reached by another name
            walker = Walker(codes, everything, given)
            walker.names.computed = True
            walker.begin(roots)
        walker.end()
    except Exception as error:  # of a user's class that lies of itself, say
        if raised_by_handler(error):
            raise
        walker.open("what it reads", f"cannot be looked at: {type(error).__name__}: {error}")
    return walker.found


GUARDED = 50_000  # places, of which a large network has a fifth; code that computes names may reach whole packages


class Walker(ModuleWalker):
    """Breadth-first, so that paths are short."""

    def begin(self, roots: Iterable[tuple[Any, str]]) -> None:
        """Go all ways from the roots, and from what the user's code names."""
        for value, path in roots:
            self.push(value, path)
        for name in sorted(NAMESPACES & self.names.users):
            self.open(name, "leads to what nobody knows of")
        for code, scope in self.codes:
            if not is_library(source_of(code, scope)):
                self.globals(code, scope)
        self.run()

    def end(self) -> None:
        """What is read of classes, modules and settings, when all is known that was executed."""
        self.check_routes()
        for name, read in modes.SETTINGS.items():
            self.place("call", read, None, name, read())
        self.kind(Tensor, "Tensor")
        self.run()
        self.methods()
        self.through_modules()
        self.bodies_read()
        self.found.by_identity = asks_identity(self.codes) or not ASKING.isdisjoint(self.found.renamed)
        self.found.names, self.found.any_name = frozenset(self.names.users), self.names.any_name

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
        """Note what is in a value, by its type."""
        kind = type(value)
        visit = EXACTLY.get(kind) or next((visit for of, visit in BY_CLASS if issubclass(kind, of)), None)
        if visit is not None:
            visit(self, value, path)
        elif issubclass(kind, SCALARS):
            if kind not in SCALARS and not self.is_immutable(value):
                self.open(path, f"is of a class of its own, {kind.__name__}")
        elif kind not in OPAQUE and not self.is_immutable(value):
            self.instance(value, path)

    # ---- containers -------------------------------------------------------------------------------------------

    def mapping(self, value: Any, path: str) -> None:
        if type(value) is defaultdict:
            self.visit("attribute", value, "default_factory", f"{path}.default_factory")
        self.items(value, value, path)

    def sequence(self, value: Any, path: str) -> None:
        self.items(value, range(len(value)), path)

    def record(self, value: Any, path: str) -> None:
        kind = type(value)
        if kind is not tuple and not hasattr(kind, "_fields") and not is_ours(file_of(kind)):
            return self.instance(value, path)
        for i, item in enumerate(value):
            self.push(item, f"{path}[{i}]")
            self.called_from_c(item, path)
        if kind is not tuple:
            self.push(kind, f"type({path})")
            self.attributes(value, path, self.names.of(kind))

    def elements(self, value: Any, path: str) -> None:
        if not all(type(item) in SCALARS and item == item for item in value):
            self.open(path, "is a set of objects")
        elif type(value) is set:
            self.place("all", value, None, path, (*value,))

    def bounds(self, value: slice, path: str) -> None:
        for name in ("start", "stop", "step"):
            self.push(getattr(value, name), f"{path}.{name}")

    def time(self, value: Any, path: str) -> None:
        if is_plain(type(value)):
            self.instance(value, path)
        elif value.tzinfo is not None:
            self.push(value.tzinfo, f"{path}.tzinfo")

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

    def member(self, value: enum.Enum, path: str) -> None:
        self.instance(value, path)
        self.own(value, vars(value), path, None)  # its value has other names in it

    # ---- code -------------------------------------------------------------------------------------------------

    def a_class(self, value: type, path: str) -> None:
        self.found.renamed |= {"type"} if value is type else set()
        self.kind(value, path)

    def method(self, value: types.MethodType, path: str) -> None:
        self.push(value.__self__, "self")
        self.push(value.__func__, path)

    def wrapper(self, value: Any, path: str) -> None:
        for name in ("__func__", "fget", "fset", "fdel"):
            if getattr(value, name, None) is not None:
                self.visit("attribute", value, name, path)
        self.own(value, attribute_of(value, "__dict__"), path, self.names.users)

    def partial(self, value: functools.partial[Any], path: str) -> None:
        for name in ("func", "args", "keywords"):
            self.visit("attribute", value, name, path)
        self.called_from_c(value.func, path)
        self.attributes_of_partial(value, path)

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
        named = getattr(value, "__origin__", None), *getattr(value, "__args__", ())  # of a union of classes, say
        for part in (owner, *named):
            if part is not None:
                self.push(part, path)

    def attributes_of_partial(self, value: functools.partial[Any], path: str) -> None:
        """Those that it was given; asked for by name, it makes a dict, and is another from then on."""
        held = dict_of(value)
        if held is None:
            self.place("call", functools.partial(dict_of, value), None, f"the attributes of {path}", None)
        else:
            self.own(value, held, path, self.names.of(functools.partial))

    @staticmethod
    def is_immutable(value: Any) -> bool:
        kind = type(value)
        if isinstance(value, numbers.Number):
            return kind is Fraction or (hasattr(value, "dtype") and not is_plain(kind))
        return isinstance(value, IMMUTABLE) and not is_plain(kind)

    def tensor(self, value: Tensor, path: str) -> None:
        self.found.tensors.setdefault(id(value), path)
        self.attributes(value, path, self.names.of(type(value)))
        node = value._history  # a leaf that is a view has one of its own
        if type(node) is Leaf and node.hooks is not None:  # guards of tensors compare them
            for hook in node.hooks.all():
                self.push(hook, f"a hook of {path}")
        if value._view is not None:
            self.found.tensors.setdefault(id(value._view.base), f"{path}._base")
        self.kind(type(value), path)

    def items(self, container: Any, keys: Iterable[Any], path: str) -> None:
        if isinstance(container, dict) and container:
            self.place("keys", container, None, f"the keys of {path}", Keys.of(container))
        else:
            self.place("length", container, None, f"len({path})", len(container))
        dotted = path.rpartition(".")[2] in TABLES
        for key in list(keys):
            known = isinstance(key, (*SCALARS, tuple, enum.Enum, Tensor)) or is_ours(file_of(type(key)))
            if isinstance(container, dict) and not known and not isinstance(key, type):
                self.open(path, f"has a {type(key).__name__} as a key")
                continue  # what is there is found by its __hash__ and __eq__, which are not to run more often
            name = repr(key) if type(key) in SCALARS else f"<{type(key).__name__}>"
            if isinstance(container, dict):
                self.push(key, f"a key of {path}")
            self.visit("item", container, key, f"{path.rpartition('.')[0]}.{key}" if dotted else f"{path}[{name}]")
            held = now(Place(path, "item", container, key, None))
            self.called_from_c(held, path)

    def function(self, value: types.FunctionType, path: str) -> None:
        code = value.__code__
        ours = is_library(source_of(code, value.__globals__))
        if not ours:
            self.own(value, vars(value), path, self.names.of(types.FunctionType))
            self.fields(value, path)
        else:
            if "__wrapped__" in vars(value):  # the user's, behind a decorator
                self.own(value, vars(value), path, self.names.users)
            for name, found in list(vars(value).items()):  # such as dispatch() of functools.singledispatch
                if isinstance(found, types.FunctionType) and name != "__wrapped__" and found in self.codes:
                    self.visit("item", vars(value), name, f"{path}.{name}")
        if value not in self.codes:
            return
        self.reached.add(code, value.__globals__)
        if "_door" in value.__globals__:  # what it calls may be a plugin's
            self.push(value.__globals__["_function"], path)
        if not ours:
            self.place("attribute", value, "__code__", f"{path}.__code__", code)
            if attribute_of(value, "__builtins__") is not builtins_of(value.__globals__):
                self.open(path, "has other builtins than its globals say")
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
        strange = [
            code for code, scope in self.codes
            if not self.reached.has(code, scope) and not is_library(source_of(code, scope))
        ]  # fmt: skip
        nested = {id(c) for code, _ in self.codes for c in code.co_consts} if strange else ()
        for code in strange:
            if id(code) in nested:
                continue
            where = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
            self.open(f"{code.co_name} at {where}", "is called by a way that is not known")


EXACTLY: dict[type, Callable[[Walker, Any, str], None]] = {
    **dict.fromkeys(DICTS, Walker.mapping),
    **dict.fromkeys(LISTS, Walker.sequence),
    **dict.fromkeys((set, frozenset), Walker.elements),
    functools.partial: Walker.partial,
    slice: Walker.bounds,
    by_device_type("cpu").array_type: Walker.array,
}
BY_CLASS: tuple[tuple[Any, Callable[[Walker, Any, str], None]], ...] = (
    (Tensor, Walker.tensor),
    (tuple, Walker.record),
    (types.FunctionType, Walker.function),
    (types.MethodType, Walker.method),
    (types.ModuleType, Walker.module),
    (type, Walker.a_class),
    (Op, Walker.op),
    ((types.MethodWrapperType, *CODE), Walker.in_c),
    ((staticmethod, classmethod, property), Walker.wrapper),
    (enum.Enum, Walker.member),
    ((datetime, time), Walker.time),
)
