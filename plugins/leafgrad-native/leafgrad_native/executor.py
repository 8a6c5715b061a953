"""The native executor: graphs as C functions."""

from __future__ import annotations

import ctypes
import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from leafgrad import threads
from leafgrad.backends.numpy import philox_bernoulli
from leafgrad.compile.ir.admitted import SETTLED, Settled
from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.ir.lengths import resized
from leafgrad.compile.ir.replay import run_equation
from leafgrad.compile.run.executor import Program
from leafgrad.forks import cached_property
from leafgrad.lowering.forms import Form, Root
from leafgrad.lowering.stages import CPhase, OpPhase
from leafgrad_native import arrays, blas, build, packed, pool
from leafgrad_native.blocks import short
from leafgrad_native.check import Checked, with_numpy
from leafgrad_native.compiler import CompilationFailed
from leafgrad_native.lengths import is_size
from leafgrad_native.patterns import pattern
from leafgrad_native.program import NativePlan
from leafgrad_native.target import core_cache

SHORTEST = 12  # equations of a program from which the compiler's second is well spent
MOST_FOREIGN = 4  # at most one in so many elements may be made by ops without C


class Call(ctypes.Structure):
    """``lg_call`` of runtime/kernels.h."""

    _fields_ = [
        ("arrays", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("reals", ctypes.c_void_p),
        ("sgemm", ctypes.c_void_p),
        ("dgemm", ctypes.c_void_p),
        ("product_f32", ctypes.c_void_p),
        ("product_f64", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("look", ctypes.c_void_p),
        ("threads", ctypes.c_long),
        ("next", ctypes.c_int),
        ("parts", ctypes.c_int),
        ("failed", ctypes.c_int),
    ]


class NativeCode:
    """A graph as C, compiled, of which programs are made.

    Args:
        graph: what to run.
        general: whether its sizes are Extents.

    Attributes:
        plan: phases and where arrays lie.
        numbers: those that the code reads from its call, where sizes are no Extents.
        agreed: at how many sizes it was compared with NumPy, and gave the same; -inf if it did not at one.
    """

    def __init__(self, graph: Graph, general: bool = False) -> None:
        self.given, self.graph, self.names = graph, in_reals(graph), graph.named()
        self.plan = plan = NativePlan(self.graph, blas=blas.found is not None, cache=core_cache() * 3 // 4)
        text, numbers = plan.code(general)
        self.numbers = [int(n.rstrip("L")) if is_size(n) else float(n) for n in numbers]
        with packed.meanwhile(plan.products.packed):
            self.library = build.library(text, blas_long=blas.long)
        self.agreed = 0.0

    def at(self, settled: Settled) -> NativeProgram:
        """The program for these sizes."""
        return NativeProgram(self, settled=settled)


class NativeProgram:
    """A graph, ready to run as C.

    Args:
        code: what to run, or its graph.
        checked: whether code that has not been compared with NumPy yet is.
        settled: the sizes that the code leaves open.

    Attributes:
        graph: the graph of the code.
        plan: its phases, and where arrays lie.
        seconds: time spent in each phase, over all calls but the first, which is checked.
        calls: how many there were.
        any_length: whether the library serves other lengths of batches as well.
    """

    def __init__(self, code: NativeCode | Graph, checked: bool = True, settled: Settled = SETTLED) -> None:
        self.code = code = code if isinstance(code, NativeCode) else NativeCode(code)
        self.graph, self.plan, self.library, self.settled = code.graph, code.plan, code.library, settled
        self.checked = checked
        plan, numbers = code.plan, settled.values or code.numbers
        self.calls = 0
        self.arena = arrays.aligned(settled(plan.arena))
        self.sums = arrays.aligned(settled(plan.sums))
        self.scratch = arrays.aligned(0)
        self.slots: list[Any] = [None] * len(plan.slots)
        self.table = (ctypes.c_void_p * max(1, len(plan.slots)))()
        self.random = [e for e in self.graph.equations if "random" in e.op.traits]
        self.sizes = (ctypes.c_long * (len(numbers) + 1))(*(n if type(n) is int else 0 for n in numbers))
        self.reals = (ctypes.c_double * (len(numbers) + 1))(*(n if type(n) is float else 0 for n in numbers))
        self.any_length = bool(numbers)
        self.keys = (ctypes.c_uint64 * max(1, len(plan.draws)))()
        self.call = Call(
            arrays=ctypes.addressof(self.table),
            arena=self.arena.ctypes.data,
            sums=self.sums.ctypes.data,
            keys=ctypes.addressof(self.keys),
            sizes=ctypes.addressof(self.sizes),
            reals=ctypes.addressof(self.reals),
            sgemm=blas.address("sgemm"),
            dgemm=blas.address("dgemm"),
            **{f"product_{short(kind)}": packed.address(kind) for kind in plan.products.packed},
            pool=pool.address("lg_run"),
            look=pool.address("lg_look"),
        )
        self.pointer = ctypes.addressof(self.call)
        given = code.given
        self.inputs = self.expected(given.inputs, code.names, "the caller of the program")
        self.constants = [(plan.slots[plan.whole[e.out].root], run_equation(self.sized[e], {})) for e in plan.constants]
        kinds = [(self.shape(v), np.dtype(v.dtype)) for v in given.ends]
        self.results = [(plan.slots[r], *kind) for r, kind in zip(plan.results, kinds, strict=True)]
        self.returned = [k for k, _, _ in self.results]
        self.stored = any(dtype.kind == "V" for _, _, dtype in self.results)
        self.phases = [self.phase(p) for p in plan.phases]
        self.due = [self.draws_before(p) for p in plan.phases]
        self.seconds = [0.0] * len(self.phases)

    def phase(self, phase: CPhase | OpPhase) -> Any:
        if isinstance(phase, OpPhase):
            return OpRunner(self, phase)
        return Checked(self, phase, self.library[f"phase{phase.number}"])

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The arrays of ``graph.results`` and then of its effects' values, each in memory of its own."""
        self.inputs.check(inputs)
        self.prepare()
        try:
            return self.run_phases(inputs)
        finally:
            self.slots[:] = [None] * len(self.slots)

    def run_phases(self, inputs: Sequence[Any]) -> list[Any]:
        slots, empty = self.slots, arrays.HOST.xp.empty if not self.stored else arrays.empty
        slots[: len(inputs)] = inputs
        for k, array in self.constants:
            slots[k] = array
        for k, shape, dtype in self.results:
            slots[k] = empty(shape, dtype)
        arrays.point(self.table, slots)
        clock = time.perf_counter
        start = clock()
        drawn = 0
        for k, phase in enumerate(self.phases):
            if self.random:
                drawn = self.draw(drawn, self.due[k])
            phase()
            end = clock()
            if self.calls:
                self.seconds[k] += end - start
            start = end
        if self.plan.foreign:
            self.deliver()
        if not self.calls and self.checked and all(p.agreed for p in self.phases if isinstance(p, Checked)):
            self.library.note_passed()
            self.code.agreed += 1
        self.calls += 1
        return [*map(slots.__getitem__, self.returned)]

    # ---- random numbers ---------------------------------------------------------------------------------------

    def draws_before(self, phase: CPhase | OpPhase) -> int:
        """How many of the equations that draw random numbers must have drawn, or have their keys, before a phase."""
        if isinstance(phase, OpPhase):
            return self.random.index(phase.equation) if phase.equation in self.random else 0
        return max([self.random.index(e) + 1 for e in phase.equations if e in self.plan.draws], default=0)

    def draw(self, start: int, stop: int) -> int:
        """Take the keys of the equations from ``start`` to ``stop`` that C draws for, in eager's order."""
        for equation in self.random[start:stop]:
            if equation in self.plan.draws:
                self.keys[self.plan.draws.index(equation)] = equation.params["generator"].key()
        return max(start, stop)

    def bernoulli(self, equation: Equation) -> Any:
        """What C has drawn for an equation, from NumPy."""
        key = self.keys[self.plan.draws.index(equation)]
        return philox_bernoulli(key, equation.params["p"], self.shape(equation.out), equation.out.dtype)

    # ---- memory -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Scratch for as many threads as there are now."""
        count = threads.get_num_threads()
        if count != self.call.threads:
            self.scratch = arrays.aligned(self.settled(self.plan.scratch) * count)
            self.call.scratch = self.scratch.ctypes.data
            self.call.threads = count

    def deliver(self) -> None:
        """Copy values into results that are not their own memory."""
        for value, root in zip(self.graph.ends, self.plan.results, strict=True):
            form = self.plan.whole[value]
            if form.root is not root and self.available(form.root):
                self.memory(root).reshape(self.shape(value))[...] = self.seen(form)

    def available(self, root: Root) -> bool:
        slot = self.plan.slots.get(root)
        return slot is None or self.slots[slot] is not None

    # ---- arrays -----------------------------------------------------------------------------------------------

    def seen(self, form: Form) -> Any:
        """A form as a NumPy array."""
        flat, settled = self.memory(form.root), self.settled
        strides = [settled(s) * flat.itemsize for s in form.strides if s is not None]
        return arrays.HOST.wrap(
            np.lib.stride_tricks.as_strided(flat[settled(form.offset) :], self.shape(form), strides)
        )

    def memory(self, root: Root) -> Any:
        """A root's memory, flat."""
        slot = self.plan.slots.get(root)
        if slot is not None:
            return self.slots[slot].reshape(-1).view(root.dtype)
        at = self.settled(self.plan.offsets[root])
        size = math.prod(self.shape(root)) * np.dtype(root.dtype).itemsize
        return self.arena[at : at + size].view(root.dtype)

    def value(self, value: Value) -> Any:
        """A whole value as a NumPy array."""
        return self.seen(self.plan.whole[value])

    def shape(self, of: Value | Form | Root) -> tuple[int, ...]:
        """That of an array, at these sizes."""
        return tuple(map(self.settled, of.shape))

    def expected(self, values: Iterable[Value], names: Mapping[Value, str], giver: str) -> arrays.Expected:
        """What arrays of these values must be that ``giver`` hands over."""
        values = list(values)
        return arrays.Expected([names[v] for v in values], [*map(self.shape, values)], [v.dtype for v in values], giver)

    @cached_property
    def sized(self) -> dict[Any, Any]:
        """What each value and equation of the graph is at these sizes."""
        at: dict[Any, Any] = {}
        graph = resized(self.graph, self.settled, at)
        return at | dict(zip(self.graph.equations, graph.equations, strict=True))

    # ---- looking inside ---------------------------------------------------------------------------------------

    def source(self) -> str:
        """The generated C."""
        return self.plan.source()

    def explain(self) -> list[str]:
        """Phases, chunks, memory, and the time that each phase took."""
        lines = []
        for phase, runner, seconds in zip(self.plan.phases, self.phases, self.seconds, strict=True):
            spent = f"; {1e3 * seconds / (self.calls - 1):.3f} ms a call" if self.calls > 1 else ""
            if isinstance(phase, OpPhase):
                e = phase.equation
                lines.append(f"NumPy: {e.name}, from {e.line}: no C body{spent}")
                continue
            lines.append(f"C: {len(phase.equations)} equations in one function{runner.state}{spent}")
            for s in phase.segments:
                if s.loop is None:
                    lines.append(f"  whole arrays: {len(s.equations)} equations in {len(s.kernels)} kernels")
                else:
                    chunk, scratch = self.settled(s.chunk), self.settled(s.scratch)
                    lines.append(
                        f"  loop over {self.settled(s.loop.length)} rows, {chunk} at a time, "
                        f"in {self.settled(s.parts)} parts: "
                        f"{len(s.equations)} equations in {len(s.kernels)} kernels, {len(s.lowering.sums)} sums, "
                        f"{scratch * chunk / 1024:.0f} kB of scratch a thread"
                    )
        arena = self.settled(self.plan.arena) / 1024
        lines.append(f"memory between phases: {arena:.0f} kB; threads: {threads.get_num_threads()}")
        return lines


def in_reals(graph: Graph) -> Graph:
    """The graph with pairs of real numbers for complex ones; itself if it has none."""
    if not any(v.dtype.startswith("complex") for e in graph.equations for v in (*e.values, *e.outputs)):
        return graph
    from leafgrad.compile.passes import optimize
    from leafgrad.compile.passes.pairs import pairs

    return optimize(pairs(graph))


class OpRunner:
    """Runs one equation through its op."""

    def __init__(self, program: NativeProgram, phase: OpPhase) -> None:
        self.program = program
        self.equation = phase.equation
        whole, slots = program.plan.whole, program.plan.slots
        self.outputs = [slots[whole[v].root] for v in phase.equation.outputs]
        self.expected = program.expected(phase.equation.outputs, program.plan.names, f"the op {phase.equation.name!r}")

    def __call__(self) -> None:
        program = self.program
        sized, equation = program.sized, program.sized[self.equation]
        given = {sized[v]: program.value(v) for v in self.equation.values}
        result = run_equation(equation, given)
        found = [own(a, given.values()) for a in (result if equation.several else (result,))]
        self.expected.check(found)
        for k, array in zip(self.outputs, found, strict=True):
            program.slots[k] = array
        arrays.point(program.table, program.slots)


def own(array: Any, others: Iterable[Any]) -> Any:
    """``array``, copied if it may lie in the memory of others, where later phases write."""
    return array.copy() if any(np.may_share_memory(array, other) for other in others) else array


class NativeExecutor:
    """Compiles graphs for the CPU to C."""

    name = "native"
    device_type = "cpu"

    def compile(self, graph: Graph) -> Program:
        """The program that runs ``graph``: NumPy's where there is no C compiler, with a notice."""
        try:
            return NativeProgram(graph)
        except CompilationFailed as error:
            notice(f"compiled steps run with NumPy, not as C: {error}")
            return with_numpy(graph)

    def plan(self, graph: Graph) -> NativeCode:
        """What gives the programs of a graph whose sizes are Extents."""
        return NativeCode(graph, general=True)

    def gains(self, graph: Graph) -> bool:
        """Whether C can run nearly all of a graph that is long enough to be worth a compiler's time."""
        graph = in_reals(graph)
        work = {e: sum(max(1, math.prod(v.shape)) for v in e.outputs) for e in graph.equations}
        foreign = sum(size for e, size in work.items() if pattern(e) is None)
        return len(graph) >= SHORTEST and foreign * MOST_FOREIGN <= sum(work.values())


@cache
def notice(text: str) -> None:
    """A warning that is given once."""
    warnings.warn(text, RuntimeWarning, stacklevel=2)
