"""The simplest executor: one equation after the other, on any device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from leafgrad import backends
from leafgrad.compile.ir.agreement import expect_agreement, is_checked
from leafgrad.compile.ir.draws import generators, restore, states
from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.ir.memory import unshared


class ReplayProgram:
    """Runs equations through their ops, and lets go of each value after its last use."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ends = graph.ends
        self.steps = steps(graph)
        self.generators = generators(graph)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The arrays of ``graph.results`` and then of its effects' values, each in new memory.

        Where an op fails, nothing is drawn: whoever runs it again draws the same.
        """
        drawn = states(self.generators)
        try:
            return self.run(inputs)
        except BaseException:
            restore(drawn)
            raise

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        at: dict[Value, Any] = dict(zip(self.graph.inputs, inputs, strict=True))
        for equation, dead in self.steps:
            try:
                result = run_equation(equation, at)
            except Exception as error:
                error.add_note(f"in the compiled program at {equation.line}")
                raise
            if equation.several:
                at.update(zip(equation.outputs, result, strict=True))
            else:
                at[equation.outputs[0]] = result
            for value in dead:
                del at[value]
        return unshared([at[v] for v in self.ends], inputs)

    def source(self) -> str:
        """The graph itself."""
        return str(self.graph)

    def explain(self) -> list[str]:
        """How it runs."""
        return [f"replayed: {len(self.steps)} equations, one by one, each in new memory"]


def steps(graph: Graph) -> list[tuple[Equation, list[Value]]]:
    """Each equation with the values that nobody needs after it."""
    last: dict[Value, int] = {}
    for i, equation in enumerate(graph.equations):
        for value in (*equation.values, *equation.outputs):
            last[value] = i
    dead: list[list[Value]] = [[] for _ in graph.equations]
    kept = graph.kept
    for value, i in last.items():
        if value not in kept:
            dead[i].append(value)
    return list(zip(graph.equations, dead, strict=True))


def run_equation(equation: Equation, at: dict[Value, Any], given: dict[str, Any] | None = None) -> Any:
    """The arrays that an equation makes, with parameters that are ``given`` in place of its own."""
    params = equation.params if given is None else given
    device, index = equation.place
    backend = backends.by_device_type(device)
    op = equation.op
    with nullcontext() if device == "cpu" else backend.device_scope(index):
        if equation.inputs:
            args = tuple([at[v] if isinstance(v, Value) else v for v in equation.inputs])
            made = op.compute(args, params)
            if is_checked(op):
                expect_agreement(equation, made)
            return made
        return op.create(backend, params)


class ReplayExecutor:
    """Replays graphs on every device."""

    name = "replay"
    device_type = None

    def compile(self, graph: Graph) -> ReplayProgram:
        """The program that runs ``graph``."""
        return ReplayProgram(graph)
