"""The numbers, tensors, lists and draws that are followed through one recorded call.

While it runs, a SymbolicNumber stands for each number, a GrowingList for each list that is appended to, a Drawer for
each generator; what the call leaves in their places becomes an effect of its program.
"""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from leafgrad import signals
from leafgrad.batching.pytree import containers, flatten, parts_of
from leafgrad.compile.guard.environment import Environment, GivenPlaces, Place, class_in, is_state, now
from leafgrad.compile.guard.guards import Symbolic
from leafgrad.compile.ir.keys import same
from leafgrad.compile.record.drawn import Drawer, Draws
from leafgrad.compile.record.dynamic import fix_views
from leafgrad.compile.record.growing import GrowingList
from leafgrad.compile.record.kept import held_elsewhere
from leafgrad.compile.record.numbers import Numbers
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import NUMBERS, SymbolicNumber, is_number, placeholder, settled
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.variables import being_shown, referrers, replace_variables
from leafgrad.compile.record.watch import Codes, is_library, source_of
from leafgrad.compile.run.left import (
    ALL,
    END,
    Contents,
    Written,
    are_elsewhere,
    contents,
    ordinary,
    remade,
    settle_keys,
    settled_parts,
    subtrees,
    swapped,
)
from leafgrad.compile.run.sizes import Sizes, is_apart
from leafgrad.compile.run.unfollowed import Changes, calls_slots
from leafgrad.ops.node import Node

KEEPS_SET = "it keeps a number that changes in a frozenset"
KEEPS_DRAWER = "it keeps a function that draws random numbers"


class Followed:
    """The numbers that are followed through one recorded call.

    Attributes:
        args, kwargs: the arguments, with symbolic numbers.
        symbolic: what guards are to know of them.
        written: what the call leaves behind in containers, once it is over.
        replaced: the same of tensors, and of what it appends.
        read: places of lists that it does more with than to append.
        sought: whether numbers are followed that were found to differ.
        sizes: of arguments that come in several lengths.
        ended: why nothing is followed any more, though the call goes on.
    """

    def __init__(self, following: Any, attempt: Any, outside: GivenPlaces) -> None:
        self.following, self.outside, self.leaves, paths = following, outside, attempt.leaves, attempt.paths
        recorder, args, kwargs = attempt.recorder, attempt.args, attempt.kwargs
        self.sought = bool(following.paths or following.places or following.items or following.lengths)
        self.numbers = Numbers(recorder, follows=bool(following.items))
        recorder.numbers = None if following.stopped else self.numbers
        self.numbers.declare = self.declare
        self.symbolic = Symbolic(self.numbers.relations, self.numbers.outcomes)
        apart = attempt.first or attempt.calls_unknown or is_apart(attempt.codes)
        lengths = {} if apart else {i: following.lengths.get(path, ()) for i, path in enumerate(paths)}
        self.sizes = Sizes(self.numbers, self.symbolic, attempt, lengths)
        counts = [len(flatten(a)[0]) for a in (*args, *kwargs.values())]
        given: list[Any] = []
        for i, value in zip(accumulate(counts, initial=0), (*args, *kwargs.values()), strict=False):
            follows = type(value) in NUMBERS and paths[i] in following.paths
            number = self.numbers.given(value, f"a{i}", paths[i]) if follows else None
            given.append(number if follows else self.sizes.given(value, itertools.count(i)) if lengths else value)
            self.symbolic.arguments |= {i} if follows else set()
        self.args, self.kwargs = tuple(given[: len(args)]), dict(zip(kwargs, given[len(args) :], strict=True))
        self.spots: list[Written] = []
        self.kept: list[tuple[Place, Written, Contents]] = []
        self.replaced: list[Written] = []
        self.written: list[Written] = []
        self.settled: list[Written] = []  # numbers that stood in places
        self.remade: dict[int, Any] = {}  # what is in the places of tuples that had some, by their ids
        self.unmade: list[Any] = []  # those, which keep their ids
        self.growing: list[tuple[Place, Written]] = []
        self.drawing: Draws | None = None
        self.drawers: list[Written] = []
        self.read: list[Place] = []
        self.lost: str | None = None  # why no program can leave what the call has left
        self.stays = False  # whether a number is where nobody can put an ordinary one
        self.ended = ""
        self.caller: types.CodeType | None = None

    def draw(self, places: Sequence[Place]) -> None:
        """Follow what functions in these places draw."""
        expected = self.following.draws
        first = len(self.leaves) - len(expected or ())
        drawn = None if expected is None else [(d, self.leaves[i], f"a{i}") for i, d in enumerate(expected, first)]
        self.drawing = Draws(self.numbers, drawn)
        self.symbolic.arguments |= {*range(first, len(self.leaves))}
        self.drawers = [Written(p.container, p.key, Drawer(p.value, self.drawing), p.value) for p in places]

    @property
    def stands_for_some(self) -> bool:
        """Whether something has stood for a number, a list or a size."""
        return bool(self.numbers.made or self.growing or self.sizes.standing)

    @property
    def stands(self) -> bool:
        """Whether something stood in places outside."""
        return bool(self.spots or self.kept or self.growing or self.drawers)

    def __enter__(self) -> None:
        """Put the symbolic numbers where they are read."""
        self.caller = sys._getframe(1).f_code
        for spot in (*self.sizes.swaps, *self.drawers):
            spot.put(spot.number)
        for place in (*self.following.places, *self.following.declared):
            self.follow(place)
        for place in self.outside.tensors:
            held = now(place)
            self.kept.append((place, Written(place.container, place.key, None, held), contents(held)))
        for place in self.outside.lists:
            held = now(place)
            spot = Written(place.container, place.key, GrowingList(held), held)
            self.growing.append((place, spot))
            spot.put(spot.number)

    def follow(self, place: Place) -> None:
        """Put a symbolic number in a place, if a number is there."""
        value, name = now(place), f"p{len(self.spots)}"
        if is_number(value):
            self.spots.append(Written(place.container, place.key, self.numbers.given(value, name, place.path), value))
            self.spots[-1].put(self.spots[-1].number)
            self.symbolic.places[name] = place

    def declare(self, numbers: dict[str, Any]) -> None:
        """Follow the numbers in a dict from here on, and from the beginning of the next call."""
        for key, value in numbers.items() if not self.following.shared else ():
            if is_number(value) and not any(s.container is numbers and same(s.key, key) for s in self.spots):
                place = Place(key, "item", numbers, key, value)
                self.following.declared.append(place)
                self.follow(place)

    def __exit__(self, *_: object) -> None:
        """Take them back, and see what the call has left in their places."""
        for spot in (*self.sizes.swaps, *self.drawers):
            if spot.held() is spot.number:
                spot.put(spot.before)
        self.take_from_places()
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
        for place, spot in self.growing:
            whole = spot.held() is spot.number
            if whole:
                spot.put(spot.before)
            appended = spot.number.take()
            if appended:
                self.replaced.append(Written(spot.before, END, appended))
            if spot.number.read or appended is None or not whole:
                self.leave(place)

    def take_from_places(self) -> None:
        """Let numbers stand again where something stood for them."""
        for spot in self.spots:
            left = spot.held()
            parts = left if type(left) is tuple else (left,)
            if {*map(type, parts)} <= {*NUMBERS, types.NoneType, SymbolicNumber} and left is not None:
                spot.put(spot.before)
                if left is not spot.number:
                    self.written.append(spot._replace(number=left))

    def end(self, told: types.FrameType | None, begins: bool, why: str = "it calls what nobody knows") -> None:
        """Follow no number from here on: what begins is given ordinary ones.

        One that is on its way to a call, or in a library's variable, stays; arithmetic makes an ordinary one of it.

        Args:
            told: the frame of which a profile function is told now, if one is; ``begins``: which is about to run.
        """
        if self.spots or self.numbers.alive() or (self.sizes.standing and not self.ended):
            self.ended = self.ended or why
            signals.held(self.settle_numbers, told)
        if told is not None and begins and (self.sizes.standing or self.numbers.alive()):
            replace_variables(told, self.real, told=True)
            self.remade, self.unmade = {}, []

    def real(self, value: Any) -> Any:
        """A pytree with ordinary numbers, of which the same tuple is made wherever one of them is."""
        for part in containers(value):
            found = {id(v): new for v in parts_of(part) if (new := self.real_part(v)) is not v}
            for _ in swapped(part, found):
                pass
        return self.real_part(value)

    def real_part(self, value: Any) -> Any:
        """The same of what is no list or dict itself."""
        if not isinstance(value, (tuple, frozenset)):
            return settled(value)
        if id(value) not in self.remade and (made := ordinary(value)) is not value:
            self.remade[id(value)] = made
            self.unmade.append(value)
        return self.remade.get(id(value), value)

    def settle_numbers(self, told: types.FrameType | None) -> None:
        """Let ordinary numbers stand wherever symbolic ones do, and nothing come to stand for others."""
        recorder, found = self.numbers.recorder, (self.lost, self.stays)
        with recorder.untorn():
            self.numbers.read_all()
            self.take_from_places()
            self.settle(None)
        self.settled, self.spots, self.written, self.numbers.follows = [*self.settled, *self.spots], [], [], False
        self.replace_numbers([None], partial(self.settle_variables, told))
        self.written, self.remade, self.unmade = [], {}, []
        self.lost, self.stays = found
        for tensor in recorder.alive() if self.sizes.standing else ():
            data = tensor._data
            if isinstance(data, Symbol):
                data.shape = data.value.shape = settled(data.shape)

    def settle_variables(self, told: types.FrameType | None) -> None:
        """Give the variables of the user's functions that run ordinary numbers."""
        frame: types.FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not self.caller:
            if not is_library(source_of(frame.f_code, frame.f_globals)):
                replace_variables(frame, self.real, told=frame is told)
            frame = frame.f_back

    def leave(self, place: Place, why: str = "") -> None:
        """More is done with a list than to append to it, or with a container of tensors than to replace it."""
        self.read.append(place)
        self.lost = why or f"it appends to the list {place.path}, and reads it"

    def take_back(self, results: list[Any], codes: Codes, environment: Environment) -> None:
        """See what a call of these codes has left elsewhere. Its ``results`` keep their own."""
        self.written += self.sizes.take_back(environment, results[0])
        self.check_containers()
        self.replace_numbers(results)
        for place, spot in self.growing:
            if self.give_up(spot) or calls_slots(codes):
                self.leave(place)
        for spot in self.drawers:
            if self.give_up(spot):
                self.lost = KEEPS_DRAWER

    def replace_numbers(self, results: list[Any], first: Callable[[], None] | None = None) -> None:
        """Put ordinary numbers where anything but places that are known, and ``results``, holds symbolic ones.

        ``first()`` does so where the garbage collector does not look.
        """
        fix_views(self.numbers.recorder.alive())
        alive = self.numbers.alive()
        left = [written.number for written in (*self.spots, *self.written, *self.replaced)]
        trees = subtrees([*results, *left])
        settle_keys(trees)
        parts = [number._parts for number in alive]
        tuples = [tree for tree in trees if type(tree) is tuple]
        holders = [alive, trees, parts, tuples, results, self.args, self.kwargs]
        holders += [left, *self.spots, *self.written, *self.replaced, *trees, *parts]
        elsewhere = held_elsewhere([*alive, *tuples], holders)
        if first is not None and (elsewhere or self.sizes.standing):
            first()
        if elsewhere:
            own = {id(holder) for holder in holders if not isinstance(holder, tuple)}
            own |= {id(part) for part in (self.spots, self.written, self.replaced, holders, self, vars(self))}
            plain = {id(n): placeholder(n) for n in alive}
            self.replace(alive, plain, own)

    def check_containers(self) -> None:
        """A list or dict of tensors that is left in a place must be a new one, and nowhere else."""
        left = [w for w in self.replaced if w.key is not END]
        elsewhere = are_elsewhere(left, [kept.before for _, kept, _ in self.kept])
        for place, _, _ in self.kept if elsewhere else ():
            if any(w.is_at(place) and containers(w.number) for w in left):
                self.leave(place, f"it puts a list or dict into {place.path} that is elsewhere, too")

    def give_up(self, spot: Written) -> bool:
        """Put the real thing wherever something holds what stood for it; whether something did."""
        standing = [spot.number]
        kept = held_elsewhere(standing, [spot])
        if kept:
            self.replace(standing, {id(spot.number): spot.before}, {id(spot)})
        return kept

    def replace(self, held: list[Any], plain: dict[int, Any], own: set[int]) -> None:
        """Put ``plain`` values, by id of what they replace, where something holds ``held``; in tuples, too."""
        tuples: list[Any] = []
        own |= {id(held), id(tuples), id(plain), id(self.unmade), id(being_shown())}
        for holder in referrers(held):
            if id(holder) in own or type(holder) is SymbolicNumber or isinstance(holder, (Node, types.FrameType)):
                continue
            if isinstance(holder, (tuple, frozenset)):
                if id(holder) not in self.remade:
                    self.remade[id(holder)] = remade(holder, lambda part: plain.get(id(part), part))
                    self.unmade.append(holder)
                plain[id(holder)] = self.remade[id(holder)]
                tuples.append(holder)
                self.lost = self.lost or (KEEPS_SET if isinstance(holder, frozenset) else None)
                continue
            found = [Written(*slot) for slot in swapped(class_in(holder), plain)]
            self.written += found
            if any(type(w.number) is not SymbolicNumber for w in found):
                self.lost = "it keeps a number that changes in a tuple, a set or a key"
            elif not found:
                self.lost, self.stays = f"it keeps a number that changes in a {type(holder).__name__}", True
        if tuples:
            self.replace(tuples, plain, own)

    def check(self, environment: Environment) -> None:
        """Unclosed if a number was left where no program can put it."""
        lost = self.lost or (self.drawing and self.drawing.lost)
        if lost:
            raise Unclosed(lost)
        if any(isinstance(w.container, type) for w in self.written):
            raise Unclosed("it keeps a number that changes in a class")
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
            kept.step(self.sizes.real(settled_parts(kept.number)))()
        return self.sizes.real(settled_parts(result))
