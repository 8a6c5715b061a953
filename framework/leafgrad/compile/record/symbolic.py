"""Symbolic numbers: Python numbers that change from call to call, followed through a recorded call.

Where an argument, an attribute or a value that was read differs at each call, a recording runs the function with a
SymbolicNumber in its place. It takes part in arithmetic as the number does, and remembers by which expression it comes
from those that were given. A program then computes it anew at each call. Where the Python asks what the number is, to
compare, to index or in C, the answer becomes a guard.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from leafgrad import backends, dtypes, modes
from leafgrad.compile.ir.sources import number_source
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.watch import unwatched
from leafgrad.ops import dispatch
from leafgrad.ops.node import SymbolBase, TensorBase

NUMBERS = (int, float)
PLAIN = (bool, int, float)
LONG = 1000  # characters of an expression above which a number is taken as it is
LATER = ("item()", "bool()")  # what reads a value that may be known later
KINDS: dict[str, type] = {"float32": float, "float64": float, "int64": int, "bool": bool}  # of elements as numbers
UNREAD = object()  # the value of a number whose program has not run


class Numbers:
    """The symbolic numbers of one recording.

    Attributes:
        relations: expressions that are true as long as the Python goes the same way, each with a reader's words for
            what it looks at, and the expression that it binds to its value, if it does.
        outcomes: the same of values that the program computes, which are known after it has run.
        items: tensors of one element that were read as numbers ``r0``, ``r1``, …, whose program has not run.
        follows: whether items are.
        over: whether the recording is over. The numbers are ordinary ones then.
        declare: is told of a dict whose numbers may be others at the next call.
    """

    def __init__(self, recorder: Any, follows: bool) -> None:
        self.recorder, self.follows = recorder, follows
        self.relations: dict[str, tuple[str, str | None]] = {}
        self.outcomes: dict[str, tuple[str, frozenset[int]]] = {}
        self.items: list[Any] = []
        self.made: list[weakref.ref[SymbolicNumber]] = []
        self.declare: Callable[[dict[str, Any]], None] = lambda numbers: None
        self.over = False
        self.thread = get_ident()

    @property
    def apart(self) -> bool:
        """Whether the numbers are ordinary ones now: the recording is over, or another thread has found one."""
        return self.over or get_ident() != self.thread

    def given(self, value: Any, text: str, path: str) -> Any:
        """A number from outside, or a tuple of some, which ``text`` reads, and a reader calls ``path``."""
        if type(value) is tuple:
            return tuple([self.given(part, f"{text}[{i}]", f"{path}[{i}]") for i, part in enumerate(value)])
        return SymbolicNumber(self, value, type(value), text, path) if type(value) in NUMBERS else value

    def of(self, tensor: Any, what: str) -> Any:
        """What stands for the element of a tensor that the program computes; None if ``what`` must read it at once."""
        data: Any = self.recorder.inside(tensor)._data if self.follows and what in LATER else None
        if type(data) is not Symbol or data.size != 1 or data.value.dtype not in KINDS:
            return None
        if data.value in self.recorder.sources or data.value in self.recorder.waiting:
            return None
        self.items.append(dispatch.alias(data))
        text, read = f"r{len(self.items) - 1}", frozenset([len(self.items) - 1])
        return SymbolicNumber(self, UNREAD, KINDS[data.value.dtype], text, "a value that it computes", read)

    def read(self, k: int) -> Any:
        """The value of an item, after everything that was recorded."""
        array = self.recorder.reveal(self.items[k], "item()")
        return backends.backend_of(array).item(array)

    def foresees(self, items: frozenset[int]) -> bool:
        """Whether items can be computed beside the recording, by nothing that other processes wait for."""
        waiting, equations = self.recorder.waiting, self.recorder.equations
        known = all(self.items[k]._data.value not in waiting for k in items)
        return known and not any("collective" in e.op.traits for e in equations)

    def foresee(self, k: int) -> Any:
        """The value of an item in this call. The recording goes on, and its program computes it once more."""
        token = modes.FLAGS.set(modes.get() & ~(modes.TRACE | modes.GRAD | modes.BATCH))
        try:
            with unwatched():
                array = self.recorder.array(self.items[k]._data.value)
        finally:
            modes.FLAGS.reset(token)
        return backends.backend_of(array).item(array)

    def ready(self, op: Any, args: tuple[Any, ...], raw: bool) -> tuple[Any, ...]:
        """Operands of an op: values that the program computes are taken as tensors, or ``raw``, or else read."""
        return tuple([self.operand(op, a, raw) if type(a) is SymbolicNumber and a._items else a for a in args])

    def operand(self, op: Any, number: SymbolicNumber, raw: bool) -> Any:
        """The tensor that a number is the element of, where an op makes the same of both; else the number, read."""
        if number._value is UNREAD and not number._parts and "elementwise" in op.traits:
            tensor = self.items[min(number._items)]
            if not tensor._data.shape and tensor.dtype is dtypes.get_default_dtype():
                return tensor._data if raw else tensor
        return fixed(number)

    def plain(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters of an op, which are the same at each call."""
        return {name: fixed(value) for name, value in params.items()} if any(map(holds, params.values())) else params


class SymbolicNumber:
    """A number of which a recording knows how it comes from others."""

    __slots__ = ("__weakref__", "_items", "_kind", "_numbers", "_parts", "_path", "_text", "_value")

    def __init__(
        self,
        numbers: Numbers,
        value: Any,
        kind: type,
        text: str,
        path: str,
        items: frozenset[int] = frozenset(),
        parts: tuple[Any, ...] = (),
    ) -> None:
        self._numbers, self._value, self._kind = numbers, value, kind
        self._text, self._path, self._items, self._parts = text, path, items, parts
        numbers.made.append(weakref.ref(self))

    @property
    def __class__(self) -> Any:
        """What ``isinstance`` is to see."""
        return self._kind

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError(f"{self._kind.__name__} objects have no class that can be set")

    def __bool__(self) -> bool:
        return compared(operator.ne, "({} != {})", self, 0)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._kind, name):
            raise AttributeError(f"{self._kind.__name__!r} object has no attribute {name!r}")
        return getattr(fixed(self), name)

    def __copy__(self) -> Any:
        return fixed(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return fixed(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return fixed(self).__reduce_ex__(protocol)

    def _read(self) -> Any:
        """The number, where what computes it may have to run first."""
        if self._value is UNREAD:
            if self._parts:
                function, *parts = self._parts
                self._value = function(*[p._read() if type(p) is SymbolicNumber else p for p in parts])
            else:
                self._value = self._numbers.read(*self._items)
        return self._value


def log(number: float) -> float:
    """The logarithm, of 0 too."""
    return math.log(number) if number else -math.inf


FUNCTIONS: dict[str, Callable[[float], float]] = {f.__name__: f for f in (log, math.cos)}


def holds(value: Any) -> bool:
    """Whether a parameter is a symbolic number, or has one among its parts."""
    if type(value) in (tuple, list):
        return any(map(holds, value))
    return type(value) is SymbolicNumber


def fixed(value: Any) -> Any:
    """A number as it is now, to which the program is bound from here on; other values as they are."""
    if type(value) is SymbolicNumber:
        found, numbers, text = value._read(), value._numbers, value._text
        if not numbers.apart and not value._items:
            if found != found:
                test = f"{text} != {text}"
            elif type(found) is float and found == 0:  # of two signs
                test = f"repr({text}) == {repr(found)!r}"
            else:
                test = f"{text} == {number_source(found)}"
            numbers.relations.setdefault(test, (value._path, text))
        return found
    if type(value) in (tuple, list):
        return type(value)(map(fixed, value))
    return value


def settled(value: Any) -> Any:
    """A number as it is once the recording is over, or a tuple of some; other values as they are."""
    if type(value) is tuple:
        return tuple(map(settled, value))
    return value._read() if type(value) is SymbolicNumber else value


def text_of(value: Any) -> str:
    """The expression of a number, or a tuple of some."""
    if type(value) is tuple:
        return f"({''.join(f'{text_of(part)}, ' for part in value)})"
    return value._text if type(value) is SymbolicNumber else number_source(value)


def derived(function: Callable[..., Any], form: str, *parts: Any) -> Any:
    """``function(*parts)``, symbolic where that is possible; ``form`` is its expression."""
    known = [p for p in parts if type(p) is SymbolicNumber]
    numbers = known[0]._numbers
    text = form.format(*map(text_of, parts))
    items = frozenset[int]().union(*(p._items for p in known))
    if numbers.apart or len(text) > LONG:
        return function(*map(fixed, parts))
    path = ", ".join(dict.fromkeys([p._path for p in known]))
    if any(p._value is UNREAD for p in known):
        kinds = {kind_of(p) for p in parts}
        never_raises = function in (operator.add, operator.sub, operator.mul, operator.neg, operator.pos, abs)
        if function is operator.truediv and type(parts[1]) is not SymbolicNumber and kind_of(parts[1]) is float:
            never_raises, kinds = bool(parts[1]), {float}
        if not never_raises or kinds != {float}:
            return function(*map(fixed, parts))
        return SymbolicNumber(numbers, UNREAD, float, text, path, items, (function, *parts))
    value = function(*(p._value if type(p) is SymbolicNumber else p for p in parts))
    if type(value) not in PLAIN:  # a root of a negative number is complex
        return function(*map(fixed, parts))
    if type(divisor := divided_by(function, *parts)) is SymbolicNumber:
        compared(operator.ne, "({} != {})", divisor, 0)  # an error would be lost where nobody reads the result
    return SymbolicNumber(numbers, value, type(value), text, path, items)


def divided_by(function: Callable[..., Any], number: Any = None, other: Any = None) -> Any:
    """What must not be 0 in ``function(number, other)``, if anything."""
    if function is operator.pow and not (type(other) is int and other >= 0):
        return number
    return other if function in (operator.truediv, operator.floordiv, operator.mod) else None


def kind_of(part: Any) -> Any:
    """As what a part of an expression counts: beside floats an int that they hold is one."""
    if type(part) is SymbolicNumber:
        return part._kind
    return float if type(part) is int and abs(part) < 2**53 else type(part)


def compared(function: Callable[..., Any], form: str, *parts: Any) -> bool:
    """Whether two numbers, of which one is symbolic, compare so; they must at each call of the program."""
    known = [p for p in parts if type(p) is SymbolicNumber]
    numbers = known[0]._numbers
    items = frozenset[int]().union(*(p._items for p in known))
    if numbers.apart or (items and not numbers.foresees(items)):
        return bool(function(*map(fixed, parts)))
    found = bool(function(*map(foreseen, parts)))
    test = form.format(*map(text_of, parts))
    test, path = test if found else f"not {test}", ", ".join(dict.fromkeys(p._path for p in known))
    if items:
        numbers.outcomes.setdefault(test, (path, items))
    else:
        numbers.relations.setdefault(test, (path, None))
    return found


def foreseen(value: Any) -> Any:
    """A number as it is in this call, although its program has not run; other values as they are."""
    if type(value) is not SymbolicNumber or value._value is not UNREAD:
        return settled(value)
    if value._parts:
        function, *parts = value._parts
        return function(*map(foreseen, parts))
    return value._numbers.foresee(*value._items)


def binary(function: Callable[..., Any], form: str, *, test: bool = False) -> tuple[Any, Any]:
    """A method for an operator of two numbers, and the reflected one."""
    combine = compared if test else derived

    def method(self: SymbolicNumber, other: Any, *modulus: Any) -> Any:
        if type(other) is SymbolicNumber or (type(other) in PLAIN and not modulus):
            return combine(function, form, self, other)
        if isinstance(other, (TensorBase, SymbolBase)):
            return NotImplemented
        if test and (other is None or isinstance(other, (str, bytes, tuple, list, dict))):
            return function(settled(self), other)  # the same for all numbers
        return function(fixed(self), other) if not modulus else pow(fixed(self), other, *modulus)

    def reflected(self: SymbolicNumber, other: Any) -> Any:
        if type(other) in PLAIN:
            return combine(function, form, other, self)
        return NotImplemented if isinstance(other, (TensorBase, SymbolBase)) else function(other, fixed(self))

    return method, reflected


def asked(function: Callable[..., Any], *, reflected: bool = False) -> Callable[..., Any]:
    """A method that needs the number itself."""
    if reflected:
        return lambda self, other: function(other, fixed(self))
    return lambda self, *args: function(fixed(self), *args)


ARITHMETIC: dict[str, tuple[Callable[..., Any], str]] = {
    "__add__": (operator.add, "({} + {})"),
    "__sub__": (operator.sub, "({} - {})"),
    "__mul__": (operator.mul, "({} * {})"),
    "__truediv__": (operator.truediv, "({} / {})"),
    "__floordiv__": (operator.floordiv, "({} // {})"),
    "__mod__": (operator.mod, "({} % {})"),
    "__pow__": (operator.pow, "({} ** {})"),
}
COMPARISONS: dict[str, tuple[Callable[..., Any], str]] = {
    "__eq__": (operator.eq, "({} == {})"),
    "__ne__": (operator.ne, "({} != {})"),
    "__lt__": (operator.lt, "({} < {})"),
    "__le__": (operator.le, "({} <= {})"),
    "__gt__": (operator.gt, "({} > {})"),
    "__ge__": (operator.ge, "({} >= {})"),
}
SIGNS: dict[str, tuple[Callable[..., Any], str]] = {
    "__neg__": (operator.neg, "(-{})"),
    "__pos__": (operator.pos, "(+{})"),
    "__abs__": (abs, "abs({})"),
}
BITS = (divmod, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor)
ASKED = (
    int, float, complex, hash, repr, str, format, round, math.trunc, math.floor, math.ceil, operator.index,
    operator.invert, *BITS,
)  # fmt: skip

for name, (function, form) in ARITHMETIC.items():
    method, reflected = binary(function, form)
    setattr(SymbolicNumber, name, method)
    setattr(SymbolicNumber, f"__r{name[2:]}", reflected)
for name, (function, form) in COMPARISONS.items():
    setattr(SymbolicNumber, name, binary(function, form, test=True)[0])
for name, (function, form) in (SIGNS | {name: (f, f"{name}({{}})") for name, f in FUNCTIONS.items()}).items():
    setattr(SymbolicNumber, name, lambda self, function=function, form=form: derived(function, form, self))
for function in ASKED:
    setattr(SymbolicNumber, f"__{function.__name__.strip('_')}__", asked(function))
for function in BITS:
    setattr(SymbolicNumber, f"__r{function.__name__.strip('_')}__", asked(function, reflected=True))
