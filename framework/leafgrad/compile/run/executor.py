"""What runs a graph: the contract of executors, the choice of one, and errors that name the culprit."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, cast

from leafgrad import plugins
from leafgrad.compile.ir.admitted import Settled
from leafgrad.compile.ir.graph import Equation, Graph
from leafgrad.errors import CompileError, PluginError, TraceError
from leafgrad.ops import messages
from leafgrad.signals import raised_by_handler

BROKEN: Final[dict[str, plugins.ExecutorSpec]] = {}
"""Preferred executors that failed, and are preferred no more."""


class ExecutorFailure(CompileError):
    """An executor failed on a program that ``replay`` runs."""


class Program(Protocol):
    """A graph that is ready to run. It is never called twice at once.

    It may have a method ``deliver(pairs)``, which writes arrays that it returned into arrays of tensors, of memory of
    their own, and so costs one launch where each would cost one.
    """

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on the arrays of ``graph.inputs``, in their order, which it does not change.

        Returns:
            The arrays of ``graph.results`` and then of the effects that have a value, each in memory of its own. It
            may be used again when nobody has the array, or a view of it, any more; that of ``graph.written`` values
            when the list that is returned is gone.
        """

    def source(self) -> str:
        """The program as readable text: generated code, where there is any."""

    def explain(self) -> list[str]:
        """A few lines on how it runs."""


class Executor(Protocol):
    """A way to run graphs, listed by the plugin hook ``leafgrad_executors``; its class is called without arguments.

    It may have a method ``plan(graph)``, which gives a Plan of a graph in which sizes are Extents.

    Attributes:
        name: as in ``compile(step, executor=name)``.
        device_type: the device type whose graphs it runs; None if it runs all.
    """

    name: str
    device_type: str | None

    def compile(self, graph: Graph) -> Program:
        """The program that runs ``graph``.

        Raises:
            CompileError: it cannot.
        """


class Plan(Protocol):
    """What an executor has made of a graph in which sizes are Extents."""

    def at(self, settled: Settled) -> Program:
        """The program for these sizes."""


class Preferred(Executor, Protocol):
    """An executor that is listed as preferred, and chooses among graphs for which none is named."""

    def gains(self, graph: Graph) -> bool:
        """Whether it runs ``graph`` faster than the core's executors, by enough to pay for building its program."""


def find(name: str | None, graph: Graph) -> Executor:
    """The executor of that name; by default ``LEAFGRAD_EXECUTOR``, or a preferred one that gains by the graph.

    Without any, it is ``"numpy"`` for a graph that lies on the CPU and ``"replay"`` for others.

    Raises:
        UnknownNameError: no plugin lists it. CompileError: it does not run graphs of these devices.
    """
    types = {v.place[0] for v in graph.inputs} | {v.place[0] for e in graph.equations for v in e.outputs}
    if name is None:
        return chosen_executor(graph, types)
    executor = load(name)
    if not runs(executor, types):
        raise CompileError(
            f"executor {name!r} runs programs on {executor.device_type!r}, but this one has arrays on "
            f"{', '.join(sorted(types))}; leave executor out, or move all tensors there"
        )
    return executor


def chosen_executor(graph: Graph, types: set[str]) -> Executor:
    """The executor of a graph for which none is named."""
    wanted = os.environ.get("LEAFGRAD_EXECUTOR")
    if wanted and runs(load(wanted), types):
        return load(wanted)
    return (None if wanted else preferred(graph, types)) or load("numpy" if types <= {"cpu"} else "replay")


def preferred(graph: Graph, types: set[str]) -> Executor | None:
    """The first preferred executor that gains by the graph. One that fails is left out from then on."""
    plugins.load()
    for spec in plugins.executors():
        asked = types == {spec.preferred} if isinstance(spec.preferred, str) else spec.preferred
        if asked and BROKEN.get(spec.name) is not spec:  # it may be another one of that name
            try:
                found = load(spec.name)
                if runs(found, types) and cast(Preferred, found).gains(graph):
                    return found
            except Exception as error:
                leave_out(spec.name, f"{type(error).__name__}: {error}")
    return None


def leave_out(name: str, reason: str) -> None:
    """Prefer an executor no more, with a warning that names its plugin."""
    BROKEN[name] = plugins.executor(name)
    owner = next(p for p in plugins.status() if name in p.hooks.get("leafgrad_executors", ()))
    plugins.report(
        PluginError(
            f"{owner}: its preferred executor {name!r} failed, and programs that do not name it run without it: "
            f"{reason}. See the whole error by compile(..., executor={name!r}), or exclude the plugin by "
            f"LEAFGRAD_PLUGINS=-{owner.name}"
        )
    )


def load(name: str) -> Executor:
    return cast(Executor, plugins.resolve(plugins.executor(name).target)())


def runs(executor: Executor, types: set[str]) -> bool:
    """Whether the executor runs graphs on these types of devices."""
    return executor.device_type is None or not types - {executor.device_type}


def build(graph: Graph, name: str | None) -> tuple[Executor, Program]:
    """An executor, and its program of ``graph``; where it fails, a CompileError that names the equation.

    Handlers of signals wait meanwhile, so that no error is theirs.

    Raises:
        MemoryError: there is none for what the program keeps between its calls.
    """
    executor = find(name, graph)
    try:
        return executor, executor.compile(graph)
    except MemoryError as error:
        raise no_memory(executor, graph, error) from error
    except Exception as error:
        plain = isinstance(error, (CompileError, TraceError))
        failure = error if plain else blame(executor, graph, error, executor.compile)
        if name is None and is_preferred(executor):
            leave_out(executor.name, str(failure))
            return build(graph, None)
        if plain:
            raise
        raise failure from error


def plan(graph: Graph, name: str | None) -> tuple[Executor, Plan] | None:
    """An executor with its plan of a graph in which sizes are Extents; None if it builds a program for each size."""
    executor = find(name, graph)
    planned = getattr(executor, "plan", None)
    return None if planned is None else (executor, planned(graph))


def is_preferred(executor: Executor) -> bool:
    """Whether only its plugin's preference chose an executor for which nobody asked."""
    preferred = [spec.name for spec in plugins.executors() if spec.preferred]
    return not os.environ.get("LEAFGRAD_EXECUTOR") and executor.name in preferred


def is_foreign(executor: Executor) -> bool:
    """Whether it comes from a plugin."""
    return not type(executor).__module__.startswith("leafgrad.")


def explain_failure(executor: Executor, graph: Graph, inputs: Sequence[Any], error: Exception) -> Exception:
    """What to raise when a program failed while it ran: the op's own error as eager gives it, else a CompileError.

    Where memory ran out, nothing runs again: that might take what is left.
    """
    from leafgrad.compile.ir.replay import ReplayExecutor, ReplayProgram

    if isinstance(executor, ReplayExecutor) or raised_by_handler(error):
        return error
    if isinstance(error, MemoryError):
        return no_memory(executor, graph, error)
    try:
        ReplayProgram(graph)(inputs)
    except Exception as own:
        return own
    return blame(executor, graph, error, lambda part: executor.compile(part)(inputs))


def no_memory(executor: Executor, graph: Graph, error: MemoryError) -> MemoryError:
    """The error of a program for which there is no memory: it names the equation whose forward was running.

    Where that was not an op's, but of the whole program, it names the one that makes the largest arrays.
    """
    from leafgrad.compile.passes.liveness import nbytes

    running = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
    sizes = {e: sum(map(nbytes, e.outputs)) for e in graph.equations if "view" not in e.op.traits}
    known = {e: size for e, size in sizes.items() if e.op.forward.__code__ in running}
    found = max(known or sizes, key=sizes.__getitem__, default=None)
    named = (
        found and f"{messages.call(found.op, found.inputs, found.params)}, {sizes[found]:,} bytes, from {found.line}"
    )
    what = "It was in" if known else f"Of the program's {len(graph)} equations the one that makes most is"
    return MemoryError(
        f"executor {executor.name!r}: {error}. {what} {named}; take a smaller batch, or compile(..., "
        "executor='replay'), which keeps each result until its last use only"
    )


def blame(executor: Executor, graph: Graph, error: Exception, attempt: Callable[[Graph], Any]) -> ExecutorFailure:
    """The error that names the first equation with which ``attempt`` fails."""
    found = culprit(graph, attempt)
    where = f"{found.name}, from {found.line}" if found is not None else f"a program of {len(graph)} equations"
    return ExecutorFailure(
        f"executor {executor.name!r} failed on {where}: {type(error).__name__}: {error}. "
        "compile(..., executor='replay') runs equations one by one"
    )


def culprit(graph: Graph, attempt: Callable[[Graph], Any]) -> Equation | None:
    """The last equation of the shortest prefix on which ``attempt`` fails; None if only the whole graph fails."""
    low, high = 0, len(graph)
    if succeeds(attempt, prefix(graph, high)) or not succeeds(attempt, prefix(graph, 0)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if succeeds(attempt, prefix(graph, middle)):
            low = middle
        else:
            high = middle
    return graph.equations[high - 1]


def prefix(graph: Graph, count: int) -> Graph:
    """The first equations of a graph, whose results are what nothing reads any more."""
    equations = graph.equations[:count]
    read = {v for e in equations for v in e.values}
    ends = tuple(v for e in equations for v in e.outputs if v not in read)
    return replace(graph, equations=equations, results=ends, effects=())


def succeeds(attempt: Callable[[Graph], Any], graph: Graph) -> bool:
    try:
        attempt(graph)
    except Exception:
        return False
    return True
