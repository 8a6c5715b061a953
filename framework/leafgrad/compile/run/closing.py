"""From a recorded call to a closed program: what it read, and whether guards can stand for reading it again."""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from types import FrameType
from typing import Any

from leafgrad import modes, signals
from leafgrad.batching.pytree import DICTS, containers
from leafgrad.compile.guard.conditions import brief
from leafgrad.compile.guard.environment import Place
from leafgrad.compile.guard.guards import Guards, Symbolic
from leafgrad.compile.guard.walk import look
from leafgrad.compile.ir.draws import rewound
from leafgrad.compile.ir.lines import Line
from leafgrad.compile.record.growing import GrowingList
from leafgrad.compile.record.identity import asks_identity
from leafgrad.compile.record.kept import check_holders, check_kept, check_outside
from leafgrad.compile.record.lazy import LazyRecorder
from leafgrad.compile.record.names import may_change_objects
from leafgrad.compile.record.trace import Traced, finish, recording
from leafgrad.compile.record.unclosed import Unclosed, must_stay_closed
from leafgrad.compile.record.watch import Codes, Watch, source_of, watching
from leafgrad.compile.run.call import Call
from leafgrad.compile.run.followed import Followed
from leafgrad.compile.run.following import Following, differs
from leafgrad.compile.run.handlers import Handlers
from leafgrad.compile.run.idle import is_short
from leafgrad.compile.run.inputs import name_inputs, read_by
from leafgrad.compile.run.left import contents
from leafgrad.compile.run.paths import named_tuples, roots
from leafgrad.compile.run.unfollowed import Changes, NewCode, Unfollowed, asks_types, may_be_of_numbers
from leafgrad.signals import Waiting
from leafgrad.tensor.tensor import Tensor

SHOWN = "it writes memory that another tensor of it shows"
GIVEN_TO_C = (
    "leafgrad.compile: it may be that a function in C was given a number that changes from call to call, for which "
    "something stood that it does not take: pass int(number) or float(number). Later calls give it Python's own"
)


def line_that_stores(codes: Codes, key: Any) -> str:
    """Where executed code of the user assigns a name, an attribute or an item; else where that code is."""
    users = codes.of_users()
    for code in users if isinstance(key, (str, int)) else ():  # of others, == may be anything
        for i in dis.get_instructions(code):
            stores = i.opname.startswith(("STORE_", "DELETE_")) and i.opname != "STORE_FAST"
            if stores and (i.argval == key or (i.opname == "STORE_SUBSCR" and key in code.co_consts)):
                number = None if i.positions is None else i.positions.lineno
                return f" at {Line(code.co_filename, number or code.co_firstlineno)}"
    return f" in {Line(users[0].co_filename, users[0].co_firstlineno)}" if users else ""


class Attempt:
    """A watched call, about to be closed.

    Args:
        function, given: what is called, and its arguments.
        following: what differs from call to call.
        watch: what the call before it executed.

    Attributes:
        leaves, structure: the arguments, and what else it is given, flat, and the structure of that.
        paths: what a reader calls the leaves.
        codes: what the call before it executed.
        places: outside, of what is an argument, too, or a list that is appended to.
        before: what the call may read, as it was.
        calls_unknown: whether the call before it called what nobody knows.
        recorder: what records it.
        followed: the numbers that it follows, once it runs; None if there are none.
        results: the result alone, which no variable holds.
    """

    def __init__(self, function: Any, given: Any, following: Following, watch: Watch | None) -> None:
        self.function, self.following = function, following
        self.args, self.kwargs = given
        self.given, self.contents = {id(c): c for c in containers(given)}, contents(given)
        with rewound(following.sources):
            self.leaves, self.structure = following.leaves(*given)
        self.paths = following.names(function, *given)
        self.tuples = named_tuples(given)
        self.roots = roots(function, self.leaves, self.paths, self.tuples)
        self.watch = Watch()
        self.first = watch is None  # nobody knows what it will read, so nothing is known of how that was before
        self.codes = Codes() if watch is None else watch.codes
        self.places = following.given(self.codes, self.given.keys())
        self.before = look(self.roots, self.codes, self.places)
        self.held, self.filled = self.before.snapshot(), self.before.contents()
        self.calls_unknown = watch is not None and bool(watch.open)
        self.flags = modes.get()
        self.wary = bool(self.before.open) or self.before.shows_memory
        self.recorder = LazyRecorder([leaf for leaf in self.leaves if isinstance(leaf, Tensor)], self.wary)
        self.followed: Followed | None = None
        self.results: list[Any] = [None]
        self.changed: list[Place] = []  # what it changed, as far as that is not followed
        self.growing: list[GrowingList] = []  # what stood for lists

    def close(self, name: str | None, known: Sequence[Call], waits: bool) -> Call:
        """The program of the call: one of those of ``known`` calls, perhaps; else built, or when it comes again.

        Raises:
            Unclosed: it would not do at later calls what the function does, or nobody can tell.
        """
        recorder = self.recorder
        try:
            traced, guards = self.guarded()
        except Unclosed:
            raise
        except Exception as error:  # of a user's __eq__, say; whatever it is, an open step is right
            raise Unclosed(f"closing it failed with {type(error).__name__}: {error}") from error
        try:
            call = Call(traced, guards, name, known, self.followed, self.leaves, waits)
        except BaseException as error:
            refused = isinstance(error, Exception)  # by the executor
            self.end(partial(recorder.lose, error, True) if refused else partial(recorder.fail, error))
            raise
        call.short = not recorder.differentiates and is_short(traced.graph)
        return call

    def guarded(self) -> tuple[Traced, Guards]:
        """The call as a program, and its guards."""
        recorder, followed = self.recorder, self.followed
        as_before = self.check() and self.watch.codes.same(self.codes)
        environment = self.before if as_before else look(self.roots, self.watch.codes, self.places)
        for place in environment.drawing:
            if followed is None or not any(spot.is_at(place) for spot in followed.drawers):
                raise Unclosed(f"{place.path} may draw numbers, which is not followed")
        if followed is not None:
            followed.check(environment)
        for leaf, path in zip(self.leaves, self.paths, strict=True):
            if isinstance(leaf, Tensor) and environment.may_read(vars(leaf)):
                raise Unclosed(f"it may read attributes of the tensor {path}")
        if any(hasattr(value, "__dict__") for value in self.tuples):
            raise Unclosed("it may read attributes of a tuple that it is given")
        if environment.by_identity:
            kinds = (*DICTS, list, tuple)
            self.following.outside |= {key: held for key, held in environment.seen.items() if isinstance(held, kinds)}
            self.following.by_identity = True
            self.structure = self.structure[0], self.following.identities(self.args, self.kwargs)
        if recorder.ran or (environment.shows_memory and (self.first or not recorder.wary)):
            environment.check()
            raise Unclosed(
                "code of NumPy's may read and write the memory of its tensors meanwhile"
                if recorder.wary or environment.shows_memory
                else SHOWN
            )
        if self.first:
            check_holders(recorder, self.results)
        result = self.results[0]
        outer = next((c for c in containers(result) if id(c) in environment.seen or id(c) in self.given), None)
        if outer is not None:
            raise Unclosed(f"it returns a {type(outer).__name__} from outside")
        check_outside(recorder, environment.tensors)
        if followed is not None and followed.replaced:
            result = result, [w.number for w in followed.replaced]
        with recording(recorder):
            traced = finish(recorder, result, [] if followed is None else [w.number for w in followed.written])
        check_kept(recorder, result)
        if followed is not None:
            traced.graph = followed.sizes.program(traced)
        environment = read_by(traced, self.watch, self.roots, environment, self.places)
        environment.check()
        name_inputs(traced, self.leaves, self.paths, environment)
        symbolic = Symbolic() if followed is None else followed.symbolic
        guards = Guards(self.flags, self.structure, self.leaves, self.paths, traced, environment, symbolic)
        with traced.ancestors.restored():
            if guards.apart is not None and not guards.apart.holds(self.leaves):
                raise Unclosed(SHOWN)
        return traced, guards

    def beware(self, frame: FrameType) -> None:
        """Code of the user begins that the call before this one did not execute."""
        self.recorder.beware()
        if self.followed is not None and not self.first:
            self.followed.end(frame, True, f"it comes to {frame.f_code.co_name}() for the first time")

    def meanwhile(self, frame: FrameType, begins: bool) -> None:
        """What nobody knows is about to be called."""
        if self.recorder.strict:
            raise must_stay_closed(*self.watch.open[-1], "Do so outside of the step")
        self.recorder.meanwhile()
        if self.followed is not None:
            self.followed.end(frame, begins)

    def torn(self) -> None:
        """Python is needed, so that following numbers is of no use."""
        if self.followed is not None:
            self.followed.end(None, False)

    def record(self) -> None:
        """Run the Python, with symbolic numbers for those that differ from call to call.

        If it fails, what came before has happened, as in any call.

        Raises:
            Unfollowed: it does not take such numbers for what they are, and nothing is done yet.
        """
        args, kwargs, recorder, results = self.args, self.kwargs, self.recorder, self.results
        recorder.undoable, recorder.torn = not self.first, self.torn
        followed = self.followed = self.following.begin(self)
        if followed is not None:
            args, kwargs = followed.args, followed.kwargs
        self.handlers = Handlers(self.before, not self.first, [] if followed is None else followed.growing)
        failure, around = None, Waiting.around
        try:
            Waiting.around = self.handlers
            watched = watching(self.watch, self.codes, self.beware, self.meanwhile)
            with followed or nullcontext(), recording(recorder), watched:
                results[0] = signals.interruptible(self.function, *args, **kwargs)
                if followed is not None:
                    followed.sizes.check()
        except BaseException as error:
            failure = error
        Waiting.around, recorder.torn = around, None  # which hold this attempt, and all that it holds
        if followed is not None:
            followed.take_back(results, self.watch.codes, self.before)
            self.growing = [spot.number for _, spot in followed.growing]
            asks = "type" in self.before.renamed or asks_types(self.watch.codes) or asks_identity(self.watch.codes)
            asks |= self.watch.failed  # perhaps a function of C's, which takes a number only from itself
            asks &= followed.stands_for_some and not followed.ended
            apart = failure is None or (recorder.strict and recorder.tears) or not may_be_of_numbers(failure)
            plain = failure is None or isinstance(failure, Exception)  # else a signal ended it
            if plain and (asks or not apart or followed.stays):
                if self.take_back():
                    raise Unfollowed
                if isinstance(failure, TypeError) and self.watch.failed and followed.stands_for_some:
                    failure.add_note(GIVEN_TO_C)
                if asks or followed.sought:
                    self.following.give_up()
                followed.lost = "it asks what object a number that changes is, or its type" if asks else followed.lost
        if failure is not None:
            self.end(partial(recorder.fail, failure))
            raise failure

    def end(self, act: Callable[[], Any]) -> None:
        """Let the recorder end by ``act()``. What it gives up is not done, or is left as ordinary numbers."""
        try:
            act()
        finally:
            if not self.undo() and self.followed is not None:
                self.followed.settle(None)

    def take_back(self) -> bool:
        """Let what the Python has changed be as it was, so that it may run once more; whether that was possible."""
        recorder, before = self.recorder, self.before
        if self.first or self.handlers.changed or recorder.tears or self.watch.open:
            return False
        if not recorder.can_be_undone or not self.is_known():
            return False
        if modes.get() != self.flags or contents((self.args, self.kwargs)) != self.contents:
            return False
        if not all(place.can_be_put(was) for place, was, _ in before.changed(self.held)):
            return False
        recorder.undo()
        self.put_back()
        recorder.ancestors.restore()
        return True

    def is_known(self) -> bool:
        """Whether all code that ran is that of the call before, of which ``before`` tells what it may change, or can
        change none.
        """
        new = [source_of(*held) for mark, held in self.watch.codes.held.items() if mark not in self.codes.held]
        return not any(map(may_change_objects, new))

    def undo(self) -> bool:
        """Where there was no memory for the call, or a signal ended it, it is not done at all. Whether that is so."""
        if not self.recorder.given_up or not self.recorder.can_be_undone:
            return False
        self.put_back()
        self.following.rewind()
        return True

    def put_back(self) -> None:
        """Let what the call may read be as it was."""
        self.before.put_back(self.held, self.filled)
        for growing in [growing for growing in self.growing if growing.read]:
            growing.real[:] = growing.before

    def check(self) -> bool:
        """Whether all that the call may read is as it was, and the same objects.

        Raises:
            Unclosed: it did what no program can repeat, or changed, but for numbers that are followed, what it reads.
        """
        recorder = self.recorder
        written = [] if self.followed is None else [*self.followed.written, *self.followed.settled]
        changed = self.before.changed(self.held)
        changes = [c for c in changed if not any(w.is_at(c[0]) for w in written)]
        opened = [*recorder.tears, *self.watch.open]  # from there on no numbers are followed; parts will do so
        left = [c for c in changes if not opened or c[0].kind == "length" or not differs(*c[1:])]
        self.changed = [place for place, _, _ in left]
        if contents((self.args, self.kwargs)) != self.contents:
            raise Unclosed("it changes a list or dict among its arguments")
        if opened:
            what, line = opened[0]
            raise Unclosed(f"{what} at {line}")
        if self.handlers.changed:
            raise NewCode("a signal's handler came meanwhile, and changed what it reads")
        if self.followed is not None and self.followed.ended:
            raise NewCode(self.followed.ended)
        if recorder.sharing.alive():
            raise Unclosed("t.data = ... gives a tensor memory that another one, which stays, has, too")
        if changes:
            place, old, new = changes[0]
            where = line_that_stores(self.watch.codes, place.key)
            what = f"it changes {place.path} from {brief(old)} to {brief(new)}{where}"
            grown = [id(p.container) for p, _, _ in changes if p.kind == "length" and type(p.container) is list]
            lists = [p for p in self.before.places if id(p.value) in grown]
            raise Changes([*(p for p, before, after in changes if differs(before, after)), *lists], what)
        if modes.get() != self.flags:
            raise Unclosed("it leaves another gradient mode behind than it found")
        return not changed and self.before.holds(self.held)
