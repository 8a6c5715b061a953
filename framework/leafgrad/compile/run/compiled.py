"""A compiled function, as its user sees it."""

from __future__ import annotations

import copy
import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any, Generic, cast

from leafgrad import modes
from leafgrad.batching.vmap import P, R
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.locks import TryLock
from leafgrad.compile.run.calls import Calls
from leafgrad.compile.run.explain import Explanation, explanation
from leafgrad.ops.tracebacks import shorten
from leafgrad.signals import handlers_error


class Compiled(Generic[P, R]):
    """A compiled function. Calling it does what the function does, by programs made of earlier calls.

    Attributes:
        function: the function itself.
        executor: the name of the executor that was asked for, or None.
        closed: whether a call that needs the function's Python is an error.
    """

    unguarded = frozenset(["_calls"])

    function: Callable[P, R]
    executor: str | None
    closed: bool
    __name__: str
    __qualname__: str
    _attribute: str  # its name in a class
    _calls: Calls
    plain = modes.TRACE | modes.ANOMALY  # modes in which it runs uncompiled
    other = plain | modes.WATCH | modes.BATCH

    def __init__(self, function: Callable[..., Any], executor: str | None = None, closed: bool = False) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        vars(self).update(
            function=function,
            executor=executor,
            closed=closed,
            __wrapped__=function,
            __name__=getattr(function, "__name__", type(function).__name__),
            __qualname__=name,
            __doc__=function.__doc__,
            __module__=function.__module__,
            _attribute=f"_compiled_{getattr(function, '__qualname__', '')}",
            _calls=Calls(function, name, executor, closed, TryLock(), CompiledPart),
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        flags = modes.get()
        if flags & modes.TRACE and modes.tracer() is None:
            flags = modes.get()
        calls = self._calls
        fresh = calls.since == modes.Checkpoint.number
        if calls.idle.left and fresh and not flags & self.other and calls.idle.takes(args):
            return self.function(*args, **kwargs)
        wish = os.environ.get("LEAFGRAD_COMPILE")
        if flags & self.plain or wish == "0":
            return self.function(*args, **kwargs)
        if flags & modes.WATCH:
            return cast(R, modes.watched(self, args, lambda: self(*args, **kwargs)))
        if flags & modes.BATCH:
            calls.misses.batched(self.__qualname__, self.closed)
            return self.function(*args, **kwargs)
        try:
            if not fresh:
                calls = self._since_checkpoint()
            result: R = calls.call(flags, args, kwargs, wish)
            return result
        except BaseException as error:
            shorten(error)
            if handlers_error(error) is not None:  # it may be raised anywhere, between any two lines
                modes.FLAGS.set(flags)
            raise

    def _since_checkpoint(self) -> Calls:
        """A training resumed from the last checkpoint begins with a step of which nothing is known: what earlier calls
        have taught is forgotten here, too, so that both go on to the same bits.
        """
        calls = self._calls
        if not calls.outlives_checkpoint():
            calls = Calls(self.function, self.__qualname__, self.executor, self.closed, calls.lock, CompiledPart)
            vars(self)["_calls"] = calls
        calls.since = modes.Checkpoint.number
        return calls

    # ---- looking inside ---------------------------------------------------------------------------------------

    def explain(self) -> Explanation:
        """What was traced and why, and how the programs run: a text with ``summary`` and ``guards``."""
        return explanation(self._calls)

    @property
    def graph(self) -> Graph:
        """The optimized program that ran last."""
        return self._calls.runner().graph

    def source(self) -> str:
        """The generated source of the program that ran last."""
        return self._calls.runner().program.source()

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
            vars(bound)["_attribute"] = self._attribute
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


class CompiledPart(Compiled[..., Any]):
    """A part of an open function, compiled: it runs uncompiled inside vmap, and only the whole says anything."""

    plain = Compiled.plain | modes.BATCH

    def __init__(self, function: Callable[..., Any], executor: str | None = None, closed: bool = False) -> None:
        super().__init__(function, executor, closed)
        self._calls.misses.of_part, self._calls.misses.warns = True, False
        self._calls.may_idle = False  # the whole decides
