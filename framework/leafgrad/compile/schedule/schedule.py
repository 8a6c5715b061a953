"""Order of execution: stages that run whole, and loops over chunks of a batch with sums kept across them.

A chunk of some hundred rows keeps everything that a training step makes of them in cache. The batch enters
with the inputs; ``axes`` follows it through the equations. A sum over the batch is complete only after the
loop, so whatever depends on it belongs to a later stage: the rank of a value counts the loops before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from leafgrad.compile.ir.graph import Equation, Graph, Value, Write
from leafgrad.compile.ir.sources import Argument, Captured
from leafgrad.compile.schedule.axes import Carried, carried

SMALLEST_BATCH = 64


@dataclass
class Loop:
    """Equations that run once per chunk of a batch of ``length`` rows.

    Attributes:
        sliced: values from outside that each chunk reads a slice of, with the axis.
        summed: values that are sums over the batch.
        stored: values made here, with their axis, that are needed whole or in a later loop.
        axis: the batch axis of each value that a chunk makes.
        carried: what each equation does to the batch.
        reads: for each input of an equation that is a slice, its axis.
    """

    length: int
    rank: int
    equations: list[Equation] = field(default_factory=list)
    sliced: dict[tuple[Value, int], None] = field(default_factory=dict)
    summed: list[Value] = field(default_factory=list)
    stored: dict[Value, int] = field(default_factory=dict)
    axis: dict[Value, int] = field(default_factory=dict)
    carried: dict[Equation, Carried] = field(default_factory=dict)
    reads: dict[tuple[Equation, int], int] = field(default_factory=dict)


@dataclass
class Whole:
    """Equations that run once, on whole arrays."""

    rank: int
    equations: list[Equation] = field(default_factory=list)


Stage = Whole | Loop


@dataclass
class Schedule:
    """Stages in order, why equations that touch a batch were not chunked, and why no batch of some length was."""

    stages: list[Stage]
    unchunked: list[tuple[Equation, str]]
    given_up: list[tuple[int, str]] = field(default_factory=list)


Choice = Callable[[Equation], bool]
Objection = Callable[[Sequence[Loop]], str | None]


def schedule(
    graph: Graph, fits: Choice = lambda _: True, counted: Choice = lambda _: False, against: Objection = lambda _: None
) -> Schedule:
    """Split the graph into stages; only equations that ``fits`` agrees to may run in a loop.

    Those that are ``counted`` draw random numbers by a counter, any rows of which can be had on their own: in the loop
    that reads them first.

    What only a later loop reads is made there. A batch whose loops store much of what they make even so, since
    something between them needs it whole, is not chunked: the traffic costs more than the cache saves. Nor is one whose
    loops have something ``against`` them, which that says.
    """
    lengths = batch_lengths(graph)
    given_up: list[tuple[int, str]] = []
    while True:
        first = Scheduler(graph, lengths, fits, counted)
        found = first.run()
        if len({(n, r) for n, r in first.loops}) > len({n for n, _ in first.loops}):
            found = Scheduler(graph, lengths, fits, counted, first.latest()).run()
        loops = [s for s in found.stages if isinstance(s, Loop)]
        own = {n: [loop for loop in loops if loop.length == n] for n in lengths}
        left = [(n, why) for n in lengths if own[n] and (why := torn_apart(own[n], graph.kept) or against(own[n]))]
        if not left:
            found.given_up = given_up
            return found
        given_up += left
        lengths = [n for n in lengths if n not in dict(left)]


def torn_apart(loops: Sequence[Loop], kept: set[Value]) -> str | None:
    """Against several loops over one batch that store more than an eighth of the values that they make."""
    stored = sum(len(loop.stored.keys() - kept) for loop in loops)
    if len(loops) > 1 and 8 * stored > sum(len(loop.axis) for loop in loops):
        return "whose loops would mostly store for each other"
    return None


def batches(graph: Graph) -> set[Value]:
    """The inputs whose first axis may be a batch: those that the program does not write, as it does weights."""
    written = {e.source for e in graph.effects if isinstance(e, Write)}
    return {v for v, s in graph.inputs.items() if v.ndim and s not in written}


def batch_lengths(graph: Graph) -> list[int]:
    """Lengths of the first axis of inputs that are worth a loop, by the size of what carries them.

    Weights that nobody trains have as many rows as a batch may have: of what the function captures, much must be made,
    row by row.
    """
    known = [(v, graph.inputs[v]) for v in batches(graph)]
    given = {v.shape[0] for v, source in known if isinstance(source, Argument)}
    least = dict.fromkeys(given, 0)
    for v, source in known:
        if isinstance(source, Captured) and v.shape[0] not in given:
            least[v.shape[0]] = max(least.get(v.shape[0], 0), math.prod(v.shape) // 8)
    weight: Counter[int] = Counter()
    made: Counter[int] = Counter()
    for equation in graph.equations:
        for v in equation.outputs:
            for n in set(v.shape) & least.keys():
                weight[n] += math.prod(v.shape)
                rows = n in (v.shape[:-1] or v.shape) and "view" not in equation.op.traits
                made[n] += math.prod(v.shape) if rows else 0
    return [n for n, size in weight.most_common() if n >= SMALLEST_BATCH and size >= 4 * n and made[n] >= least[n]]


class Scheduler:
    """Walks the equations once, giving each a loop or a whole stage."""

    def __init__(
        self,
        graph: Graph,
        lengths: Sequence[int],
        fits: Choice,
        counted: Choice,
        late: dict[Equation, int] | None = None,
    ) -> None:
        self.graph = graph
        self.lengths = lengths
        self.fits = fits
        self.counted = counted
        self.late = late or {}  # the least rank of equations
        self.batches = batches(graph)
        self.rank: dict[Value, int] = dict.fromkeys(graph.inputs, 0)  # whole values: before which loops they exist
        self.home: dict[Value, Loop] = {}  # batch values: the loop that makes them
        self.loops: dict[tuple[int, int], Loop] = {}
        self.wholes: dict[int, Whole] = {}
        self.unchunked: list[tuple[Equation, str]] = []
        self.last = 0  # the rank of the last equation whose op is ordered
        self.waiting: dict[Value, Equation] = {}  # counted random numbers and what follows from them, so far unread

    def run(self) -> Schedule:
        for equation in self.graph.equations:
            if self.waits(equation):
                self.waiting[equation.out] = equation
                self.rank[equation.out] = max([self.rank[v] for v in equation.values], default=self.last)
            elif not (self.fits(equation) and any(self.try_loop(equation, n) for n in self.lengths)):
                self.whole(equation)
        for value in (*self.graph.ends, *self.waiting):
            self.need_whole(value)
        stages: list[Stage] = []
        last = max([*self.wholes, *(r for _, r in self.loops)], default=-1)
        for rank in range(last + 1):
            if rank in self.wholes:
                stages.append(self.wholes[rank])
            stages += [loop for (_, r), loop in self.loops.items() if r == rank]
        return Schedule(stages, self.unchunked)

    def waits(self, equation: Equation) -> bool:
        """Whether it is for those who read the result to say where it is made."""
        values, traits = equation.values, equation.op.traits
        follows = bool(values) and not equation.several and "elementwise" in traits and "random" not in traits
        follows = follows and self.fits(equation)
        return self.counted(equation) or (
            follows and all(v in self.waiting and v.shape == equation.out.shape for v in values)
        )

    def try_loop(self, equation: Equation, length: int) -> bool:
        """Put the equation into a loop over ``length`` if its inputs carry that batch and its rule allows it."""
        axes: list[int | None] = []
        rank = self.late.get(equation, 0)
        for v in equation.inputs:
            axis = None
            if isinstance(v, Value):
                home = self.home.get(v)
                if home is not None and home.length == length:
                    axis = home.axis[v]
                    rank = max(rank, home.rank)
                elif home is not None:
                    rank = max(rank, home.rank + 1)
                else:
                    rank = max(rank, self.rank[v])
                    if v in self.batches and v.shape[0] == length:
                        axis = 0
            axes.append(axis)
        if all(a is None for a in axes):
            return False
        found = carried(equation, axes, length)
        if found is None:
            return False
        loop = self.loops.setdefault((length, rank), Loop(length, rank))
        self.enter(loop, equation, found, axes)
        return True

    def enter(self, loop: Loop, equation: Equation, found: Carried, axes: list[int | None]) -> None:
        for i, v in enumerate(equation.inputs):
            if not isinstance(v, Value):
                continue
            axis = axes[i] if axes[i] is not None else found.slices.get(i)
            if v in self.waiting:
                self.make(v, loop if axis == 0 and v.shape[0] == loop.length else None)
            home = self.home.get(v)
            if home is loop:
                continue
            if home is not None:
                home.stored[v] = home.axis[v]
            if axis is not None:
                loop.sliced[(v, axis)] = None
                loop.reads[(equation, i)] = axis
        loop.equations.append(equation)
        loop.carried[equation] = found
        if found.axis is None:
            loop.summed.append(equation.out)
            self.rank[equation.out] = loop.rank + 1
            return
        for out in equation.outputs:
            loop.axis[out] = found.axis
            self.home[out] = loop

    def latest(self) -> dict[Equation, int]:
        """For each equation, the last rank that serves all who read its result; random numbers stay in order."""
        last: Counter[int] = Counter()
        rank = {e: whole.rank for whole in self.wholes.values() for e in whole.equations}
        home: dict[Equation, Loop] = {}
        for (length, r), found in self.loops.items():
            last[length] = max(last[length], r)
            home.update(dict.fromkeys(found.equations, found))
        readers = self.graph.uses()
        for e in reversed(self.graph.equations):
            loop = home.get(e)
            bounds = [max(last.values()) + 1 if loop is None else last[loop.length]]
            for reader in (r for v in e.outputs for r in readers.get(v, ())):
                here = loop is None or (reader in home and home[reader].length == loop.length and e.out in loop.axis)
                bounds.append(rank[reader] if here else rank[reader] - 1)
            if loop is not None or not e.op.ordered:
                rank[e] = max(rank[e] if loop is None else loop.rank, min(bounds))
        return rank

    def make(self, value: Value, loop: Loop | None) -> None:
        """Make waiting random numbers before the equation that is being entered, in its loop or whole."""
        equation = self.waiting.pop(value)
        if loop is None:
            self.whole(equation)
            return
        for v in equation.values:
            if v in self.waiting:
                self.make(v, loop)
        axes = [0 if isinstance(v, Value) and self.home.get(v) is loop else None for v in equation.inputs]
        slices = {i: 0 for i, v in enumerate(equation.inputs) if isinstance(v, Value) and axes[i] is None}
        self.enter(loop, equation, Carried(0, slices, resized=not equation.inputs), axes)

    def whole(self, equation: Equation) -> None:
        rank = max(self.rank.get(equation.outputs[0], 0), self.late.get(equation, 0))
        for v in equation.values:
            self.need_whole(v)
            rank = max(rank, self.home[v].rank + 1 if v in self.home else self.rank[v])
            if v in self.home:
                self.unchunked.append((equation, f"needs its input of shape {v.shape} whole"))
        if equation.op.ordered and not self.counted(equation):
            rank = self.last = max(rank, self.last)
        self.wholes.setdefault(rank, Whole(rank)).equations.append(equation)
        for v in equation.outputs:
            self.rank[v] = rank

    def need_whole(self, value: Value) -> None:
        if value in self.waiting:
            self.make(value, None)
        home = self.home.get(value)
        if home is not None:
            home.stored[value] = home.axis[value]
