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
from collections.abc import Collection, Sequence
from typing import Any

from leafgrad.batching.pytree import containers, flatten
from leafgrad.compile.guard import known
from leafgrad.compile.guard.environment import GUARDS, GivenPlaces, Place, is_state, is_tensors, now
from leafgrad.compile.ir.attributes import attribute_of
from leafgrad.compile.ir.draws import States, restore, states
from leafgrad.compile.ir.keys import same
from leafgrad.compile.record.drawn import Draw, Source, source_of_draws
from leafgrad.compile.record.symbolic import NUMBERS, is_number
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.variables import referrers
from leafgrad.compile.record.watch import Codes
from leafgrad.compile.run.followed import Followed
from leafgrad.compile.run.left import Written
from leafgrad.compile.run.paths import paths_of, walk
from leafgrad.compile.run.unfollowed import Changes, NewCode, asks_types, calls_slots
from leafgrad.tensor.tensor import Tensor

TENSOR = {Tensor}
TENSORS = 64  # whose places are followed


@functools.cache
def plain(count: int) -> Any:
    """The structure of a call with so many arguments, none of which has parts."""
    return flatten(((None,) * count, {}))[1]


def may_hold(place: Place) -> bool:
    """Whether a symbolic number may be put into a place: a plain container, of which nobody hears."""
    return place.kind == "cell" or (place.kind == "item" and type(place.container) in (*known.DICTS, list))


def differs(before: Any, value: Any) -> bool:
    """Whether two values are numbers of one type, or tensors, or such in containers, and differ; None may be one."""
    if is_tensors(before) or is_tensors(value):
        return is_state(before) and is_state(value) and value is not before
    return is_number(before) and type(value) is type(before) and not same(before, value)


class Following:
    """What a compiled function has found to differ from call to call.

    Attributes:
        paths: of arguments.
        lengths: of tensors among the arguments, dimensions that came in several sizes.
        of_one_length: whether that was in vain, since programs were for one length only.
        places: of numbers outside.
        tensors: places of tensors, or of tuples, lists or dicts of some; some may be None as yet.
        lists: places of lists that are appended to.
        declared: of numbers that need not differ to be followed.
        items: whether what ``item()`` reads is followed; None if nobody knows whether that is of use.
        draws: what calls draw from Python's generators; None if nobody knows.
        start: those generators, with their states before the last recorded call.
        stopped: whether nothing is followed any more, since it was in vain.
        shared: whether that is so since several threads call.
        outside: containers from outside, by id, of which code may ask whether they are among the arguments.
        by_identity: whether code may ask which of those that it is given are one.
        pauses: whether the last recorded call has changed a set, of which nobody can say what it pops next.
    """

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.seen: dict[str, Any] = {}  # numbers among the arguments of the last call that was recorded
        self.shapes: dict[str, tuple[int, ...]] = {}  # of tensors among them
        self.lengths: dict[str, tuple[int, ...]] = {}
        self.of_one_length = False
        self.places: list[Place] = []
        self.tensors: list[Place] = []
        self.lists: list[Place] = []
        self.unlisted: set[Any] = set()  # marks of places whose lists are read, too
        self.alone: dict[Any, list[Any]] = {}  # lists that nothing but their places, by mark, held when that was asked
        self.declared: list[Place] = []
        self.items: bool | None = None
        self.draws: list[Draw] | None = None
        self.start: States = []
        self.stopped = self.shared = False
        self.outside: dict[int, Any] = {}
        self.by_identity = self.pauses = False

    def stop(self) -> None:
        """Several threads call: others must see no symbolic number, wherever the function puts it."""
        self.stopped = self.shared = True
        self.places, self.declared, self.tensors, self.lists, self.draws = [], [], [], [], []

    def compare(self, calls: Sequence[Any], leaves: Sequence[Any], paths: Sequence[str]) -> bool:
        """Note the numbers that are not what they were at the last recorded call, or in closed ``calls``.

        Whether there are new ones, so that ``calls``, which are guarded by them, are of no more use.
        """
        count = self.count
        given = [*zip(paths, leaves, strict=True)][: len(paths) - len(self.draws or ())]
        seen = {path: value for path, value in given if type(value) in NUMBERS}
        self.paths |= {path for path, value in seen.items() if differs(self.seen.get(path), value)}
        self.seen = seen
        shapes = {path: t._data.shape for path, t in given if type(t) is Tensor}
        for path, shape in shapes.items() if not self.of_one_length else ():
            before, known = self.shapes.get(path, ()), self.lengths.get(path, ())
            if len(before) == len(shape) and (before != shape or known):
                self.lengths[path] = tuple([d for d, n in enumerate(shape) if n != before[d] or d in known])
        self.shapes = shapes
        for call in calls:
            self.changed([p for p in call.guards.figures if differs(p.value, now(p))])
        return self.count > count and not self.stopped

    @property
    def count(self) -> int:
        """How many numbers are known to differ."""
        return sum(map(len, (self.paths, self.places, self.tensors, self.lists, self.draws or ())))

    @property
    def taught(self) -> bool:
        """Whether calls have told what to follow, or that it is in vain."""
        known = self.items is not None or self.draws is not None
        return bool(known or self.count or self.stopped or self.unlisted)

    def changed(self, places: Sequence[Place]) -> None:
        """Numbers or tensors in places are changed by the function, or between its calls."""
        met = {p.mark for p in (*self.places, *self.declared, *self.tensors, *self.lists)} | self.unlisted
        for p in places if not self.shared else ():
            if may_hold(p) and p.mark not in met:
                met.add(p.mark)
                if type(p.value) is list and now(p) is p.value:
                    self.lists.append(p)
                elif not is_state(p.value):
                    self.places.append(p)
                elif len(self.tensors) < TENSORS:
                    self.tensors.append(p)

    def given(self, codes: Codes, passed: Collection[int]) -> GivenPlaces:
        """The places outside that are arguments of a call of these codes, or hold lists that it appends to.

        No list that is reached by another way, too, or ``passed``, by id, as an argument: whoever goes that way is not
        to miss what is appended.
        """
        tensors, lists = self.tensors[:], list[Place]()
        if self.shared:
            return GivenPlaces()
        if self.stopped or not self.lists or asks_types(codes) or calls_slots(codes):
            return GivenPlaces(tensors)
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
        return GivenPlaces(tensors, lists)

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """What a call is given, arguments, what places of tensors hold, and what it draws: flat, and its structure."""
        identities = None
        if not kwargs and set(map(type, args)) <= TENSOR:  # as mostly
            leaves, structure = list(args), plain(len(args))
        else:
            leaves, structure = flatten((args, kwargs))
            identities = self.identities(args, kwargs)
        if self.tensors:
            held, shape = flatten([now(place) for place in self.tensors])
            leaves, structure = [*leaves, *held], (structure, shape)
        if draws := self.draws:
            leaves, structure = [*leaves, *[draw() for draw in draws]], (structure, len(draws))
        return leaves, (structure, identities)

    def identities(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int] | None:
        """Which of the lists and dicts of arguments are one, or one from outside that code may ask for."""
        kinds, known = tuple if self.by_identity else (), self.outside
        given = [id(part) for tree in (*args, *kwargs.values()) for part in containers(tree, kinds)]
        return [key if key in known else given.index(key) for key in given] or None

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

    def learn(self, error: Unclosed, attempt: Any) -> bool:
        """A call was not closed: what the next one is to follow, and what not. Whether it will follow more."""
        count, followed = self.count, attempt.followed
        self.pauses = any(place.kind == "all" for place in attempt.changed)
        if isinstance(error, Changes):
            self.changed(error.places)
        if isinstance(error, NewCode):
            return True
        drawing = None if followed is None or followed.ended else followed.drawing
        if drawing is not None and drawing.lost is not None:
            new = drawing.expected is None or drawing.moved
            self.draws = drawing.made if new and not drawing.strange else []
        read = {what for what, _ in attempt.recorder.tears}
        if read and self.items is None and {"item()", "bool()"}.issuperset(read) and not attempt.watch.open:
            self.items = True
        elif read and self.items:
            self.items = False
        elif followed is not None and followed.read:
            self.unlisted |= {p.mark for p in followed.read}
            self.lists = [p for p in self.lists if p.mark not in self.unlisted]
            self.tensors = [p for p in self.tensors if p.mark not in self.unlisted]
        elif followed is not None and followed.lost is not None and self.count == count and not followed.ended:
            self.stopped = True
        if self.count > count and not self.stopped:
            return True
        return followed is not None and bool(followed.sizes.standing) and self.give_up()

    def give_up(self) -> bool:
        """Numbers were followed in vain: first lengths are not any more, then nothing. Whether something is still."""
        self.stopped |= self.of_one_length or not self.lengths
        self.of_one_length, self.lengths = True, {}
        return not self.stopped

    def begin(self, attempt: Any) -> Followed | None:
        """Follow them through a call that is about to be recorded. None if nothing is to be followed."""
        given, environment = attempt.places, attempt.before
        if self.shared:
            self.stop()
        sources = {source_of_draws(place.value) for place in environment.drawing}
        self.start = states([source for source in sources if source is not None])
        asks = "type" in environment.renamed or asks_types(attempt.codes)
        if environment.open or asks:
            given = given._replace(lists=())
        cached = any(type(held) is known.CACHE for held in environment.seen.values())  # which tells ints from the like
        asks |= environment.by_identity
        unknown = bool(environment.open) or (attempt.calls_unknown and not environment.drawing)
        if (
            self.stopped or self.pauses or cached or asks or unknown
        ):  # what nobody knows may take no symbolic number, or run twice
            self.draws = self.draws if unknown else []
            if not (given.tensors or given.lists):
                return None
            none = Following()
            none.stopped = True
            return Followed(none, attempt, given)
        read = {(id(p.container), p.kind, p.key): p for p in environment.places if may_hold(p)}
        self.places = [read[at] for p in self.places if (at := (id(p.container), p.kind, p.key)) in read]
        self.declared = [read[at] for p in self.declared if (at := (id(p.container), p.kind, p.key)) in read]
        followed = Followed(self, attempt, given)
        if self.draws != []:
            followed.draw([p for p in environment.drawing if may_hold(p)])
        return followed


def is_shared(held: list[Any], place: Place) -> bool:
    """Whether something holds a list but the place that it was found in."""
    others = [r for r in referrers([held]) if not isinstance(r, (Place, Written))]
    own = place.container  # from Python 3.13 on an object may hold its attributes beside its dict
    others = [r for r in others if r is not own and attribute_of(r, "__dict__") is not own]
    return any(type(r) is not dict or r.get("__name__") != GUARDS for r in others)
