"""Places that a step reads beside its arguments, and what they held: cells, globals, attributes, items."""

from __future__ import annotations

import gc
import operator
import os
import types
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from leafgrad.compile.guard.known import DICTS, LISTS
from leafgrad.compile.ir.keys import same
from leafgrad.compile.ir.memory import is_exposed
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.signals import raised_by_handler
from leafgrad.tensor.tensor import Tensor

GUARDS = "leafgrad guards"  # the name of the module that their conditions are in
SCALARS = (bool, int, float, complex, str, bytes, types.NoneType)
OBJECTS = ("item", "attribute", "slot", "cell")  # kinds of places that hold one
GONE: Any = object()  # what a place holds that is not there
CONTAINERS = (OrderedDict, dict, list, deque, set)


def class_of(container: Any) -> Any:
    """The class of Python's that a container is of: its methods do what they say, whatever those of a subclass do."""
    return next(kind for kind in CONTAINERS if isinstance(container, kind))


def class_in(holder: Any) -> Any:
    """The class whose attributes are in a dict; else what holds."""
    if type(holder) is not dict or "__module__" not in holder:
        return holder
    kinds = [kind for kind in gc.get_referrers(holder) if isinstance(kind, type)]
    return next((kind for kind in kinds if any(part is holder for part in gc.get_referents(vars(kind)))), holder)


@dataclass(eq=False, slots=True)  # not frozen, which makes each of some thousands a microsecond slower
class Place:
    """One place that was read, and what it held.

    Attributes:
        path: what a reader calls it, e.g. ``"net.0.training"``.
        kind: how it is read: an ``"item"`` or ``"attribute"`` of ``container``, a ``"slot"``, whose descriptor is the
            key, a ``"cell"``, the ``"length"`` of a container, the ``"keys"`` of a dict, names ``"absent"`` from it,
            all of a set in order (``"all"``), the ``"class"`` of an object and its dict, what a ``"call"`` of a
            function of no arguments gives, or that a cell is ``"empty"`` or a slot ``"unset"``, and what the
            ``"body"`` of a class or module has under some names.
    """

    path: str
    kind: str
    container: Any
    key: Any
    value: Any

    @property
    def mark(self) -> tuple[int, str, Any]:
        """What tells it from other places."""
        return id(self.container), self.kind, self.key if isinstance(self.key, (str, int)) else id(self.key)

    def now(self) -> Any:
        """What it holds now. Raises LookupError, AttributeError or ValueError if it is gone."""
        match self.kind:
            case "item":
                if isinstance(self.container, dict) and self.key not in self.container:  # __missing__ may add it
                    raise KeyError(self.key)
                return self.container[self.key]
            case "attribute":
                return getattr(self.container, self.key)
            case "slot":
                return self.key.__get__(self.container)
            case "cell":
                return self.container.cell_contents
            case "length":
                return len(self.container)
            case "absent":
                return self.container.keys().isdisjoint(self.key)
            case "keys":
                return Keys.of(self.container)
            case "call":
                return self.container()
            case "array":
                return Contents.of(self.container)
            case "empty":
                return self.container == types.CellType()
            case "unset":
                return held_in(self.key, self.container) is GONE
            case "body":
                return ClassBody.of(self.container, self.key)
            case "class":
                return Class(type(self.container), None if self.value[1] is None else vars(self.container))
        return (*self.container,)

    def can_be_put(self, value: Any) -> bool:
        """Whether it may hold again what it held."""
        match self.kind:
            case "all":
                return (*set(value),) == value and {*value} <= self.container  # else others are popped next
            case "array":
                array = self.container
                return (
                    bool(array.flags.c_contiguous and array.flags.writeable) and Contents.of(array)[:-1] == value[:-1]
                )
            case "length":
                return type(self.container) in (*DICTS, *LISTS)  # of which there are copies
        return self.kind not in ("body", "call")

    def put(self, value: Any) -> None:
        """Let it hold again what it held before, as far as it may have been changed by plain code."""
        match self.kind:
            case "item" if isinstance(self.container, types.MappingProxyType):
                (held,) = gc.get_referents(self.container)
                if value is GONE:
                    type.__delattr__(class_in(held), self.key)
                else:
                    type.__setattr__(class_in(held), self.key, value)
            case "item" if value is GONE:
                del self.container[self.key]
            case "item":
                class_of(self.container).__setitem__(self.container, self.key, value)
            case "attribute":
                setattr(self.container, self.key, value)
            case "slot":
                self.key.__set__(self.container, value)
            case "array":
                memoryview(self.container.reshape(-1).view("u1"))[:] = value[-1]
            case "class":
                object.__setattr__(self.container, "__class__", value[0])
                if value[1] is not None and vars(self.container) is not value[1]:
                    self.container.__dict__ = value[1]
            case "unset":
                self.key.__delete__(self.container)
            case "empty":
                del self.container.cell_contents
            case "cell":
                self.container.cell_contents = value
            case "length" if isinstance(self.container, list):
                del self.container[value:]
            case "keys":
                for key in [k for k in self.container if k not in value and id(k) not in value]:
                    del self.container[key]
            case "absent":
                for key in self.container.keys() & self.key:
                    del self.container[key]
            case "all" if isinstance(self.container, set):
                self.container.clear()
                self.container.update(value)


def held_in(slot: Any, owner: Any) -> Any:
    """What is in a slot of an object, by its descriptor, or GONE."""
    try:
        return slot.__get__(owner)
    except AttributeError:
        return GONE


def is_tensors(value: Any) -> bool:
    """Whether a value is a tensor, or a tuple, list, or dict by strings or numbers, of some, perhaps nested."""
    if type(value) is dict:
        value = [*value.values()] if {*map(type, value)} <= {str, int} else []
    return type(value) is Tensor or (type(value) in (tuple, list) and bool(value) and all(map(is_tensors, value)))


class GivenPlaces(NamedTuple):
    """Places outside whose tensors are arguments, and those of lists that are appended to without being read."""

    tensors: Sequence[Place] = ()
    lists: Sequence[Place] = ()


def is_state(value: Any) -> bool:
    """Whether a place may be an argument: it holds tensors, or None as yet."""
    return value is None or is_tensors(value)


class Class(tuple[Any, ...]):
    """The class of an object, and the dict of its attributes: as identities."""

    def __new__(cls, kind: type, attributes: Any) -> Class:
        return super().__new__(cls, (kind, attributes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Class) and self[0] is other[0] and self[1] is other[1]

    __hash__ = tuple.__hash__


class ClassBody(tuple[Any, ...]):
    """How many attributes a class has of its own, and what some of them are, as identities.

    ``copy`` keeps ``__slotnames__`` in a class, which is not counted.
    """

    @classmethod
    def of(cls, kind: type, names: Sequence[str]) -> ClassBody:
        held = vars(kind)
        return cls((len(held) - ("__slotnames__" in held), *(held.get(name, GONE) for name in names)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassBody) and self[0] == other[0] and all(map(operator.is_, self[1:], other[1:]))

    def __str__(self) -> str:
        codes = [value.__code__ for value in self[1:] if isinstance(value, types.FunctionType)]
        lines = [f"{c.co_name} at {os.path.basename(c.co_filename)}:{c.co_firstlineno}" for c in codes]
        return ", ".join([f"{self[0]} attributes", *lines])

    __hash__ = tuple.__hash__


class Contents(tuple[Any, ...]):
    """What is in an array: its shape, how it lies, its dtype and its bytes."""

    @classmethod
    def of(cls, array: Any) -> Contents:
        return cls((array.shape, array.strides, array.dtype.str, array.dtype.names, array.tobytes()))

    def __str__(self) -> str:
        return f"an array of shape {self[0]}"


class Keys(tuple[Any, ...]):
    """The keys of a dict in order: strings themselves, or the ids of all."""

    @classmethod
    def of(cls, container: dict[Any, Any]) -> Keys:
        keys = [*container]
        return cls(keys if all(type(key) is str for key in keys) else map(id, keys))

    def __str__(self) -> str:
        return f"{len(self)}, the last {self[-1]!r}," if self and type(self[-1]) is str else f"{len(self)}"


def alike(a: Any, b: Any) -> bool:
    """Whether two values are the same to the program: one object, or equal numbers or strings of one type."""
    if isinstance(a, (ClassBody, Contents, Keys, Class, range)):
        return type(a) is type(b) and bool(a == b)
    return same(a, b)


@dataclass
class Environment:
    """The places that a function read, the paths of the tensors among what they held, and what nobody can tell of."""

    places: list[Place] = field(default_factory=list)
    tensors: dict[int, str] = field(default_factory=dict)  # by id
    open: list[tuple[str, str]] = field(default_factory=list)  # path, and why it is no use to guard it
    names: frozenset[str] = frozenset()  # of attributes that the user's code may read
    any_name: bool = False  # whether it may read others, too
    seen: dict[int, Any] = field(default_factory=dict)  # all objects that were met, by id
    renamed: set[str] = field(default_factory=set)  # functions that read any attribute, and type, which something holds
    by_identity: bool = False  # whether it may ask if two numbers, strings, tuples, lists or dicts are one object
    drawing: list[Place] = field(default_factory=list)  # of what draws numbers, and is no use unless it is followed

    def may_read(self, names: Collection[str]) -> bool:
        """Whether attributes of these names may be read."""
        return bool(names) if self.any_name else not self.names.isdisjoint(names)

    @property
    def shows_memory(self) -> bool:
        """Whether the memory of a tensor may be read and written through an array of it that was read, too."""
        return any(place.kind == "array" and is_exposed(place.container) for place in self.places)

    def check(self) -> None:
        """Unclosed if it holds what nobody can tell of."""
        if self.open:
            path, why = self.open[0]
            raise Unclosed(f"{path} {why}")

    def snapshot(self) -> list[Any]:
        """What the places hold now."""
        return [now(place) for place in self.places]

    def changed(self, before: Sequence[Any]) -> list[tuple[Place, Any, Any]]:
        """The places that hold something else than in a snapshot, with that and what they hold now."""
        pairs = ((place, old, now(place)) for place, old in zip(self.places, before, strict=True))
        return [(place, old, new) for place, old, new in pairs if not alike(old, new)]

    def holds(self, before: Sequence[Any]) -> bool:
        """Whether no other list, tuple or dict stands where one was, be it equal: a call may return it."""
        pairs = zip(self.places, before, strict=True)
        held = [(p, old) for p, old in pairs if p.kind in OBJECTS and isinstance(old, (list, tuple, dict))]
        return all(now(place) is old for place, old in held)

    def contents(self) -> list[tuple[Any, Any]]:
        """The lists, deques and dicts of which all was read, with copies."""
        found = {id(p.container): p.container for p in self.places if p.kind in ("length", "keys")}
        return [(held, held.copy()) for held in found.values() if type(held) in (*DICTS, *LISTS)]

    def put_back(self, before: Sequence[Any], contents: Sequence[tuple[Any, Any]]) -> None:
        """Let the places hold what they held in a snapshot, and containers all that they held, in order."""
        for container, held in contents:
            with suppress(Exception):  # of keys that a user compares, say
                refill(container, held)
        for place, old, _ in self.changed(before):
            with suppress(Exception):  # of a user's own setter, say
                place.put(old)


def refill(container: Any, held: Any) -> None:
    """Let a list, deque or dict hold again what its copy holds, in order."""
    if not isinstance(container, dict):
        if len(container) != len(held) or not all(map(operator.is_, container, held)):
            container.clear()
            container.extend(held)
        return
    for key in [key for key in container if key not in held]:
        del container[key]
    moved = len(container) < len(held) or not all(map(operator.is_, container, held))
    for key in list(container) if moved else ():
        del container[key]
    for key, value in held.items():
        class_of(container).__setitem__(container, key, value)


def now(place: Place) -> Any:
    """What a place holds, or GONE."""
    try:
        return place.now()
    except Exception as error:  # whatever a user's own __getitem__ raises
        if raised_by_handler(error):
            raise
        return GONE
