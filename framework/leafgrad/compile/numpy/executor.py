"""The NumPy executor: a graph as straight-line Python over preallocated arrays.

Stages follow one another in one generated function. A loop takes its chunks from a list of (start, stop, arrays),
where the arrays are the scratch buffers seen in every shape that the chunk needs; every elementwise op and
matrix product writes into one of them, so that a chunk allocates nothing.

The length of chunks follows from a model, so that results are the same to the last bit at each run: sums over the
batch depend on where it is cut. ``LEAFGRAD_TUNE=1`` measures instead, once per program and process.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leafgrad import backends
from leafgrad.compile.ir.admitted import SETTLED, Settled
from leafgrad.compile.ir.graph import Graph, itemsize
from leafgrad.compile.numpy.chunks import FEW
from leafgrad.compile.numpy.emit import emit
from leafgrad.compile.numpy.parallel import Groups, group_count, has_room
from leafgrad.compile.numpy.scratch import Scratch, ScratchProgram
from leafgrad.compile.numpy.writer import stored
from leafgrad.compile.schedule.schedule import Loop, Objection, Schedule, schedule
from leafgrad.ops.matmul import contract, matmul
from leafgrad.threads import get_num_threads

CACHE_BYTES = 8 << 20  # what the buffers of a chunk should fit into: a core's share of the last-level cache
LARGE = 96 << 20  # bytes that a program makes of a batch, in all, from which on chunks of it are faster
DENSE = 8  # multiplications in products for each other element; with more, so much more must be made
WIDE = 32  # from this width of a layer on, a product repacks a chunk that is longer than one block of BLAS
BLAS_ROWS = 400
CANDIDATES = (0.25, 0.5, 1.0, 1.5, 2.0)  # multiples of the model's chunk that are tried
CALLS = 5  # on one thread and then on several, before the faster is chosen
MARGIN = 0.95
SHARES = 4  # chunks at least, where each has enough to do: what four threads can share
_MEASURED: dict[tuple[int, ...], int] = {}


class NumpyPlan:
    """All of a program but its memory, whose sizes may be Extents.

    Args:
        graph: what to run.
        against: what speaks against loops over a batch, if anything does.

    Attributes:
        schedule: the stages.
        program: their source.
        works: elements that each loop computes for a row.
        wide: whether each loop has a wide product.
        ordered: whether an op's calls stay in order, so that the program is not to be tried.
    """

    def __init__(self, graph: Graph, against: Objection | None = None) -> None:
        self.graph = graph
        self.schedule: Schedule = schedule(graph, lambda e: not stored(e), against=against or better_whole)
        self.program: ScratchProgram = emit(graph, self.schedule)
        self.loops = [s for s in self.schedule.stages if isinstance(s, Loop)]
        self.works = [work(loop) for loop in self.loops]
        self.wide = [has_wide_product(loop) for loop in self.loops]
        self.ordered = any(e.op.ordered for e in graph.equations)

    def at(self, settled: Settled) -> NumpyProgram:
        """The program for these sizes."""
        return NumpyProgram(self, settled=settled)


class NumpyProgram:
    """A graph, ready to run on NumPy arrays.

    Args:
        plan: what to run, or its graph.
        rows: rows per chunk of all loops that there can be; None leaves loops and rows to the model, or rows to a
            measurement under LEAFGRAD_TUNE=1.
        settled: the sizes that the plan leaves open.

    Attributes:
        schedule: the stages.
        scratches: the memory that each asks for.
        loops: of these, the loops.
        batches: the memory of each loop.
        chunk: rows per chunk of each loop.
    """

    def __init__(self, plan: NumpyPlan | Graph, rows: int | None = None, settled: Settled = SETTLED) -> None:
        self.xp = backends.by_device_type("cpu").xp
        if not isinstance(plan, NumpyPlan):
            plan = NumpyPlan(plan) if rows is None else NumpyPlan(plan, against=lambda loops: None)
        self.plan = plan
        self.graph, self.schedule = plan.graph, plan.schedule
        self.scratches = [scratch.at(settled) for scratch in plan.program.scratch]
        self.loops = plan.loops
        self.batches = [scratch for scratch in self.scratches if scratch.length]
        self.works = [settled(work) for work in plan.works]
        self.chunk = [self.model(loop, i) if rows is None else rows for i, loop in enumerate(self.batches)]
        self.tuned = not self.loops or plan.ordered or rows is not None or os.environ.get("LEAFGRAD_TUNE") != "1"
        self.function: Callable[..., list[Any]] = plan.program.function(self.xp, settled)
        self.rivals: tuple[Rival, ...] = ()
        self.race: list[Rival] | None = None
        self.scratch = self.allocate()

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The arrays of ``graph.results`` and then of its effects' values. Each is new memory."""
        if not self.tuned:
            self.tune(inputs)
        if get_num_threads() != self.threads:
            self.scratch = self.allocate()
        return self.function(inputs, *self.scratch) if self.race is None else self.compare(inputs)

    def compare(self, inputs: Sequence[Any]) -> list[Any]:
        """In the first calls, run on one thread and then on several; the faster stays. Results are the same.

        One that a signal interrupts is still in the race.
        """
        assert self.race is not None
        rival, *others = self.race
        start = time.perf_counter()
        found = self.function(inputs, *rival.scratch)
        rival.seconds = min(rival.seconds, time.perf_counter() - start)
        if not others:
            one, several = self.rivals
            self.scratch = several.scratch if several.seconds < MARGIN * one.seconds else one.scratch
        self.race = others or None
        self.rivals = self.rivals if others else ()
        return found

    def source(self) -> str:
        """The generated Python."""
        return self.plan.program.source

    # ---- chunks -----------------------------------------------------------------------------------------------

    def model(self, loop: Scratch, i: int) -> int:
        """Rows per chunk by size alone: all buffers of the loop fit the cache, and wide products their block."""
        known = _MEASURED.get(self.key(loop, i))
        if known is not None:
            return known
        rows = CACHE_BYTES // max(1, loop.row_bytes())
        rows = min(rows, -(-loop.length // group_count(SHARES, self.works[i] * loop.length)))
        return fit(min(rows, BLAS_ROWS) if self.plan.wide[i] else rows, loop.length)

    def key(self, loop: Scratch, i: int) -> tuple[int, ...]:
        return loop.length, len(self.loops[i].equations), loop.row_bytes()

    def tune(self, inputs: Sequence[Any]) -> None:
        """Try chunk lengths around the model's on the real inputs, loop by loop, and keep the fastest."""
        self.tuned = True
        for i, loop in enumerate(self.batches):
            if self.key(loop, i) in _MEASURED:
                continue
            best: tuple[float, int] | None = None
            for length in sorted({fit(int(self.chunk[i] * c), loop.length) for c in CANDIDATES}):
                self.chunk[i] = length
                self.scratch = self.allocate()
                seconds = min(self.measure(inputs) for _ in range(3))
                best = min(best or (seconds, length), (seconds, length))
            assert best is not None
            self.chunk[i] = _MEASURED[self.key(loop, i)] = best[1]
        self.scratch = self.allocate()

    def measure(self, inputs: Sequence[Any]) -> float:
        start = time.perf_counter()
        self.function(inputs, *self.scratch)
        return time.perf_counter() - start

    def allocate(self) -> list[Any]:
        """The scratch of each stage: for a loop, its chunks in groups; for a whole stage, its arrays."""
        self.threads = get_num_threads()
        self.rivals, self.race = (), None
        one = self.arrays(1)
        if self.threads > 1 and has_room(self.xp, self.threads):
            several = self.arrays(self.threads)
            if any(isinstance(s, Groups) and s.threads > 1 for s in several):
                self.rivals = Rival(one), Rival(several)
                self.race = [rival for rival in self.rivals for _ in range(CALLS)]
        return one

    def arrays(self, threads: int) -> list[Any]:
        """For each stage, what its part of the source unpacks."""
        loops = zip(self.chunk, self.works, strict=True)
        xp = self.xp
        return [
            s.groups(xp, *next(loops), threads) if s.length else s.arrays(xp, s.memory(xp, 1), 1)
            for s in self.scratches
        ]

    def explain(self) -> list[str]:
        """Phases, chunks, buffers, and what was not chunked."""
        lines = []
        loops = iter(zip(self.batches, self.chunk, strict=True))
        for stage in self.schedule.stages:
            if isinstance(stage, Loop):
                scratch, rows = next(loops)
                row = scratch.row_bytes()
                lines.append(
                    f"loop over {scratch.length} rows, {rows} at a time: {len(stage.equations)} equations, "
                    f"{len(stage.summed)} sums, {len(stage.stored)} stored whole, "
                    f"{row * rows / 1024:.0f} kB of buffers ({row} bytes a row)"
                )
            else:
                lines.append(f"whole arrays: {len(stage.equations)} equations")
        lines += [f"not chunked: {n} rows, {why}" for n, why in self.schedule.given_up]
        lines += [f"not chunked: {e.name}, from {e.line}: {why}" for e, why in self.schedule.unchunked]
        return lines


@dataclass
class Rival:
    """Scratch for a number of threads, and the shortest time that a call with it took."""

    scratch: list[Any]
    seconds: float = math.inf


def work(loop: Loop) -> int:
    """Elements that a loop computes for each row; in products, an eighth of what is multiplied."""
    return elementwise_work(loop) // loop.length + multiplied(loop) // (8 * loop.length)


def elementwise_work(loop: Loop) -> int:
    """Elements that a loop computes, but for those of products."""
    others = [e for e in loop.equations if e.op not in (matmul, contract)]
    return sum(max([math.prod(v.shape) for v in e.outputs if v in loop.axis], default=loop.length) for e in others)


def multiplied(loop: Loop) -> int:
    """Multiplications of the products in a loop."""
    every = [(e.op, e.out.shape, e.values[0].shape) for e in loop.equations]
    inner = sum(math.prod(out) * x[-1] for op, out, x in every if op is matmul)
    return inner + sum(math.prod(x) * out[-1] for op, out, x in every if op is contract)


def better_whole(loops: Sequence[Loop]) -> str | None:
    """Against loops whose chunks would gain nothing by staying in cache."""
    made = sum(math.prod(v.shape) * itemsize(v.dtype) for loop in loops for v in loop.axis)
    if made < LARGE:
        return "whose arrays are small enough for caches as they are"
    if made * FEW > 8 * CACHE_BYTES * loops[0].length:
        return "few of which fit the cache"
    if made * DENSE * sum(map(elementwise_work, loops)) < LARGE * sum(map(multiplied, loops)):
        return "which take most of their time in matrix products, that do best with all rows"
    return None


def has_wide_product(loop: Loop) -> bool:
    """Whether some matrix product in a chunk has more than a narrow layer's weights."""
    for equation in loop.equations:
        if equation.op in (matmul, contract):
            matrices = [v.shape for v in (*equation.values, equation.out) if loop.length not in v.shape]
            if any(len(shape) == 2 and min(shape) >= WIDE for shape in matrices):
                return True
    return False


def fit(rows: int, length: int) -> int:
    """``rows`` made an odd multiple of 16 that cuts the batch into chunks of nearly the same length.

    Columns that lie a multiple of 4096 bytes apart share their places in the cache: products take three times as long.
    """
    rows = max(64, min(rows, length))
    count = -(-length // rows)
    return min(length, (-(-length // count // 16) | 1) * 16)


class NumpyExecutor:
    """Compiles graphs for the CPU."""

    name = "numpy"
    device_type = "cpu"

    def compile(self, graph: Graph) -> NumpyProgram:
        """The program that runs ``graph``."""
        return NumpyProgram(graph)

    def plan(self, graph: Graph) -> NumpyPlan:
        """What gives the programs of a graph whose sizes are Extents."""
        return NumpyPlan(graph)
