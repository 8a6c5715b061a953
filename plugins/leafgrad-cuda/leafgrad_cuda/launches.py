"""Launches: groups of tasks in phases, and when each can run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.lowering import memory
from leafgrad.lowering.forms import Root
from leafgrad.lowering.stages import Segment
from leafgrad_cuda.writer import Task

THREADS = 256
SMALL = 2048  # items of neighbouring phases that one block does, with barriers between, rather than several launches
LITTLE = 1 << 14  # operations of such a phase

Group = Sequence[Task]  # as many items each, of which a thread does the same one of all tasks in turn
Phase = Sequence[Group]


@dataclass(eq=False, repr=False)
class Launch:
    """One kernel.

    Attributes:
        phases: groups of tasks that are independent of each other; of a loop, those of a chunk.
        segment: the loop, if it is one.
        chunk: points of a chunk.
        blocks, threads, shared: how it is launched; ``shared`` in bytes.
        offsets: where a loop's roots lie in shared memory.
        spilled: those that do not fit, with their place in a block's part of global memory.
        spill: that memory.
        partial: for each accumulator, the memory that has one for each block.
    """

    number: int
    phases: list[Phase]
    segment: Segment | None = None
    chunk: int = 0
    blocks: int = 1
    threads: int = THREADS
    shared: int = 0
    offsets: dict[Root, int] = field(default_factory=dict)
    spilled: dict[Root, int] = field(default_factory=dict)
    spill: Root | None = None
    partial: dict[Root, Root] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"lg_{'loop' if self.segment else 'whole'}{self.number}"

    @property
    def scan(self) -> Task | None:
        """The recurrence, if it is one, which is alone."""
        return next((t for t in self.tasks if t.steps), None)

    @property
    def squares(self) -> list[Task]:
        """The products by squares, if it is some: nothing else is beside them."""
        return [t for t in self.tasks if t.tile]

    @property
    def tasks(self) -> list[Task]:
        return [t for phase in self.phases for group in phase for t in group]

    @property
    def equations(self) -> list[Equation]:
        return list(dict.fromkeys(e for t in self.tasks for e in t.equations))

    @property
    def length(self) -> int:
        """Rows of the batch."""
        return self.segment.loop.length if self.segment and self.segment.loop else 0

    @property
    def chunks(self) -> int:
        return -(-self.length // self.chunk)

    @property
    def stops(self) -> bool:
        return any(t.failures for t in self.tasks)

    @property
    def private(self) -> set[Root]:
        """What only its blocks see."""
        return {*self.offsets, *self.spilled}

    def touched(self, reads: bool) -> list[Root]:
        """The roots outside of it that it reads, or writes, in order."""
        found: list[Root] = []
        for t in self.tasks:
            found += sorted(t.reads if reads else t.writes, key=t.pointers.index)
        roots = [self.partial.get(r, r) for r in found if r not in self.private]
        return list(dict.fromkeys([*roots, *([self.spill] if self.spill else [])]))


@dataclass(eq=False, repr=False)
class OpRun:
    """An equation that its op runs, and why."""

    equation: Equation
    inputs: dict[Value, Root]
    why: str


Part = Launch | OpRun


@dataclass(eq=False, repr=False)
class Capture:
    """Launches that are one CUDA graph, which the host starts at once."""

    launches: list[Launch]


def course(parts: Sequence[Part]) -> list[Capture | OpRun]:
    """Parts with all launches between two ops as one graph."""
    found: list[Capture | OpRun] = []
    for part in parts:
        if isinstance(part, OpRun):
            found.append(part)
        elif found and isinstance(found[-1], Capture):
            found[-1].launches.append(part)
        else:
            found.append(Capture([part]))
    return found


def share(task: Task) -> int:
    """How many items a block takes at a time: of a recurrence, whole rows."""
    if task.tile is not None:
        return 1
    return THREADS // task.row * task.row or task.row


def small(phase: Phase) -> bool:
    """Whether one block does a phase as fast as a launch of its own would begin."""
    if any(t.steps or t.tile for group in phase for t in group):
        return False
    each = [(group[0].count, sum(t.operations for t in group)) for group in phase]
    return sum(count for count, _ in each) <= SMALL and sum(count * work for count, work in each) <= LITTLE


@dataclass(eq=False, repr=False)
class Level:
    """A group, when it runs, and when the first runs that needs it."""

    tasks: list[Task]
    at: int
    needed: float = math.inf

    def follows(self, task: Task) -> bool:
        """Whether item i of ``task`` needs of this group what item i made, and nothing else."""
        met = {r for t in self.tasks for r in t.writes} & (task.reads | task.writes)
        even = all(r in t.flat for t in self.tasks for r in met & (t.reads | t.writes)) and met <= task.flat
        return self.tasks[0].count == task.count and even and not task.again


def levels(waiting: Sequence[Task]) -> list[list[Group]]:
    """Tasks by when they can run: after all that make what they read; with those that make it item by item."""
    groups: list[Level] = []
    makers: dict[Root, list[Level]] = {}
    for task in waiting:
        read = (*task.reads, *(task.writes if task.again else ()))
        before = list(dict.fromkeys(g for r in read for g in makers.get(r, ())))
        joined = [g for g in before if g.follows(task)]
        at = max([*(g.at + 1 for g in before if g not in joined), *(g.at for g in joined)], default=0)
        joined = [g for g in joined if g.at == at or g.needed > at]
        mine = Level(sorted([*(t for g in joined for t in g.tasks), task], key=waiting.index), at)
        mine.needed = min([g.needed for g in joined], default=math.inf)
        for g in before:
            if g not in joined:
                g.needed = min(g.needed, at)
        groups = [g for g in groups if g not in joined] + [mine]
        for made in makers.values():
            made[:] = dict.fromkeys(mine if g in joined else g for g in made)
        for r in task.writes:
            makers.setdefault(r, []).append(mine)
    found: list[list[Group]] = [[] for _ in range(max((g.at for g in groups), default=-1) + 1)]
    for g in groups:
        found[g.at].append(g.tasks)
    return found


def step(phase: Phase, ours: Callable[[Root], bool]) -> memory.Step:
    """A phase as a step of memory."""
    reads: dict[Root, None] = {}
    writes: dict[Root, None] = {}
    for t in (t for group in phase for t in group):
        reads.update(dict.fromkeys(r for r in t.pointers if r in t.reads and ours(r)))
        writes.update(dict.fromkeys(r for r in t.pointers if r in t.writes and ours(r)))
    return memory.Step(list(reads), list(writes))


def memory_size(dtype: str) -> int:
    """Bytes of an element."""
    digits = re.sub(r"\D", "", dtype)
    return int(digits) // 8 if digits else 1
