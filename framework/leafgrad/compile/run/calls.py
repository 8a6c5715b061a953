"""The calls of a compiled function: how they are recorded, closed, confirmed and run."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from leafgrad import modes, plugins
from leafgrad.compile.ir.draws import restore, states
from leafgrad.compile.ir.locks import Occupied, TryLock
from leafgrad.compile.ir.log import log
from leafgrad.compile.record.unclosed import Unclosed, must_close
from leafgrad.compile.record.watch import Watch
from leafgrad.compile.run.alike import is_again
from leafgrad.compile.run.breaks import Breaks
from leafgrad.compile.run.call import Call, Failed
from leafgrad.compile.run.checked import asked
from leafgrad.compile.run.closing import Attempt
from leafgrad.compile.run.following import Following
from leafgrad.compile.run.idle import Idle
from leafgrad.compile.run.misses import RECORDING, Cost, Misses, kind_of
from leafgrad.compile.run.numbers import Strayed
from leafgrad.compile.run.pace import Pace
from leafgrad.compile.run.turn import Turn
from leafgrad.compile.run.unfollowed import Unfollowed
from leafgrad.errors import CompileError
from leafgrad.signals import interruptible

STRAYS = 4  # ways that no program went after which it is looked at whether they are many
KEPT = 32  # closed programs of one function


class Calls:
    """What is known of the calls of a function, and what the next one does.

    Args:
        function, name: what is called.
        executor: the name of the executor that was asked for, or None.
        must_close: whether a call that needs the function's Python is an error.
        lock: held while a call is watched.
        compiled: makes a compiled function of a part of the function.

    Attributes:
        programs: closed programs, the last one used first.
        breaks: between the parts in which it runs while it is open.
        following: the numbers that differ from call to call.
        last: what ran last.
        pace, idle: how it runs while it is open, and where its programs are of no use.
        always: whether it was asked for to run compiled, whatever is faster.
        reason: why the last recorded call was not closed.
        watch: of the last watched call.
        since: the last checkpoint of a training before its calls.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        executor: str | None,
        must_close: bool,
        lock: TryLock,
        compiled: Callable[..., Any],
    ) -> None:
        self.function, self.name, self.executor = function, name, executor
        self.must_close, self.lock = must_close, lock
        self.breaks = Breaks(function, partial(compiled, executor=executor))
        self.programs: list[Call] = []
        self.following = Following()
        self.turn = Turn(lock, self.following)
        self.last: Call | None = None
        self.misses, self.pace, self.idle = Misses(), Pace(), Idle()
        self.always, self.since = False, modes.Checkpoint.number
        self.reason: str | None = None
        self.watch: Watch | None = None
        self.may_idle = executor is None and not must_close

    def call(self, flags: int, args: Any, kwargs: Any, wish: str | None) -> Any:
        checks, pace = wish == "check", self.pace
        if pace.failures:
            pace.count()
            if pace.gave_up and not self.programs and not self.must_close:
                return self.open(args, kwargs, wish == "always")
        following = self.following
        drawn = states(following.sources) if following.draws else []
        calls, strayed, failed, waits, doubted = self.programs, None, False, False, None
        try:
            leaves, structure = following.leaves(args, kwargs)
            for call in calls:
                if not call.guards.match(flags, structure, leaves):
                    continue
                new = (lengths := call.lengths) is not None and (sizes := call.sizes(leaves)) not in lengths.runners
                if new and lengths is not None and not lengths.fits(sizes):
                    continue
                if checks or not call.trusted:
                    doubted = call
                    break
                if new and lengths is not None and self.waits(structure, leaves, lengths.cost(sizes)):
                    waits = True
                    break
                if call is not calls[0] and strayed is None:
                    self.programs = [call, *(c for c in calls if c is not call)]
                self.last = call
                if call.short and self.may_idle and wish is None and call.is_idle(leaves) and not self.turn.is_new():
                    self.idle.begin(args, self.turn.alone)
                try:
                    if call.thread is None:
                        return call(leaves, checks, drawn)
                    return self.lock.run(call, leaves, checks, drawn, following)
                except Failed:
                    failed = True
                    break
                except Occupied:
                    break
                except Strayed:
                    strayed = strayed or call
        finally:
            if drawn:
                restore(drawn)
        if failed or waits:  # by what an op was given: the Python does what comes before, and raises
            return self.function(*args, **kwargs)
        if self.turn.is_new():
            return self.share(args, kwargs, wish)
        if doubted is not None:
            return self.turn.record(partial(self.confirm, doubted, args, kwargs), partial(self.breaks, *args, **kwargs))
        if strayed is not None:
            self.strays(strayed)
        if pace.gave_up and not self.must_close:
            return self.open(args, kwargs, wish == "always")
        return self.missed(flags, structure, leaves, args, kwargs)

    def outlives_checkpoint(self) -> bool:
        """Whether the next call of a training does what it would if the training had been resumed from a checkpoint,
        so that nothing were known of the step yet.
        """
        confirmed = all(call.trusted for call in self.programs) and not self.idle.left
        return confirmed and self.misses.of_one_shape and not (self.pace.opened or self.following.taught)

    def share(self, args: Any, kwargs: Any, wish: str | None) -> Any:
        """A second thread calls: from now on nothing is followed."""
        self.turn.share()
        self.programs = [call for call in self.programs if call.symbolic is None and call.thread is None]
        return self.call(modes.get(), args, kwargs, wish)

    def waits(self, structure: Any, leaves: list[Any], cost: Cost = RECORDING) -> bool:
        """Whether a call of a kind that no program serves is to run uncompiled yet, seeing what a program costs."""
        return not self.must_close and self.misses.waits(self.name, kind_of(structure, leaves), cost)

    def missed(self, flags: int, structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """No closed program serves this call: it is recorded."""
        if self.waits(structure, leaves):
            return self.function(*args, **kwargs)
        otherwise = partial(self.breaks, *args, **kwargs)
        return self.turn.record(partial(self.attempt, flags, structure, leaves, args, kwargs), otherwise)

    def open(self, args: Any, kwargs: Any, always: bool) -> Any:
        """A call that is not watched: its Python runs, between parts that are compiled if that is faster, or always."""
        pace, breaks = self.pace, self.breaks
        if pace.left and not pace.compiled and not always:
            return pace.run(False, self.function, args, kwargs, self.name)
        self.always = always
        if always or not breaks.ready or not breaks.found:  # what is still to be made is not timed
            return breaks(*args, **kwargs)
        compiled = pace.next()
        return pace.run(compiled, breaks if compiled else self.function, args, kwargs, self.name)

    def attempt(self, flags: int, structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Record a call, and close it if guards can stand for its Python."""
        plugins.load()  # they may bring methods, and guards compare classes
        following = self.following
        paths = following.names(self.function, args, kwargs)
        settled = [call for call in self.programs if not call.first]
        new = following.compare(self.programs, leaves, paths)
        fits = [call for call in settled if call.guards.match(flags, structure, leaves)]
        misses = [fits[0].strayed()] if fits else [call.guards.miss(flags, structure, leaves) for call in settled]
        if misses:  # the program that came closest tells why
            served = sum(call.hits for call in self.programs)
            self.misses.note(max(misses, key=lambda miss: miss.held), self.name, served)
            if self.misses.graph_varies:
                self.programs = settled = [call for call in settled if call.guards.behind is None]
        if self.gives_up():
            return interruptible(self.breaks, *args, **kwargs)
        start = time.perf_counter()
        attempt = self.begin(args, kwargs)
        try:
            attempt.record()
        except Unfollowed:
            return self.unfollowed(args, kwargs)
        try:
            call = attempt.close(self.executor, self.programs, self.misses.may_be_rare(self.executor))
        except Unclosed as error:
            return self.left_open(error, attempt)
        self.pace.failures = self.pace.lessons = 0
        self.reason = None
        self.misses.made(call.runner.before, call.runner.elements)
        self.watch, self.last = attempt.watch, call
        call.first = attempt.first
        if not (attempt.handlers.unknown or any(is_again(call, fit) for fit in fits)):  # else rounding decides
            self.programs = [call, *([] if new else settled)][:KEPT]
        seconds = time.perf_counter() - start
        log(
            f"{self.name}: traced in {1000 * seconds:.0f} ms: {call.runner.before} equations, "
            f"{len(call.runner.graph)} after the passes, {len(call.guards.conditions)} guards"
        )
        return self.perform_recorded(attempt, call)

    def confirm(self, call: Call, args: Any, kwargs: Any) -> Any:
        """The guards hold; before the program is trusted, the Python runs once more and must do the same."""
        attempt = self.begin(args, kwargs)
        try:
            attempt.record()
        except Unfollowed:
            return self.unfollowed(args, kwargs)
        followed = attempt.followed
        try:
            again = attempt.close(self.executor, [call, *self.programs], self.misses.may_be_rare(self.executor))
            if call.is_left_by(followed) or again.views > call.views:  # arguments that share memory at this call
                return self.other_way(attempt, call, again)
            if not is_again(again, call):
                raise Unclosed("its Python does something else at the next call, though nothing that it reads changed")
        except Unclosed as error:
            if call.is_left_by(followed):
                return self.left_open(error, attempt)
            self.programs = [c for c in self.programs if c is not call]
            if call.trusted and call.can_be_compared(followed):
                attempt.recorder.finish()
                raise CompileError(
                    f"{self.name}: its guards hold, yet {error}; LEAFGRAD_COMPILE=check compares each call"
                ) from error
            return self.left_open(error, attempt)
        call.trusted, call.first = True, False
        self.last = call
        return self.perform_recorded(attempt, call)

    def other_way(self, attempt: Attempt, confirmed: Call, call: Call) -> Any:
        """A value that was computed, or shared memory, led another way than the program that was to be confirmed."""
        known = next((c for c in self.programs if is_again(call, c)), None)
        if known is None:
            self.programs = [call, *self.programs][:KEPT]
            self.strays(confirmed)
        else:
            known.trusted = True
        self.last = call
        return self.perform_recorded(attempt, call)

    def strays(self, strayed: Call) -> None:
        """A value decided for a way that no program goes. If that is so too often, no more is guessed."""
        strayed.strays += 1
        strays, hits = sum(call.strays for call in self.programs), sum(call.hits for call in self.programs)
        if strays > STRAYS and 4 * strays > hits:
            self.programs = [c for c in self.programs if c.symbolic is None or not c.symbolic.outcomes]
            self.following.items = False

    def perform_recorded(self, attempt: Attempt, call: Call) -> Any:
        """Run a program just recorded. What rounding decides may be decided otherwise: then the Python runs.

        Where an op refuses what it is given, too: the Python does what comes before, and raises.
        """
        drawn = list(self.following.start)
        attempt.recorder.ancestors.restore()
        try:
            return interruptible(call, attempt.leaves, asked(), drawn)
        except Failed:
            failed = True
        except Strayed:
            failed = False
        finally:
            restore(drawn)
        if failed and attempt.first:  # nobody knows how to undo what the Python has done
            return self.left_open(Unclosed("its first call fails as a program"), attempt)
        return interruptible(self.function if failed else self.breaks, *attempt.args, **attempt.kwargs)

    def unfollowed(self, args: Any, kwargs: Any) -> Any:
        """An open call, in place of one that failed with symbolic numbers; if it does not, they are the cause."""
        self.following.rewind()
        result = interruptible(self.breaks, *args, **kwargs)
        self.following.give_up()
        return result

    def begin(self, args: Any, kwargs: Any) -> Attempt:
        """A call that is about to be recorded."""
        attempt = Attempt(self.function, (args, kwargs), self.following, self.watch)
        recorder, watch = attempt.recorder, attempt.watch
        recorder.strict = self.must_close and not attempt.first
        recorder.goes_through = not self.misses.graph_varies
        recorder.positions, recorder.code, watch.code = watch.positions, self.breaks.code, self.breaks.code
        return attempt

    def left_open(self, error: Unclosed, attempt: Attempt) -> Any:
        """Finish a recorded call that no closed program can repeat. The first one may have made what others find."""
        reason, first, result = str(error), attempt.first, attempt.results[0]
        learned = self.following.learn(error, attempt)
        fails = not learned and self.must_close and not first
        self.reason, self.watch = reason, attempt.watch
        self.pace.opened = True
        log(f"{self.name}: {'the first call is ' if first else ''}open, since {reason}")
        if not first:
            self.pace.fail(learned)
        if self.pace.gave_up:
            self.breaks.note(attempt)
        if not fails:
            try:
                attempt.recorder.finish()
            finally:
                attempt.undo()
        if attempt.followed is not None:
            result = attempt.followed.settle(result)
        if not fails:
            return result
        raise must_close(self.name, reason)

    def gives_up(self) -> bool:
        """Whether calls are not worth watching any more, since one value keeps changing."""
        often = None if self.must_close else self.misses.often()
        if often is not None:
            self.pace.give_up()
            self.breaks.note_change(often)
            self.programs = []
            self.reason = f"{often} changes from call to call"
            log(f"{self.name}: open, since {self.reason}")
        return often is not None

    @property
    def is_new(self) -> bool:
        return self.watch is None and not self.programs and not self.pace.failures

    @property
    def settled(self) -> bool:
        """Whether the next call does what later ones will: nothing is recorded, or timed."""
        if self.pace.gave_up:
            return self.breaks.ready and (self.always or not self.breaks.found or self.pace.seconds is not None)
        return any(call.trusted for call in self.programs)

    @property
    def is_idle(self) -> bool:
        """Whether it runs uncompiled, or its programs are not worth their guards."""
        if self.pace.gave_up:
            return not self.breaks.found or (self.pace.seconds is not None and not self.pace.compiled)
        return bool(self.programs) and all(call.is_idle() for call in self.programs)

    def runner(self) -> Any:
        if self.last is not None:
            return self.last.ran
        for part in reversed(self.breaks.parts):
            if part._calls.last is not None:
                return part._calls.runner()
        why = f"it is open, since {self.reason}" if self.reason else "calls are recorded before they are programs"
        raise RuntimeError(f"{self.name} has no program: {why}")
