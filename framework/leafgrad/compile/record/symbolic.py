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
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import dispatch
from leafgrad.ops.node import SymbolBase, TensorBase

PLAIN = (bool, int, float)
LONG = 1000  # characters of an expression above which a number is taken as it is
UNREAD = object()  # the value of a number whose program has not run


def spelled(value: float) -> str:
    """A number as Python source."""
    return f"float({repr(value)!r})" if isinstance(value, float) and not math.isfinite(value) else repr(value)


class Numbers:
    """The symbolic numbers of one recording.

    Attributes:
        relations: expressions that are true as long as the Python goes the same way, each with a reader's words for
            what it looks at.
        outcomes: the same of values that the program computes, which are known after it has run.
        items: tensors of one element that were read as numbers ``r0``, ``r1``, …, whose program has not run.
        over: whether the recording is over. The numbers are ordinary ones then.
    """

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.relations: dict[str, str] = {}
        self.outcomes: dict[str, tuple[str, frozenset[int]]] = {}
        self.items: list[Any] = []
        self.made: list[weakref.ref[SymbolicNumber]] = []
        self.over = False

    def given(self, value: float, text: str, path: str) -> SymbolicNumber:
        """A number from outside, which ``text`` reads, and a reader calls ``path``."""
        return SymbolicNumber(self, value, type(value), text, path)

    def item(self, data: Any, kind: type) -> SymbolicNumber:
        """The only element of a symbol."""
        self.items.append(dispatch.alias(data))
        k = len(self.items) - 1
        return SymbolicNumber(self, UNREAD, kind, f"r{k}", "a value that it computes", frozenset([k]))

    def foresees(self, items: frozenset[int]) -> bool:
        """Whether these values can be computed beside the recording, which goes on."""
        return all(self.recorder.foresees(self.items[k]) for k in items)

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

    def _read(self) -> Any:
        """The number, where what computes it may have to run first."""
        if self._value is UNREAD:
            if self._parts:
                function, *parts = self._parts
                self._value = function(*[p._read() if type(p) is SymbolicNumber else p for p in parts])
            else:
                (k,) = self._items
                self._value = self._numbers.recorder.read_item(self._numbers.items[k])
        return self._value


def holds(value: Any) -> bool:
    """Whether a parameter is a symbolic number, or has one among its parts."""
    if type(value) in (tuple, list):
        return any(map(holds, value))
    return type(value) is SymbolicNumber


def fixed(value: Any) -> Any:
    """A number as it is now, to which the program is bound from here on; other values as they are."""
    if type(value) is SymbolicNumber:
        found, numbers, text = value._read(), value._numbers, value._text
        if not numbers.over and not value._items:
            if found != found:
                test = f"{text} != {text}"
            elif type(found) is float and found == 0:  # of two signs
                test = f"repr({text}) == {repr(found)!r}"
            else:
                test = f"{text} == {spelled(found)}"
            numbers.relations.setdefault(test, value._path)
        return found
    if type(value) in (tuple, list):
        return type(value)(map(fixed, value))
    return value


def settled(value: Any) -> Any:
    """A number as it is once the recording is over; other values as they are."""
    return value._read() if type(value) is SymbolicNumber else value


def text_of(value: Any) -> str:
    """The expression of a number."""
    return value._text if type(value) is SymbolicNumber else spelled(value)


def derived(function: Callable[..., Any], form: str, *parts: Any) -> Any:
    """``function(*parts)``, symbolic where that is possible; ``form`` is its expression."""
    known = [p for p in parts if type(p) is SymbolicNumber]
    numbers = known[0]._numbers
    text = form.format(*map(text_of, parts))
    items = frozenset[int]().union(*(p._items for p in known))
    if numbers.over or len(text) > LONG:
        return function(*map(fixed, parts))
    path = ", ".join(dict.fromkeys(p._path for p in known))
    if any(p._value is UNREAD for p in known):
        kinds = {p._kind if type(p) is SymbolicNumber else type(p) for p in parts}
        never_raises = function in (operator.add, operator.sub, operator.mul, operator.neg, operator.pos, abs)
        if function is operator.truediv and type(parts[1]) in (int, float) and parts[1]:
            never_raises, kinds = True, {float}
        if not never_raises or kinds != {float}:
            return function(*map(fixed, parts))
        return SymbolicNumber(numbers, UNREAD, float, text, path, items, (function, *parts))
    value = function(*(p._value if type(p) is SymbolicNumber else p for p in parts))
    if type(value) not in PLAIN:  # a root of a negative number is complex
        return function(*map(fixed, parts))
    return SymbolicNumber(numbers, value, type(value), text, path, items)


def compared(function: Callable[..., Any], form: str, a: Any, b: Any) -> bool:
    """Whether two numbers, of which one is symbolic, compare so; they must at each call of the program."""
    parts = (a, b)
    known = [p for p in parts if type(p) is SymbolicNumber]
    numbers = known[0]._numbers
    items = frozenset[int]().union(*(p._items for p in known))
    if numbers.over or (items and not numbers.foresees(items)):
        return bool(function(*map(fixed, parts)))
    found = bool(function(*map(foreseen, parts)))
    test = form.format(*map(text_of, parts))
    test, path = test if found else f"not {test}", ", ".join(dict.fromkeys(p._path for p in known))
    if items:
        numbers.outcomes.setdefault(test, (path, items))
    else:
        numbers.relations.setdefault(test, path)
    return found


def foreseen(value: Any) -> Any:
    """A number as it is in this call, although its program has not run; other values as they are."""
    if type(value) is not SymbolicNumber or value._value is not UNREAD:
        return settled(value)
    if value._parts:
        function, *parts = value._parts
        return function(*map(foreseen, parts))
    return value._numbers.recorder.foresee(*[value._numbers.items[k] for k in value._items])


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


def asked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that needs the number itself."""
    return lambda self, *args: function(fixed(self), *args)


ARITHMETIC: dict[str, tuple[Callable[..., Any], str]] = {
    "add": (operator.add, "({} + {})"),
    "sub": (operator.sub, "({} - {})"),
    "mul": (operator.mul, "({} * {})"),
    "truediv": (operator.truediv, "({} / {})"),
    "floordiv": (operator.floordiv, "({} // {})"),
    "mod": (operator.mod, "({} % {})"),
    "pow": (operator.pow, "({} ** {})"),
}
COMPARISONS: dict[str, tuple[Callable[..., Any], str]] = {
    "eq": (operator.eq, "({} == {})"),
    "ne": (operator.ne, "({} != {})"),
    "lt": (operator.lt, "({} < {})"),
    "le": (operator.le, "({} <= {})"),
    "gt": (operator.gt, "({} > {})"),
    "ge": (operator.ge, "({} >= {})"),
}
SIGNS: dict[str, tuple[Callable[..., Any], str]] = {
    "neg": (operator.neg, "(-{})"),
    "pos": (operator.pos, "(+{})"),
    "abs": (abs, "abs({})"),
}
ASKED: dict[str, Callable[..., Any]] = {
    "int": int, "float": float, "complex": complex, "index": operator.index, "hash": hash, "repr": repr, "str": str,
    "format": format, "round": round, "trunc": math.trunc, "floor": math.floor, "ceil": math.ceil, "divmod": divmod,
    "rdivmod": lambda a, b: divmod(b, a), "invert": operator.invert, "lshift": operator.lshift,
    "rlshift": lambda a, b: b << a, "rshift": operator.rshift, "rrshift": lambda a, b: b >> a, "and": operator.and_,
    "rand": lambda a, b: b & a, "or": operator.or_, "ror": lambda a, b: b | a, "xor": operator.xor,
    "rxor": lambda a, b: b ^ a, "reduce_ex": lambda a, protocol: a.__reduce_ex__(protocol), "copy": lambda a: a,
    "deepcopy": lambda a, _: a,
}  # fmt: skip

for name, (function, form) in ARITHMETIC.items():
    method, reflected = binary(function, form)
    setattr(SymbolicNumber, f"__{name}__", method)
    setattr(SymbolicNumber, f"__r{name}__", reflected)
for name, (function, form) in COMPARISONS.items():
    setattr(SymbolicNumber, f"__{name}__", binary(function, form, test=True)[0])
for name, (function, form) in SIGNS.items():
    setattr(SymbolicNumber, f"__{name}__", lambda self, function=function, form=form: derived(function, form, self))
for name, function in ASKED.items():
    setattr(SymbolicNumber, f"__{name}__", asked(function))
