"""A graph in phases: what generated code runs, what ops run themselves, and where whole values lie between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.schedule.schedule import Loop, Schedule, schedule
from leafgrad.lowering import forms
from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.forms import Form, Root
from leafgrad.lowering.kernels import Copy, Kernel
from leafgrad.lowering.lowering import Lowering
from leafgrad.lowering.pattern import Pattern
from leafgrad.lowering.patterns import Constant, Random
from leafgrad.lowering.sums import joined


@dataclass(eq=False, repr=False)
class Segment:
    """The kernels of one stage: a loop over chunks, or whole arrays."""

    lowering: Lowering
    loop: Loop | None
    number: int
    equations: list[Equation]
    chunk: int = 0
    parts: int = 1
    offsets: dict[Root, int] = field(default_factory=dict)
    scratch: int = 0  # bytes per point
    sums: int = 0  # bytes of one part's accumulators

    @property
    def kernels(self) -> list[Kernel]:
        return self.lowering.kernels


@dataclass(eq=False, repr=False)
class CPhase:
    """Segments that run as one C function."""

    number: int
    segments: list[Segment]
    outputs: list[Value] = field(default_factory=list)  # what it makes and others read

    @property
    def equations(self) -> list[Equation]:
        return [e for s in self.segments for e in s.equations]


@dataclass(eq=False, repr=False)
class OpPhase:
    """One equation that runs as its op's own forward."""

    equation: Equation


Phase = CPhase | OpPhase


class Stages:
    """The phases of a graph.

    Args:
        graph: what to run.
        patterns: how each equation is lowered; None for those that their ops run.

    Attributes:
        constants: the equations whose results are made with the program.
        draws: the equations whose random numbers generated code draws.
        schedule: the stages.
        phases: in order.
        segments: those of all phases.
        whole: where whole values lie.
        results: for each result, its root.
        foreign: those of dtypes that generated code does not know.
        types: by dtype, the types that it knows.
    """

    types: Mapping[str, str] = C_TYPES

    def __init__(self, graph: Graph, patterns: Mapping[Equation, Pattern | None]) -> None:
        self.graph = graph
        self.patterns = patterns
        self.constants = [e for e, p in patterns.items() if isinstance(p, Constant)]
        self.draws = [e for e, p in patterns.items() if isinstance(p, Random)]
        self.schedule: Schedule = schedule(graph, self.chunked, self.draws.__contains__)
        self.whole: dict[Value, Form] = {v: forms.of(v) for v in graph.inputs}
        self.phases: list[Phase] = []
        self.segments: list[Segment] = []
        self.uses: dict[Value, int] = {}
        for e in graph.equations:
            for v in set(e.values):
                self.uses[v] = self.uses.get(v, 0) + 1
        self.lower()
        self.foreign: list[Root] = []
        self.results = self.finish()

    def chunked(self, e: Equation) -> bool:
        """Whether generated code may run an equation in a loop over a batch."""
        return self.patterns[e] is not None

    def lower(self) -> None:
        free = {v for v, count in self.uses.items() if count == 1} - set(self.graph.kept)
        done: set[Equation] = set()  # additions of a loop's sums
        for stage in self.schedule.stages:
            if isinstance(stage, Loop):
                ends, additions = joined(stage.summed, self.graph.equations, self.patterns, free)
                done.update(additions)
                for v in (*ends.values(), *stage.stored):
                    self.whole.setdefault(v, forms.of(v))
                self.segment([*stage.equations, *additions], stage, ends)
                continue
            for native, equations in self.runs([e for e in stage.equations if e not in done]):
                if native:
                    self.segment(equations)
                    continue
                for e in equations:
                    self.whole.update({v: forms.of(v) for v in e.outputs})
                    self.phases.append(OpPhase(e))

    def runs(self, equations: Sequence[Equation]) -> Iterable[tuple[bool, list[Equation]]]:
        """The equations of a stage in turns of those that C runs and those that their ops run, in few turns."""
        made = {v: e for e in equations for v in e.outputs}
        left = list(equations)
        done: set[Equation] = set()
        native = True
        while left:
            turn: list[Equation] = []
            rest: list[Equation] = []
            for e in left:
                ready = all(made[v] in done for v in e.values if v in made)
                order = not e.op.ordered or not any(r.op.ordered for r in rest)
                if ready and order and (self.patterns[e] is not None) == native:
                    turn.append(e)
                    done.add(e)
                else:
                    rest.append(e)
            if turn:
                yield native, turn
            left, native = rest, not native

    def segment(
        self, equations: Sequence[Equation], loop: Loop | None = None, ends: Mapping[Value, Value] | None = None
    ) -> Segment:
        """Lower a stage, as a part of the last C phase if there is one; ``ends`` is of a loop's sums."""
        found = Lowering(self.patterns, self.whole, loop, ends or {})
        inside: dict[Value, int] = {}
        for e in equations:
            for v in set(e.values):
                inside[v] = inside.get(v, 0) + 1
        made = [v for e in equations for v in e.outputs]
        kept = {v for v in made if v in self.graph.kept or self.uses.get(v, 0) > inside.get(v, 0)}
        found.run(equations if loop is None else loop.equations, kept if loop is None else set())
        segment = Segment(found, loop, len(self.segments), list(equations))
        self.segments.append(segment)
        if not self.phases or isinstance(self.phases[-1], OpPhase):
            self.phases.append(CPhase(sum(isinstance(p, CPhase) for p in self.phases), []))
        last = self.phases[-1]
        assert isinstance(last, CPhase)
        last.segments.append(segment)
        return segment

    def finish(self) -> list[Root]:
        """The root of each result, which nothing else uses; copies of those that are views or inputs."""
        graph = self.graph
        made = {f.root for s in self.segments for k in s.kernels for f in k.outputs} | {
            r for s in self.segments for r in (self.whole[v].root for v in s.lowering.sums)
        }
        copies: list[Kernel] = []
        found: list[Root] = []
        for v in graph.ends:
            form = self.whole[v]
            root = form.root
            if not (form.whole and root in made and root not in found and root.shape == v.shape):
                target = forms.of(v)
                root = target.root
                if v.dtype in self.types:
                    copies.append(Copy(None, (form,), target))
                else:
                    self.foreign.append(root)
            found.append(root)
        if copies:
            segment = self.segment([])
            segment.lowering.kernels = copies
        return found
