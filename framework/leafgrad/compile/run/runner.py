"""An optimized graph with the executor's program for it."""

from __future__ import annotations

import math
from _thread import get_ident
from collections.abc import Sequence
from functools import partial
from typing import Any

from leafgrad.compile.ir.admitted import SETTLED, Extents, Settled
from leafgrad.compile.ir.draws import States, generators, restore, rewound, states
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.lengths import resized
from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.ir.log import log
from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.run import executor
from leafgrad.compile.run.checked import Kinds, Mismatch, asked, check_kinds, check_run, expected
from leafgrad.forks import cached_property
from leafgrad.ops.dispatch import memory_of, overwrite
from leafgrad.signals import held

SEVERAL = 3  # sizes at which a plan is compared with replay
COMPARED = 2**26  # elements of all values: a first run of more is no replay, nor compared with one: for memory and time


class Prepared:
    """An optimized graph, and an executor's plan for it, where its sizes are Extents.

    Attributes:
        before: how many equations the graph had.
        elements: how many all that is computed has.
        graph: the optimized graph.
        planned: an executor, and what gives its programs for the sizes that ``extents`` admit; None where each is
            built anew.
        compared: how many programs of the plan are compared with replay.
    """

    def __init__(self, graph: Graph, name: str | None, extents: Extents | None = None) -> None:
        from leafgrad.compile.passes import optimize  # many small modules, which only those who compile need

        self.name = name
        self.before = len(graph)
        self.graph = optimize(graph)
        self.elements = sum(math.prod(v.shape) for e in self.graph.equations for v in e.outputs)
        self.extents, self.compared = extents, 0
        self.planned = None
        if extents is not None:
            self.planned = extents.tried(partial(executor.plan, self.graph, name))
            extents.sealed = True


class Runner:
    """What runs a graph. One thread's call runs at a time.

    Args:
        made: what was made of the graph.
        sizes: for which it runs, where these are Extents.
        waits: whether it may run but once, so that no program is built before it runs again.

    Attributes:
        before: how many equations the graph had.
        elements: how many all that is computed has.
        program: the executor's program; the equations themselves as long as it waits.
        compared: whether a plugin's program is compared with replay at its first run.
        kinds: what a plugin's executor must return; None before its program's first run, and for the core's.
    """

    def __init__(self, made: Prepared, sizes: Sequence[int] = (), waits: bool = False) -> None:
        self.made, self.name, self.before = made, made.name, made.before
        self.settled = SETTLED if made.extents is None else Settled(made.extents.values(sizes))
        self.elements = self.settled(made.elements)
        self.generators = generators(made.graph)
        self.kinds: Kinds | None = None
        self.lock = Lock()
        self.waits, self.ran = waits and self.elements <= COMPARED, False
        if self.waits:
            self.build("replay")
        elif made.planned is None or not self.planned(*made.planned):
            self.build(self.name)

    def planned(self, found: executor.Executor, plan: executor.Plan) -> bool:
        """Take the program of a plan; whether there is one."""
        try:
            self.executor, self.program = found, held(plan.at, self.settled)
        except Exception as error:  # also for want of memory: what is built for these sizes alone tells more
            log(f"made for each size: {type(error).__name__}: {error}")
            return False
        self.foreign = executor.is_foreign(found)
        self.compared = self.elements <= COMPARED and self.made.compared < SEVERAL
        self.made.compared += 1
        return True

    @cached_property
    def graph(self) -> Graph:
        """The optimized graph."""
        return resized(self.made.graph, self.settled) if self.settled.values else self.made.graph

    def build(self, name: str | None) -> None:
        """Ask the executor of that name for a program."""
        self.executor, self.program = held(executor.build, self.graph, name)
        self.foreign = executor.is_foreign(self.executor)
        self.compared = self.elements <= COMPARED

    def __call__(self, inputs: Sequence[Any], checks: bool | None = None, before: States | None = None) -> list[Any]:
        """The arrays of results and effects' values.

        Args:
            checks: whether they are compared with those of the graph, run op by op; None: if `checked.asked`.
            before: to which the states are added that generators had before.

        Raises:
            CompileError: a plugin's executor returned something else.
        """
        within = self.lock.inside == get_ident()  # in a signal's handler, while the program's buffers are in use
        return self.lock.run(self.perform, inputs, asked() if checks is None else checks, before, within)

    def perform(self, inputs: Sequence[Any], checks: bool, before: States | None, within: bool) -> list[Any]:
        """The same, in turn; ``within`` a call of this thread op by op."""
        if self.waits and (self.ran or checks) and not within:
            self.build(self.name)
            self.waits = False
        self.ran = True
        while True:
            drawn = states(self.generators) if self.generators else []
            if before is not None:
                before += drawn
            try:
                if within:
                    return ReplayProgram(self.graph)(inputs)
                return self.checked(inputs, checks) if checks or self.foreign else self.program(inputs)
            except BaseException as error:
                restore(drawn)  # whoever runs it again draws the same
                if isinstance(error, Mismatch):
                    self.refuse(inputs, error)
                elif isinstance(error, Exception):
                    with rewound(self.generators):
                        failure = executor.explain_failure(self.executor, self.graph, inputs, error)
                    if failure is error:
                        raise
                    if not isinstance(failure, executor.ExecutorFailure):
                        raise failure from error
                    self.replace(failure, error)
                else:
                    raise

    def deliver(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Write what the program returned for tensors into their arrays: at once, if the program can do that."""
        deliver = getattr(self.program, "deliver", None)
        if deliver is not None and len({id(memory_of(a)) for a, _ in pairs}) == len(pairs):
            self.lock.run(deliver, pairs)
        else:
            for a, values in pairs:
                overwrite(a, values)

    def checked(self, inputs: Sequence[Any], checks: bool) -> list[Any]:
        """The same of a plugin's program, or where all are compared with replay."""
        first = self.foreign and self.kinds is None
        if checks or (first and self.compared):
            right = expected(self.graph, inputs)
            arrays = check_run(self.graph, self.program, inputs, right)
            self.kinds = Kinds(self.graph, right, arrays) if self.foreign else None
            return arrays
        left = self.kinds.left() if self.kinds is not None and self.kinds.first else []
        arrays = self.program(inputs)
        if first:
            check_kinds(self.graph, inputs, arrays)
            self.kinds = Kinds(self.graph, arrays, arrays)
        elif self.kinds is not None:
            self.kinds.check(inputs, arrays, left)
        return arrays

    def refuse(self, inputs: Sequence[Any], error: Mismatch) -> None:
        """What the executor returned is used for nothing."""
        graph, found = self.graph, self.executor

        def attempt(part: Graph) -> None:
            right = expected(part, inputs)
            with rewound(generators(part)):
                check_run(part, found.compile(part), inputs, right)

        self.replace(executor.blame(found, graph, error, attempt), error)

    def replace(self, failure: executor.ExecutorFailure, error: Exception) -> None:
        """Another executor runs the program from now on, or, where somebody asked for this one, it is an error.

        No further size gets a program of the plan.
        """
        self.made.planned = None
        if not (self.name is None and executor.is_preferred(self.executor)):
            raise failure from error
        executor.leave_out(self.executor.name, str(failure))
        self.kinds = None
        self.build(self.name)
