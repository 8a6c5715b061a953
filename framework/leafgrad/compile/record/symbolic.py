"""Symbolic numbers: Python numbers that change from call to call, followed through a recorded call.

Where an argument, an attribute or a value that was read differs at each call, a recording runs the function with a
SymbolicNumber in its place. It takes part in arithmetic as the number does, and remembers by which expression it comes
from those that were given. A program then computes it anew at each call. Where the Python asks what the number is, to
compare, to index or in C, the answer becomes a guard.
"""

from __future__ import annotations

import math
import operator
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from leafgrad import backends
from leafgrad.compile.ir.sources import number_source
from leafgrad.ops.node import SymbolBase, TensorBase

NUMBERS = (int, float)
PLAIN = (bool, int, float)
LONG = 1000  # characters of an expression above which a number is taken as it is
UNREAD = object()  # the value of a number whose program has not run


class SymbolicNumber:
    """A number of which a recording knows how it comes from others."""

    __slots__ = ("__weakref__", "_items", "_kind", "_numbers", "_parts", "_paths", "_size", "_text", "_value")

    def __init__(
        self,
        numbers: Any,
        value: Any,
        kind: type,
        text: str,
        paths: tuple[str, ...],
        items: frozenset[int] = frozenset(),
        parts: tuple[Any, ...] = (),
        size: bool = False,
    ) -> None:
        self._numbers, self._value, self._kind, self._size = numbers, value, kind, size
        self._text, self._paths, self._items, self._parts = text, paths, items, parts
        if not size:
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

    def __hash__(self) -> int:
        self._numbers.hashed |= self._size
        return hash(fixed(self))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return backends.by_device_type("cpu").xp.asarray(fixed(self), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's arithmetic, and that of its scalars, is with the number itself."""
        return getattr(ufunc, method)(*map(fixed, inputs), **kwargs)

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
    if isinstance(value, (tuple, list)):
        return any(map(holds, value))
    if type(value) is dict:
        return any(map(holds, value.values()))
    return type(value) is SymbolicNumber


def fixed(value: Any, sizes: bool = True) -> Any:
    """A number as it is now, to which the program is bound from here on; other values, and ``sizes``, as they are."""
    if type(value) is SymbolicNumber and (sizes or not value._size):
        found, numbers, text = value._read(), value._numbers, value._text
        numbers.asked |= value._size
        if not numbers.apart and not value._items:
            if found != found:
                test = f"{text} != {text}"
            elif type(found) is float and found == 0:  # of two signs
                test = f"repr({text}) == {repr(found)!r}"
            else:
                test = f"{text} == {number_source(found)}"
            numbers.relations.setdefault(test, (told((value,)), (text, found)))
        return found
    if type(value) in (tuple, list):
        return type(value)([fixed(part, sizes) for part in value])
    if type(value) is dict:
        return {key: fixed(part, sizes) for key, part in value.items()}
    return value


def is_number(value: Any) -> bool:
    """Whether a value is an int or float, or a tuple of some, in which a None may stand for one."""
    if type(value) is tuple:
        return not {*map(type, value)}.isdisjoint(NUMBERS) and {*map(type, value)} <= {*NUMBERS, types.NoneType}
    return type(value) in NUMBERS


def placeholder(number: SymbolicNumber) -> Any:
    """What is in its place until the number itself is: nan where that would have to be computed first."""
    return math.nan if number._value is UNREAD else number._value


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


def paths_of(numbers: Iterable[SymbolicNumber]) -> tuple[str, ...]:
    """Of what numbers are made, in a reader's words, each once."""
    return tuple(dict.fromkeys([path for number in numbers for path in number._paths]))


def told(numbers: Iterable[SymbolicNumber]) -> str:
    """The same in one text."""
    return ", ".join(paths_of(numbers))


def derived(function: Callable[..., Any], form: str, *parts: Any) -> Any:
    """``function(*parts)``, symbolic where that is possible; ``form`` is its expression."""
    known = [p for p in parts if type(p) is SymbolicNumber]
    numbers = known[0]._numbers
    text = form.format(*map(text_of, parts))
    items = frozenset[int]().union(*(p._items for p in known))
    if numbers.apart or len(text) > LONG:
        return function(*map(fixed, parts))
    paths = paths_of(known)
    if any(p._value is UNREAD for p in known):
        kinds = {kind_of(p) for p in parts}
        never_raises = function in (operator.add, operator.sub, operator.mul, operator.neg, operator.pos, abs)
        if function is operator.truediv and type(parts[1]) is not SymbolicNumber and kind_of(parts[1]) is float:
            never_raises, kinds = bool(parts[1]), {float}
        if not never_raises or kinds != {float}:
            return function(*map(fixed, parts))
        return SymbolicNumber(numbers, UNREAD, float, text, paths, items, (function, *parts))
    try:
        value = function(*(p._value if type(p) is SymbolicNumber else p for p in parts))
    except ArithmeticError:  # as these numbers alone do, perhaps
        value = None
    if type(value) not in PLAIN:  # a root of a negative number is complex
        return function(*map(fixed, parts))
    if function is operator.pow:
        base, exponent = parts
        decides = exponent if all(isinstance(p, int) for p in parts) else base  # of which type the power is
        if type(decides) is SymbolicNumber:
            compared(operator.ge, "({} >= {})", decides, 0)
        elif decides is base and base < 0:
            return function(*map(fixed, parts))
    if type(divisor := divided_by(function, *parts)) is SymbolicNumber:
        compared(operator.ne, "({} != {})", divisor, 0)  # an error would be lost where nobody reads the result
    if may_overflow(function, *parts):
        compared(lambda *_: True, f"({form} is not None)", *parts)  # which fails where it raises
    size = type(value) is int and all(p._size for p in known)
    return SymbolicNumber(numbers, value, type(value), text, paths, items, size=size)


def divided_by(function: Callable[..., Any], number: Any = None, other: Any = None) -> Any:
    """What must not be 0 in ``function(number, other)``, if anything."""
    return other if function in (operator.truediv, operator.floordiv, operator.mod) else None


def may_overflow(function: Callable[..., Any], *parts: Any) -> bool:
    """Whether it may be too large for a float, or a power of zero, where the numbers are others."""
    kinds = {type(p._value if type(p) is SymbolicNumber else p) for p in parts}
    if function is operator.pow:
        return kinds != {int} or type(parts[1]) is SymbolicNumber or parts[1] < 0
    ints = [p for p in parts if type(p) is SymbolicNumber and type(p._value) is int and not (p._size or p._items)]
    return bool(ints) and (kinds == {int, float} or function is operator.truediv)


def kind_of(part: Any) -> Any:
    """As what a part of an expression counts: beside floats an int that they hold is one."""
    if type(part) is SymbolicNumber:
        return part._kind
    return float if type(part) is int and abs(part) < 2**53 else type(part)


def compared(function: Callable[..., Any], form: str, *parts: Any) -> bool:
    """Whether two numbers, of which one is symbolic, compare so; they must at each call of the program."""
    known = [p for p in parts if type(p) is SymbolicNumber]
    numbers = known[0]._numbers
    if len(known) == 2 and known[0]._size and known[0]._text == known[1]._text and known[1]._numbers is numbers:
        return bool(function(0, 0))  # one length
    items = frozenset[int]().union(*(p._items for p in known))
    if numbers.apart or (items and not numbers.foresees(items)):
        return bool(function(*map(fixed, parts)))
    found = bool(function(*map(foreseen, parts)))
    test = form.format(*map(text_of, parts))
    test, path = test if found else f"not {test}", told(known)
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
        if test and (other is None or other is ... or isinstance(other, (str, bytes, tuple, list, dict))):
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


def rounded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method ``name`` that gives the same for many numbers: the program is bound to what it gives, not to them."""

    def method(self: SymbolicNumber, *args: Any) -> Any:
        numbers = self._numbers
        written = {*map(type, args)} <= {*PLAIN, str, types.NoneType}  # whose texts give the same
        try:
            bound = written and not (numbers.apart or self._items or self._size)
            found = getattr(self._value, name)(*args) if bound else NotImplemented
            shown = repr(found)
        except (ArithmeticError, AttributeError, TypeError, ValueError):  # also of an int that is too long for a text
            found = NotImplemented
        if found is NotImplemented:
            return function(fixed(self), *args)
        text = f"({self._text}).{name}({', '.join(map(text_of, args))})"
        test = f"{text} == {shown}" if type(found) in (int, str) else f"repr({text}) == {shown!r}"
        numbers.relations.setdefault(test, (told((self,)), (text, found)))
        return found

    return method


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
ASKED = float, complex, repr, str, operator.index, operator.invert
BITS = divmod, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor
ROUNDED = int, round, math.trunc, math.floor, math.ceil, format, *BITS

for name, (function, form) in ARITHMETIC.items():
    method, reflected = binary(function, form)
    setattr(SymbolicNumber, name, method)
    setattr(SymbolicNumber, f"__r{name[2:]}", reflected)
for name, (function, form) in COMPARISONS.items():
    setattr(SymbolicNumber, name, binary(function, form, test=True)[0])
for name, (function, form) in (SIGNS | {name: (f, f"{name}({{}})") for name, f in FUNCTIONS.items()}).items():
    setattr(SymbolicNumber, name, lambda self, function=function, form=form: derived(function, form, self))
for name, function in {f"__{function.__name__.strip('_')}__": function for function in (*ASKED, *ROUNDED)}.items():
    setattr(SymbolicNumber, name, rounded(function, name) if function in ROUNDED else asked(function))
for function in BITS:
    setattr(SymbolicNumber, f"__r{function.__name__.strip('_')}__", asked(function, reflected=True))
