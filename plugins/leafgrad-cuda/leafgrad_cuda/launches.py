"""Launches: kernels of sections, each of which has blocks of its own that take rows through phases."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.lowering import memory
from leafgrad.lowering.forms import Root
from leafgrad.lowering.stages import Segment
from leafgrad_cuda.writer import Task

THREADS = 256
BLOCKS = 1024  # of a section over whole arrays at most


@dataclass(frozen=True, eq=False, repr=False)
class Group:
    """Tasks of which a thread does an item each, in turn.

    Attributes:
        starts: of each task, at which item of the group its first is done.
    """

    tasks: Sequence[Task]
    starts: Sequence[int] = (0,)

    @property
    def count(self) -> int:
        return self.tasks[0].count

    @property
    def operations(self) -> int:
        return sum(t.operations for t in self.tasks)

    @property
    def terms(self) -> int:
        return sum(t.terms for t in self.tasks)


Phase = Sequence[Group]


@dataclass(eq=False, repr=False)
class Section:
    """What some blocks of a launch do.

    Attributes:
        phases: groups of tasks that are independent of each other. Between phases a block waits for its threads alone.
        rows: in how many equal parts items of all groups are taken, each through all phases; 0: items one by one.
        blocks: of which each takes rows, or items, in turn.
    """

    phases: list[Phase]
    rows: int = 0
    blocks: int = 1

    @property
    def tasks(self) -> list[Task]:
        return [t for phase in self.phases for group in phase for t in group.tasks]

    @property
    def scan(self) -> Task | None:
        """The recurrence, if it is one, which is alone."""
        return next((t for t in self.tasks if t.steps), None)

    @property
    def squares(self) -> list[Task]:
        """The products by squares, if it is some: nothing else is beside them."""
        return [t for t in self.tasks if t.tile]


@dataclass(eq=False, repr=False)
class Launch:
    """One kernel.

    Attributes:
        sections: which share its blocks; of a loop one, whose rows are chunks.
        segment: the loop, if it is one.
        chunk: points of a chunk.
        threads, shared: of a block, and bytes of its shared memory.
        offsets: where a loop's roots lie in shared memory.
        spilled: those that do not fit, with their place in a block's part of global memory.
        spill: that memory.
        partial: for each accumulator, the memory that has one for each block.
    """

    number: int
    sections: list[Section]
    segment: Segment | None = None
    chunk: int = 0
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
    def blocks(self) -> int:
        return sum(s.blocks for s in self.sections)

    @property
    def phases(self) -> list[Phase]:
        return [phase for s in self.sections for phase in s.phases]

    @property
    def tasks(self) -> list[Task]:
        return [t for s in self.sections for t in s.tasks]

    @property
    def squares(self) -> list[Task]:
        """The products by squares."""
        return [t for t in self.tasks if t.tile]

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
            found += sorted(t.reads if reads else t.writes, key=t.known.index)
        roots = [self.partial.get(r, r) for r in found if r not in self.private]
        return list(dict.fromkeys([*roots, *([self.spill] if self.spill else [])]))

    @property
    def steps(self) -> memory.Step:
        """What it touches, as a step of memory: all of it lives through phases that it has more than one of."""
        reads, writes = self.touched(reads=True), self.touched(reads=False)
        if self.segment is None and any(len(s.phases) > 1 for s in self.sections):
            reads = writes = list(dict.fromkeys([*reads, *writes]))
        return memory.Step(reads, writes)


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


def section(phase: Phase) -> Section:
    """Items of one phase, on as many blocks as they fill."""
    items = sum(group.count for group in phase)
    return Section([phase], blocks=min(BLOCKS, -(-items // share(phase[0].tasks[0]))))


def step(phase: Phase, ours: Callable[[Root], bool]) -> memory.Step:
    """A phase as a step of memory."""
    reads: dict[Root, None] = {}
    writes: dict[Root, None] = {}
    for t in (t for group in phase for t in group.tasks):
        reads.update(dict.fromkeys(r for r in t.known if r in t.reads and ours(r)))
        writes.update(dict.fromkeys(r for r in t.known if r in t.writes and ours(r)))
    return memory.Step(list(reads), list(writes))


def memory_size(dtype: str) -> int:
    """Bytes of an element."""
    digits = re.sub(r"\D", "", dtype)
    return int(digits) // 8 if digits else 1
