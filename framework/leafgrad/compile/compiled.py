"""What ``compile`` and ``trace`` do."""

from __future__ import annotations

import copy
import operator
import os
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from leafgrad import modes
from leafgrad.compile import explain
from leafgrad.compile.call import Call
from leafgrad.compile.environment import Codes, Environment, look, watching
from leafgrad.compile.graph import Argument, Captured, Grad, Graph, Live, Value, Write
from leafgrad.compile.guards import Guards, Miss, brief, facts
from leafgrad.compile.log import log
from leafgrad.compile.memory import Apart
from leafgrad.compile.paths import paths_of
from leafgrad.compile.symbol import Symbol
from leafgrad.compile.trace import Traced, check_leaks, trace_call
from leafgrad.compile.tree import flatten
from leafgrad.errors import TraceError
from leafgrad.tensor.matrices import trace as matrix_trace
from leafgrad.tensor.tensor import Tensor

PATIENCE = 8  # retraces before a warning
KEPT = 32  # programs of one function


def of(function: Callable[..., Any], executor: str | None) -> Compiled:
    """``leafgrad.compile`` of a function."""
    if isinstance(function, type) or not callable(function):
        kind = f"the class {function.__name__}" if isinstance(function, type) else f"a {type(function).__name__}"
        raise TypeError(f"compile: function: expected a function, a method or a Module, got {kind}")
    if isinstance(function, Compiled):
        function = function.function
    plain = isinstance(function, (types.FunctionType, types.MethodType, types.BuiltinFunctionType))
    return (Compiled if plain else CompiledObject)(function, executor)


def traced(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``leafgrad.trace`` of a call."""
    if isinstance(fn, Tensor) or not callable(fn):
        return matrix_trace(fn, *args, **kwargs)
    function = fn.function if isinstance(fn, Compiled) else fn
    leaves, _ = flatten((args, kwargs))
    paths = paths_of(function, args, kwargs)
    codes: Codes = {}
    with watching(codes):
        found = trace_call(function, args, kwargs)
    check_leaks(found)
    environment = read_by(found, codes, function, leaves, paths)
    name_inputs(found, leaves, paths, environment)
    return found.graph


class Compiled:
    """A compiled function. Calling it runs the function, or a program that does the same.

    Attributes:
        function: the function itself.
        executor: the name of the executor that was asked for, or None.
    """

    _live = frozenset({"_calls", "_codes", "_lock", "_misses", "_retraces", "_unsettled"})

    function: Callable[..., Any]
    executor: str | None
    __name__: str
    __qualname__: str
    _attribute: str  # its name in a class
    _calls: list[Call]
    _codes: Codes | None  # what the last call that ran in Python executed
    _lock: threading.RLock
    _misses: list[Miss]
    _retraces: int
    _unsettled: bool  # the last call changed state that the function had read

    def __init__(self, function: Callable[..., Any], executor: str | None = None) -> None:
        vars(self).update(
            function=function,
            executor=executor,
            __wrapped__=function,
            __name__=getattr(function, "__name__", type(function).__name__),
            __qualname__=getattr(function, "__qualname__", type(function).__qualname__),
            __doc__=function.__doc__,
            __module__=function.__module__,
            _attribute=getattr(function, "__name__", ""),
            _calls=[],
            _codes=None,
            _lock=threading.RLock(),
            _misses=[],
            _retraces=0,
            _unsettled=False,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        flags = modes.get()
        if flags & (modes.TRACE | modes.ANOMALY) or os.environ.get("LEAFGRAD_COMPILE") == "0":
            return self.function(*args, **kwargs)
        if flags & modes.BATCH:
            raise RuntimeError(
                "a compiled function was called inside vmap, where its program does not fit; compile the whole, "
                "leafgrad.compile(leafgrad.vmap(f))"
            )
        leaves, structure = flatten((args, kwargs))
        calls = self._calls
        for call in calls:
            if call.guards.match(flags, structure, leaves):
                if call is not calls[0]:
                    self._calls = [call, *(c for c in calls if c is not call)]
                return call(leaves)
        with self._lock:
            return self._missed(flags, structure, leaves, args, kwargs)

    def _missed(self, flags: int, structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """No program serves this call: the first one runs as it is, later ones are traced."""
        paths = paths_of(self.function, args, kwargs)
        if self._codes is None:
            return self._run_once(args, kwargs)
        for call in self._calls:  # another thread may have traced meanwhile
            if call.guards.match(flags, structure, leaves):
                return call(leaves)
        if self._calls:  # the program that came closest tells why
            misses = [call.guards.miss(flags, structure, leaves) for call in self._calls]
            self._note_miss(max(misses, key=lambda miss: miss.held))
        try:
            call = self._trace(flags, structure, leaves, paths, args, kwargs)
        except StateChanged as error:
            if not self._calls or self._unsettled:
                raise
            # State that is made once, as at a first call: an optimizer's for new parameters, say.
            self._unsettled = True
            log(f"{self.__qualname__}: this call runs as it is. {error}")
            return self._run_once(args, kwargs)
        self._unsettled = False
        self._calls = [call, *self._calls][:KEPT]
        return call(leaves)

    def _run_once(self, args: Any, kwargs: Any) -> Any:
        """Run the function as it is, and note which code that executes."""
        codes: Codes = {}
        with watching(codes):
            result = self.function(*args, **kwargs)
        self._codes = codes
        return result

    def _trace(self, flags: int, structure: Any, leaves: list[Any], paths: list[str], args: Any, kwargs: Any) -> Call:
        start = time.perf_counter()
        codes: Codes = {}
        before = look(roots(self.function, leaves, paths), self._codes or {})
        with unchanged(before, self.__qualname__), watching(codes):
            traced = trace_call(self.function, args, kwargs)
        check_leaks(traced)
        self._codes = codes
        environment = read_by(traced, codes, self.function, leaves, paths)
        name_inputs(traced, leaves, paths, environment)
        captured = traced.captured
        tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        apart = apart_of(traced.graph, tensors)
        guards = Guards(flags, structure, leaves, paths, captured, traced.views, traced.touched, environment, apart)
        call = Call(traced, guards, tensors, self.executor)
        seconds = time.perf_counter() - start
        log(
            f"{self.__qualname__}: traced in {1000 * seconds:.0f} ms: {call.runner.before} equations, "
            f"{len(call.runner.graph)} after the passes, {len(guards.conditions)} guards"
        )
        return call

    def _note_miss(self, miss: Miss) -> None:
        path, before, now = miss.path, miss.before, miss.now
        self._misses.append(miss)
        vars(self)["_retraces"] += 1
        log(f"{self.__qualname__}: traced again, since {path} was {before} and is {now}")
        if self._retraces == PATIENCE:
            paths = [m.path for m in self._misses]
            often = max(paths, key=paths.count)
            warnings.warn(
                f"{self.__qualname__} has been traced again {PATIENCE} times, mostly because of {often} (last: {path} "
                f"was {before}, is {now}). Tracing costs far more than a call: pass a number that changes as a tensor, "
                "keep shapes fixed, and keep what changes from call to call out of the function; explain() lists all",
                UserWarning,
                stacklevel=4,
            )

    # ---- looking inside ---------------------------------------------------------------------------------------

    def explain(self) -> str:
        """What was traced and why, the guards, and how the programs run, as text."""
        return explain.text(self.__qualname__, self._calls, self._misses, self._codes is not None)

    @property
    def graph(self) -> Graph:
        """The optimized program that ran last."""
        return self._last().runner.graph

    def source(self) -> str:
        """The generated source of the program that ran last."""
        return self._last().runner.program.source()

    def _last(self) -> Call:
        if not self._calls:
            raise RuntimeError(
                f"{self.__qualname__} has not been traced yet: its first call runs as it is, the second is traced"
            )
        return self._calls[0]

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
        bound = type(self)(types.MethodType(self.function, instance), self.executor)
        return own.setdefault(self._attribute, bound)

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return type(self)(copy.deepcopy(self.function, memo), self.executor)


class CompiledObject(Compiled):
    """A compiled object, such as an ``nn.Module``; its attributes are the object's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["function"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            vars(self)[name] = value
        else:
            setattr(self.function, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.function)})

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self


# ---- tracing ----------------------------------------------------------------------------------------------------


def roots(function: Any, leaves: Sequence[Any], paths: Sequence[str]) -> list[tuple[Any, str]]:
    """Where a function may begin to read: itself, and objects among its arguments."""
    name = "self" if not hasattr(function, "__name__") else function.__name__
    objects = [(leaf, path) for leaf, path in zip(leaves, paths, strict=True) if not isinstance(leaf, Tensor)]
    return [(function, name), *objects]


def read_by(traced: Traced, codes: Codes, function: Any, leaves: Sequence[Any], paths: Sequence[str]) -> Environment:
    """What the traced function read, in which all tensors that it captured must be found."""
    starts = roots(function, leaves, paths)
    environment = look(starts, codes)
    lost = [t for t in traced.captured if id(t) not in environment.tensors]
    if lost:
        environment = look(starts, codes, everything=True)
        lost = [t for t in lost if id(t) not in environment.tensors]
    if lost:
        value = next(
            (v for v, s in traced.graph.inputs.items() if isinstance(s, Captured) and s.tensor is lost[0]), None
        )
        line = next((e.line for e in traced.graph.equations if value in e.inputs), None)
        raise TraceError(
            f"a traced function uses a tensor, {facts(lost[0])}{f', at {line}' if line else ''}, that is reached "
            "neither through its arguments nor through variables, attributes, lists or dicts; whether it is still the "
            "same at later calls could not be checked. Pass it as an argument"
        )
    return environment


class StateChanged(TraceError):
    """While it was traced, the function changed something outside that is no tensor's memory."""


@contextmanager
def unchanged(environment: Environment, name: str) -> Iterator[None]:
    """Put back what the function writes outside while it is traced, and say that a program would not write it."""
    before = environment.snapshot()
    try:
        yield
    except BaseException:
        for place, old, _ in environment.changed(before):
            place.put(old)
        raise
    changed = environment.changed(before)
    for place, old, _ in changed:
        place.put(old)
    for place, old, new in changed:
        if isinstance(new, Tensor) and isinstance(new._data, Symbol):
            raise StateChanged(
                f"{name} puts a tensor into {place.path}; the program would not, so at later calls nothing would be "
                "put there. Return it, or write into a tensor that is there already with copy_()"
            )
        raise StateChanged(
            f"{name} changes {place.path} from {brief(old)} to {brief(new)}; the program would not, so later calls "
            "would leave it as it is. Change it outside of the compiled function, or keep it in a tensor and write "
            "in place"
        )


def apart_of(graph: Graph, tensors: Sequence[int]) -> Apart | None:
    """A check for a program that writes: which of its tensors are captured, given or gradients, and which written."""
    written = {id(e.source) for e in graph.effects if isinstance(e, Write)}
    if not written:
        return None
    captured: list[tuple[Tensor, bool]] = []
    given: list[tuple[Callable[[Sequence[Any]], Any], bool]] = []
    for source in graph.inputs.values():
        mark = id(source) in written
        if isinstance(source, Captured):
            captured.append((source.tensor, mark))
        elif isinstance(source, Argument):
            given.append((operator.itemgetter(tensors[source.index]), mark))
        elif isinstance(source, Grad):
            given.append((gradient(source.of, tensors), mark))
    return Apart(captured, given)


def gradient(of: Argument | Captured, tensors: Sequence[int]) -> Callable[[Sequence[Any]], Any]:
    """The function that gives the ``.grad`` of a source's tensor."""
    if isinstance(of, Captured):
        tensor = of.tensor
        return lambda _: tensor._leaf.grad
    i = tensors[of.index]
    return lambda leaves: leaves[i]._leaf.grad


def name_inputs(traced: Traced, leaves: Sequence[Any], paths: Sequence[str], environment: Environment) -> None:
    """Name the graph's inputs after where they come from."""
    arguments = [path for leaf, path in zip(leaves, paths, strict=True) if isinstance(leaf, Tensor)]

    def name(source: Any) -> str:
        if isinstance(source, Grad):
            return f"{name(source.of)}.grad"
        if isinstance(source, Captured):
            return environment.tensors.get(id(source.tensor), "captured")
        return arguments[source.index]

    names: dict[Value, str] = traced.graph.names
    for value, source in traced.graph.inputs.items():
        names[value] = f"number{len(names)}" if isinstance(source, Live) else name(source)
