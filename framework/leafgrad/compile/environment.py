"""What a function reads beside its arguments: closure, globals, attributes of objects, items of containers.

While the function runs, ``watching`` notes which code was executed; ``look`` then walks from the function over
everything that this code can have read, by the names in it. The places found are the environment: if one of them
holds something else at a later call, the function might do something else.
"""

from __future__ import annotations

import dis
import functools
import gc
import os
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from leafgrad import devices, dtypes
from leafgrad.backends import BACKENDS, Generator
from leafgrad.ops import messages
from leafgrad.ops.op import Op
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import View

SCALARS = (bool, int, float, complex, str, bytes, types.NoneType)
OPAQUE = (Op, Generator, dtypes.dtype, devices.device)  # known by identity; what is inside cannot matter
TABLES = frozenset({"_parameters", "_buffers", "_modules"})  # left out of paths: "net.0.weight"

Codes = dict[types.CodeType, dict[str, Any]]  # executed code, with its globals
TOOLS = (3, 4)  # of the interpreter's numbers for tools, those that no kind of tool has for itself


@contextmanager
def watching(codes: Codes) -> Iterator[None]:
    """Note in ``codes`` which Python code this thread executes."""
    collecting = gc.isenabled()
    gc.disable()  # callbacks of the collector are no part of the function
    stop = monitored(codes) or profiled(codes)
    try:
        yield
    finally:
        stop()
        if collecting:
            gc.enable()


def profiled(codes: Codes) -> Callable[[], None]:
    """Note the code of every call until the function that is returned is called."""
    before: Any = sys.getprofile()

    def note(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code not in codes:
            codes[frame.f_code] = frame.f_globals

    def stop() -> None:
        if before is None or callable(before):
            sys.setprofile(before)
        else:  # cProfile's own object
            sys.setprofile(None)
            before.enable()

    sys.setprofile(note)
    return stop


def monitored(codes: Codes) -> Callable[[], None] | None:
    """The same where code tells of itself once only (PEP 669: Python 3.12), which takes no time; else None."""
    monitoring: Any = getattr(sys, "monitoring", None)
    tool = next((i for i in TOOLS if monitoring and monitoring.get_tool(i) is None), None)
    if tool is None:
        return None
    events = monitoring.events.PY_START, monitoring.events.PY_RESUME
    thread = threading.get_ident()

    def note(code: types.CodeType, _: int) -> Any:
        if threading.get_ident() != thread:
            return None
        codes.setdefault(code, sys._getframe(1).f_globals)
        return monitoring.DISABLE

    def stop() -> None:
        monitoring.set_events(tool, 0)
        for event in events:
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)

    monitoring.use_tool_id(tool, "leafgrad")
    for event in events:
        monitoring.register_callback(tool, event, note)
    monitoring.set_events(tool, events[0] | events[1])
    monitoring.restart_events()  # of code that has told an earlier trace
    return stop


@dataclass(frozen=True, eq=False)
class Place:
    """One place that was read, and what it held.

    Attributes:
        path: what a reader calls it, e.g. ``"net.0.training"``.
        kind: how it is read: an ``"item"`` or ``"attribute"`` of ``container``, a ``"cell"``, the ``"length"`` of a
            container, the ``"keys"`` of a dict, names ``"absent"`` from it, or the whole of a set
            (``"all"``).
    """

    path: str
    kind: str
    container: Any
    key: Any
    value: Any

    def now(self) -> Any:
        """What it holds now. Raises LookupError, AttributeError or ValueError if it is gone."""
        match self.kind:
            case "item":
                return self.container[self.key]
            case "attribute":
                return getattr(self.container, self.key)
            case "cell":
                return self.container.cell_contents
            case "length":
                return len(self.container)
            case "absent":
                return self.container.keys().isdisjoint(self.key)
            case "keys":
                return Keys.of(self.container)
        return type(self.container)(self.container)

    def put(self, value: Any) -> None:
        """Give it back a value that it held before."""
        match self.kind:
            case "item":
                self.container[self.key] = value
            case "attribute":
                setattr(self.container, self.key, value)
            case "cell":
                self.container.cell_contents = value
            case "length" if isinstance(self.container, list):
                del self.container[value:]
            case "length" if isinstance(self.container, dict):
                while len(self.container) > value:
                    self.container.popitem()
            case "absent":
                for key in self.key:
                    self.container.pop(key, None)
            case "keys":
                for key in [k for k in self.container if k not in value and id(k) not in value]:
                    del self.container[key]


GONE = "nothing"


class Keys(tuple[Any, ...]):
    """The keys of a dict in order: strings themselves, or the ids of all."""

    @classmethod
    def of(cls, container: dict[Any, Any]) -> Keys:
        keys = [*container]
        return cls(keys if all(type(key) is str for key in keys) else map(id, keys))


def alike(a: Any, b: Any) -> bool:
    """Whether two values are the same to the program: one object, or equal numbers, strings or sets of one type."""
    return a is b or (type(a) is type(b) and isinstance(a, (*SCALARS, set, frozenset, Keys)) and a == b)


@dataclass
class Environment:
    """The places that a function read, and the paths of the tensors among what they held."""

    places: list[Place] = field(default_factory=list)
    tensors: dict[int, str] = field(default_factory=dict)  # by id

    def snapshot(self) -> list[Any]:
        """What the places hold now."""
        return [now(place) for place in self.places]

    def changed(self, before: list[Any]) -> list[tuple[Place, Any, Any]]:
        """The places that hold something else than in a snapshot, with that and what they hold now."""
        pairs = ((place, old, now(place)) for place, old in zip(self.places, before, strict=True))
        return [(place, old, new) for place, old, new in pairs if not alike(old, new)]


def now(place: Place) -> Any:
    try:
        return place.now()
    except (LookupError, AttributeError, ValueError):
        return GONE


# ---- names ------------------------------------------------------------------------------------------------------


@functools.cache
def global_names(code: types.CodeType) -> frozenset[str]:
    """The globals that a code object reads."""
    return frozenset(i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))


@functools.cache
def words(code: types.CodeType) -> frozenset[str]:
    """The names in a code object, and the strings that could be names, alone or in tuples."""
    strings = [c for const in code.co_consts for c in (const if type(const) is tuple else (const,)) if type(c) is str]
    return frozenset((*code.co_names, *filter(str.isidentifier, strings)))


ANY_NAME = frozenset({"__dict__", "getattr", "vars"})  # code with these may read an attribute of any name
# Rooms whose code is handed tensors, arrays and programs, and never reads an attribute of anything else.
BELOW = tuple(os.path.join(messages.PACKAGE, room) for room in ("backends", "compile", "ops", "plugins"))
STDLIB = os.path.dirname(os.__file__) + os.sep


@functools.cache
def is_ours(file: str) -> bool:
    """Whether a source file belongs to this package."""
    return file.startswith((messages.PACKAGE + os.sep, "<leafgrad"))


@functools.cache
def is_library(file: str) -> bool:
    """Whether a source file belongs to this package, to Python or to an array library: no user's program changes it."""
    tops = {kind.__module__.partition(".")[0] for kind in BACKENDS}
    folders = tuple(os.path.dirname(f) + os.sep for t in tops if (f := getattr(sys.modules.get(t), "__file__", None)))
    python = file.startswith(STDLIB) and "site-packages" not in file
    return is_ours(file) or python or file.startswith(("<frozen ", *folders))


def source_of(code: types.CodeType, scope: dict[str, Any]) -> str:
    """The file that executed code belongs to; generated code belongs to the module whose globals it has."""
    file = code.co_filename
    return str(scope.get("__file__") or file) if file.startswith("<") and not is_ours(file) else file


def file_of(kind: type | types.ModuleType) -> str:
    """The source file of a module or a class; without one it is Python's own or typed in by the user."""
    name = kind.__name__ if isinstance(kind, types.ModuleType) else kind.__module__
    return getattr(sys.modules.get(name), "__file__", None) or ("<stdin>" if name == "__main__" else "<frozen >")


class Names:
    """Which attributes executed code can have read, by who owns them."""

    def __init__(self, codes: Codes, everything: bool) -> None:
        self.users: set[str] = set()
        self.ours: set[str] = set()
        self.by_file: dict[str, set[str]] = {}
        self.any_name = False
        self.everything = everything
        for code, scope in codes.items():
            file = source_of(code, scope)
            if not is_library(file):
                self.users |= words(code)
                self.any_name |= not ANY_NAME.isdisjoint(code.co_names)
            elif is_ours(file) and not file.startswith(BELOW):
                self.ours |= words(code)
                self.by_file.setdefault(file, set()).update(words(code))
        self.known: dict[type, set[str] | None] = {}

    def of(self, kind: type) -> set[str] | None:
        """The names that matter in an object of a class; None for all of them.

        An object of a class of this package may be read by any of its code; one of a user's class that derives from
        such a class, by the user's code and by that of the base classes.
        """
        if kind not in self.known:
            foreign = not is_library(file_of(kind))
            found = self.users | (set() if foreign else self.ours)
            for base in kind.__mro__:
                found |= self.by_file.get(file_of(base), set())
            self.known[kind] = None if self.everything or (self.any_name and foreign) else found
        return self.known[kind]


# ---- the walk ---------------------------------------------------------------------------------------------------


def look(roots: Iterable[tuple[Any, str]], codes: Codes, everything: bool = False) -> Environment:
    """What the executed ``codes`` can have read, starting from ``roots`` (value, path) and globals.

    ``everything``: all attributes of all objects, whether some name says that they were read or not.
    """
    walker = Walker(codes, everything)
    for value, path in roots:
        walker.push(value, path, frozenset())
    for code, scope in codes.items():
        if not is_library(source_of(code, scope)):
            walker.globals(code, scope)
    walker.run()
    return walker.found


class Walker:
    """Breadth-first, so that paths are short."""

    def __init__(self, codes: Codes, everything: bool) -> None:
        self.codes = codes
        self.names = Names(codes, everything)
        self.found = Environment()
        self.seen: dict[int, Any] = {}
        self.read: set[tuple[int, str, Any]] = set()
        self.queue: deque[tuple[Any, str, frozenset[str]]] = deque()

    def push(self, value: Any, path: str, live: frozenset[str]) -> None:
        if isinstance(value, SCALARS) or id(value) in self.seen:
            return
        self.seen[id(value)] = value
        self.queue.append((value, path, live))

    def visit(self, kind: str, container: Any, key: Any, path: str, live: frozenset[str] = frozenset()) -> None:
        """Note a place, and follow what it holds."""
        mark = id(container), kind, key if isinstance(key, (str, int)) else id(key)
        if mark in self.read:
            return
        self.read.add(mark)
        place = Place(path, kind, container, key, None)
        value = now(place)
        if value is GONE or isinstance(value, types.ModuleType):
            return
        if not isinstance(value, type):
            self.found.places.append(Place(path, kind, container, key, value))
        if isinstance(value, Tensor) and len(path) < len(self.found.tensors.get(id(value), path + " ")):
            self.found.tensors[id(value)] = path  # of several, the shortest
        self.push(value, path, live)

    def run(self) -> None:
        while self.queue:
            value, path, live = self.queue.popleft()
            self.expand(value, path, live | getattr(type(value), "_live", frozenset()))

    def expand(self, value: Any, path: str, live: frozenset[str]) -> None:
        match value:
            case Tensor():
                self.found.tensors.setdefault(id(value), path)
                self.attributes(value, (), path, live, self.names.of(type(value)))
                if isinstance(value, View):
                    self.found.tensors.setdefault(id(value._base), f"{path}._base")
            case dict():
                self.items(value, value, path, live)
            case list() | deque():
                self.items(value, range(len(value)), path, live)
            case tuple():
                for i, item in enumerate(value):
                    self.push(item, f"{path}[{i}]", live)
            case set() | frozenset():
                self.found.places.append(Place(path, "all", value, None, type(value)(value)))
            case types.FunctionType():
                self.function(value, path, live)
            case types.MethodType():
                self.push(value.__self__, "self", live)
                self.push(value.__func__, path, live)
            case functools.partial():
                for part in (value.func, value.args, value.keywords):
                    self.push(part, path, live)
            case type():
                if not is_library(file_of(value)):
                    self.attributes(value, value.__mro__, path, live, self.names.of(value))
            case _ if not isinstance(value, OPAQUE):
                self.instance(value, path, live)

    def items(self, container: Any, keys: Iterable[Any], path: str, live: frozenset[str]) -> None:
        if isinstance(container, dict) and len(container) > 1:
            self.found.places.append(Place(f"the keys of {path}", "keys", container, None, Keys.of(container)))
        else:
            self.found.places.append(Place(f"len({path})", "length", container, None, len(container)))
        dotted = path.rpartition(".")[2] in TABLES
        for key in list(keys):
            if isinstance(key, str) and self.is_live(key, live, container[key]):
                continue
            name = repr(key) if isinstance(key, SCALARS) else f"<{type(key).__name__}>"
            self.visit(
                "item", container, key, f"{path.rpartition('.')[0]}.{key}" if dotted else f"{path}[{name}]", live
            )

    def is_live(self, name: str, live: frozenset[str], value: Any) -> bool:
        """Whether programs read this number anew at each call; not if the user's own code reads it."""
        return name in live and name not in self.names.users and not isinstance(value, Tensor)

    def function(self, value: types.FunctionType, path: str, live: frozenset[str]) -> None:
        if value.__code__ not in self.codes:
            return
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            self.visit("cell", cell, None, name, live)
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(value, name):
                self.visit("attribute", value, name, f"{path}.{name}", live)

    def globals(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        for name in sorted(global_names(code) & scope.keys()):
            self.visit("item", scope, name, name)
            value = scope[name]
            if isinstance(value, types.ModuleType) and not is_library(file_of(value)):
                for attribute in sorted(self.names.users & vars(value).keys()):
                    if not isinstance(vars(value)[attribute], (types.ModuleType, types.BuiltinFunctionType)):
                        self.visit("item", vars(value), attribute, f"{name}.{attribute}")

    def instance(self, value: Any, path: str, live: frozenset[str]) -> None:
        kind = type(value)
        self.attributes(value, kind.__mro__, path, live, self.names.of(kind))
        methods = []
        for base in kind.__mro__:
            for name, method in list(vars(base).items()):
                plain = getattr(method, "__func__", None) or getattr(method, "fget", None) or method
                if isinstance(plain, types.FunctionType) and plain.__code__ in self.codes:
                    methods.append(name)
                    if not is_library(file_of(base)):
                        self.visit("item", vars(base), name, f"{base.__name__}.{name}", live)
                        self.push(plain, f"{path}.{name}", live)
        own = getattr(value, "__dict__", None)
        hidden = tuple(name for name in methods if not name.startswith("__") and own is not None and name not in own)
        if hidden:  # none is put in front of the class's
            self.found.places.append(Place(f"methods of {path}", "absent", own, hidden, True))
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            self.push(wrapped, path, live)

    def attributes(
        self, value: Any, classes: Iterable[type], path: str, live: frozenset[str], names: set[str] | None
    ) -> None:
        """The plain attributes of an object or class: its own, those in slots, and those of its classes."""
        own = {} if isinstance(value, type) else getattr(value, "__dict__", {})
        for name in list(own):
            self.attribute(value, name, path, live, names)
        for base in classes:
            for name, held in list(vars(base).items()):
                slot = isinstance(held, types.MemberDescriptorType) and not isinstance(value, type)
                if slot or not (hasattr(held, "__get__") or name.startswith("__")):
                    self.attribute(value, name, path, live, names)

    def attribute(self, value: Any, name: str, path: str, live: frozenset[str], names: set[str] | None) -> None:
        if names is not None and name not in names:
            return
        if name == "_live" or self.is_live(name, live, getattr(value, name, None)):
            return
        self.visit("attribute", value, name, f"{path}.{name}" if path else name, live)
