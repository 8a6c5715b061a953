"""What comes in a recorded call: arrays and numbers from outside, which become inputs, and equations."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from leafgrad import backends
from leafgrad.backends import Generator
from leafgrad.backends.place import place
from leafgrad.compile.ir.draws import rewound
from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.compile.ir.lengths import changed
from leafgrad.compile.ir.replay import run_equation
from leafgrad.compile.ir.sources import Expression, KeptArray, Source
from leafgrad.compile.record.numbers import Numbers
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import SymbolicNumber, fixed, settled
from leafgrad.ops.geometry import inverse


def is_float(number: Any) -> bool:
    """Whether an operand is a number that a float holds; others are for the op to refuse."""
    return type(number) is float or (type(number) is int and -(2**1000) < number < 2**1000)


Kind = tuple[str, tuple[str, int]]  # of a number that is an input: its dtype and place


def kind_of_numbers(op: Any, operands: Sequence[Operand]) -> Kind | None:
    """As what numbers among these operands may be inputs; None if the op must see them themselves."""
    kinds = {(v.dtype, v.place) for v in operands if isinstance(v, Value) and v.dtype.startswith("float")}
    return kinds.pop() if "elementwise" in op.traits and len(kinds) == 1 else None


def as_inputs(numbers: Sequence[float], kind: Kind) -> list[Any]:
    """Numbers as arrays, which take one copy to another device."""
    dtype, (device, index) = kind
    backend = backends.by_device_type(device)
    if device == "cpu" or len(numbers) == 1:
        return [backend.asarray(number, dtype, index) for number in numbers]
    together = backend.asarray(numbers, dtype, index)
    return [together[k, ...] for k in range(len(numbers))]


def hollow(value: Value, order: Sequence[int] | None) -> Any:
    """An array without elements, with the strides of a new one whose dimensions are in this order in memory."""
    backend, shape = backends.by_device_type(value.place[0]), settled(value.shape)
    with backend.device_scope(value.place[1]):
        if order is None:
            return backend.hollow(shape, value.dtype)
        return backend.hollow([shape[d] for d in order], value.dtype).transpose(inverse(order))


class Events:
    """What has come in this part of a call.

    Attributes:
        sources: the inputs, in order.
        equations: what was done, in order.
        known: arrays of inputs, and of what was computed on the way.
    """

    numbers: Numbers | None = None  # those that are followed; of most calls none

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start a part."""
        self.sources: dict[Value, Source] = {}
        self.equations: list[Equation] = []
        self.known: dict[Value, Any] = {}
        self.drawn: dict[Any, Any] = {}  # where generators would stand after the draws that are known
        self.likes: dict[Value, Value] = {}  # gradients of results: taken to be like these
        self.symbols: list[weakref.ref[Symbol]] = []
        self.followed: dict[tuple[str, Kind], Value] = {}  # inputs for symbolic numbers, by expression and kind
        self.behind: dict[KeptArray, Symbol] = {}  # inputs for what the graph behind tensors from outside keeps

    def symbol(self, value: Value) -> Symbol:
        made = Symbol(self, value)
        self.symbols.append(weakref.ref(made))
        return made

    def answer(self, equation: Equation) -> Any:
        """Symbols of what an equation makes."""
        self.equations.append(equation)
        made = tuple([self.symbol(v) for v in equation.outputs])
        return made if equation.several else made[0]

    def input(self, array: Any, source: Source) -> Symbol:
        """The Symbol of something from outside."""
        value = Value(tuple(array.shape), array.dtype.name, place(array))
        self.known[value], self.sources[value] = array, source
        return self.symbol(value)

    def follow_numbers(self, op: Any, operands: list[Operand]) -> None:
        """Symbolic numbers among operands become inputs where the op takes them as elements; else they are fixed."""
        for i, number in enumerate(list[Any](operands)):
            if type(number) is SymbolicNumber:
                kind = kind_of_numbers(op, operands) if is_float(number._value) else None
                operands[i] = fixed(number) if kind is None else self.followed_input(number, kind)

    def followed_input(self, number: SymbolicNumber, kind: Kind) -> Value:
        """The input for a symbolic number, one for all that have its expression."""
        key = number._text, kind
        if key not in self.followed:
            (array,) = as_inputs([float(number._value)], kind)
            self.followed[key] = self.input(array, Expression(number._text)).value
        return self.followed[key]

    def array(self, value: Value) -> Any:
        """What a value is in this run of the function, with all that it depends on, and with all earlier draws."""
        if value in self.known and value not in self.likes:
            return self.known[value]
        equations = dict(enumerate(self.equations))
        makers = {v: i for i, e in equations.items() for v in e.outputs}
        waiting, needed = [value], set[int]()
        while waiting:
            v = waiting.pop()
            if v in self.likes:
                self.known[v] = self.array(self.likes[v])
            if v not in self.known and (at := makers[v]) not in needed:
                needed.add(at)
                waiting += equations[at].values
                if generators_in(equations[at].params):
                    waiting += [e.outputs[0] for i, e in equations.items() if i < at and generators_in(e.params)]
        for i in sorted(needed):
            equation = equations[i]
            with rewound(generators := generators_in(equation.params)):
                for generator in generators:
                    generator.set_state(self.drawn.get(generator, generator.get_state()))
                params = None if self.numbers is None else changed(equation.params, settled)
                result = run_equation(equation, self.known, params)
                self.drawn |= {generator: generator.get_state() for generator in generators}
            self.known.update(zip(equation.outputs, result if equation.several else (result,), strict=True))
        return self.known[value]


def generators_in(params: dict[str, Any]) -> list[Generator]:
    """What an op draws from."""
    return [p for p in params.values() if isinstance(p, Generator)]
