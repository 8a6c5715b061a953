"""The course of a call: what comes is compared with a guide, and recorded anew from the first difference on."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import backends
from leafgrad.backends.place import place
from leafgrad.compile.ir.graph import Equation, Expression, KeptArray, Number, Operand, Source, Value
from leafgrad.compile.ir.lines import user_line
from leafgrad.compile.record.guide import Event, Guide, Input, same
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import Numbers, SymbolicNumber, fixed

NUMBERS = (int, float)
new = object.__new__
ref = weakref.ref


def same_operand(a: Operand, b: Operand) -> bool:
    """Whether two operands are one value, or the same number."""
    return a is b if isinstance(a, Value) else same(a, b)


def is_float(number: Any) -> bool:
    """Whether an operand is a number that a float holds; others are for the op to refuse."""
    return type(number) is float or (type(number) is int and -(2**1000) < number < 2**1000)


Kind = tuple[str, tuple[str, int]]  # of a number that is an input: its dtype and place


def kind_of_numbers(op: Any, operands: Sequence[Operand]) -> Kind | None:
    """As what numbers among these operands may be inputs; None if the op must see them themselves."""
    kinds = {(v.dtype, v.place) for v in operands if isinstance(v, Value) and v.dtype.startswith("float")}
    return kinds.pop() if "elementwise" in op.traits and len(kinds) == 1 else None


def as_input(number: float, kind: Kind) -> Any:
    """A number as an array."""
    dtype, (device, index) = kind
    return backends.by_device_type(device).asarray(number, dtype, index)


def as_inputs(numbers: Sequence[float], kind: Kind) -> list[Any]:
    """Numbers as arrays, which take one copy to another device."""
    dtype, (device, index) = kind
    if device == "cpu" or len(numbers) == 1:
        return [as_input(number, kind) for number in numbers]
    together = backends.by_device_type(device).asarray(numbers, dtype, index)
    return [together[k, ...] for k in range(len(numbers))]


class Course:
    """Follows a guide, and leaves one.

    Args:
        guides: what earlier calls recorded from the same place on.
    """

    numbers: Numbers | None = None  # those that are followed; of most calls none
    later: dict[tuple[str, Kind], Value] | None = None  # inputs for those in the derivatives of results, by expression

    def __init__(self, guides: Sequence[Guide]) -> None:
        self.begin(guides)

    def begin(self, guides: Sequence[Guide]) -> None:
        """Start a part, which may take the course of one of ``guides``."""
        self.guides = list(guides)
        self.guide: Guide | None = self.guides[0] if self.guides else None
        self.at = 0  # how many events of the guide have come
        self.past: Sequence[Event] = ()  # a guide that was left, to see which numbers differ from it
        self.past_at = 0
        self.fresh: list[Event] = []
        self.copies: set[Value] = set()
        self.arrays: list[Any] = []  # of the inputs, in order
        self.known: dict[Value, Any] = {}  # arrays of inputs, and of what was computed on the way
        self.drawn: dict[Any, Any] = {}  # where generators would stand after the draws that are known
        self.sources: dict[Value, Source] = {}
        self.likes: dict[Value, Value] = {}  # gradients of results: taken to be like these
        self.symbols: list[weakref.ref[Symbol]] = []
        self.followed: dict[tuple[str, Kind], Value] = {}  # inputs for symbolic numbers, by expression and kind
        self.behind: dict[KeptArray, Symbol] = {}  # inputs for what the graph behind tensors from outside keeps

    def expect(self, fits: Callable[[Event], bool]) -> Event | None:
        """The next event, if it fits; else that of another guide with the same past; else None, and no guide."""
        if self.guide is None:
            return None
        before = self.guide.events[self.at - 1] if self.at else None
        for guide in (self.guide, *self.guides):
            if len(guide.events) > self.at and (before is None or guide.events[self.at - 1] is before):
                event = guide.events[self.at]
                if fits(event):
                    self.guide = guide
                    self.at += 1
                    return event
        self.depart()
        return None

    def depart(self) -> None:
        """Go on without a guide."""
        if self.guide is not None:
            self.past, self.past_at = self.guide.events, self.at
            self.fresh = list(self.past[: self.at])
            self.copies = set(self.guide.copies)
            self.guide = None

    @property
    def events(self) -> Sequence[Event]:
        """What has come in this part."""
        return self.fresh if self.guide is None else self.guide.events[: self.at]

    @property
    def equations(self) -> list[Equation]:
        """The ops among them."""
        return [e for e in self.events if isinstance(e, Equation)]

    def symbol(self, value: Value) -> Symbol:
        made = Symbol(self, value)
        self.symbols.append(weakref.ref(made))
        return made

    def answer(self, outputs: Sequence[Value], several: bool) -> Any:
        """Symbols of what an equation makes."""
        made = tuple([self.symbol(v) for v in outputs])
        return made if several else made[0]

    # ---- what comes ------------------------------------------------------------------------------------------------

    def follow(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The Symbol of what an op makes, if the guide has this very op on these very values here; else None."""
        guide = self.guide
        if guide is None:
            return None
        at = self.at
        known, inputs, expected, plain, out, outputs = guide.steps[at]
        if known is not op or len(inputs) != len(args):
            return None
        if self.numbers is not None and any(type(a) is SymbolicNumber for a in args):
            return None
        for a, v in zip(args, inputs, strict=False):
            if a.__class__ is Symbol:
                if a.value is not v or a.tracer is not self:
                    return None
            elif a is not v and not (a.__class__ is v.__class__ and a == v and (a or same(a, v))):
                return None
        if params is not expected and not (params == expected if plain else same(params, expected)):
            return None
        self.at = at + 1
        if out is None:
            return self.answer(outputs, True)
        made = new(Symbol)
        made.tracer = self
        made.value = out
        made.shape = out.shape
        self.symbols.append(ref(made))
        return made

    def input(self, kind: str, array: Any, source: Source, operand: int = -1) -> Symbol:
        """The Symbol of something from outside."""
        shape, dtype, where = tuple(array.shape), array.dtype.name, place(array)
        strides = None if array.flags.c_contiguous else tuple(array.strides)

        def fits(e: Event) -> bool:
            return (
                type(e) is Input
                and e.kind == kind
                and e.operand == operand
                and e.strides == strides
                and (e.value.shape, e.value.dtype, e.value.place) == (shape, dtype, where)
            )

        event = self.expect(fits)
        if event is None:
            value = Value(shape, dtype, where)
            self.fresh.append(Input(value, kind, operand, strides, user_line()))
        else:
            assert isinstance(event, Input)
            value = event.value
        self.arrays.append(array)
        self.known[value] = array
        self.sources[value] = source
        return self.symbol(value)

    # ---- numbers that change from call to call ----------------------------------------------------------------

    def admit_numbers(self, op: Any, operands: list[Operand]) -> None:
        """Numbers that the guide takes as inputs of this very op on these very values."""
        if self.guide is None:
            return
        events, end = self.guide.events, self.at
        while end < len(events) and isinstance(event := events[end], Input) and event.kind == "number":
            end += 1
        numbers = [event for event in events[self.at : end] if isinstance(event, Input)]
        known = events[end] if numbers and end < len(events) else None
        if not isinstance(known, Equation) or known.op is not op or len(known.inputs) != len(operands):
            return
        lifted = {event.operand for event in numbers}
        if all(
            is_float(a) if i in lifted else same_operand(a, b)
            for i, (a, b) in enumerate(zip(operands, known.inputs, strict=True))
        ):
            for event in numbers:
                operands[event.operand] = self.number(
                    operands[event.operand], event.operand, (event.value.dtype, event.value.place)
                )

    def number(self, number: Any, operand: int, kind: Kind) -> Value:
        array = as_input(float(number), kind)
        return self.input("number", array, Number(float(number)), operand).value

    def follow_numbers(self, op: Any, operands: list[Operand]) -> None:
        """Symbolic numbers among operands become inputs where the op takes them as elements; else they are fixed."""
        for i, number in enumerate(list[Any](operands)):
            if type(number) is SymbolicNumber:
                kind = kind_of_numbers(op, operands) if is_float(number._value) else None
                operands[i] = fixed(number) if kind is None else self.followed_input(number, i, kind)

    def followed_input(self, number: SymbolicNumber, operand: int, kind: Kind) -> Value:
        """The input for a symbolic number, one for all that have its expression."""
        key = number._text, kind
        if key not in self.followed:
            array, source = as_input(float(number._value), kind), Expression(number._text)
            value = None if self.later is None else self.later.get(key)
            if value is None:
                value = self.input("number", array, source, operand).value
            self.followed[key], self.known[value], self.sources[value] = value, array, source
            if self.later is not None:
                self.later[key] = value
        return self.followed[key]

    def lift_numbers(self, op: Any, operands: list[Operand], params: dict[str, Any]) -> None:
        """Where the guide that was left has the same op with another number, the number becomes an input."""
        numbers: set[int] = set()
        while self.past_at < len(self.past) and isinstance(skipped := self.past[self.past_at], Input):
            if skipped.kind == "number":
                numbers.add(skipped.operand)
            self.past_at += 1
        event = self.past[self.past_at] if self.past_at < len(self.past) else None
        if not isinstance(event, Equation) or event.op is not op or len(event.inputs) != len(operands):
            self.past = ()
            return
        self.past_at += 1
        kind = kind_of_numbers(op, operands)
        if kind is None:
            return
        for i, (number, before) in enumerate(zip(operands, event.inputs, strict=True)):
            if is_float(number) and (i in numbers or (type(before) in NUMBERS and not same(number, before))):
                operands[i] = self.number(number, i, kind)

    def varies(self, op: Any, params: dict[str, Any], result: Any) -> bool:
        """Whether the guide that was left has a constant like this one here, with other elements."""
        at = self.past_at
        event = self.past[at] if at < len(self.past) else None
        if event is None or "random" in op.traits:
            return False
        made = event.value if isinstance(event, Input) else event.outputs[0]
        alike = (made.shape, made.dtype, made.place) == (tuple(result.shape), result.dtype.name, place(result))
        constant = event.kind == "constant" if isinstance(event, Input) else event.op is op and alike
        if not constant:
            self.past = ()
            return False
        self.past_at += 1
        return alike and (isinstance(event, Input) or not same(params, event.params))
