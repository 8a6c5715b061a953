"""The executors: graphs as CUDA kernels on a GPU, and the same kernels on the processor."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from leafgrad import backends
from leafgrad.compile.ir.graph import Graph, Value, Write
from leafgrad.compile.ir.replay import ReplayProgram, run_equation
from leafgrad.compile.ir.sources import Captured, Expression
from leafgrad.compile.run.executor import Program
from leafgrad.errors import CompileError
from leafgrad.ops import dispatch
from leafgrad_cuda.arguments import Arguments, Arrays, Results, Side
from leafgrad_cuda.device import Device, Emulated
from leafgrad_cuda.gpu import Gpu
from leafgrad_cuda.launches import Capture, OpRun
from leafgrad_cuda.patterns import pattern
from leafgrad_cuda.plan import CudaPlan
from leafgrad_cuda.report import report

ALIGNED = 16  # bytes from which what is read in quads begins
SHORTEST = 4  # equations from which on a compiler's time is well spent
MOST_FOREIGN = 4  # at most one in so many elements may be made by ops without kernels


class Stopped(RuntimeError):
    """A kernel found an index out of range, or an element that an op refuses; the op itself says which."""


class CudaProgram:
    """A graph, ready to run as kernels.

    Args:
        graph: what to run.
        device: where.

    Attributes:
        plan: launches, and where arrays lie.
        launched: graphs that were started so far.
    """

    def __init__(self, graph: Graph, device: Device) -> None:
        self.graph = graph
        self.device = device
        self.plan = plan = CudaPlan(graph, device.shared, device.processors)
        self.place = place(graph)
        self.backend = backends.by_device_type(self.place[0])
        self.launched = 0
        self.device.load(plan)
        self.inputs = [(plan.names[v], v.shape, v.dtype) for v in graph.inputs]
        self.kinds: list[Any] = [None] * len(graph.inputs)  # shapes and dtypes that were right
        self.read = [plan.slots[plan.whole[v].root] for v in graph.inputs]
        self.quads = {k for root, k in plan.slots.items() if root in plan.functions.aligned}
        self.place_results()
        self.random = [e for e in graph.equations if "random" in e.op.traits]
        self.stops = bool(plan.failures)
        self.later = self.backend.deferred and plan.kept  # whether who reads the next value is told
        with self.backend.device_scope(self.place[1]):
            self.arena = device.zeros(self.backend, max(1, plan.arena))
            self.flag = device.zeros(self.backend, 8)
            self.sides = [self.side()]
        self.turn = -1

    def place_results(self) -> None:
        """Which results get memory of their own, and which, since they are only written into tensors, share it."""
        plan, slots, graph = self.plan, self.plan.slots, self.graph
        self.ends = [slots[r] for r in plan.results]
        self.foreign = [(v, slots[r]) for v, r in zip(graph.ends, plan.results, strict=True) if r in plan.foreign]
        ops = [p for p in plan.parts if isinstance(p, OpRun)]
        made = {slots[plan.whole[v].root] for p in ops for v in p.equation.outputs}
        given = {*self.read, *made, *(slots[plan.whole[e.out].root] for e in plan.constants)}
        copied = [r for p in ops for r in p.inputs.values()]
        new = [r for r in dict.fromkeys([*plan.results, *copied]) if slots[r] not in given and r not in plan.foreign]
        written = graph.written
        others = {r for v, r in zip(graph.ends, plan.results, strict=True) if v not in written}.union(copied)
        self.passing = Arrays([r for r in new if r not in others], slots)
        self.last: weakref.ref[Results] | None = None  # in whose arrays these are
        results = set(plan.results[: len(graph.results)])  # each of which somebody may keep, for long
        self.fresh = [[r] for r in new if r in others and r in results]
        self.fresh += [rest] if (rest := [r for r in new if r in others - results]) else []
        self.sources = [slots[source] for source, _ in plan.targets]
        self.targets = [slots[target] for _, target in plan.targets]
        writes = [e for e in graph.effects if isinstance(e, Write)][: len(self.targets)]
        sources = [*graph.inputs.values(), *(e.source for e in writes)]
        lasting = (Captured, Expression)  # whose arrays mostly are those of the call before
        once = [k for k, s in zip([*self.read, *self.targets], sources, strict=True) if not isinstance(s, lasting)]
        self.leaving = [*once, *made, *(k for _, k in self.foreign)]

    def side(self) -> Side:
        """What one of two calls in a row uses."""
        device, plan, words = self.device, self.plan, 2 * len(self.plan.draws)
        table = device.zeros(self.backend, 8 * (1 + len(plan.slots) + words))
        arguments = Arguments(device, table, self.flag, len(plan.slots), words)
        for e in plan.constants:
            k = plan.slots[plan.whole[e.out].root]
            arguments.put(k, self.ready(k, run_equation(e, {})))
        course = [device.capture(p, table, self.arena) if isinstance(p, Capture) else p for p in plan.course]
        delivery = device.capture(Capture(plan.delivery), table, self.arena) if plan.delivery else None
        return Side(arguments, course, delivery, [Arrays(r, plan.slots) for r in self.fresh])

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The arrays of ``graph.results`` and then of its effects' values."""
        with self.backend.device_scope(self.place[1]):
            self.turn = (self.turn + 1) % (2 if self.fresh else 1)
            if self.turn == len(self.sides):
                self.sides.append(self.side())
            side = self.sides[self.turn]
            try:
                return self.run(inputs, side)
            finally:
                side.arguments.forget(self.leaving)

    def run(self, inputs: Sequence[Any], side: Side) -> list[Any]:
        plan, slots, arguments, held = self.plan, self.plan.slots, side.arguments, side.arguments.arrays
        for i, (k, array) in enumerate(zip(self.read, inputs, strict=True)):
            if held[k] is array:
                continue
            if (kind := (array.shape, array.dtype)) != self.kinds[i]:
                expect(array, *self.inputs[i], "the caller of the program")
                self.kinds[i] = kind
            arguments.put(k, self.ready(k, array))
        for made in side.made:
            self.make(made, made.free(self.device), arguments)
        self.make(self.passing, self.last is not None and self.last() is None, arguments)
        self.device.begin(self.arena)
        self.draw(0, arguments)
        for part in side.course:
            if isinstance(part, OpRun):
                self.op(part, arguments)
                if part.equation in self.random:
                    self.draw(self.random.index(part.equation) + 1, arguments)
                continue
            self.start(part, arguments)
        if self.stops and self.later:
            self.backend.expect(self.check, self.place[1])
        elif self.stops and (flag := self.device.raised(self.flag)):
            raise Stopped from plan.error(flag)
        for v, k in self.foreign:
            arguments.put(k, held[slots[plan.whole[v].root]].reshape(v.shape).copy())
        results = Results([held[k] for k in self.ends])
        self.last = weakref.ref(results)
        return results

    def make(self, wanted: Arrays, free: bool, arguments: Arguments) -> None:
        """Arrays, new ones if these are not free, put where kernels find them."""
        if not free:
            arguments.forget(wanted.slots)
            wanted.arrays, made = [], list[Any]()
            try:
                self.device.empty(self.backend, wanted.kinds, made)
            except MemoryError as error:
                raise self.no_memory(wanted.slots[len(made)], error, arguments) from error
            wanted.arrays, made = made, []
            arguments.put_all(wanted.slots, wanted.arrays)
            wanted.holders = self.device.holders(wanted.arrays)
        else:
            arguments.put_all(wanted.slots, wanted.arrays)

    def ready(self, k: int, array: Any) -> Any:
        """An array as kernels read it in a slot."""
        if not array.flags.c_contiguous:
            return self.backend.wrap(self.backend.xp.ascontiguousarray(array))
        if k in self.quads and self.device.address(array) % ALIGNED:
            return self.backend.wrap(array.copy())
        return array

    def no_memory(self, k: int, error: MemoryError, arguments: Arguments) -> MemoryError:
        """The error of a call that has no room for the array of a slot."""
        plan = self.plan
        root = next(r for r, slot in plan.slots.items() if slot == k)
        ends = zip(plan.results, self.graph.ends, strict=True)
        makers = {v: e for e in self.graph.equations for v in e.outputs}
        maker = next((makers.get(v) for r, v in ends if r is root), None)
        what = f"the result of {maker.name}, from {maker.line}" if maker else "an array that an op reads"
        held = sum(plan.size(r) for r in set(plan.results) if arguments.arrays[plan.slots[r]] is not None)
        return MemoryError(
            f"expected {plan.size(root):,} bytes for {what}, while this call holds {held:,} bytes of results, and "
            f"the program {plan.arena:,} bytes between calls: {error}"
        )

    def deliver(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Write results of the last call into arrays of memory of their own: one graph, if they lie alike."""
        backend, side = self.backend, self.sides[self.turn]
        with backend.device_scope(self.place[1]):
            arguments, held = side.arguments, side.arguments.arrays
            where = zip(self.sources, self.targets, pairs, strict=True) if side.delivery else ()
            new = [(s, t, a, v) for s, t, (a, v) in where if held[s] is not v or held[t] is not a]
            if side.delivery is None or not all(alike(backend, self.place[1], a, v) for *_, a, v in new):
                for a, values in pairs:
                    dispatch.overwrite(a, values)
                return
            for source, target, a, values in new:
                arguments.put(source, values)
                arguments.put(target, a)
            self.device.begin(self.arena)
            self.start(side.delivery, arguments)
            arguments.forget(self.leaving)

    def start(self, graph: Any, arguments: Arguments) -> None:
        """A graph, after a copy of what it has to know, if that is new."""
        arguments.start(graph)
        self.launched += 1

    def check(self) -> None:
        """Raises what kernels found in calls so far."""
        with self.backend.device_scope(self.place[1]):
            flag = self.device.raised(self.flag)
        if flag:
            raise self.plan.error(flag)

    def draw(self, start: int, arguments: Arguments) -> None:
        """Take the words of random numbers that kernels draw, in eager's order: up to the next that an op draws."""
        for e in self.random[start:]:
            if e not in self.plan.draws:
                break
            arguments.draw(self.plan.draws.index(e), e.params["generator"].words(math.prod(e.out.shape)))

    def op(self, part: OpRun, arguments: Arguments) -> None:
        """One equation through its op."""
        slots = self.plan.slots
        at = {v: arguments.arrays[slots[r]].reshape(v.shape) for v, r in part.inputs.items()}
        made = run_equation(part.equation, at)
        for v, array in zip(part.equation.outputs, made if part.equation.several else (made,), strict=True):
            expect(array, self.plan.names[v], v.shape, v.dtype, f"the op {part.equation.name!r}")
            k = slots[self.plan.whole[v].root]
            arguments.put(k, self.ready(k, array))

    def source(self) -> str:
        """The kernels."""
        return self.plan.code()

    def explain(self) -> list[str]:
        """Launches, what each does and takes, and what ops run by themselves, with why."""
        if not self.plan.launches:
            return report(self.plan, {}, {})
        return report(self.plan, self.device.registers(self.plan), self.device.times(self.plan))


def alike(backend: Any, index: int, a: Any, values: Any) -> bool:
    """Whether a kernel may write ``values``, which a program returned, into ``a`` as they lie."""
    if a.shape != values.shape or a.dtype != values.dtype or not a.flags.c_contiguous:
        return False
    return backend.device_count() == 1 or bool(backend.device_index(a) == index)


def expect(array: Any, name: str, shape: tuple[int, ...], dtype: str, giver: str) -> None:
    """Raises TypeError if a kernel would read beside an array."""
    found = tuple(array.shape), str(array.dtype)
    if found != (shape, dtype):
        raise TypeError(f"{giver} gave {found[1]} of shape {found[0]} for {name}, expected {dtype} of shape {shape}")


def place(graph: Graph) -> tuple[str, int]:
    """The one device of a graph."""
    values: Iterable[Value] = [*graph.inputs, *(v for e in graph.equations for v in e.outputs)]
    places = dict.fromkeys(v.place for v in values)
    if len(places) > 1:
        raise CompileError(
            f"executor 'cuda': expected arrays on one device, got {', '.join(f'{t}:{i}' for t, i in places)}; "
            "compile(..., executor='replay') runs such programs"
        )
    return next(iter(places), ("cpu", 0))


def gains(graph: Graph) -> bool:
    """Whether kernels can run nearly all of a graph."""
    work = {e: sum(max(1, math.prod(v.shape)) for v in e.outputs) for e in graph.equations}
    foreign = sum(size for e, size in work.items() if pattern(e) is None)
    return len(graph) >= SHORTEST and foreign * MOST_FOREIGN <= sum(work.values())


class CudaExecutor:
    """Compiles graphs for GPUs to kernels."""

    name = "cuda"
    device_type = "cuda"

    def compile(self, graph: Graph) -> Program:
        """The program that runs ``graph`` on its GPU."""
        return CudaProgram(graph, Gpu(place(graph)[1]))

    def gains(self, graph: Graph) -> bool:
        """Whether kernels can run nearly all of a graph that is long enough to be worth compiling."""
        return len({v.place for v in graph.inputs}) <= 1 and gains(graph)


class EmulatedExecutor:
    """The same kernels on the processor, each in several orders of its threads and blocks: slow, and for tests.

    Attributes:
        recorded: where it is a list, the graphs that it was given, which NumPy then runs, are appended to it.
    """

    name = "cuda-emulated"
    device_type = None
    recorded: ClassVar[list[Graph] | None] = None

    def compile(self, graph: Graph) -> Program:
        """The program that runs ``graph`` without a GPU.

        Raises:
            CompileError: it has arrays on one.
        """
        if place(graph)[0] == "cuda":
            raise CompileError(
                "executor 'cuda-emulated' runs programs of the processor and of stand-in devices, but this one has "
                "arrays on a GPU; use executor='cuda'"
            )
        if self.recorded is not None:
            self.recorded.append(graph)
            return ReplayProgram(graph)
        return CudaProgram(graph, Emulated())


__all__ = ["CudaExecutor", "CudaProgram", "EmulatedExecutor", "Stopped"]
