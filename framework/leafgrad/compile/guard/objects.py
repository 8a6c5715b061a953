"""What the walk notes of objects and classes: attributes, methods, which names there are."""

from __future__ import annotations

import abc
import enum
import sys
import types
from collections import deque
from typing import Any

from leafgrad.compile.guard.environment import (
    GONE,
    SCALARS,
    Class,
    ClassBody,
    Environment,
    GivenPlaces,
    Keys,
    Place,
    is_state,
    now,
)
from leafgrad.compile.guard.known import (
    ANNOTATIONS,
    CODE,
    DESCRIPTORS,
    FIELDS,
    OF_CLASSES,
    UNREAD,
    file_of,
    function_in,
    is_plain,
)
from leafgrad.compile.ir.attributes import attribute_of, attribute_of_class
from leafgrad.compile.record import pure
from leafgrad.compile.record.attribute_names import BY_NAME, METHODS
from leafgrad.compile.record.compared import ASKING
from leafgrad.compile.record.drawn import source_of_draws
from leafgrad.compile.record.names import ANY_NAME, BELOW, Names
from leafgrad.compile.record.watch import Codes, is_library, is_ours, is_python, source_of
from leafgrad.tensor.tensor import Tensor

NOTHING_GIVEN = GivenPlaces()
REPLACED = ("item", "cell")  # kinds of places in which something else may stand while a call is recorded


class ObjectWalker:
    """Notes places; of objects and classes it knows what executed code can have read."""

    def __init__(self, codes: Codes, everything: bool, given: GivenPlaces = NOTHING_GIVEN) -> None:
        self.codes = codes
        self.given = {place.mark for place in given.tensors}
        self.growing = {id(now(place)): place.mark for place in given.lists}  # which it appends to
        self.names = Names(codes, everything, file_of)
        self.found = Environment()
        self.seen: dict[int, Any] = self.found.seen
        self.read: set[tuple[int, str, Any]] = set()
        self.reached = Codes()
        self.loose: set[int] = set()  # modules that more is done with than to read attributes by their names
        self.missing: dict[frozenset[str], frozenset[str]] = {}  # many places are without the same names
        self.layouts: dict[type, tuple[bool, list[tuple[str, Any]]]] = {}
        self.bodies: dict[Any, set[str]] = {}  # classes and modules, and what was executed of them or is named
        self.queue: deque[tuple[Any, str]] = deque()

    def push(self, value: Any, path: str) -> None:
        if isinstance(value, types.ModuleType) and id(value) not in self.loose:
            way, _, name = path.rpartition(".")
            computed = bool(way) and self.names.computed
            if computed or not name.isidentifier() or name in self.names.passed_on or value is sys.modules.get(path):
                self.loose.add(id(value))
                self.seen.pop(id(value), None)
        if type(value) in SCALARS:
            if self.names.computed and value in UNREAD:
                self.open(path, f"is {value!r}, the name of what is not looked at where code computes names")
            return
        own = value.__code__.co_name if type(value) is types.FunctionType else ""
        if own in METHODS and path.rpartition(".")[2] != own:  # by another name it may be given one that is computed
            self.found.renamed.add(own)
        if id(value) in self.seen:
            return
        if id(value) in self.growing:
            self.open(path, "is a list that it appends to, and is reached by two ways")
        if self.growing and attribute_of(value, "__objclass__") is list:
            self.open(path, "may read a list that it appends to")
        self.seen[id(value)] = value
        self.queue.append((value, path))

    def open(self, path: str, why: str) -> None:
        self.found.open.append((path, why))

    def place(self, kind: str, container: Any, key: Any, path: str, value: Any) -> None:
        self.found.places.append(Place(path, kind, container, key, value))
        if kind in REPLACED and source_of_draws(value) is not None:
            self.found.drawing.append(self.found.places[-1])

    def visit(self, kind: str, container: Any, key: Any, path: str) -> None:
        """Note a place, and follow what it holds."""
        place = Place(path, kind, container, key, None)
        if place.mark in self.read:
            return
        self.read.add(place.mark)
        value = now(place)
        if place.mark in self.given and is_state(value):
            return
        if value is GONE:
            if kind == "slot":
                self.place("unset", container, key, path, True)
            return
        self.place(kind, container, key, path, value)
        if self.growing.get(id(value)) == place.mark:
            return
        if kind in REPLACED and source_of_draws(value) is not None:
            return
        if isinstance(value, Tensor) and len(path) < len(self.found.tensors.get(id(value), path + " ")):
            self.found.tensors[id(value)] = path  # of several, the shortest
        self.push(value, path)

    # ---- objects ----------------------------------------------------------------------------------------------

    def instance(self, value: Any, path: str) -> None:
        kind = type(value)
        if kind is not types.SimpleNamespace:
            known = SCALARS if issubclass(kind, enum.Enum) else ()
            bases = [b for b in kind.__mro__ if b is not object and b not in known and not issubclass(b, enum.Enum)]
            strange = next((b for b in bases if not is_plain(b)), None)
            if strange is not None:
                self.open(path, f"is of a type that is not known, {kind.__module__}.{kind.__qualname__}")
                return
        names = self.names.of(kind)
        self.kind(kind, path)
        self.attributes(value, path, names)
        own, hidden = attribute_of(value, "__dict__"), list[str]()
        for base in kind.__mro__:
            for name, method in list(vars(base).items()):
                function = function_in(method)
                if isinstance(function, types.FunctionType) and function in self.codes:
                    self.reached.add(function.__code__, function.__globals__)
                    if own is not None and name not in own and not name.startswith("__"):
                        hidden.append(name)
        if hidden:  # none is put in front of the class's
            self.place("absent", own, tuple(hidden), f"methods of {path}", True)
        wrapped = attribute_of(value, "__wrapped__")
        if wrapped is not None:
            self.push(wrapped, path)

    def attributes(self, value: Any, path: str, names: set[str] | None) -> None:
        """The attributes of an object: its own, and those in slots."""
        self.own(value, attribute_of(value, "__dict__"), path, names)
        strange, slots = self.layout(type(value))
        if strange:
            self.open(path, "has a __getattribute__ of its own")
        for name, slot in slots:
            if names is None or name in names:
                self.visit("slot", value, slot, f"{path}.{name}" if path else name)

    def layout(self, kind: type) -> tuple[bool, list[tuple[str, Any]]]:
        """Whether a class has a ``__getattribute__`` of its own, and its slots; of a tensor those of users' classes."""
        if kind not in self.layouts:
            strange = any("__getattribute__" in vars(base) for base in kind.__mro__[:-1] if is_plain(base))
            made = [base for base in kind.__mro__ if base.__flags__ & pure.HEAP]
            made = [base for base in made if not (issubclass(kind, Tensor) and is_ours(file_of(base)))]
            held = [item for base in made for item in vars(base).items()]
            self.layouts[kind] = (
                strange,
                [(n, slot) for n, slot in held if isinstance(slot, types.MemberDescriptorType)],
            )
        return self.layouts[kind]

    def own(self, value: Any, own: dict[str, Any] | None, path: str, names: set[str] | None) -> None:
        """The attributes that are in an object's dict, if it has one, in whose place another one may be put."""
        self.place("class", value, None, f"type({path})", Class(type(value), own))
        if own is None:
            return
        if names is not None and self.names.any_name:
            names = names | own.keys()
        for name in list(own):
            if (names is not None and name not in names) or self.is_kept(value, name, own[name]):
                continue
            where = f"{path}.{name}" if path else name
            self.visit("item", own, name, where)
            self.called_from_c(own[name], where)
        if names is None or self.names.any_name:  # which there are may be asked, too
            self.place("keys", own, None, f"the attributes of {path}", Keys.of(own))
        self.absent(own, path, self.names.users if names is None else names)

    @staticmethod
    def is_kept(value: Any, name: str, held: Any) -> bool:
        """Whether it is what a compiled function keeps for itself: its calls, or a method of an object, compiled."""
        if name.startswith("_compiled_"):
            return is_ours(file_of(type(held))) and attribute_of(held, "_attribute") == name
        return name in getattr(type(value), "unguarded", ()) and is_ours(file_of(type(value)))

    def absent(self, held: Any, path: str, names: set[str]) -> None:
        """That names which code asks for, and that are not there, do not appear."""
        mark = id(held), "absent", ""
        if mark not in self.read:
            self.read.add(mark)
            missing = frozenset(names - held.keys())
            if missing:
                self.place("absent", held, self.missing.setdefault(missing, missing), f"attributes of {path}", True)

    # ---- classes ----------------------------------------------------------------------------------------------

    def kind(self, value: type, path: str) -> None:
        """A class: what instances and code may read of it, and its methods that were executed."""
        for base in value.__mro__:
            if is_ours(file_of(base)):
                self.body(base)
        if is_ours(file_of(value)):
            return
        if not is_plain(value) and not issubclass(value, enum.Enum):
            array_library = is_library(file_of(value)) and not is_python(file_of(value))
            if value.__module__ not in pure.TYPES and not array_library:
                self.open(path, f"is a class that is not known, {value.__module__}.{value.__qualname__}")
            for name in {name for _, name in self.names.handed} | (
                self.names.spelled if self.names.computed else set()
            ):
                self.called_from_c(attribute_of_class(value, name), f"{path}.{name}")
            return
        self.place("attribute", value, "__mro__", f"{path}.__mro__", value.__mro__)
        self.fields(value, path)
        meta = type(value)
        self.place("class", value, None, f"type({path})", Class(meta, None))
        if meta is abc.ABCMeta:
            self.place(
                "call", abc.get_cache_token, None, "what is registered with abstract classes", abc.get_cache_token()
            )
        if meta is not type and not is_library(file_of(meta)):
            self.push(meta, f"type({path})")
        if isinstance(value, enum.EnumMeta):  # a call of it gives any member
            for name, member in value._member_map_.items():
                self.push(member, f"{path}.{name}")
        names = self.names.of(value)
        for base in value.__mro__:
            held = vars(base)
            asked = frozenset() if self.names.computed else OF_CLASSES - self.names.users
            special = tuple(name for name in held if name.startswith("__") and name not in asked)
            if is_library(file_of(base)):
                special += tuple(sorted(name for name in self.names.users & held.keys() if name not in special))
            if base.__flags__ & pure.HEAP:
                self.place("body", base, special, f"what is in the class {base.__name__}", ClassBody.of(base, special))
            if is_library(file_of(base)):
                continue
            for name, found in list(held.items()):
                function = function_in(found)
                named = (names is None or name in names) and not name.startswith("__")
                named |= isinstance(found, types.BuiltinFunctionType)  # a special method, perhaps
                named |= name in self.names.users or (self.names.computed and name not in ANNOTATIONS)
                if isinstance(function, types.FunctionType):
                    if named or function in self.codes:
                        self.visit("item", held, name, f"{base.__name__}.{name}")
                        self.push(function, f"{base.__name__}.{name}")
                elif named:
                    self.class_attribute(base, name, found)
            self.absent(held, base.__name__, self.names.users)

    def body(self, kind: type) -> None:
        """A class of this package that was met: methods that were executed, and what code reads of it by name.

        Its attributes, too, such as the hooks of all modules.
        """
        if kind in self.bodies:
            return
        found = self.bodies[kind] = self.names.users & vars(kind).keys()
        ours, every = self.names.ours, self.names.computed or self.names.everything
        for name, held in list(vars(kind).items()):
            special = name[:2] == "__"
            if not (special or every or name in ours or name in found):
                continue
            if not special and not hasattr(held, "__get__") and name != "unguarded":
                self.visit("item", vars(kind), name, f"{kind.__name__}.{name}")
            if not special and name not in ours:
                continue
            function = function_in(held)
            if isinstance(function, types.FunctionType) and function in self.codes:
                found.add(name)
                if not is_library(source_of(function.__code__, function.__globals__)):  # the user put it there
                    self.push(function, f"{kind.__name__}.{name}")

    def methods(self) -> None:
        """The classes of this package that were used, those of what the step makes among them."""
        for code, scope in self.codes:
            owner, _, name = code.co_qualname.rpartition(".")
            kind = scope.get(owner)
            if isinstance(kind, type) and name in vars(kind):
                file = source_of(code, scope)
                if is_ours(file) and not file.startswith(BELOW):
                    self.bodies.setdefault(kind, set()).add(name)

    def bodies_read(self) -> None:
        """What was read of classes and modules is there as it was."""
        for owner, names in self.bodies.items():
            key = tuple(sorted(names))
            self.place("body", owner, key, f"what is in {owner.__name__}", ClassBody.of(owner, key))

    def class_attribute(self, base: type, name: str, found: Any) -> None:
        if (isinstance(found, CODE) and type(found) is not types.BuiltinFunctionType) or name.startswith("_abc_"):
            self.renamed(found)
            self.place("item", vars(base), name, f"{base.__name__}.{name}", found)
            return
        known = isinstance(found, DESCRIPTORS) or is_ours(file_of(type(found)))  # as a compiled method is
        if hasattr(type(found), "__get__") and not known:
            self.open(f"{base.__name__}.{name}", f"is a descriptor, a {type(found).__name__}")
        self.visit("item", vars(base), name, f"{base.__name__}.{name}")

    def fields(self, value: Any, path: str) -> None:
        """What every function or class has, such as ``__defaults__``, where the user's code may name it.

        Of classes their names, too, which are in texts.
        """
        is_class = isinstance(value, type)
        known = FIELDS[type if is_class else types.FunctionType]
        found = known & self.names.users
        found |= {"__name__", "__qualname__"} if is_class else known - ANNOTATIONS if self.names.computed else set()
        for name in sorted(found):
            if name == "__closure__":
                for free, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                    self.visit("cell", cell, None, free)
            else:
                self.visit("attribute", value, name, f"{path}.{name}")

    def renamed(self, value: Any) -> None:
        """Something in C that may read attributes of any name, or tells objects apart, wherever it stands."""
        if getattr(value, "__name__", None) in ANY_NAME | BY_NAME | ASKING:
            self.found.renamed.add(value.__name__)

    def called_from_c(self, value: Any, path: str) -> None:
        """A function in C that something else may call, so that no call of it is seen."""
        if not isinstance(value, types.BuiltinFunctionType) or pure.is_pure(value):
            return
        if source_of_draws(value) is None:  # what it draws is followed
            self.open(path, f"holds {pure.callee_name(value)}")
