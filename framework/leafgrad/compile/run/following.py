"""Which numbers and tensors outside a compiled function follows, since they differ from call to call.

A number that was another one at the second call is not guarded but an input: an argument, an attribute, an item of a
dict or list, a variable of an enclosing function or module, and what ``item()`` reads; so are those that an optimizer
declares, such as its learning rate. The function is recorded with a SymbolicNumber in the place of each. What it leaves
there is an effect of its program.

A place that holds another tensor at the second call, such as the hidden state that a step leaves for the next one, is
an argument: its tensor may be any of that shape, and the one that the function puts there is a result.
"""

from __future__ import annotations

import functools
import gc
import operator
import sys
import types
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from leafgrad.batching.pytree import DICTS, containers, flatten, is_tuple
from leafgrad.compile.guard.environment import Environment, Place, is_tensors, now
from leafgrad.compile.guard.guards import Symbolic
from leafgrad.compile.record.guide import same
from leafgrad.compile.record.symbolic import NUMBERS, UNREAD, Numbers, SymbolicNumber, settled
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.watch import Codes, is_library, source_of
from leafgrad.compile.run.paths import paths_of, walk
from leafgrad.ops.node import Node
from leafgrad.tensor.tensor import Tensor

CONVERSIONS = frozenset("__float__ __int__ __index__ __complex__ __len__ __length_hint__ __hash__".split())


TENSOR = {Tensor}
TENSORS = 64  # whose places are followed
ALL = object()  # a key: everything in a set, or all items of a dict, of which some keys are numbers


@functools.cache
def plain(count: int) -> Any:
    """The structure of a call with so many arguments, none of which has parts."""
    return flatten(((None,) * count, {}))[1]


class Written(NamedTuple):
    """A number, a tuple with some, or a tensor that the call finds or leaves in a container; and what was before."""

    container: Any
    key: Any
    number: Any
    before: Any = None

    def put(self, value: Any) -> None:
        """Put a number there, or whatever has some."""
        if type(self.container) is types.CellType:
            self.container.cell_contents = value
        elif type(self.key) is types.MemberDescriptorType:
            self.key.__set__(self.container, value)
        elif self.key is ALL:
            self.container.clear()
            self.container.update(value)
        else:
            self.container[self.key] = value

    def held(self) -> Any:
        """What is there now; None if nothing."""
        try:
            if isinstance(self.container, dict):  # a default would be added
                return self.container.get(self.key)
            return self.container.cell_contents if type(self.container) is types.CellType else self.container[self.key]
        except (LookupError, ValueError):
            return None

    def is_at(self, place: Place) -> bool:
        """Whether this is that place."""
        cell = place.kind == "cell"
        return place.container is self.container and (cell or (place.kind == "item" and place.key == self.key))


def may_hold(place: Place) -> bool:
    """Whether a symbolic number may be put into a place: a plain container, of which nobody hears."""
    return place.kind == "cell" or (place.kind == "item" and type(place.container) in (*DICTS, list))


def is_number(value: Any) -> bool:
    """Whether a value is an int or float, or a tuple of some, in which a None may stand for one."""
    if type(value) is tuple:
        return not {*map(type, value)}.isdisjoint(NUMBERS) and {*map(type, value)} <= {*NUMBERS, types.NoneType}
    return type(value) in NUMBERS


def differs(before: Any, value: Any) -> bool:
    """Whether two values are numbers of one type, or tensors, or tuples of some, and not the same."""
    if is_tensors(before):
        return is_tensors(value) and value is not before
    return is_number(before) and type(value) is type(before) and not same(before, value)


class Following:
    """What a compiled function has found to differ from call to call.

    Attributes:
        paths: of arguments.
        places: of numbers outside.
        tensors: places of tensors, or of tuples of some.
        declared: of numbers that need not differ to be followed.
        items: whether what ``item()`` reads is followed; None if nobody knows whether that is of use.
        stopped: whether nothing is followed any more, since it was in vain.
    """

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.seen: dict[str, Any] = {}  # numbers among the arguments of the last call that was recorded
        self.places: list[Place] = []
        self.tensors: list[Place] = []
        self.declared: list[Place] = []
        self.items: bool | None = None
        self.stopped = False

    @classmethod
    def of(cls, tensors: list[Place]) -> Following:
        """One that follows these places, and no numbers."""
        found = cls()
        found.tensors, found.stopped = tensors, True
        return found

    def compare(self, calls: Sequence[Any], leaves: Sequence[Any], paths: Sequence[str]) -> bool:
        """Note the numbers that are not what they were at the last recorded call, or in closed ``calls``.

        Whether there are new ones, so that ``calls``, which are guarded by them, are of no more use.
        """
        count = self.count
        seen = dict(zip(paths, leaves, strict=True))
        self.paths |= {path for path, value in seen.items() if differs(self.seen.get(path), value)}
        self.seen = {path: value for path, value in seen.items() if type(value) in NUMBERS}
        for call in calls:
            self.changed([p for p in (*call.guards.figures, *call.guards.tensors) if differs(p.value, now(p))])
        return self.count > count and not self.stopped

    @property
    def count(self) -> int:
        """How many numbers are known to differ."""
        return len(self.paths) + len(self.places) + len(self.tensors)

    def changed(self, places: Sequence[Place]) -> None:
        """Numbers or tensors in places are changed by the function, or between its calls."""
        known = {p.mark for p in (*self.places, *self.declared, *self.tensors)}
        for p in places:
            if may_hold(p) and p.mark not in known:
                known.add(p.mark)
                if not is_tensors(p.value):
                    self.places.append(p)
                elif len(self.tensors) < TENSORS:
                    self.tensors.append(p)

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """What a call is given, arguments and what the places of tensors hold now: flat, and the structure of that."""
        if not kwargs and set(map(type, args)) <= TENSOR:  # as mostly
            leaves, structure = list(args), plain(len(args))
        else:
            leaves, structure = flatten((args, kwargs))
        if not self.tensors:
            return leaves, structure
        held, shape = flatten([now(place) for place in self.tensors])
        return [*leaves, *held], (structure, shape)

    def names(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """What a reader calls each of those leaves."""
        names = paths_of(function, args, kwargs)
        for place in self.tensors:
            walk(now(place), place.path, names)
        return names

    def learn(self, error: Unclosed, recorder: Any, watch: Any, followed: Followed | None) -> bool:
        """A call was not closed: what the next one is to follow, and what not. Whether it will follow more."""
        count = self.count
        if isinstance(error, Changes):
            self.changed(error.places)
        read = {what for what, _ in recorder.tears}
        if read and read <= {"item()", "bool()"} and not watch.open and self.items is None:
            self.items = True
        elif read and self.items:
            self.items = False
        elif followed is not None and followed.lost is not None and self.count == count:
            self.stopped = True
        return self.count > count and not self.stopped

    def begin(
        self,
        recorder: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        paths: Sequence[str],
        codes: Codes,
        environment: Environment,
    ) -> Followed | None:
        """Follow them through the call that ``recorder`` is about to record; None if nothing is to be."""
        if self.stopped or asks_types(codes):
            return None if not self.tensors else Followed(Following.of(self.tensors), recorder, args, kwargs, paths)
        read = {(id(p.container), p.kind, p.key): p for p in environment.places if may_hold(p)}
        self.places = [read[at] for p in self.places if (at := (id(p.container), p.kind, p.key)) in read]
        self.declared = [read[at] for p in self.declared if (at := (id(p.container), p.kind, p.key)) in read]
        return Followed(self, recorder, args, kwargs, paths)


def asks_types(codes: Codes) -> bool:
    """Whether code of the user may see, or show to C, that a symbolic number is not of the type that it says."""
    return any(
        ("type" in code.co_names or code.co_name in CONVERSIONS) and not is_library(source_of(code, scope))
        for code, scope in codes
    )


class Followed:
    """The numbers that are followed through one recorded call.

    Attributes:
        args, kwargs: the arguments, with symbolic numbers.
        symbolic: what guards are to know of them.
        written: what the call leaves behind in containers, once it is over.
        replaced: the same of tensors.
        sought: whether numbers are followed that were found to differ.
    """

    def __init__(
        self, following: Following, recorder: Any, args: tuple[Any, ...], kwargs: dict[str, Any], paths: Sequence[str]
    ) -> None:
        self.following = following
        self.sought = bool(following.paths or following.places or following.items)
        self.numbers = Numbers(recorder, follows=bool(following.items))
        recorder.numbers = None if following.stopped else self.numbers
        self.numbers.declare = self.declare
        self.symbolic = Symbolic(self.numbers.relations, self.numbers.outcomes)
        counts = [len(flatten(a)[0]) for a in (*args, *kwargs.values())]
        given: list[Any] = []
        for i, value in zip(accumulate(counts, initial=0), (*args, *kwargs.values()), strict=False):
            follows = type(value) in NUMBERS and paths[i] in following.paths
            given.append(self.numbers.given(value, f"a{i}", paths[i]) if follows else value)
            self.symbolic.arguments |= {i} if follows else set()
        self.args, self.kwargs = tuple(given[: len(args)]), dict(zip(kwargs, given[len(args) :], strict=True))
        self.spots: list[Written] = []
        self.kept: list[Written] = []
        self.replaced: list[Written] = []
        self.written: list[Written] = []
        self.lost: str | None = None  # why no program can leave what the call has left

    def __enter__(self) -> None:
        """Put the symbolic numbers where they are read."""
        for place in (*self.following.places, *self.following.declared):
            self.follow(place)
        for place in self.following.tensors:
            self.kept.append(Written(place.container, place.key, None, now(place)))

    def follow(self, place: Place) -> None:
        """Put a symbolic number in a place, if a number is there."""
        value, name = now(place), f"p{len(self.spots)}"
        if is_number(value):
            self.spots.append(Written(place.container, place.key, self.numbers.given(value, name, place.path), value))
            self.spots[-1].put(self.spots[-1].number)
            self.symbolic.places[name] = place

    def declare(self, numbers: dict[str, Any]) -> None:
        """Follow the numbers in a dict from here on, and from the beginning of the next call."""
        for key, value in numbers.items():
            if is_number(value) and not any(s.container is numbers and s.key == key for s in self.spots):
                place = Place(key, "item", numbers, key, value)
                self.following.declared.append(place)
                self.follow(place)

    def __exit__(self, *_: object) -> None:
        """Take them back, and see what the call has left in their places."""
        for spot in self.spots:
            left = spot.held()
            parts = left if type(left) is tuple else (left,)
            if {*map(type, parts)} <= {*NUMBERS, types.NoneType, SymbolicNumber} and left is not None:
                spot.put(spot.before)
                if left is not spot.number:
                    self.written.append(spot._replace(number=left))
        for kept in self.kept:
            tensor = kept.held()
            if tensor is not kept.before:
                if is_tensors(tensor) and is_tensors(kept.before):
                    kept.put(kept.before)
                    self.replaced.append(kept._replace(number=tensor))
                else:
                    self.lost = "it puts something else in the place of a tensor"

    def take_back(self, results: list[Any]) -> None:
        """See what the call has left elsewhere. Its ``results`` keep their own."""
        alive = [number for number in [ref() for ref in self.numbers.made] if number is not None]
        trees = subtrees([*results, *[written.number for written in (*self.spots, *self.written)]])
        parts = [number._parts for number in alive]
        tuples = [tree for tree in trees if type(tree) is tuple]
        holders = [alive, trees, parts, tuples, results, self.args, self.kwargs]
        holders += [*self.spots, *self.written, *trees, *parts]
        if held_elsewhere([*alive, *tuples], holders):
            own = {id(holder) for holder in holders if not isinstance(holder, tuple)}
            own |= {id(part) for part in (self.spots, self.written, holders, self, vars(self))}
            plain = {id(n): n._kind() if n._value is UNREAD else n._value for n in alive}
            self.replace(alive, plain, own)

    def replace(self, held: list[Any], plain: dict[int, Any], own: set[int]) -> None:
        """Put ``plain`` values, by id of what they replace, where something holds ``held``; in tuples, too."""
        tuples: list[Any] = []
        own |= {id(held), id(tuples), id(plain)}
        for holder in gc.get_referrers(*held) if held else ():
            if id(holder) in own or type(holder) is SymbolicNumber or isinstance(holder, (Node, types.FrameType)):
                continue
            if isinstance(holder, tuple):
                parts: list[Any] = [plain.get(id(part), part) for part in holder]
                plain[id(holder)] = type(holder)(*parts) if hasattr(holder, "_fields") else tuple(parts)
                tuples.append(holder)
                continue
            found = [Written(*slot) for slot in replaced(holder, plain)]
            self.written += found
            if any(type(w.number) is not SymbolicNumber for w in found):
                self.lost = "it keeps a number that changes in a tuple, a set or a key"
            elif not found:
                self.lost = f"it keeps a number that changes in a {type(holder).__name__}"
        if tuples:
            self.replace(tuples, plain, own)

    def check(self, environment: Environment) -> None:
        """Unclosed if a number was left where no program can put it."""
        if self.lost is not None:
            raise Unclosed(self.lost)
        known = {id(place.container) for place in environment.places} | environment.seen.keys()
        strange = next((w.container for w in self.written if id(w.container) not in known), None)
        if strange is not None:
            raise Unclosed(f"it keeps a number that changes in a {type(strange).__name__}")
        free = [w for w in self.written if not any(w.is_at(place) for place in self.symbolic.places.values())]
        guarded = [place for place in environment.places if any(w.is_at(place) for w in free)]
        if guarded:
            raise Changes(guarded)

    def settle(self, result: Any) -> Any:
        """The result of a call that no program repeats, and what it leaves behind, as ordinary numbers."""
        self.numbers.over = True
        self.numbers.recorder.strict = False  # what is read now, no code of the user has asked for
        for written in sorted(self.written, key=lambda w: w.key is not ALL):  # single items come after the whole
            written.put(ordinary(written.number))
        for kept in self.replaced:
            kept.put(kept.number)
        numbers = [n for n in flatten(result)[0] if type(n) is SymbolicNumber]
        plain = {id(n): settled(n) for n in numbers}
        for part in containers(result):
            for _ in replaced(part, plain):
                pass
        return ordinary(result)


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


def parts_of(tree: Any) -> list[Any]:
    """What a tuple, list or dict holds."""
    return [*tree.values()] if isinstance(tree, dict) else [*tree]


def held_elsewhere(held: list[Any], holders: list[Any]) -> bool:
    """Whether anything but ``held``, which has each once, and ``holders`` holds one of these objects.

    References are counted, since to ask who holds an object is to look through all objects.
    """
    once = {id(holder): i for i, holder in enumerate(holders)}.values()
    known = Counter(map(id, holders))
    for i in once:
        known.update(map(id, parts_of(holders[i])))
    probe = [object()]
    alone = sys.getrefcount(probe[0])
    return any(sys.getrefcount(held[i]) > alone + known[id(held[i])] for i in range(len(held)))


def ordinary(result: Any) -> Any:
    """A result whose tuples have ordinary numbers; its lists and dicts stay the same objects."""
    if not is_tuple(result):
        return settled(result)
    parts = [ordinary(part) for part in result]
    if all(map(operator.is_, parts, result)):
        return result
    return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)


class Unfollowed(Exception):
    """The Python fails, or may go another way, by a symbolic number; nothing has been done."""


class Changes(Unclosed):
    """The call changes numbers or tensors in places that are guarded."""

    def __init__(self, places: Sequence[Place], what: str | None = None) -> None:
        super().__init__(what or f"it changes {places[0].path}")
        self.places = places


def replaced(holder: Any, plain: dict[int, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Replace what a container holds by ``plain`` values, by id: where in which container, and what was there."""
    if type(holder) is types.CellType:
        found: Any = [(None, holder.cell_contents)]
    elif isinstance(holder, (list, deque)):
        found = list(enumerate(holder))
    elif isinstance(holder, set):
        before = tuple(holder)
        if any(id(part) in plain for part in before):
            Written(holder, ALL, None).put([plain.get(id(part), part) for part in before])
            yield holder, ALL, before
        return
    else:
        for slot, value in slots_of(holder):
            if id(value) in plain:
                slot.__set__(holder, plain[id(value)])
                yield holder, slot, value
        holder = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
        found = list(holder.items()) if isinstance(holder, dict) else ()
        if any(id(key) in plain for key, _ in found):
            before, found = tuple(found), [(plain.get(id(key), key), value) for key, value in found]
            Written(holder, ALL, None).put(found)
            yield holder, ALL, before
    for key, value in found:
        if id(value) in plain:
            Written(holder, key, None).put(plain[id(value)])
            yield holder, key, value


def slots_of(holder: Any) -> list[tuple[Any, Any]]:
    """The ``__slots__`` of an object, as descriptors, with what they hold."""
    members = [slot for base in type(holder).__mro__ if "__slots__" in vars(base) for slot in vars(base).values()]
    slots = [slot for slot in members if type(slot) is types.MemberDescriptorType]
    return [(slot, slot.__get__(holder)) for slot in slots if hasattr(holder, slot.__name__)]
