"""Numbers that depend on sizes, for whoever makes a program that is to serve other sizes, too.

An Extent computes as an int or a float does. How it compares with others, and where it is used as an ordinary number,
is noted by its `Extents`: they tell for which sizes holds what was made.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

from leafgrad import backends
from leafgrad.errors import CompileError

Term = tuple[int, ...]  # a product of atoms, by number
Form = tuple[tuple[Term, int], ...]  # a sum of products with coefficients, in order
PLAIN = (int, float, bool)


class Extent:
    """A number that depends on sizes, or a size: to all that ask, an int or a float."""

    __slots__ = ("form", "now", "of")
    __array_ufunc__ = None  # arrays do not compute with it

    def __init__(self, of: Any, form: Form, now: Any) -> None:
        if of.sealed:
            raise late()
        self.of, self.form, self.now = of, form, now

    @property
    def __class__(self) -> Any:
        """What ``isinstance`` is to see."""
        return type(self.now)

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError("the class of a size cannot be set")

    def __hash__(self) -> int:
        return hash(self.form)

    def __repr__(self) -> str:
        """As source of Python or C, in which atoms are size0, size1, …, and real2, … where they are floats."""
        stem = "real" if is_real(self) else "size"
        terms = ["*".join([str(c)] * (c != 1 or not term) + [f"{stem}{k}" for k in term]) for term, c in self.form]
        return terms[0] if len(terms) == 1 and terms[0].isalnum() else f"({' + '.join(terms)})"

    def __format__(self, spec: str) -> str:
        return format(pinned(self), spec) if spec else repr(self)

    def __bool__(self) -> bool:
        return answered(operator.ne, self, 0)

    def __neg__(self) -> Any:
        return applied(operator.neg, self) if is_real(self) else scaled(self, -1)

    def __pos__(self) -> Any:
        return self

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return pinned(self).__reduce_ex__(protocol)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return backends.by_device_type("cpu").xp.asarray(pinned(self), dtype)

    def __abs__(self) -> Any:
        return self if answered(operator.ge, self, 0) else -self


def settle(number: Any, values: Sequence[Any]) -> Any:
    """What a number is where atoms have these values."""
    return value_of(number.form, values) if type(number) is Extent else number


def value_of(form: Form, values: Sequence[Any]) -> Any:
    """The value of a sum of products."""
    ((term, factor), *others) = form
    if not others and factor == 1 and len(term) == 1:
        return values[term[0]]
    return sum([factor * math.prod([values[k] for k in term]) for term, factor in form])


def present(number: Any) -> Any:
    """A number as it is while the program is made, for choices between what is right at any size."""
    return number.now if type(number) is Extent else number


def pinned(number: Any) -> Any:
    """The number itself, to which the program is bound from here on."""
    if type(number) is Extent:
        number.of.note(is_same_number if is_real(number) else operator.eq, number, number.now, True)
        number.of.bound = True
    return present(number)


def late() -> CompileError:
    return CompileError("a program that is made for many sizes computes with them or asks what they are when it runs")


def is_same_number(a: Any, b: Any) -> bool:
    return bool(number_key(a) == number_key(b))


def is_real(number: Any) -> bool:
    return type(present(number)) is float


def number_key(number: Any) -> Any:
    """What tells numbers apart that compare as equal: 1, 1.0 and True, or 0.0 and -0.0."""
    return (Extent, number.form) if type(number) is Extent else (type(number), repr(number))


def sum_of_terms(of: Any, terms: dict[Term, int]) -> Any:
    """The sum of these products; a number if it does not depend on sizes."""
    form = tuple(sorted([(term, factor) for term, factor in terms.items() if factor]))
    if not form or form == (((), form[0][1]),):
        return form[0][1] if form else 0
    return Extent(of, form, value_of(form, of.now))


def terms_of(number: Any) -> Form:
    return number.form if type(number) is Extent else (((), int(number)),)


def scaled(number: Extent, factor: int) -> Any:
    return sum_of_terms(number.of, {term: factor * c for term, c in number.form})


def sum_of_extents(a: Any, b: Any, of: Any) -> Any:
    terms = dict(terms_of(a))
    for term, c in terms_of(b):
        terms[term] = terms.get(term, 0) + c
    return sum_of_terms(of, terms)


def difference_of_extents(a: Any, b: Any, of: Any) -> Any:
    return sum_of_extents(a, -b, of)


def product_of_extents(a: Any, b: Any, of: Any) -> Any:
    terms: dict[Term, int] = {}
    for one, c in terms_of(a):
        for other, d in terms_of(b):
            term = tuple(sorted((*one, *other)))
            terms[term] = terms.get(term, 0) + c * d
    return sum_of_terms(of, terms)


def quotient(a: Any, b: Any, of: Any) -> Any:
    """The floor of a / b, without one where all of a is a multiple of b."""
    found = exactly(a, b, of)
    return applied(operator.floordiv, a, b) if found is None else found


def remainder(a: Any, b: Any, of: Any) -> Any:
    return applied(operator.mod, a, b) if exactly(a, b, of) is None else 0


def exactly(a: Any, b: Any, of: Any) -> Any:
    """What gives a, times b; None if no sum of products does, or b is one of several."""
    ((divisor, factor), *others) = terms_of(b)
    terms: dict[Term, int] = {}
    for term, c in () if others else terms_of(a):
        left = [*term]
        for k in divisor:
            if k not in left:
                return None
            left.remove(k)
        if c % factor:
            return None
        terms[tuple(left)] = c // factor
    return None if others else sum_of_terms(of, terms)


def applied(function: Callable[..., Any], *parts: Any) -> Any:
    """What a function makes of numbers, as what depends on the same sizes. It may be of any type."""
    found = function(*map(present, parts))
    of = next((p.of for p in parts if type(p) is Extent), None)
    return found if of is None else of.atom(function, parts, found)


def answered(function: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
    """Whether two numbers compare so, on which the program rests."""
    of = a.of if type(a) is Extent else b.of
    key = function, a.form if type(a) is Extent else a, b.form if type(b) is Extent else b
    found = of.asked.get(key)
    if found is None:
        found = function(present(a), present(b))
        of.note(function, a, b, found)
        of.asked[key] = found
    return bool(found)


def arithmetic(function: Callable[..., Any], rule: Callable[..., Any] | None) -> tuple[Any, Any]:
    """A method for an operator of two numbers, and the reflected one; whole numbers follow a rule, if there is one."""

    def combined(a: Any, b: Any, other: Any, of: Any) -> Any:
        if type(other) not in PLAIN and (type(other) is not Extent or other.of is not of):
            return NotImplemented
        if function in DIVISIONS and b == 0:
            return function(present(a), 0)  # which is an error
        if rule is None or is_real(a) or is_real(b):
            return applied(function, a, b)
        return rule(a, b, of)

    return (lambda self, o: combined(self, o, o, self.of)), (lambda self, o: combined(o, self, o, self.of))


def comparison(function: Callable[[Any, Any], bool]) -> Any:
    """A method for a comparison."""

    def method(self: Extent, other: Any) -> Any:
        if type(other) in PLAIN or type(other) is Extent:
            alien = type(other) is Extent and other.of is not self.of  # of another program, as in a cache
            return NotImplemented if alien else answered(function, self, other)
        return function(pinned(self), other) if isinstance(other, Number) else NotImplemented

    return method


def as_number(function: Callable[..., Any]) -> tuple[Any, Any]:
    """A method that needs the number itself, and the reflected one."""
    return (lambda self, *others: function(pinned(self), *others)), (lambda self, other: function(other, pinned(self)))


RULES: dict[Callable[..., Any], Callable[..., Any] | None] = {
    operator.add: sum_of_extents,
    operator.sub: difference_of_extents,
    operator.mul: product_of_extents,
    operator.floordiv: quotient,
    operator.mod: remainder,
    operator.truediv: None,
}
DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
ASKED = (
    int, float, complex, round, math.trunc, math.floor, math.ceil, operator.index, operator.invert, divmod, pow,
    operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor,
)  # fmt: skip
METHODS: tuple[Callable[..., Any], ...] = (*RULES, *ASKED)
for function in METHODS:
    name = function.__name__.strip("_")
    method, reflected = arithmetic(function, RULES[function]) if function in RULES else as_number(function)
    setattr(Extent, f"__{name}__", method)
    setattr(Extent, f"__r{name}__", reflected)
for function in COMPARISONS:
    setattr(Extent, f"__{function.__name__}__", comparison(function))
