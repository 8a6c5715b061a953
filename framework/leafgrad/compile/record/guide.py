"""What an earlier call recorded, in order, which later calls are compared with: a Guide, one for each part of a step.

A part ends where the step's Python reads a value, or with the call. Values are numbered by nothing but their identity,
and all calls that follow one guide share them.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from leafgrad.compile.ir.graph import Argument, Equation, Given, Graph, Source, Value, Write
from leafgrad.compile.ir.lines import Line
from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.ir.replay import ReplayProgram

KEPT = 32  # guides that follow one guide

Programs = Callable[[Graph], Any]  # from a graph to what runs it


@dataclass(frozen=True, eq=False, slots=True)
class Input:
    """Something from outside that the step reads here.

    Attributes:
        value: what stands for it.
        kind: ``"tensor"``, ``"number"`` (an operand of the op that comes next), ``"constant"`` or
            ``"array"``.
        operand: which operand a number is.
        strides: None if the elements lie in C order.
        line: where it was read.
    """

    value: Value
    kind: str
    operand: int
    strides: tuple[int, ...] | None
    line: Line

    @property
    def values(self) -> tuple[Value, ...]:
        """Nothing is needed before it."""
        return ()


Event = Input | Equation


Step = tuple[Any, tuple[Any, ...], dict[str, Any], bool, Value | None, tuple[Value, ...]]


def step_of(event: Event) -> Step:
    """An op as it is compared: itself, operands, parameters and whether ``==`` compares these, then what it makes."""
    if isinstance(event, Input):
        return None, (), {}, True, None, ()
    plain = all(is_plain(value) for value in event.params.values())
    out = None if event.several else event.out
    return event.op, event.inputs, event.params, plain, out, event.outputs


def is_plain(value: Any) -> bool:
    """Whether ``==`` tells a parameter from all that are not the same: 2 equals 2.0, and 1 equals True."""
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return value is None or type(value) is str


END: Step = (None, (), {}, True, None, ())


class Guide:
    """One part of a step.

    Attributes:
        events: what was recorded.
        copies: results of view ops that are in memory of their own.
        next: the parts that came after it.
        seen: how many calls took this course.
        calls: closed programs that were made of it.
        later: inputs that only their derivatives have, by expression and kind.
    """

    def __init__(self, events: Sequence[Event], copies: set[Value]) -> None:
        self.events = tuple(events)
        self.copies = copies
        self.steps = [step_of(e) for e in self.events] + [END]
        self.made = {v for e in self.events if isinstance(e, Equation) for v in e.outputs}
        self.must_run = any(e.must_run for e in self.events if isinstance(e, Equation))
        self.next: list[Guide] = []
        self.seen = 0
        self.calls: weakref.WeakSet[Any] = weakref.WeakSet()
        self.later: dict[tuple[str, Any], Value] = {}
        self.runner: Any = None
        self.results: dict[Value, int] = {}
        self.lock = Lock()

    def run(
        self, wanted: list[Value], written: dict[Value, Value], inputs: Sequence[Any], programs: Programs
    ) -> dict[Value, Any]:
        """The arrays of ``wanted``. What came once is run op by op; what comes again is worth a program.

        Args:
            written: inputs that stand for memory which is to be overwritten, with the values that come there.
            programs: makes the program.
        """
        if not wanted and not self.must_run:
            return {}
        with self.lock.held:
            self.seen += 1
            if self.seen > 1 and (self.runner is None or not self.results.keys() >= set(wanted)):
                graph = self.graph(dict.fromkeys([*self.results, *wanted]), written)
                order = [*graph.results, *(e.value for e in graph.effects if e.value is not None)]
                self.results = {v: i for i, v in enumerate(order)}
                self.runner = programs(graph)
            runner, results = self.runner, self.results
        if runner is None:
            return dict(zip(wanted, ReplayProgram(self.graph(wanted, {}))(inputs), strict=True))
        arrays = runner(inputs)
        return {v: arrays[results[v]] for v in wanted}

    def graph(self, results: Iterable[Value], written: dict[Value, Value]) -> Graph:
        """The part as a program that makes ``results``."""
        inputs: dict[Value, Source] = {}
        for e in self.events:
            if isinstance(e, Input):
                inputs[e.value] = Argument(len(inputs)) if e.kind in ("tensor", "array") else Given(len(inputs))
        effects = tuple(
            Write(inputs[at], value) for at, value in written.items() if at in inputs and value in self.made
        )
        others = [v for v in results if v not in {e.value for e in effects}]
        return Graph(inputs, tuple(e for e in self.events if isinstance(e, Equation)), tuple(others), effects)


def same_program(a: Graph | None, b: Graph | None) -> bool:
    """Whether two graphs make the same of their inputs, to the numbers in them. Their values may be others."""
    if a is None or b is None:
        return a is b
    if (len(a.inputs), len(a), len(a.results)) != (len(b.inputs), len(b), len(b.results)):
        return False
    at: dict[Any, Any] = dict(zip(a.inputs, b.inputs, strict=True))
    for e, f in zip(a.equations, b.equations, strict=True):
        if e.op is not f.op or len(e.inputs) != len(f.inputs) or not same(e.params, f.params) or e.place != f.place:
            return False
        if not all(at[v] is w if isinstance(v, Value) else same(v, w) for v, w in zip(e.inputs, f.inputs, strict=True)):
            return False
        at.update(zip(e.outputs, f.outputs, strict=True))
    return all(at[v] is w for v, w in zip(a.results, b.results, strict=True))


def same(a: Any, b: Any) -> bool:
    """Whether two parameters or numbers are the same to an op: the same type, and equal to the sign of zero."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    return isinstance(a, (bool, int, str, complex, slice, bytes)) and bool(a == b)
