"""A phase is compared with NumPy when its code first runs on a machine, and never runs again if they differ."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leafgrad.compile.ir import edges, rounding
from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.ir.replay import run_equation
from leafgrad.compile.ir.sources import Given, Source
from leafgrad.forks import cached_property
from leafgrad.lowering.folder import RefusedFolder
from leafgrad.lowering.stages import CPhase
from leafgrad_native import pool

if TYPE_CHECKING:
    from leafgrad.compile.numpy.executor import NumpyProgram
    from leafgrad_native.executor import NativeProgram

OUT_OF_RANGE, NOT_IN_C = 1, 2  # what a phase returns when it stops
SEVERAL = 3  # sizes at which code that serves many is compared


def with_numpy(graph: Graph) -> NumpyProgram:
    """A program of NumPy, whose executor is imported when one is needed."""
    from leafgrad.compile.numpy.executor import NumpyProgram

    return NumpyProgram(graph)


class Checked:
    """Runs a C phase; the first time that its code does, beside NumPy.

    Attributes:
        agreed: whether it was compared with NumPy in this process, and gave the same.
        state: "", or ", refused: ..." if C and NumPy differed.
    """

    def __init__(self, program: NativeProgram, phase: CPhase, function: Any) -> None:
        self.program = program
        self.phase = phase
        self.function = function  # which keeps the library loaded
        self.address = ctypes.cast(function, ctypes.c_void_p).value or 0
        self.state = ""
        self.drawn = {e.out: e for e in phase.equations if e in program.plan.draws}
        self.agreed = not phase.equations
        self.pending = not self.agreed and program.checked and wanted(program)
        self.reference: NumpyProgram | None = None  # what runs instead of a refused phase
        self.spare: NumpyProgram | None = None  # what runs at calls that C stopped, as for an angle that is too large

    def __call__(self) -> None:
        if self.reference is not None:
            self.run_reference(self.reference)
            return
        part = self.part() if self.pending else None
        inputs = self.inputs(part) if part else []
        code = pool.call(self.address, self.program.pointer)
        if code == OUT_OF_RANGE:
            raise IndexError("an index is out of range")
        if code == NOT_IN_C:
            if self.spare is None:
                self.spare = with_numpy(self.part())
            self.run_reference(self.spare)
            return
        if part is not None:
            self.pending = False
            self.agreed = self.compare(part, inputs)

    def part(self) -> Graph:
        """The phase as a graph of its own."""
        sized, graph = self.program.sized, self.program.graph
        equations = tuple(sized[e] for e in self.phase.equations if e.out not in self.drawn)
        made = {v for e in equations for v in e.outputs}
        inputs = dict.fromkeys(v for e in equations for v in e.values if v not in made)
        known = {sized[v]: source for v, source in graph.inputs.items()}  # by which NumPy knows a batch
        sources: dict[Value, Source] = {v: known.get(v, Given(k)) for k, v in enumerate(inputs)}
        results = tuple(sized[v] for v in self.phase.outputs if sized[v] in made)
        names = {sized[v]: name for v, name in graph.names.items() if v in sized}
        return replace(graph, inputs=sources, equations=equations, results=results, effects=(), names=names)

    @cached_property
    def origins(self) -> dict[Value, Value]:
        """The value of the program's graph that each of the part stands for."""
        return {new: v for v, new in self.program.sized.items() if isinstance(v, Value)}

    def inputs(self, graph: Graph) -> list[Any]:
        """Copies of what the part reads, whose memory may be used again, and the random numbers that C draws itself."""
        program, drawn = self.program, self.drawn
        read = [self.origins[v] for v in graph.inputs]
        return [program.bernoulli(drawn[v]) if v in drawn else program.value(v).copy() for v in read]

    def expected(self, reference: NumpyProgram, inputs: list[Any]) -> dict[Value, Any]:
        """What the phase leaves behind, from NumPy."""
        found = {self.origins[v]: a for v, a in zip(reference.graph.results, reference(inputs), strict=True)}
        return found | {v: self.program.bernoulli(e) for v, e in self.drawn.items() if v in self.phase.outputs}

    def compare(self, graph: Graph, inputs: list[Any]) -> bool:
        """Whether NumPy gives the same; otherwise what it gives is what counts."""
        program = self.program
        reference = with_numpy(graph)
        moved = rounding.Moved(graph, inputs)
        for value, right in self.expected(reference, inputs).items():
            ours = program.value(value)
            if rounding.close(ours, right):
                continue
            if value in self.drawn or not agrees(moved, program.sized[value], ours, right):
                self.refuse(graph, inputs, value, ours, right)
                break
        else:
            if not self.wrong_at_edges(graph):
                return True
        self.reference = reference
        self.run_reference(reference)
        program.code.agreed = -math.inf  # so that it is compared at every size
        return False

    def wrong_at_edges(self, graph: Graph) -> bool:
        """Whether the C of an op that is not leafgrad's differs from its forward at the ends of what a dtype holds.

        Each op is tried once, with its parameters: what it is compiled to remembers that it passed.
        """
        for equation in graph.equations:
            dtype = equation.outputs[0].dtype
            if is_foreign(equation) and "elementwise" in equation.op.traits and dtype in (*edges.DTYPES, "bool"):
                wrong = edge_of(equation, type(self.program))
                if wrong is not None:
                    self.state = f", refused: {equation.name} computes something else, so NumPy runs it"
                    self.say(wrong)
                    return True
        return False

    def run_reference(self, reference: NumpyProgram) -> None:
        """Do with NumPy what the phase does, into the same memory."""
        program = self.program
        given = {program.plan.whole[v].root for v in program.graph.inputs}
        for value, array in self.expected(reference, self.inputs(reference.graph)).items():
            if program.plan.whole[value].root not in given:
                program.value(value)[...] = array
        program.deliver()

    def refuse(self, graph: Graph, inputs: list[Any], value: Value, ours: Any, right: Any) -> None:
        """Say that the phase runs with NumPy from now on: whose fault it is, or where what tells of it is written."""
        name = self.program.plan.names.get(value, "a result")
        apart = float(rounding.distance(ours, right))
        self.state = f", refused: {name} was {apart:.3g} off, so NumPy runs it"
        wrong = self.wrong_body(graph, inputs)
        if wrong is not None:
            self.say(wrong)
        else:
            report = self.report(graph, name, apart, right)
            self.say(f"compiled C gives {name} differently from NumPy (by {apart:.3g}). Please file {report}")

    def say(self, text: str) -> None:
        """Warn that NumPy runs the phase."""
        text += f"; NumPy runs these {len(self.phase.equations)} equations"
        warnings.warn(text, RuntimeWarning, stacklevel=2)

    def wrong_body(self, graph: Graph, inputs: list[Any]) -> str | None:
        """What to say of the first equation whose C is not leafgrad's and computes, on its own, something else."""
        at = dict(zip(graph.inputs, inputs, strict=True))
        for equation in graph.equations:
            made = run_equation(equation, at)
            at.update(zip(equation.outputs, made if equation.several else (made,), strict=True))
            if not is_foreign(equation):
                continue
            sources: dict[Value, Source] = {v: Given(k) for k, v in enumerate(dict.fromkeys(equation.values))}
            alone = Graph(sources, (equation,), equation.outputs)
            given = [at[v] for v in alone.inputs]
            (ours,) = type(self.program)(alone, checked=False)(given)
            if not (rounding.close(ours, made) or agrees(rounding.Moved(alone, given), equation.out, ours, made)):
                return wrong_declaration(equation, [at[v] for v in equation.values], ours)
        return None

    def report(self, graph: Graph, name: str, apart: float, right: Any) -> str:
        """The name of a file with what is needed to find out why the phase differs."""
        lines = [
            f"leafgrad-native: {name} is {apart:.6g} from NumPy's, whose largest element is "
            f"{rounding.largest(right):.6g}",
            f"{platform.platform()}, Python {platform.python_version()}, NumPy {np.__version__}",
            str(graph),
            self.program.source(),
        ]
        library = self.program.library
        file = f"differs-{library.entry}-{self.phase.number}.txt"
        try:
            library.folder.write(file, "\n".join(lines).encode())
        except RefusedFolder as error:
            return f"what follows, for which there is no file ({error}):\n" + "\n".join(lines)
        return str(library.folder.path / file)


def agrees(moved: rounding.Moved, value: Value, ours: Any, right: Any) -> bool:
    """Whether C's ``ours`` is NumPy's ``right`` but for rounding.

    Where all is elementwise, each element may also be what higher precision gives: C that rounds a product and a sum
    once does not overflow between the two, as NumPy does.
    """
    graph = moved.graph

    def compute(*arrays: Any) -> Any:
        at = dict(zip(graph.inputs, arrays, strict=True))
        for equation in graph.equations:
            made = forward_of(equation)(*[at[v] for v in equation.values])
            at.update(zip(equation.outputs, made if equation.several else (made,), strict=True))
        return at[value]

    return moved.explain(value, ours, right) or (
        all("elementwise" in e.op.traits for e in graph.equations)
        and edges.first_difference(compute, list(moved.inputs), ours) is None
    )


def is_foreign(equation: Equation) -> bool:
    """Whether its C is of an op that is not leafgrad's own."""
    op = equation.op
    return (op.c is not None or "native" in op.lowering) and not (op.forward.__module__ or "").startswith("leafgrad.")


def forward_of(equation: Equation) -> Callable[..., Any]:
    """The op of an equation as a function of the arrays of its values."""

    def compute(*given: Any) -> Any:
        rest = iter(given)
        args = [next(rest) if isinstance(v, Value) else v for v in equation.inputs]
        return equation.op.compute(tuple(args), equation.params)

    return compute


def wrong_declaration(equation: Equation, arrays: list[Any], ours: Any) -> str:
    """What to say of an op whose C is wrong, which gave ``ours`` for these arrays."""
    op = equation.op
    whose = "native" in op.lowering
    what = f"rule for native, from {op.origins['lower native']}," if whose else f"c={op.c!r}, from {op.origins['c']},"
    text = f"op {op.name!r}, from {equation.line}: its {what} computes something else than its forward"
    with np.errstate(all="ignore"):
        right = forward_of(equation)(*arrays)
        at = None if "elementwise" not in op.traits else edges.first_difference(forward_of(equation), arrays, ours)
    if at is not None:
        places = [k for k, v in enumerate(equation.inputs) if isinstance(v, Value)]
        names = [op.signature.arguments[op.signature.slot(k)] for k in places]
        seen = [np.broadcast_to(a, right.shape)[at] for a in arrays]
        given = ", ".join(f"{name}={a!s}" for name, a in zip(names, seen, strict=True))
        text += f", {ours[at]!s} for {right[at]!s} at {given}"
    return f"{text}: mend one of both"


def edge_of(equation: Equation, program: type[NativeProgram]) -> str | None:
    """What to say of an op whose C alone differs from its forward at the ends of what a dtype holds; None if not."""
    dtypes = {v.dtype for v in equation.values}
    if len(dtypes) != 1 or not dtypes <= set(edges.DTYPES):
        return None  # integers, of which C leaves some undefined
    arrays = edges.arguments(len(equation.values), *dtypes)
    values = [Value(a.shape, a.dtype.name, equation.place) for a in arrays]
    rest = iter(values)
    operands = tuple([next(rest) if isinstance(v, Value) else v for v in equation.inputs])
    out = Value(arrays[0].shape, equation.outputs[0].dtype, equation.place)
    alone = Equation(equation.op, operands, equation.params, (out,), equation.line)
    made = program(Graph({v: Given(k) for k, v in enumerate(values)}, (alone,), (out,)), checked=False)
    if made.library.passed:
        return None
    with np.errstate(all="ignore"):
        (ours,) = made(arrays)
        if edges.first_difference(forward_of(alone), arrays, ours) is not None:
            return wrong_declaration(alone, arrays, ours)
    made.library.note_passed()
    return None


def wanted(program: NativeProgram) -> bool:
    """Whether to compare: the first time only, always if ``LEAFGRAD_NATIVE_CHECK`` is 1, never if it is 0.

    Code that serves several lengths of batches is compared at each; what is one program of Extents, at the first few.
    """
    setting = os.environ.get("LEAFGRAD_NATIVE_CHECK")
    if program.settled.values:
        return setting == "1" or (setting != "0" and program.code.agreed < SEVERAL)
    return setting == "1" or (setting != "0" and (program.any_length or not program.library.passed))
