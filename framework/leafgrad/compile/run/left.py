"""What a call leaves in containers outside, or in its result, where symbolic numbers and lists are to be real ones."""

from __future__ import annotations

import functools
import operator
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from leafgrad.batching.pytree import DICTS, containers, is_tuple, parts_of, with_parts
from leafgrad.compile.guard.environment import CONTAINERS, GONE, Place, class_of, held_in
from leafgrad.compile.ir.attributes import attribute_of
from leafgrad.compile.ir.keys import same
from leafgrad.compile.record.drawn import Drawer
from leafgrad.compile.record.growing import Append, GrowingList
from leafgrad.compile.record.kept import held_elsewhere
from leafgrad.compile.record.symbolic import holds, settled
from leafgrad.tensor.size import Size

ALL = object()  # a key: everything in a set, or all items of a dict, of which some keys are numbers
PARTIAL = object()  # a key: the arguments of functools.partial
END = object()  # a key: what is appended to a list
Contents = list[tuple[int, Any, list[int]]]


def contents(tree: Any) -> Contents:
    """What the lists and dicts in a pytree hold, as identities."""
    return [
        (id(part), [*part] if isinstance(part, dict) else None, [*map(id, parts_of(part))]) for part in containers(tree)
    ]


class Written(NamedTuple):
    """A number, a tuple with some, or a tensor that the call finds or leaves in a container; and what was before.

    Or the values that it appends to a list.
    """

    container: Any
    key: Any
    number: Any
    before: Any = None

    def put(self, value: Any) -> None:
        """Put a number there, or whatever has some."""
        if type(self.container) is types.CellType:
            self.container.cell_contents = value
        elif type(self.key) in (types.MemberDescriptorType, types.GetSetDescriptorType):
            self.key.__set__(self.container, value)
        elif self.key is PARTIAL:
            function, _, *rest = self.container.__reduce__()[2]
            vars(functools.partial)["__setstate__"](self.container, (function, value, *rest))
        elif isinstance(self.container, type):  # whose dict must not change behind its back
            type.__setattr__(self.container, self.key, value)
        elif self.key is not ALL:
            kind = type(self.container)
            kind = kind if kind in CONTAINERS else class_of(self.container)
            kind.__setitem__(self.container, self.key, value)
        elif isinstance(self.container, set):
            set.clear(self.container)
            set.update(self.container, value)
        else:
            kind = class_of(self.container)
            kind.clear(self.container)
            for key, item in value:
                kind.__setitem__(self.container, key, item)

    def step(self, value: Any) -> Callable[[], None]:
        """What does so, and may be called twice."""
        return Append(self.container, value) if self.key is END else functools.partial(self.put, value)

    def held(self) -> Any:
        """What is there now, or GONE."""
        try:
            if isinstance(self.container, (dict, type)):  # a default would be added
                held = self.container if isinstance(self.container, dict) else vars(self.container)
                return held.get(self.key, GONE)
            return self.container.cell_contents if type(self.container) is types.CellType else self.container[self.key]
        except (LookupError, ValueError):
            return GONE

    def is_at(self, place: Place) -> bool:
        """Whether this is that place."""
        cell = place.kind == "cell"
        return place.container is self.container and (cell or (place.kind == "item" and same(place.key, self.key)))


def settled_parts(tree: Any) -> Any:
    """A pytree with ordinary numbers; its lists and dicts stay the same objects."""
    for part in containers(tree):
        values = parts_of(part)
        plain = {id(value): new for value in values if (new := ordinary(value)) is not value}
        for _ in swapped(part, plain):
            pass
    return ordinary(tree)


def subtrees(trees: list[Any]) -> list[Any]:
    """The tuples, lists and dicts in pytrees, each once."""
    found: dict[int, Any] = {}
    waiting = list(trees)
    while waiting:
        tree = waiting.pop()
        if (type(tree) in (*DICTS, list) or is_tuple(tree)) and id(tree) not in found:
            found[id(tree)] = tree
            waiting += parts_of(tree)
    return list(found.values())


def settle_keys(trees: list[Any]) -> None:
    """Let dicts have ordinary numbers as keys, which the program is bound to since they were hashed."""
    for tree in trees:
        if isinstance(tree, dict) and any(ordinary(key) is not key for key in tree):
            Written(tree, ALL, None).put([(ordinary(key), part) for key, part in tree.items()])


def ordinary(result: Any) -> Any:
    """A result whose tuples have ordinary numbers and lists; its lists and dicts stay the same objects."""
    if isinstance(result, Size):
        return Size(map(settled, result)) if holds(result) else result
    if not isinstance(result, (tuple, frozenset)):
        return result.real if type(result) in (GrowingList, Drawer) else settled(result)
    made = remade(result, ordinary)
    for name, value in [*getattr(made, "__dict__", {}).items()]:
        vars(made)[name] = ordinary(value)
    return made


def remade(whole: Any, function: Callable[[Any], Any]) -> Any:
    """A tuple or frozenset with what a function makes of its parts; itself if these stay the same."""
    before = [*frozenset.__iter__(whole)] if isinstance(whole, frozenset) else parts_of(whole)
    parts = [*map(function, before)]
    if all(map(operator.is_, parts, before)):
        return whole
    if not isinstance(whole, frozenset):
        return with_parts(whole, parts)
    made = frozenset.__new__(type(whole), parts)
    if own := getattr(whole, "__dict__", None):
        vars(made).update(own)
    return made


def swapped(holder: Any, plain: dict[int, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Replace what a container holds by ``plain`` values, by id: where in which container, and what was there."""
    for slot, value in slots_of(holder):
        if id(value) in plain:
            slot.__set__(holder, plain[id(value)])
            yield holder, slot, value
    if isinstance(holder, functools.partial) and any(id(part) in plain for part in holder.args):
        before = holder.args
        Written(holder, PARTIAL, None).put(tuple([plain.get(id(part), part) for part in before]))
        yield holder, PARTIAL, before
    if isinstance(own := attribute_of(holder, "__dict__"), dict) and own is not holder:
        yield from swapped(own, plain)
    found: Any = ()
    if type(holder) is types.CellType:
        found = [(None, holder.cell_contents)]
    elif isinstance(holder, type):
        found = list(vars(holder).items())
    elif isinstance(holder, (list, deque)):
        found = list(enumerate(class_of(holder).__iter__(holder)))
    elif isinstance(holder, set):
        before = tuple(set.__iter__(holder))
        if any(id(part) in plain for part in before):
            Written(holder, ALL, None).put([plain.get(id(part), part) for part in before])
            yield holder, ALL, before
    elif isinstance(holder, dict):
        found = list(class_of(holder).items(holder))
        if any(id(key) in plain for key, _ in found):
            before, found = tuple(found), [(plain.get(id(key), key), value) for key, value in found]
            Written(holder, ALL, None).put(found)
            yield holder, ALL, before
    for key, value in found:
        if id(value) in plain:
            Written(holder, key, None).put(plain[id(value)])
            yield holder, key, value


def slots_of(holder: Any) -> list[tuple[Any, Any]]:
    """The ``__slots__`` of an object, or what functions and errors are given, as descriptors, with what they hold."""
    if isinstance(holder, BaseException):
        return [(vars(BaseException)["args"], holder.args)]
    if type(holder) is types.FunctionType:
        return [(types.FunctionType.__defaults__, holder.__defaults__)]
    members = [slot for base in type(holder).__mro__ if "__slots__" in vars(base) for slot in vars(base).values()]
    slots = [slot for slot in members if type(slot) is types.MemberDescriptorType]
    found = [(slot, held_in(slot, holder)) for slot in slots]
    return [(slot, value) for slot, value in found if value is not GONE]


def are_elsewhere(left: Sequence[Written], before: Sequence[Any]) -> bool:
    """Whether lists and dicts that are left are not all new ones, or something else holds them, too.

    Args:
        left: what was put into places.
        before: what was there.
    """
    made = [part for written in left for part in containers(written.number)]
    new = {*map(id, made)} - {id(part) for tree in before for part in containers(tree)}
    return bool(made) and (
        len(new) < len(made) or held_elsewhere(made, [*left, *subtrees([written.number for written in left])])
    )
