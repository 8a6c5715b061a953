"""A graph as C: which phases there are, where each array lies, and the text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from leafgrad.compile.ir.graph import Equation, Graph, expression, itemsize
from leafgrad.compile.schedule.schedule import Loop
from leafgrad.forks import cached_property
from leafgrad.lowering import memory
from leafgrad.lowering.expressions import C_TYPES
from leafgrad.lowering.forms import Root
from leafgrad.lowering.kernels import LOOK, roots, work
from leafgrad.lowering.product_patterns import MatrixProduct
from leafgrad.lowering.stages import CPhase, OpPhase, Segment, Stages
from leafgrad_native import emit
from leafgrad_native.blocks import LONGEST, QUANTUM
from leafgrad_native.lengths import of_any_sizes, served
from leafgrad_native.parts import END, in_parts
from leafgrad_native.patterns import pattern
from leafgrad_native.products import Products
from leafgrad_native.writer import CWriter, Functions, Note

MOST_PARTS = 64  # stretches of the batch with sums of their own; threads take them as they come
SUMS_BYTES = 4 << 20  # what the accumulators of all parts may take


class NativePlan(Stages):
    """Everything about a program but its compiled code.

    Args:
        graph: what to run.
        blas: whether large products may call BLAS.
        cache: bytes of a core's cache that a chunk may fill.

    Attributes:
        patterns: how each equation becomes C; None for those that their ops run.
        constants: the equations whose results are made with the program.
        draws: the equations whose random numbers C draws.
        schedule: the stages.
        phases: in order.
        slots: roots that are arrays of their own at each call: inputs, results, results of ops, constants.
        results: for each result, its root.
        lines: those of the text that call its functions, with notes on equations.
        arena, scratch, sums: bytes of the memory that calls share; scratch is per thread.
    """

    def __init__(self, graph: Graph, *, blas: bool, cache: int) -> None:
        self.cache = cache
        self.names = graph.named()
        self.products = Products(blas)
        self.functions = Functions()
        super().__init__(graph, {e: pattern(e) for e in graph.equations})
        self.slots: dict[Root, int] = {}
        self.place()
        self.lines = self.text()

    def chunked(self, e: Equation) -> bool:
        """Whether C may run an equation in a loop over a batch."""
        return super().chunked(e) and e.out.shape[:1] not in self.crowded

    @cached_property
    def crowded(self) -> set[tuple[int, ...]]:
        """Lengths of batches that loops would not serve."""
        return {e.out.shape[:1] for e in self.graph.equations if self.crowds(e)}

    def crowds(self, e: Equation) -> bool:
        """Whether each point has matrices of its own in a product, so large that a few of a chunk fill the cache."""
        if not isinstance(self.patterns[e], MatrixProduct) or any(v.ndim < 3 for v in e.values):
            return False
        point = sum(math.prod(v.shape[1:]) * itemsize(v.dtype) for v in (*e.values, e.out))
        return QUANTUM * point > self.cache // 4

    # ---- memory -----------------------------------------------------------------------------------------------

    def place(self) -> None:
        for root in [self.whole[v].root for v in self.graph.inputs] + self.results:
            self.slots.setdefault(root, len(self.slots))
        results = [v for p in self.phases if isinstance(p, OpPhase) for v in p.equation.outputs]
        for v in [*results, *(e.out for e in self.constants)]:
            self.slots.setdefault(self.whole[v].root, len(self.slots))
        for segment in self.segments:
            if segment.loop is not None:
                self.place_chunk(segment, segment.loop)
        steps: list[memory.Step] = []
        ends: list[tuple[CPhase, int]] = []
        for phase in self.phases:
            if isinstance(phase, OpPhase):
                steps.append(memory.Step(roots(self.whole[v] for v in phase.equation.values), ()))
                continue
            begin = len(steps)
            for segment in phase.segments:
                every = [memory.step(k) for k in segment.kernels]
                if segment.loop is None:
                    steps += every
                else:
                    sums = [self.whole[v].root for v in segment.lowering.sums]
                    reads, writes = [r for s in every for r in s.reads], [r for s in every for r in s.writes]
                    steps.append(memory.Step(reads, [*writes, *sums]))
            made_here = {r for s in steps[begin:] for r in s.writes}
            given = [r for s in steps[begin:] for r in s.reads if r not in made_here]
            steps.append(memory.Step(given, ()))  # NumPy runs all of it anew where C stops
            ends.append((phase, len(steps)))
        for phase, end in ends:
            after = {r for s in steps[end:] for r in s.reads}
            made = dict.fromkeys(v for e in phase.equations for v in e.outputs if v in self.whole)
            phase.outputs = [v for v in made if self.whole[v].root in after or self.whole[v].root in self.slots]
        used = dict.fromkeys(r for s in steps for r in (*s.reads, *s.writes))
        size = {r: r.lanes * itemsize(r.dtype) for r in used if r.axis is None and r not in self.slots}
        for segment in self.segments:
            for root in segment.lowering.sums.values():
                size.pop(root, None)
        self.offsets, self.arena = memory.place(steps, size)
        self.scratch = max((s.scratch * s.chunk for s in self.segments), default=0)
        self.sums = max((s.sums * s.parts for s in self.segments), default=0)

    def place_chunk(self, segment: Segment, loop: Loop) -> None:
        """The scratch memory of a loop, how many points are a chunk, and how many parts the batch has."""
        steps = [memory.step(k) for k in segment.kernels]
        every = dict.fromkeys(r for s in steps for r in (*s.reads, *s.writes))
        size = {r: r.lanes * itemsize(r.dtype) for r in every if r.axis is not None}
        offsets, segment.scratch = memory.place(steps, {r: n * QUANTUM for r, n in size.items()})
        segment.scratch = -(-segment.scratch // QUANTUM)
        segment.offsets = {r: at // QUANTUM for r, at in offsets.items()}
        for root in segment.lowering.sums.values():
            segment.offsets[root] = segment.sums
            segment.sums += memory.rounded(root.lanes * itemsize(root.dtype))
        rows = min(LONGEST, self.cache // max(1, segment.scratch), loop.length)
        segment.chunk = rows // QUANTUM * QUANTUM if rows >= QUANTUM else QUANTUM
        chunks = -(-loop.length // segment.chunk)
        most = max(8, min(MOST_PARTS, SUMS_BYTES // max(1, segment.sums)))
        segment.parts = max(1, min(most, chunks // 2))

    # ---- text -------------------------------------------------------------------------------------------------

    def text(self) -> list[str]:
        """The lines that call the program's functions: stages, and the entry of each phase."""
        bodies: list[str] = []
        entries: list[str] = []
        for phase in self.phases:
            if not isinstance(phase, CPhase):
                continue
            entries += [f"int phase{phase.number}(lg_call *call) {{", "    int code = 0; (void)code;"]
            for segment in phase.segments:
                if segment.loop is None:
                    bodies += self.whole_text(segment)
                    entries.append(f"    if ((code = stage{segment.number}(call))) return code;")
                else:
                    bodies += self.loop_text(segment, segment.loop)
                    entries += self.loop_call(segment)
            entries += ["    return 0;", "}", ""]
        return [*bodies, *entries]

    def code(self, general: bool = False) -> tuple[str, list[str]]:
        """The C of all phases, without the headers that it includes, and the numbers that a call must hold for it.

        Where it is ``general`` these are the atoms of Extents. It is the same wherever the same is computed: nothing in
        it depends on names, lines of source, or addresses.
        """
        text = self.joined([line for line in self.lines if not isinstance(line, Note)])
        text, numbers = (of_any_sizes(text), []) if general else served(self.graph, text)
        return in_parts(text), numbers

    def source(self) -> str:
        """The code with comments that tell which equation, from which line of Python, each part computes."""
        return in_parts(self.joined([self.described(x) if isinstance(x, Note) else x for x in self.lines]))

    def joined(self, lines: Sequence[str]) -> str:
        """All functions, and what calls them."""
        functions = [*self.products.functions.values(), *self.functions.texts, lines]
        return END.join("\n".join(text) for text in functions)

    def described(self, note: Note) -> str:
        """An equation as a comment of one line: nothing in it may end the comment or go on after it."""
        equation = note.equation
        if equation is None:
            return f"{note}a result in memory of its own"
        left = ", ".join(self.names[v] for v in equation.outputs)
        text = f"{left} = {expression(equation, self.names)}    {equation.line}"
        return note + re.sub(r"[^ -~]", " ", text).replace("\\", "/").replace("??", "? ")

    def address(self, segment: Segment) -> Callable[[Root], str]:
        def find(root: Root) -> str:
            t = C_TYPES[root.dtype]
            if root in segment.offsets:
                if root.axis is None:
                    return f"({t} *)(sums + {segment.offsets[root]})"
                return f"({t} *)(scratch + {segment.offsets[root] * segment.chunk}L)"
            if root in self.slots:
                return f"({t} *)call->arrays[{self.slots[root]}]"
            return f"({t} *)(call->arena + {self.offsets[root]}L)"

        return find

    def kernels_text(self, segment: Segment) -> tuple[list[str], list[str]]:
        """The calls of a segment's kernels, and the functions of those that threads share."""
        find, known = self.address(segment), self.draws.index
        writer = CWriter(find, self.functions, self.products, segment.chunk, known)
        for kernel in segment.kernels:
            emit.write(writer, kernel)
            if work(kernel, LONGEST if segment.chunk else 0) >= LOOK:
                writer.look()
        return writer.lines, writer.tasks

    def whole_text(self, segment: Segment) -> list[str]:
        head = (
            f"static int stage{segment.number}(lg_call *call) {{ // {len(segment.equations)} equations on whole arrays"
        )
        calls, tasks = self.kernels_text(segment)
        return [*tasks, head, "    int code = 0; (void)call; (void)code;", *calls, "    return 0;", "}", ""]

    def loop_text(self, segment: Segment, loop: Loop) -> list[str]:
        k, parts, chunk = segment.number, segment.parts, segment.chunk
        chunks = -(-loop.length // chunk)
        return [
            f"// {loop.length} points, {chunk} at a time: {len(segment.equations)} equations",
            f"static int points{k}(lg_call *call, char *scratch, char *sums, const long lo, const long n) {{",
            f"    const long m = (n + {QUANTUM - 1}) / {QUANTUM} * {QUANTUM};",
            "    int code = 0; (void)code; (void)call; (void)scratch; (void)sums; (void)lo; (void)m;",
            *self.kernels_text(segment)[0],
            "    return 0;",
            "}",
            "",
            f"static void thread{k}(void *context, int thread) {{",
            "    lg_call *call = context;",
            f"    char *scratch = call->scratch + thread * {self.scratch}L;",
            "    int part, code;",
            f"    while ((part = __atomic_fetch_add(&call->next, 1, __ATOMIC_RELAXED)) < {parts}) {{",
            f"        char *sums = call->sums + part * {segment.sums}L;",
            f"        memset(sums, 0, {segment.sums});",
            f"        const long first = part * {chunks}L / {parts} * {chunk}L;",
            f"        const long last = (part + 1) * {chunks}L / {parts} * {chunk}L;",
            f"        const long end = last < {loop.length}L ? last : {loop.length}L;",
            f"        for (long lo = first; lo < end; lo += {chunk}L) {{",
            "            if (__atomic_load_n(&call->failed, __ATOMIC_RELAXED)) return;",
            f"            if ((code = points{k}(call, scratch, sums, lo, end - lo < {chunk}L ? end - lo : {chunk}L))",
            "                || (code = call->look()))",
            "                __atomic_store_n(&call->failed, code, __ATOMIC_RELAXED);",
            "        }",
            "    }",
            "}",
            "",
        ]

    def loop_call(self, segment: Segment) -> list[str]:
        """Run a loop's parts on the pool's threads, and add up their sums, always in the same order."""
        k = segment.number
        lines = [
            "    call->next = 0; call->failed = 0;",
            f"    call->pool(thread{k}, call, call->threads < {segment.parts} ? (int)call->threads : {segment.parts}, "
            f"(int)call->threads, &call->failed);",
            "    if (call->failed) return call->failed;",
        ]
        find = self.address(Segment(segment.lowering, None, k, []))
        for v, root in segment.lowering.sums.items():
            t = C_TYPES[root.dtype]
            parameters = f"{t} *restrict o, const {t} *restrict s, long count, long parts, long step"
            body = [
                "    memcpy(o, s, count * sizeof *s);",
                "    for (long part = 1; part < parts; part++)",
                f"        for (long i = 0; i < count; i++) o[i] += s[part * step / (long)sizeof({t}) + i];",
            ]
            add = self.functions.name("void", "added", parameters, body)
            at = f"({t} *)(call->sums + {segment.offsets[root]})"
            lines.append(f"    {add}({find(self.whole[v].root)}, {at}, {root.lanes}, {segment.parts}, {segment.sums});")
        return lines
