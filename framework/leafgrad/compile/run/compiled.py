"""A compiled function: how its calls are recorded, closed, confirmed and run."""

from __future__ import annotations

import copy
import operator
import os
import sys
import time
import types
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, cast

from leafgrad import modes, plugins
from leafgrad.batching.vmap import P, R
from leafgrad.compile.ir.draws import restore, states
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.ir.log import log
from leafgrad.compile.record.guide import Guide
from leafgrad.compile.record.lazy import LazyRecorder, Parts
from leafgrad.compile.record.trace import recording
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.watch import COLLECTOR, Watch
from leafgrad.compile.run.breaks import Breaks
from leafgrad.compile.run.call import Call, Failed
from leafgrad.compile.run.checked import asked
from leafgrad.compile.run.closing import Attempt
from leafgrad.compile.run.explain import Explanation, explanation
from leafgrad.compile.run.followed import Followed, Unfollowed
from leafgrad.compile.run.following import Following
from leafgrad.compile.run.misses import Misses, kind_of
from leafgrad.compile.run.numbers import Strayed
from leafgrad.compile.run.pace import Pace
from leafgrad.compile.run.runner import Runner
from leafgrad.errors import CompileError, TraceError
from leafgrad.ops.tracebacks import shorten
from leafgrad.tensor.tensor import Tensor

STRAYS = 4  # ways that no program went after which it is looked at whether they are many
KEPT = 32  # closed programs of one function
FEW = 4  # equations


class Compiled(Generic[P, R]):
    """A compiled function. Calling it does what the function does, by programs made of earlier calls.

    Attributes:
        function: the function itself.
        executor: the name of the executor that was asked for, or None.
        closed: whether a call that needs the function's Python is an error.
    """

    unguarded = frozenset(
        "_breaks _calls _following _guides _last _lock _misses _pace _reason _since _watch _wary".split()
    )

    function: Callable[P, R]
    executor: str | None
    closed: bool
    __name__: str
    __qualname__: str
    _attribute: str  # its name in a class
    _breaks: Breaks  # between the parts in which it runs while it is open
    _calls: list[Call]
    _following: Following  # the numbers that differ from call to call
    _guides: list[Guide]
    _last: Parts | Call | None  # what ran last
    _lock: Lock
    _misses: Misses
    _pace: Pace  # how it runs while it is open
    _reason: str | None  # why the last recorded call was not closed
    _since: int  # the last checkpoint of a training before its calls
    _watch: Watch | None  # of the last watched call
    _wary: bool  # whether its Python may read and write the memory of tensors

    def __init__(self, function: Callable[..., Any], executor: str | None = None, closed: bool = False) -> None:
        vars(self).update(
            function=function,
            executor=executor,
            closed=closed,
            __wrapped__=function,
            __name__=getattr(function, "__name__", type(function).__name__),
            __qualname__=getattr(function, "__qualname__", type(function).__qualname__),
            __doc__=function.__doc__,
            __module__=function.__module__,
            _attribute=f"_compiled_{getattr(function, '__qualname__', '')}",
            _lock=Lock(),
        )
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of its calls."""
        vars(self).update(
            _breaks=Breaks(self.function, lambda run: type(self)(run, self.executor)),
            _calls=[],
            _following=Following(),
            _guides=[],
            _last=None,
            _misses=Misses(),
            _pace=Pace(),
            _reason=None,
            _since=modes.Checkpoint.number,
            _watch=None,
            _wary=False,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        flags = modes.get()
        wish = os.environ.get("LEAFGRAD_COMPILE")
        if flags & (modes.TRACE | modes.ANOMALY) or wish == "0":
            return self.function(*args, **kwargs)
        if flags & modes.WATCH:
            return cast(R, modes.watched(self, args, lambda: self(*args, **kwargs)))
        if flags & modes.BATCH:
            raise RuntimeError(
                "a compiled function was called inside vmap, where its program does not fit; compile the whole, "
                "leafgrad.compile(leafgrad.vmap(f))"
            )
        try:
            result: R = self._call(flags, args, kwargs, wish == "check")
            return result
        except BaseException as error:
            shorten(error)
            if not isinstance(error, Exception):  # the handler of a signal may raise anywhere, between any two lines
                modes.FLAGS.set(flags)
            raise

    def _call(self, flags: int, args: Any, kwargs: Any, checks: bool) -> Any:
        if self._since != modes.Checkpoint.number:
            self._resumes()
        pace = self._pace
        if pace.failures:
            pace.count()
            if pace.gave_up and not self._calls and not self.closed and not pace.next():
                return pace.run(False, partial(self.function, *args, **kwargs), self.__qualname__)
        following = self._following
        drawn = states(following.sources) if following.draws else []
        calls, strayed, failed, doubted = self._calls, None, False, None
        try:
            leaves, structure = following.leaves(args, kwargs)
            for call in calls:
                if not call.guards.match(flags, structure, leaves):
                    continue
                if checks or not call.trusted:
                    doubted = call
                    break
                if call is not calls[0] and strayed is None:
                    self._calls = [call, *(c for c in calls if c is not call)]
                vars(self)["_last"] = call
                try:
                    return call(leaves, checks, drawn)
                except Failed:
                    failed = True
                    break
                except Strayed:
                    strayed = strayed or call
        finally:
            if drawn:
                restore(drawn)
        if failed:  # by what an op was given: the Python does what comes before, and raises
            return self.function(*args, **kwargs)
        if doubted is not None:
            return self._alone(partial(self._confirm, doubted, args, kwargs), leaves, args, kwargs)
        if strayed is not None:
            self._strays(strayed)
        return self._missed(flags, structure, leaves, args, kwargs)

    def _resumes(self) -> None:
        """A training resumed from the last checkpoint begins with a step of which nothing is known: what earlier calls
        have taught is forgotten here, too, so that both go on to the same bits.
        """
        confirmed = self._reason is None and all(call.trusted for call in self._calls)
        if not confirmed or self._pace.failures or self._following.taught:
            self._begin()
        vars(self)["_since"] = modes.Checkpoint.number

    def _alone(self, act: Callable[[], Any], leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Watch a call, unless another thread watches one."""
        if not self._lock.acquire(blocking=False):
            return self._run(leaves, args, kwargs)
        try:
            with COLLECTOR.paused():  # what is made stays, and to look through all modules for garbage takes its time
                return act()
        finally:
            self._lock.release()

    def _missed(self, flags: int, structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """No closed program serves this call: it is recorded."""
        if self._pace.gave_up and not self.closed:
            if self._breaks.waits or self._breaks.seeks is not None:  # what is still to be made is not timed
                return self._breaks(*args, **kwargs)
            compiled = self._pace.next()
            call = partial(self._run, leaves, args, kwargs) if compiled else partial(self.function, *args, **kwargs)
            return self._pace.run(compiled, call, self.__qualname__)
        if self._misses.needed and not self.closed and self._misses.waits(kind_of(structure, leaves)):
            return self.function(*args, **kwargs)
        return self._alone(partial(self._attempt, flags, structure, leaves, args, kwargs), leaves, args, kwargs)

    def _attempt(self, flags: int, structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Record a call, and close it if guards can stand for its Python."""
        plugins.load()  # they may bring methods, and guards compare classes
        following = self._following
        paths = following.names(self.function, args, kwargs)
        settled = [call for call in self._calls if not call.first]
        new = following.compare(self._calls, leaves, paths)
        fits = [call for call in settled if call.guards.match(flags, structure, leaves)]
        misses = [fits[0].strayed()] if fits else [call.guards.miss(flags, structure, leaves) for call in settled]
        if misses:  # the program that came closest tells why
            served = sum(call.hits for call in self._calls)
            self._misses.note(max(misses, key=lambda miss: miss.held), self.__qualname__, served)
        if self._gives_up():
            return self._run(leaves, args, kwargs)
        start = time.perf_counter()
        attempt = Attempt(self.function, (args, kwargs), following, self._watch)
        leaves = attempt.leaves  # which may be more by now
        recorder = self._recorder(leaves, self._guides, attempt.wary)
        recorder.positions = attempt.watch.positions
        recorder.code = attempt.watch.code = self._breaks.code
        first = self._watch is None
        recorder.strict = self.closed and not first
        try:
            result, followed = attempt.record(recorder)
        except Unfollowed:
            return self._unfollowed(leaves, args, kwargs)
        try:
            call = attempt.close(recorder, result, self.executor, followed)
        except Unclosed as error:
            return self._left_open(error, attempt, recorder, result, followed)
        self._pace.failures = self._pace.lessons = 0
        vars(self).update(_reason=None, _watch=attempt.watch, _last=call)
        call.first = first
        if not any(map(call.same_as, fits)):  # else rounding decides
            self._calls = [call, *([] if new else settled)][:KEPT]
        seconds = time.perf_counter() - start
        log(
            f"{self.__qualname__}: traced in {1000 * seconds:.0f} ms: {call.runner.before} equations, "
            f"{len(call.runner.graph)} after the passes, {len(call.guards.conditions)} guards"
        )
        return self._perform_recorded(call, leaves, args, kwargs)

    def _confirm(self, call: Call, args: Any, kwargs: Any) -> Any:
        """The guards hold; before the program is trusted, the Python runs once more and must do the same."""
        attempt = Attempt(self.function, (args, kwargs), self._following, self._watch)
        leaves = attempt.leaves
        guides = [call.guide, *(g for g in self._guides if g is not call.guide)]
        recorder = self._recorder(leaves, guides, attempt.wary)
        try:
            result, followed = attempt.record(recorder)
        except Unfollowed:
            return self._unfollowed(leaves, args, kwargs)
        try:
            again = attempt.close(recorder, result, self.executor, followed)
            if call.is_left_by(followed):
                return self._other_way(call, again, leaves, args, kwargs)
            if not again.same_as(call):
                raise Unclosed(
                    "its Python does something else at the next call, although nothing that it reads changed"
                )
        except Unclosed as error:
            if call.is_left_by(followed):
                return self._left_open(error, attempt, recorder, result, followed)
            self._calls = [c for c in self._calls if c is not call]
            if call.trusted and call.can_be_compared(followed):
                recorder.finish()
                raise CompileError(
                    f"{self.__qualname__}: its guards hold, yet {error}; LEAFGRAD_COMPILE=check compares each call"
                ) from error
            return self._left_open(error, attempt, recorder, result, followed)
        call.trusted, call.first = True, False
        vars(self)["_last"] = call
        return self._perform_recorded(call, leaves, args, kwargs)

    def _other_way(self, confirmed: Call, call: Call, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """A value that was computed decided for another way than the program that was to be confirmed."""
        known = next((c for c in self._calls if call.same_as(c)), None)
        if known is None:
            self._calls = [call, *self._calls][:KEPT]
            self._strays(confirmed)
        else:
            known.trusted = True
        vars(self)["_last"] = call
        return self._perform_recorded(call, leaves, args, kwargs)

    def _strays(self, strayed: Call) -> None:
        """A value decided for a way that no program goes. If that is so too often, no more is guessed."""
        strayed.strays += 1
        strays, hits = sum(call.strays for call in self._calls), sum(call.hits for call in self._calls)
        if strays > STRAYS and 4 * strays > hits:
            self._calls = [c for c in self._calls if c.symbolic is None or not c.symbolic.outcomes]
            self._following.items = False

    def _perform_recorded(self, call: Call, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """Run a program just recorded. What rounding decides may be decided otherwise: then the Python runs.

        Where an op refuses what it is given, too: the Python does what comes before, and raises.
        """
        drawn = list(self._following.start)
        try:
            return call(leaves, asked(), drawn)
        except Failed:
            failed = True
        except Strayed:
            failed = False
        finally:
            restore(drawn)
        return self.function(*args, **kwargs) if failed else self._run(leaves, args, kwargs)

    def _run(self, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """An open call: its Python runs, and programs compute."""
        if self._breaks:
            return self._breaks(*args, **kwargs)
        recorder = self._recorder(leaves, self._guides, self._wary)
        recorder.closes = False
        try:
            with recording(recorder):
                result = self.function(*args, **kwargs)
        except BaseException as error:
            recorder.fail(error)
            raise
        recorder.finish()
        vars(self)["_last"] = recorder.course
        return result

    def _unfollowed(self, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """An open call, in place of one that failed with symbolic numbers; if it does not, they are the cause."""
        self._following.rewind()
        result = self._run(leaves, args, kwargs)
        self._following.stopped = True
        return result

    def _recorder(self, leaves: list[Any], guides: list[Guide], wary: bool) -> LazyRecorder:
        recorder = LazyRecorder(
            [t for t in leaves if isinstance(t, Tensor)], guides, partial(Runner, name=self.executor), wary
        )
        recorder.strict = self.closed
        return recorder

    def _left_open(
        self, error: Unclosed, attempt: Attempt, recorder: LazyRecorder, result: Any, followed: Followed | None
    ) -> Any:
        """Finish a recorded call that no closed program can repeat. The first one may have made what others find."""
        reason, first = str(error), self._watch is None
        learned = self._following.learn(error, recorder, attempt.watch, followed)
        fails = not learned and self.closed and not first
        vars(self).update(_reason=reason, _wary=self._wary or attempt.wary, _watch=attempt.watch)
        log(f"{self.__qualname__}: {'the first call is ' if first else ''}open, since {reason}")
        if not first:
            self._pace.fail(learned)
        if self._pace.gave_up:
            self._breaks.note(attempt)
        if not fails:
            try:
                recorder.finish()
            except BaseException:
                attempt.undo(recorder)
                raise
            vars(self)["_last"] = recorder.course
        if followed is not None:
            result = followed.settle(result)
        if not fails:
            return result
        raise TraceError(
            f"{self.__qualname__} was compiled with closed=True, but is open: {reason}. Pass what changes as an "
            "argument, take it out of the function, or leave closed=True out, and its Python runs at each call"
        )

    def _gives_up(self) -> bool:
        """Whether calls are not worth watching any more, since one value keeps changing."""
        often = None if self.closed else self._misses.often()
        if often is not None:
            self._pace.give_up()
            vars(self).update(_calls=[], _reason=f"{often} changes from call to call")
            log(f"{self.__qualname__}: open, since {self._reason}")
        return often is not None

    # ---- looking inside ---------------------------------------------------------------------------------------

    def explain(self) -> Explanation:
        """What was traced and why, and how the programs run: a text with ``summary`` and ``guards``."""
        chosen = self._pace.gave_up and os.environ.get("LEAFGRAD_COMPILE") != "always"
        how = self._pace.explain() if chosen else None
        found = self._calls, self._misses, self._pace.failures, self._reason, self._last
        return explanation(self.__qualname__, *found, how, self._breaks.explain())

    @property
    def graph(self) -> Graph:
        """The optimized program that ran last."""
        return self._runner().graph

    def source(self) -> str:
        """The generated source of the program that ran last."""
        return self._runner().program.source()

    @property
    def settled(self) -> bool:
        """Whether the next call does what later ones will: nothing is recorded, or timed."""
        if self._pace.gave_up:
            return not self._breaks.waits and self._pace.seconds is not None
        return any(call.trusted for call in self._calls)

    @property
    def is_idle(self) -> bool:
        """Whether it runs uncompiled, or its programs are not worth their guards."""
        if self._pace.gave_up:
            return self._pace.seconds is not None and not self._pace.compiled
        return bool(self._calls) and max(call.runner.before for call in self._calls) < FEW

    def _runner(self) -> Any:
        last = self._last
        if isinstance(last, Call):
            return last.runner
        for part in reversed(self._breaks.parts):
            if part._last is not None:
                return part._runner()
        runners = [] if last is None else [part.runner for part in last.parts if part.runner is not None]
        if not runners:
            why = "calls are recorded, and parts of an open step become programs when they come again"
            raise RuntimeError(f"{self.__qualname__} has no program yet: {why}")
        return runners[-1]

    def __repr__(self) -> str:
        return f"<compiled {self.__qualname__}>"

    # ---- methods and copies -----------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As an attribute of a class: a compiled method, one for each instance."""
        if instance is None:
            return self
        if isinstance(instance, type):  # a class method
            return types.MethodType(self, instance)
        try:
            own = vars(instance)
        except TypeError:
            raise TypeError(
                f"compile: {type(instance).__name__} has __slots__ and cannot keep its compiled method "
                f"{self.__name__!r}; compile the bound method instead: leafgrad.compile(object.{self.__name__})"
            ) from None
        bound, method = own.get(self._attribute), types.MethodType(self.function, instance)
        if type(bound) is not type(self) or bound.function != method:
            bound = own[self._attribute] = type(self)(method, self.executor, self.closed)
        return bound

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = f"_compiled_{owner.__qualname__}.{name}"

    def __copy__(self) -> Compiled:
        return type(self)(self.function, self.executor, self.closed)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return type(self)(copy.deepcopy(self.function, memo), self.executor, self.closed)

    def __reduce__(self) -> Any:
        """Pickled like a function, by name, where its name leads to it; else as its function, to be compiled anew."""
        try:
            found = operator.attrgetter(self.__qualname__)(sys.modules[self.__module__])
        except (AttributeError, KeyError):
            found = None
        return self.__qualname__ if found is self else (type(self), (self.function, self.executor, self.closed))
