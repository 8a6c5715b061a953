"""The program that a trace leaves: values, equations, and where inputs come from and results go.

A Graph is never changed; a pass builds a new one. Values are shared between graphs and compared by identity.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from leafgrad.errors import CompileError
from leafgrad.ops.op import Op

Place = tuple[str, int]


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """An array that the program reads or makes. ``dtype`` is a name; ``place`` a device type and index."""

    shape: tuple[int, ...]
    dtype: str
    place: Place

    @property
    def ndim(self) -> int:
        return len(self.shape)


Operand = Value | bool | int | float | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of source."""

    file: str
    number: int

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.number).strip()
        return f"{self.file.rpartition('/')[2]}:{self.number}" + (f": {text}" if text else "")


@dataclass(frozen=True, eq=False, slots=True)
class Equation:
    """``outputs = op(*inputs, **params)``, and the line of the user's source that asked for it.

    ``place`` matters to ops without array inputs only: where they create.
    """

    op: Op
    inputs: tuple[Operand, ...]
    params: dict[str, Any]
    outputs: tuple[Value, ...]
    line: Line
    several: bool = False  # whether the op returns a tuple

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def out(self) -> Value:
        """The output of an op that has one."""
        return self.outputs[0]

    @property
    def values(self) -> Iterator[Value]:
        """The inputs that are values, not numbers."""
        return (v for v in self.inputs if isinstance(v, Value))

    @property
    def place(self) -> Place:
        return self.outputs[0].place


# ---- where inputs come from -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Argument:
    """The data of the ``index``-th tensor among the arguments of the call."""

    index: int


@dataclass(frozen=True, eq=False, slots=True)
class Captured:
    """The data of a tensor that the function reached from outside."""

    tensor: Any


@dataclass(frozen=True, eq=False, slots=True)
class Live:
    """A Python number that is read anew at each call."""

    read: Callable[[], float]


@dataclass(frozen=True, eq=False, slots=True)
class Grad:
    """The data of the ``.grad`` of another source's tensor."""

    of: Argument | Captured


@dataclass(frozen=True, eq=False, slots=True)
class Given:
    """The ``index``-th array handed to a backward program: what the forward one saved, then gradients of its results."""

    index: int


Source = Argument | Captured | Live | Grad | Given


# ---- what is done with results ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Write:
    """Overwrite the memory of an input's tensor with ``value``."""

    source: Source
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class SetGrad:
    """Put ``value`` into the ``.grad`` of a tensor as a new one; None clears it."""

    source: Argument | Captured
    value: Value | None


@dataclass(frozen=True, eq=False, slots=True)
class SetRequiresGrad:
    """``requires_grad_()`` was called on an argument; it makes no value."""

    source: Argument
    value: None = None


Effect = Write | SetGrad | SetRequiresGrad


@dataclass(frozen=True, eq=False)
class Graph:
    """A straight-line program.

    Attributes:
        inputs: each value that is read, with its source.
        equations: in an order in which each can run.
        results: the values that the call returns or that a backward program needs, in order.
        effects: writes that happen after all equations, in order.
    """

    inputs: dict[Value, Source]
    equations: tuple[Equation, ...]
    results: tuple[Value, ...]
    effects: tuple[Effect, ...] = ()
    names: dict[Value, str] = field(default_factory=dict)

    def with_equations(self, equations: Iterable[Equation], same: dict[Value, Value] | None = None) -> Graph:
        """The graph with other equations; ``same`` maps values that are gone to the ones that replace them."""
        at = (lambda v: v) if not same else (lambda v: same.get(v, v))
        effects = tuple(e if e.value is None else replace(e, value=at(e.value)) for e in self.effects)
        return Graph(self.inputs, tuple(equations), tuple(at(v) for v in self.results), effects, self.names)

    @property
    def kept(self) -> set[Value]:
        """The values that must exist when the equations are done."""
        return {*self.results, *(e.value for e in self.effects if e.value is not None)}

    def uses(self) -> dict[Value, list[Equation]]:
        """The equations that read each value."""
        found: dict[Value, list[Equation]] = {}
        for equation in self.equations:
            for value in equation.values:
                found.setdefault(value, []).append(equation)
        return found

    def makers(self) -> dict[Value, Equation]:
        """The equation that makes each value."""
        return {v: e for e in self.equations for v in e.outputs}

    def check(self) -> Graph:
        """The graph itself, after checking that it is well formed; a CompileError says what is not."""
        known = set(self.inputs)
        for equation in self.equations:
            for value in equation.values:
                if value not in known:
                    raise CompileError(f"{equation.name}, from {equation.line}: reads a value that nothing has made")
            for value in equation.outputs:
                if value in known:
                    raise CompileError(f"{equation.name}, from {equation.line}: makes a value that exists already")
            known.update(equation.outputs)
        for value in self.kept:
            if value not in known:
                raise CompileError("a result or an effect refers to a value that nothing has made")
        return self

    def named(self) -> dict[Value, str]:
        """A short name for each value: inputs by where they come from, the others a, b, c, …"""
        names = {v: self.names.get(v, f"in{i}") for i, v in enumerate(self.inputs)}
        taken = set(names.values())
        fresh = (n for n in _letters() if n not in taken)
        for equation in self.equations:
            for value in equation.outputs:
                names[value] = next(fresh)
        return names

    def __len__(self) -> int:
        return len(self.equations)

    def __str__(self) -> str:
        from leafgrad.compile.text import render

        return render(self)


def _letters() -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    width = 1
    while True:
        for n in range(26**width):
            name = ""
            for _ in range(width):
                n, k = divmod(n, 26)
                name = letters[k] + name
            if name not in ("as", "if", "in", "is", "or", "and", "def", "del", "for", "not", "try"):
                yield name
        width += 1
