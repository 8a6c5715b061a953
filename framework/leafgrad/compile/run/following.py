"""Which numbers and tensors outside a compiled function follows, since they differ from call to call.

A number that was another one at the second call is not guarded but an input: an argument, an attribute, an item of a
dict or list, a variable of an enclosing function or module, and what ``item()`` reads; so are those that an optimizer
declares, such as its learning rate. The function is recorded with a SymbolicNumber in the place of each. What it leaves
there is an effect of its program.

A place that holds another tensor at the second call, such as the hidden state that a step leaves for the next one, is
an argument: its tensor may be any of that shape, and the one that the function puts there is a result. So is what the
function appends to a list that it does not read.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Any

from leafgrad.batching.pytree import containers, flatten
from leafgrad.compile.guard import known
from leafgrad.compile.guard.environment import GUARDS, Environment, Given, Place, is_state, is_tensors, now
from leafgrad.compile.guard.guards import Symbolic
from leafgrad.compile.ir.draws import States, restore, states
from leafgrad.compile.record.drawn import Draw, Drawer, Draws, Source, draws_numbers, source_of_draws
from leafgrad.compile.record.growing import READING, GrowingList
from leafgrad.compile.record.guide import same
from leafgrad.compile.record.symbolic import NUMBERS, UNREAD, Numbers, SymbolicNumber
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.watch import Codes
from leafgrad.compile.run.left import (
    ALL,
    END,
    Written,
    held_elsewhere,
    ordinary,
    parts_of,
    settled_parts,
    subtrees,
    swapped,
)
from leafgrad.compile.run.paths import paths_of, walk
from leafgrad.ops.node import Node
from leafgrad.tensor.tensor import Tensor

CONVERSIONS = frozenset("__float__ __int__ __index__ __complex__ __len__ __length_hint__ __hash__".split())
TENSOR = {Tensor}
TENSORS = 64  # whose places are followed
ASKING = frozenset({"type", "__class__"})
SLOTS = frozenset({"getattr", *(name for name in READING if name.startswith("__"))})


@functools.cache
def plain(count: int) -> Any:
    """The structure of a call with so many arguments, none of which has parts."""
    return flatten(((None,) * count, {}))[1]


def may_hold(place: Place) -> bool:
    """Whether a symbolic number may be put into a place: a plain container, of which nobody hears."""
    return place.kind == "cell" or (place.kind == "item" and type(place.container) in (*known.DICTS, list))


def is_number(value: Any) -> bool:
    """Whether a value is an int or float, or a tuple of some, in which a None may stand for one."""
    if type(value) is tuple:
        return not {*map(type, value)}.isdisjoint(NUMBERS) and {*map(type, value)} <= {*NUMBERS, types.NoneType}
    return type(value) in NUMBERS


def differs(before: Any, value: Any) -> bool:
    """Whether two values are numbers of one type, or tensors, or such in containers, and differ; None may be one."""
    if is_tensors(before) or is_tensors(value):
        return is_state(before) and is_state(value) and value is not before
    return is_number(before) and type(value) is type(before) and not same(before, value)


class Unfollowed(Exception):
    """The Python fails, or may go another way, by a symbolic number; nothing has been done."""


class Changes(Unclosed):
    """The call changes numbers or tensors in places that are guarded."""

    def __init__(self, places: Sequence[Place], what: str | None = None) -> None:
        super().__init__(what or f"it changes {places[0].path}")
        self.places = places


class Following:
    """What a compiled function has found to differ from call to call.

    Attributes:
        paths: of arguments.
        places: of numbers outside.
        tensors: places of tensors, or of tuples, lists or dicts of some; some may be None as yet.
        lists: places of lists that are appended to.
        declared: of numbers that need not differ to be followed.
        items: whether what ``item()`` reads is followed; None if nobody knows whether that is of use.
        draws: what calls draw from Python's generators; None if nobody knows.
        start: those generators, with their states before the last recorded call.
        stopped: whether nothing is followed any more, since it was in vain.
    """

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.seen: dict[str, Any] = {}  # numbers among the arguments of the last call that was recorded
        self.places: list[Place] = []
        self.tensors: list[Place] = []
        self.lists: list[Place] = []
        self.unlisted: set[Any] = set()  # marks of places whose lists are read, too
        self.alone: dict[Any, list[Any]] = {}  # lists that nothing but their places, by mark, held when that was asked
        self.declared: list[Place] = []
        self.items: bool | None = None
        self.draws: list[Draw] | None = None
        self.start: States = []
        self.stopped = False

    def compare(self, calls: Sequence[Any], leaves: Sequence[Any], paths: Sequence[str]) -> bool:
        """Note the numbers that are not what they were at the last recorded call, or in closed ``calls``.

        Whether there are new ones, so that ``calls``, which are guarded by them, are of no more use.
        """
        count = self.count
        given = len(paths) - len(self.draws or ())
        seen = dict(zip(paths[:given], leaves[:given], strict=True))
        self.paths |= {path for path, value in seen.items() if differs(self.seen.get(path), value)}
        self.seen = {path: value for path, value in seen.items() if type(value) in NUMBERS}
        for call in calls:
            self.changed([p for p in (*call.guards.figures, *call.guards.tensors) if differs(p.value, now(p))])
        return self.count > count and not self.stopped

    @property
    def count(self) -> int:
        """How many numbers are known to differ."""
        return sum(map(len, (self.paths, self.places, self.tensors, self.lists, self.draws or ())))

    def changed(self, places: Sequence[Place]) -> None:
        """Numbers or tensors in places are changed by the function, or between its calls."""
        met = {p.mark for p in (*self.places, *self.declared, *self.tensors, *self.lists)} | self.unlisted
        for p in places:
            if may_hold(p) and p.mark not in met:
                met.add(p.mark)
                if type(p.value) is list and now(p) is p.value:
                    self.lists.append(p)
                elif not is_state(p.value):
                    self.places.append(p)
                elif len(self.tensors) < TENSORS:
                    self.tensors.append(p)

    def given(self, codes: Codes, passed: Collection[int]) -> Given:
        """The places outside that are arguments of a call of these codes, or hold lists that it appends to.

        No list that is reached by another way, too, or ``passed``, by id, as an argument: whoever goes that way is not
        to miss what is appended.
        """
        tensors, lists = self.tensors[:], list[Place]()
        if self.stopped or not self.lists or asks_types(codes) or calls_slots(codes):
            return Given(tensors)
        for place in self.lists:
            held = now(place)
            if type(held) is not list or id(held) in passed:
                continue
            if self.alone.get(place.mark) is not held:
                if is_shared(held, place):
                    self.unlisted.add(place.mark)
                self.alone[place.mark] = held
            if place.mark not in self.unlisted:
                lists.append(place)
        return Given(tensors, lists)

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """What a call is given, arguments, what places of tensors hold, and what it draws: flat, and its structure."""
        if not kwargs and set(map(type, args)) <= TENSOR:  # as mostly
            leaves, structure = list(args), plain(len(args))
        else:
            leaves, structure = flatten((args, kwargs))
        if self.tensors:
            held, shape = flatten([now(place) for place in self.tensors])
            leaves, structure = [*leaves, *held], (structure, shape)
        if draws := self.draws:
            leaves, structure = [*leaves, *[draw() for draw in draws]], (structure, len(draws))
        return leaves, structure

    @property
    def sources(self) -> list[Source]:
        """The generators that a call draws from."""
        return [*{draw.source for draw in self.draws or ()}]

    def rewind(self) -> None:
        """What the last recorded call has drawn is drawn again."""
        restore(self.start)

    def names(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """What a reader calls each of those leaves."""
        names = paths_of(function, args, kwargs)
        for place in self.tensors:
            walk(now(place), place.path, names)
        return [*names, *map(str, self.draws or ())]

    def learn(self, error: Unclosed, recorder: Any, watch: Any, followed: Followed | None) -> bool:
        """A call was not closed: what the next one is to follow, and what not. Whether it will follow more."""
        count = self.count
        if isinstance(error, Changes):
            self.changed(error.places)
        drawing = None if followed is None else followed.drawing
        if drawing is not None and drawing.lost is not None:
            self.draws = drawing.made if drawing.expected is None and not drawing.strange else []
        read = {what for what, _ in recorder.tears}
        if read and read <= {"item()", "bool()"} and not watch.open and self.items is None:
            self.items = True
        elif read and self.items:
            self.items = False
        elif followed is not None and followed.read:
            self.unlisted |= {p.mark for p in followed.read}
            self.lists = [p for p in self.lists if p.mark not in self.unlisted]
            self.tensors = [p for p in self.tensors if p.mark not in self.unlisted]
        elif followed is not None and followed.lost is not None and self.count == count:
            self.stopped = True
        return self.count > count and not self.stopped

    def begin(self, recorder: Any, args: tuple[Any, ...], kwargs: dict[str, Any], attempt: Any) -> Followed | None:
        """Follow them through the call that is about to be recorded, to be closed if the attempt succeeds.

        None if nothing is to be followed.
        """
        given, environment = attempt.places, attempt.before
        drawing = [p for p in environment.places if draws_numbers(p.value)]
        self.start = states([*{source_of_draws(p.value) for p in drawing}])
        if environment.open:
            given = given._replace(lists=())
        if self.stopped or asks_types(attempt.codes):
            self.draws = []
            if not (given.tensors or given.lists):
                return None
            none = Following()
            none.stopped = True
            return Followed(none, recorder, args, kwargs, attempt, given)
        read = {(id(p.container), p.kind, p.key): p for p in environment.places if may_hold(p)}
        self.places = [read[at] for p in self.places if (at := (id(p.container), p.kind, p.key)) in read]
        self.declared = [read[at] for p in self.declared if (at := (id(p.container), p.kind, p.key)) in read]
        followed = Followed(self, recorder, args, kwargs, attempt, given)
        if self.draws != []:
            followed.draw([p for p in drawing if may_hold(p)])
        return followed


Contents = list[tuple[int, Any, list[int]]]


def contents(tree: Any) -> Contents:
    """What the lists and dicts in a pytree hold, as identities."""
    return [
        (id(part), [*part] if isinstance(part, dict) else None, [*map(id, parts_of(part))]) for part in containers(tree)
    ]


def is_shared(held: list[Any], place: Place) -> bool:
    """Whether something holds a list but the place that it was found in."""
    others = [r for r in gc.get_referrers(held) if r is not place.container and not isinstance(r, (Place, Written))]
    return any(type(r) is not dict or r.get("__name__") != GUARDS for r in others)


def asks_types(codes: Codes) -> bool:
    """Whether code of the user may see, or show to C, that a symbolic number is not of the type that it says."""
    return any(code.co_name in CONVERSIONS or not ASKING.isdisjoint(code.co_names) for code in codes.of_users())


def calls_slots(codes: Codes) -> bool:
    """Whether code of the user may call ``list.__len__`` or the like, which no subclass of list hears of."""
    return any(not SLOTS.isdisjoint(code.co_names) for code in codes.of_users())


class Followed:
    """The numbers that are followed through one recorded call.

    Attributes:
        args, kwargs: the arguments, with symbolic numbers.
        symbolic: what guards are to know of them.
        written: what the call leaves behind in containers, once it is over.
        replaced: the same of tensors, and of what it appends.
        read: places of lists that it does more with than to append.
        sought: whether numbers are followed that were found to differ.
    """

    def __init__(
        self,
        following: Following,
        recorder: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        attempt: Any,
        outside: Given,
    ) -> None:
        self.following, self.outside, self.leaves, paths = following, outside, attempt.leaves, attempt.paths
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
        self.kept: list[tuple[Place, Written, Contents]] = []
        self.replaced: list[Written] = []
        self.written: list[Written] = []
        self.growing: list[tuple[Place, Written, GrowingList]] = []
        self.drawing: Draws | None = None
        self.drawers: list[tuple[Written, Drawer]] = []
        self.read: list[Place] = []
        self.lost: str | None = None  # why no program can leave what the call has left

    def draw(self, places: Sequence[Place]) -> None:
        """Follow what functions in these places draw."""
        expected = self.following.draws
        first = len(self.leaves) - len(expected or ())
        drawn = None if expected is None else [(d, self.leaves[i], f"a{i}") for i, d in enumerate(expected, first)]
        self.drawing = Draws(self.numbers, drawn)
        self.symbolic.arguments |= {*range(first, len(self.leaves))}
        spots = [Written(p.container, p.key, None, p.value) for p in places]
        self.drawers = [(spot, Drawer(spot.before, self.drawing)) for spot in spots]

    def __enter__(self) -> None:
        """Put the symbolic numbers where they are read."""
        for spot, drawer in self.drawers:
            spot.put(drawer)
        for place in (*self.following.places, *self.following.declared):
            self.follow(place)
        for place in self.outside.tensors:
            held = now(place)
            self.kept.append((place, Written(place.container, place.key, None, held), contents(held)))
        for place in self.outside.lists:
            held = now(place)
            spot, growing = Written(place.container, place.key, None, held), GrowingList(held)
            self.growing.append((place, spot, growing))
            spot.put(growing)

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
        for spot, drawer in self.drawers:
            if spot.held() is drawer:
                spot.put(spot.before)
        for place, kept, held in self.kept:
            tensor = kept.held()
            if contents(kept.before) != held:
                self.leave(place, f"it changes {place.path} in place")
            if tensor is not kept.before:
                if is_state(tensor) and is_state(kept.before):
                    kept.put(kept.before)
                    self.replaced.append(kept._replace(number=tensor))
                else:
                    self.lost = "it puts something else in the place of a tensor"
        for place, spot, growing in self.growing:
            whole = spot.held() is growing
            if whole:
                spot.put(spot.before)
            appended = growing.take()
            if appended:
                self.replaced.append(Written(spot.before, END, appended))
            if growing.read or appended is None or not whole:
                self.leave(place)

    def leave(self, place: Place, why: str = "") -> None:
        """More is done with a list than to append to it, or with a container of tensors than to replace it."""
        self.read.append(place)
        self.lost = why or f"it appends to the list {place.path}, and reads it"

    def take_back(self, results: list[Any], codes: Codes) -> None:
        """See what a call of these codes has left elsewhere. Its ``results`` keep their own."""
        self.check_containers()
        alive = [number for number in [ref() for ref in self.numbers.made] if number is not None]
        left = [written.number for written in (*self.spots, *self.written, *self.replaced)]
        trees = subtrees([*results, *left])
        parts = [number._parts for number in alive]
        tuples = [tree for tree in trees if type(tree) is tuple]
        holders = [alive, trees, parts, tuples, results, self.args, self.kwargs]
        holders += [left, *self.spots, *self.written, *self.replaced, *trees, *parts]
        if held_elsewhere([*alive, *tuples], holders):
            own = {id(holder) for holder in holders if not isinstance(holder, tuple)}
            own |= {id(part) for part in (self.spots, self.written, self.replaced, holders, self, vars(self))}
            plain = {id(n): float("nan") if n._value is UNREAD else n._value for n in alive}
            self.replace(alive, plain, own)
        for place, spot, growing in self.growing:
            if self.give_up(growing, spot.before) or calls_slots(codes):
                self.leave(place)
        for spot, drawer in self.drawers:
            if self.give_up(drawer, spot.before):
                self.lost = "it keeps a function that draws random numbers"

    def check_containers(self) -> None:
        """A list or dict of tensors that is left in a place must be a new one, and nowhere else."""
        left = [w for w in self.replaced if w.key is not END]
        made = [part for w in left for part in containers(w.number)]
        before = {id(part) for _, kept, _ in self.kept for part in containers(kept.before)}
        ids = {*map(id, made)}
        if not made or (
            len(ids) == len(made)
            and ids.isdisjoint(before)
            and not held_elsewhere(made, [*left, *subtrees([w.number for w in left])])
        ):
            return
        for place, _, _ in self.kept:
            if any(w.is_at(place) and containers(w.number) for w in left):
                self.leave(place, f"it puts a list or dict into {place.path} that is elsewhere, too")

    def give_up(self, standing: Any, real: Any) -> bool:
        """Put the real thing wherever something holds what stood for it; whether something did."""
        probe = [(object(),)]
        kept = sys.getrefcount(standing) > sys.getrefcount(probe[0][0]) + 2  # two variables that hold it
        if kept:
            self.replace(
                [standing], {id(standing): real}, {id(self.growing), id(self.drawers), id(self), id(vars(self))}
            )
        return kept

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
            found = [Written(*slot) for slot in swapped(holder, plain)]
            self.written += found
            if any(type(w.number) is not SymbolicNumber for w in found):
                self.lost = "it keeps a number that changes in a tuple, a set or a key"
            elif not found:
                self.lost = f"it keeps a number that changes in a {type(holder).__name__}"
        if tuples:
            self.replace(tuples, plain, own)

    def check(self, environment: Environment) -> None:
        """Unclosed if a number was left where no program can put it."""
        lost = self.lost or (self.drawing and self.drawing.lost)
        if lost:
            raise Unclosed(lost)
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
            kept.step(settled_parts(kept.number))()
        return settled_parts(result)
