"""The program that a trace leaves: values, equations, and where inputs come from and results go.

A Graph is never changed; a pass builds a new one. Values are shared between graphs and compared by identity; two graphs
are equal if they do the same with what they are given.
"""

from __future__ import annotations

import functools
import itertools
import keyword
import operator
import re
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leafgrad.compile.ir.keys import key_of, same
from leafgrad.compile.ir.lines import Line
from leafgrad.compile.ir.sources import Argument, Captured, KeptArray, Source, origin
from leafgrad.forks import cached_property
from leafgrad.ops.op import Op

Place = tuple[str, int]


@dataclass(eq=False, slots=True)
class Value:
    """An array that the program reads or makes. ``dtype`` is a name; ``place`` a device type and index."""

    shape: tuple[int, ...]
    dtype: str
    place: Place

    @property
    def ndim(self) -> int:
        return len(self.shape)


@functools.cache
def itemsize(dtype: str) -> int:
    """Bytes of an element."""
    digits = re.sub(r"\D", "", dtype)
    return int(digits) // 8 if digits else 1


Operand = Value | bool | int | float | None


@dataclass(eq=False, slots=True)
class Equation:
    """``outputs = op(*inputs, **params)``, and the line of the user's source that asked for it.

    ``place`` matters to ops without array inputs only: where they create. ``values`` are the inputs that are values,
    not numbers.
    """

    op: Op
    inputs: tuple[Operand, ...]
    params: dict[str, Any]
    outputs: tuple[Value, ...]
    line: Line
    several: bool = False  # whether the op returns a tuple
    values: tuple[Value, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.values = tuple([v for v in self.inputs if isinstance(v, Value)])

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def out(self) -> Value:
        """The output of an op that has one."""
        return self.outputs[0]

    @property
    def place(self) -> Place:
        return self.outputs[0].place

    @property
    def must_run(self) -> bool:
        """Whether it runs even where nothing reads what it makes: a draw advances the generator, other processes wait
        for a collective, and elements that the op refuses are an error, unless all are known to be ``inside``."""
        return self.op.ordered or self.raises

    @property
    def raises(self) -> bool:
        """Whether it is an error for some elements of its arguments."""
        return "raises" in self.op.traits and not self.params.get("inside")


# ---- what is done with results ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Write:
    """Overwrite the memory of an input's tensor with ``value``.

    ``times``: as how many writes its version counts that; what is written through ``t.data`` is none.
    """

    source: Source
    value: Value
    times: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class SetData:
    """Give a tensor other memory, which holds ``value``; ``times`` as for Write."""

    source: Source
    value: Value
    times: int = 1


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


Effect = Write | SetData | SetGrad | SetRequiresGrad


def on(effect: Any, at: Callable[[Value], Value]) -> Any:
    """An effect with its value, if it has one, replaced by ``at`` of it."""
    new = None if effect.value is None else at(effect.value)
    return effect if new is effect.value else replace(effect, value=new)


@dataclass(frozen=True, eq=False, repr=False)
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

    def with_equations(self, equations: Sequence[Equation], same: dict[Value, Value] | None = None) -> Graph:
        """The graph with other equations, itself if they are its own.

        ``same`` maps values that are gone to the ones that replace them.
        """
        if len(equations) == len(self.equations) and all(map(operator.is_, equations, self.equations)):
            return self
        replaced = same or {}

        def at(v: Value) -> Value:
            return replaced.get(v, v)

        effects = tuple(on(e, at) for e in self.effects)
        return Graph(self.inputs, tuple(equations), tuple(at(v) for v in self.results), effects, self.names)

    @cached_property
    def numbers(self) -> dict[int, int]:
        """The number of each value, by its id: inputs first, then what equations make, in order."""
        return {id(v): i for i, v in enumerate(self.values())}

    @cached_property
    def key(self) -> Any:
        """What it does with its inputs, wherever they come from; arrays of the graph behind have their places there."""
        kinds = [(v.shape, v.dtype, v.place) for v in self.values()]
        inputs = [source if isinstance(source, KeptArray) else None for source in self.inputs.values()]
        equations = [(e.op, e.inputs, e.params, len(e.outputs)) for e in self.equations]
        effects = [(type(e), self.places.get(id(e.source)), e.value) for e in self.effects]
        return key_of((kinds, inputs, equations, self.results, effects), self.numbers)

    @property
    def places(self) -> dict[int, int]:
        """Which input each source is, by its id."""
        return {id(source): i for i, source in enumerate(self.inputs.values())}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Graph) and bool(self.key == other.key))

    def __hash__(self) -> int:
        return hash(self.key)

    def values(self) -> list[Value]:
        """All values, in order."""
        return [*self.inputs, *(v for e in self.equations for v in e.outputs)]

    @property
    def ends(self) -> tuple[Value, ...]:
        """What a program returns: results, then the values of effects."""
        return (*self.results, *(e.value for e in self.effects if e.value is not None))

    @property
    def written(self) -> set[Value]:
        """Of these, what is written into tensors and nothing else."""
        others = [*self.results, *(e.value for e in self.effects if not isinstance(e, Write))]
        return {e.value for e in self.effects if isinstance(e, Write)}.difference(others)

    @property
    def kept(self) -> set[Value]:
        """The values that must exist when the equations are done; in no order, which `ends` has."""
        return set(self.ends)

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

    def named(self) -> dict[Value, str]:
        """A short name for each value, no two alike: inputs by where they come from, the others a, b, c, …

        Of inputs that come from places of one name, the second is called ``name#2``.
        """
        names: dict[Value, str] = {}
        taken: set[str] = set()
        for i, v in enumerate(self.inputs):
            path = self.names.get(v, f"in{i}")
            again = (f"{path}#{n}" for n in itertools.count(2))
            names[v] = next(name for name in itertools.chain((path,), again) if name not in taken)
            taken.add(names[v])
        fresh = (n for n in _letters() if n not in taken)
        for equation in self.equations:
            for value in equation.outputs:
                names[value] = next(fresh)
        return names

    def __len__(self) -> int:
        return len(self.equations)

    def __str__(self) -> str:
        return render(self)

    __repr__ = __str__  # which Python's prompt and notebooks show


def _letters() -> Iterator[str]:
    for width in itertools.count(1):
        for letters in itertools.product(string.ascii_lowercase, repeat=width):
            if not keyword.iskeyword(name := "".join(letters)):
                yield name


# ---- as text ------------------------------------------------------------------------------------------------------


def kind(value: Value) -> str:
    """``f32[64, 2]``."""
    name = re.sub("^(f)loat|^(u)int|^(i)nt", r"\1\2\3", value.dtype)
    return f"{name}[{', '.join(map(str, value.shape))}]"


def expression(equation: Equation, names: dict[Value, str]) -> str:
    """``tanh(a)``, ``sum(b, dim=(0,))``."""
    parts = [names[v] if isinstance(v, Value) else repr(v) for v in equation.inputs]
    parts += [
        f"{k}={brief(v)}" for k, v in equation.params.items() if not same(equation.op.signature.parameters.get(k), v)
    ]
    return f"{equation.name}({', '.join(parts)})"


def brief(value: Any) -> str:
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def render(graph: Graph) -> str:
    """One line per input, equation and effect, with shapes, dtypes and source lines."""
    names = graph.named()
    rows = [(f"  {names[value]}: {kind(value)}", origin(source)) for value, source in graph.inputs.items()]
    for equation in graph.equations:
        left = ", ".join(f"{names[v]}: {kind(v)}" for v in equation.outputs)
        rows.append((f"  {left} = {expression(equation, names)}", str(equation.line)))
    by_source = {source: names[value] for value, source in graph.inputs.items()}
    for effect in graph.effects:
        target = by_source.get(effect.source, f"({origin(effect.source)})")
        suffix = {Write: "[...]", SetGrad: ".grad"}.get(type(effect), ".requires_grad")
        what = "None" if effect.value is None else names[effect.value]
        rows.append((f"  {target}{suffix} = {what if suffix != '.requires_grad' else 'True'}", "effect"))
    width = min(72, max((len(left) for left, _ in rows), default=0))
    lines = [f"{left:<{width}}  # {right}" for left, right in rows]
    returned = ", ".join(names[v] for v in graph.results) or "nothing"
    return "\n".join(["program:", *lines, f"  return {returned}"])
