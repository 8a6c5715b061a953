"""A graph as a list of launches: which kernels there are, where each array lies, and the text."""

from __future__ import annotations

import math

from leafgrad.compile.ir.graph import Equation, Graph, Value, Write
from leafgrad.compile.schedule.schedule import batch_lengths
from leafgrad.lowering import memory
from leafgrad.lowering.expressions import STORED
from leafgrad.lowering.forms import Root, full
from leafgrad.lowering.stages import CPhase, OpPhase, Segment, Stages
from leafgrad_cuda.along import added
from leafgrad_cuda.fusion import MOST, launches
from leafgrad_cuda.kernels import copy, keep, tasks
from leafgrad_cuda.launches import Group, Launch, OpRun, Part, Phase, Section, course, memory_size, section, step
from leafgrad_cuda.patterns import large, pattern
from leafgrad_cuda.text import Text
from leafgrad_cuda.writer import QUAD, Failure, Functions, Item, Refused, Task, pitch

CHUNKS = range(76, 16, -8)  # points of a chunk, an odd number of quads, of which its lanes need no pad
FIRST = 40  # points that a chunk takes the time of, beside its own
WIDEST = 32  # points of which one array may take half of a block's memory; of wider ones whole arrays are made
LOOP = 384  # threads of a block of a loop


class CudaPlan(Stages):
    """Everything about a program but its compiled code.

    Args:
        graph: what to run.
        limit: bytes of shared memory that a block may have.
        processors: of the GPU.

    Attributes:
        parts: launches, and equations that ops run, in order.
        course: the same, with launches in a row as one CUDA graph.
        delivery: launches that write results into tensors, by the values of effects; a graph of their own.
        slots: roots that are arrays of their own at each call: inputs, results, what ops read and make, constants; by
            their place in the table of addresses, of which the flag has the first.
        offsets, arena: where the others lie, and how many bytes that takes.
        refused: why equations have no kernel.
        failures: why it may find that it cannot go on; their numbers are those of kernels.
        kept: whether what it writes into tensors is what they held, where it cannot.
    """

    types = STORED

    def __init__(self, graph: Graph, limit: int, processors: int = 132) -> None:
        self.limit, self.processors = limit, processors
        self.lengths = batch_lengths(graph)
        self.names = graph.named()
        self.refused: dict[Equation, str] = {}
        while True:
            try:
                self.build(graph)
                return
            except Refused as refused:
                if refused.equation is None or refused.equation in self.refused:
                    raise
                self.refused[refused.equation] = str(refused)

    def build(self, graph: Graph) -> None:
        patterns = {e: None if e in self.refused else pattern(e) for e in graph.equations}
        super().__init__(graph, patterns)
        self.functions = Functions(self.draws)
        self.parts: list[Part] = []
        self.waiting: list[Task] = []  # of whole arrays, since the last loop or op
        for phase in self.phases:
            if isinstance(phase, OpPhase):
                self.op(phase)
            else:
                self.lowered(phase)
        failing = any(t.failures for t in [*self.waiting, *(t for launch in self.launches for t in launch.tasks)])
        self.kept = self.keep() if failing else True
        self.flush()
        self.failures: list[Failure] = []
        self.first: dict[Task, int] = {}
        for task in (t for launch in self.launches for t in launch.tasks):
            self.first[task] = len(self.failures)
            self.failures += task.failures
        self.delivery, self.targets = self.deliver()
        self.course = course(self.parts)
        self.place()

    def chunked(self, e: Equation) -> bool:
        """Not where one array of the shortest chunk takes half of a block's memory: whole arrays keep a GPU busier.
        Nor products of large matrices, which each block would read.
        """
        if large(e, self.patterns[e]):
            return False
        rows = [self.row(v) for v in (*e.values, *e.outputs)]
        return super().chunked(e) and max(rows, default=0) * (WIDEST + 1) <= self.limit // 2

    def row(self, v: Value) -> int:
        """Bytes of a row of a batch; 0 of what has none."""
        rows = [math.prod(v.shape) // n for n in self.lengths if n in v.shape]
        return min(rows, default=0) * memory_size(v.dtype)

    # ---- launches ---------------------------------------------------------------------------------------------

    def lowered(self, phase: CPhase) -> None:
        for segment in phase.segments:
            if segment.loop is not None:
                self.flush()
                self.loop(segment)
            else:
                self.waiting += [t for k in segment.kernels for t in tasks(k, self.functions, 0) if t.count]

    @property
    def writes(self) -> list[tuple[Write, Root]]:
        """The effects that write into tensors, and the result that each writes."""
        effects = [e for e in self.graph.effects if e.value is not None]
        roots = self.results[len(self.graph.results) :]
        return [(e, root) for e, root in zip(effects, roots, strict=True) if isinstance(e, Write)]

    def deliver(self) -> tuple[list[Launch], list[tuple[Root, Root]]]:
        """Launches that write into tensors, and each result with where it is written to."""
        pairs = [(root, Root(root.shape, root.dtype)) for _, root in self.writes]
        if any(root in self.foreign for root, _ in pairs):
            return [], []
        launches: list[Launch] = []
        for k in range(0, len(pairs), MOST):
            phase = [
                Group([copy(Item(self.functions, 0, "copy", []), full(a), full(b))]) for a, b in pairs[k : k + MOST]
            ]
            launches.append(Launch(len(self.parts) + len(launches), [section(phase)]))
        return launches, pairs

    def keep(self) -> bool:
        """What is written into tensors becomes what they held, if the program cannot go on; whether all of it does."""
        given = {source: v for v, source in self.graph.inputs.items()}
        known = True
        for effect, root in self.writes:
            if effect.source in given and root not in self.foreign:
                old = self.whole[given[effect.source]]
                self.waiting.append(keep(Item(self.functions, 0, "keep", []), old, full(root)))
            else:
                known = False
        return known

    def error(self, flag: int) -> Exception:
        """What to raise for what kernels told the flag."""
        number, index = (flag >> 40) - 1, (flag & (1 << 40) - 1) - (1 << 39)
        equation, error, text = self.failures[number]
        return error(
            f"{text.format(index=index)} ({equation.name}, from {equation.line}); a kernel found it in an "
            "earlier call: tensors hold what they held before that call, and what it and later ones returned is void"
        )

    def op(self, phase: OpPhase) -> None:
        """What an op reads are arrays of their own: of parts of others, copies."""
        inputs = {}
        for v in phase.equation.values:
            form = self.whole[v]
            if form.whole and form.root in self.standing:
                inputs[v] = form.root
            else:
                target = full(Root(v.shape, v.dtype))
                self.waiting.append(copy(Item(self.functions, 0, "copy", []), form, target))
                inputs[v] = target.root
        self.flush()
        self.parts.append(OpRun(phase.equation, inputs, self.why(phase.equation)))

    @property
    def standing(self) -> set[Root]:
        """Roots that are arrays of their own anyway."""
        values = [*self.graph.inputs, *(e.out for e in self.constants)]
        values += [v for p in self.phases if isinstance(p, OpPhase) for v in p.equation.outputs]
        return {self.whole[v].root for v in values} | set(self.results)

    def why(self, equation: Equation) -> str:
        """Why an equation has no kernel."""
        if equation in self.refused:
            return self.refused[equation]
        unknown = sorted({v.dtype for v in (*equation.values, *equation.outputs)} - STORED.keys())
        if unknown:
            return f"kernels know no {unknown[0]}"
        rules = [name for name in ("cuda", "native") if name in equation.op.lowering]
        if not rules and equation.op.c is None:
            return "the op has neither a C expression nor a lower rule"
        return "no kernel does what its rule asks for, or a library does it faster"

    def flush(self) -> None:
        """Launches of what waits, as early as they can run, in as few as may be."""
        for sections in launches(self.waiting):
            launch = Launch(len(self.parts), sections)
            launch.shared = max((t.tile.shared for t in launch.squares if t.tile), default=0)
            self.parts.append(launch)
        self.waiting = []

    def loop(self, segment: Segment) -> None:
        """A loop as one kernel. What finds no room in shared memory lies in global memory: arrays that wait longest."""
        assert segment.loop is not None
        chunk = self.chunk(segment)
        launch = Launch(len(self.parts), [Section(self.chunk_phases(segment, chunk))], segment, chunk, threads=LOOP)
        self.place_chunk(launch)
        launch.sections[0].blocks = min(self.processors, launch.chunks)
        if launch.spilled:
            size = sum(memory.rounded(self.bytes(r, launch.chunk)) for r in launch.spilled)
            launch.spill = Root((launch.blocks, size), "uint8")
        sums = {self.whole[v].root: root for v, root in segment.lowering.sums.items()}
        for whole, root in sums.items():
            partial = launch.partial[root] = Root((launch.blocks, *root.shape), root.dtype)
            self.waiting += added(lambda: Item(self.functions, 0, "added", []), full(partial), full(whole))
        self.parts.append(launch)

    def chunk(self, segment: Segment) -> int:
        """How many points a block takes at once, so that all processors are done soon."""
        assert segment.loop is not None
        length, drawn = segment.loop.length, any(e in self.draws for e in segment.equations)
        chunks = [c - QUAD for c in CHUNKS] if drawn else CHUNKS  # a chunk's numbers are of whole counters

        def time(chunk: int) -> int:
            return -(-length // chunk // self.processors) * (FIRST + chunk)

        return min(reversed(chunks), key=time)

    def chunk_phases(self, segment: Segment, chunk: int) -> list[Phase]:
        """A chunk's tasks in their order, those together that do not need each other."""
        found: list[list[Group]] = []
        written: set[Root] = set()
        busy: set[Root] = set()
        for kernel in segment.kernels:
            for task in tasks(kernel, self.functions, chunk):
                clash = task.reads & written or (task.again and task.writes & written) or task.writes & busy
                if not found or clash or len(found[-1]) >= MOST:
                    found.append([])
                    written, busy = set(), set()
                found[-1].append(Group([task]))
                written |= task.writes
                busy |= task.reads
        return list(found)

    @staticmethod
    def bytes(root: Root, chunk: int) -> int:
        return root.lanes * pitch(chunk) * memory_size(root.dtype)

    def place_chunk(self, launch: Launch) -> None:
        """Where a chunk's arrays lie."""
        steps = [step(phase, lambda r: r.axis is not None) for phase in launch.phases]
        uses: dict[Root, list[int]] = {}
        for k, s in enumerate(steps):
            for r in (*s.reads, *s.writes):
                uses.setdefault(r, []).append(k)
        size = {r: self.bytes(r, launch.chunk) for r in uses}
        offsets, total = memory.place(steps, size)
        waits = sorted(uses, key=lambda r: (uses[r][-1] - uses[r][0]) / len(uses[r]) * size[r])
        at = 0
        while total > self.limit and waits:
            root = waits.pop()
            launch.spilled[root] = at
            at += memory.rounded(size.pop(root))
            offsets, total = memory.place(steps, size)
        launch.offsets, launch.shared = offsets, total

    # ---- memory -----------------------------------------------------------------------------------------------

    def place(self) -> None:
        self.slots: dict[Root, int] = {}
        arrays = [*(self.whole[v].root for v in self.graph.inputs), *self.results]
        arrays += [self.whole[e.out].root for e in self.constants]
        for part in self.parts:
            if isinstance(part, OpRun):
                arrays += [*part.inputs.values(), *(self.whole[v].root for v in part.equation.outputs)]
        arrays += [target for _, target in self.targets]
        for root in arrays:
            self.slots.setdefault(root, 1 + len(self.slots))
        steps = [
            part.steps if isinstance(part, Launch) else memory.Step(list(part.inputs.values()), ())
            for part in self.parts
        ]
        ours = {*self.slots, self.functions.words}
        used = dict.fromkeys(r for s in steps for r in (*s.reads, *s.writes) if r not in ours)
        size = {r: self.size(r) for r in used}
        self.offsets, self.arena = memory.place(steps, size)

    def size(self, root: Root) -> int:
        """Bytes of an array."""
        return math.prod(root.shape) * memory_size(root.dtype)

    def traffic(self, launch: Launch) -> int:
        """Bytes that a launch reads from global memory, and writes there, at least."""
        sizes = [self.size(r) for reads in (True, False) for r in launch.touched(reads)]
        return sum(sizes) + (2 * (launch.chunks - launch.blocks) * launch.spill.shape[1] if launch.spill else 0)

    def flops(self, launch: Launch) -> int:
        """About how many floating-point operations it does."""
        return sum(t.count * t.operations for t in launch.tasks) * (launch.chunks if launch.segment else 1)

    @property
    def launches(self) -> list[Launch]:
        return [p for p in self.parts if isinstance(p, Launch)]

    @property
    def kernels(self) -> list[Launch]:
        return [*self.launches, *self.delivery]

    def code(self) -> str:
        """The text of all kernels: CUDA, and C where it is emulated. Nothing in it depends on names or addresses."""
        return Text(self).code()
