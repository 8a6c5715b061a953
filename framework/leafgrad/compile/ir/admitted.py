"""The sizes with which a program is made, and what its makers ask of them.

A program that is made with Extents in the place of sizes is the one that would be made at any sizes that answer the
same. Passes and executors compute with them as with numbers. A comparison is an answer, and so is every use as an
ordinary number; `Extents.admit` tells whether other sizes give the same ones.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from leafgrad.compile.ir.extent import Extent, Form, is_real, late, number_key, settle, value_of
from leafgrad.compile.ir.log import log

T = TypeVar("T")


class Extents:
    """The sizes with which a program is made, and all that was asked of them.

    Args:
        sizes: as they are while it is made. Those that are equal now are taken for one.

    Attributes:
        given: the Extents that stand for them.
        now: the value of each atom, a size or what a function makes of other Extents.
        made: for each atom that function, with what it is given; without that it is given all sizes.
        bounds: for sums without their constants the least and greatest value of the same answers, and values between
            that give others.
        answers: what else was asked, with what came out.
        asked: what need not be noted again.
        bound: whether a size was used as a number, to which the program is bound.
        sealed: whether the program is made, so that nothing may be asked any more.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.first = [sizes.index(n) for n in sizes]
        self.now: list[Any] = []
        self.made: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.known: dict[Any, Extent] = {}
        self.bounds: dict[Form, tuple[float, float, set[int]]] = {}
        self.answers: dict[Any, tuple[Callable[..., Any], Any, Any, bool]] = {}
        self.asked: dict[Any, bool] = {}
        self.bound = self.sealed = False
        own = {k: self.atom(operator.itemgetter(k), (), sizes[k]) for k in set(self.first)}
        self.given = [own[k] for k in self.first]

    def atom(self, function: Callable[..., Any], parts: tuple[Any, ...], now: Any) -> Extent:
        """The Extent that stands for what ``function`` makes of its parts, or of all sizes."""
        key = function, *map(number_key, parts)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Extent(self, (((len(self.now),), 1),), now)
            self.now.append(now)
            self.made.append((function, parts))
        return found

    def values(self, sizes: Sequence[int]) -> list[Any]:
        """Those of the atoms at other sizes."""
        found: list[Any] = []
        for function, parts in self.made:
            found.append(function(*[settle(p, found) for p in parts]) if parts else function(sizes))
        return found

    def admit(self, sizes: Sequence[int]) -> bool:
        """Whether these answer the same, so that the program is the one for them, too."""
        if any(sizes[i] != sizes[k] for i, k in enumerate(self.first)):
            return False
        try:
            values = self.values(sizes)
            for form, (low, high, others) in self.bounds.items():
                n = value_of(form, values)
                if not low <= n <= high or n in others:
                    return False
            return all(f(settle(a, values), settle(b, values)) is answer for f, a, b, answer in self.answers.values())
        except ArithmeticError:  # where it would not have been asked
            return False

    def tried(self, make: Callable[[], T]) -> T | None:
        """What a maker gives; None if it fails, or uses a size as a number, and then what it asked does not count."""
        before = {form: (low, high, {*others}) for form, (low, high, others) in self.bounds.items()}, {**self.answers}
        bound, self.bound, found = self.bound, False, None
        try:
            found = make()
        except Exception as error:  # of a rule that cannot compute with Extents; another comes again with numbers
            log(f"made for each size: {type(error).__name__}: {error}")
        if found is None or self.bound:
            found, (self.bounds, self.answers), self.asked = None, before, {}
        self.bound |= bound
        return found

    def note(self, function: Callable[[Any, Any], bool], a: Any, b: Any, answer: bool) -> None:
        """How two numbers compare is what the program rests on."""
        if self.sealed:
            raise late()
        if is_real(a) or is_real(b):
            self.answers.setdefault((function, number_key(a), number_key(b)), (function, a, b, answer))
            return
        difference = a - b
        if type(difference) is not Extent:
            return
        form, limit = without_constant(difference.form)  # form ? limit
        ((_, factor),) = form if len(form) == 1 else (((), 1),)
        low, high, other = outcome(function, answer, limit)
        if len(form) == 1 and factor != 1:
            form = ((form[0][0], 1),)
            low, high, other = divided(low, high, other, factor)
        least, greatest, others = self.bounds.setdefault(form, (-math.inf, math.inf, set()))
        if other is not None:
            others.add(other)
        self.bounds[form] = max(least, low), min(greatest, high), others


class Settled:
    """What Extents are where atoms have these values, of which a program is made; without any, numbers alone."""

    def __init__(self, values: Sequence[Any] = ()) -> None:
        self.values = values

    def __call__(self, part: Any) -> Any:
        return settle(part, self.values)

    @property
    def names(self) -> dict[str, Any]:
        """What source means that was written with Extents."""
        return {f"{'real' if type(v) is float else 'size'}{k}": v for k, v in enumerate(self.values)}


SETTLED = Settled()  # where no size is open


def without_constant(form: Form) -> tuple[Form, int]:
    """A sum without its constant, and what it is compared with where the whole is compared with 0."""
    (term, factor), *others = form
    return (tuple(others), -factor) if not term else (form, 0)


def outcome(function: Callable[[Any, Any], bool], answer: bool, limit: int) -> tuple[float, float, int | None]:
    """The least and greatest whole number that compare so with ``limit``, and one that does not."""
    if function is operator.lt or function is operator.ge:
        below, end = answer is (function is operator.lt), limit - 1
    elif function is operator.le or function is operator.gt:
        below, end = answer is (function is operator.le), limit
    elif answer is (function is operator.eq):
        return limit, limit, None
    else:
        return -math.inf, math.inf, limit
    return (-math.inf, end, None) if below else (end + 1, math.inf, None)


def divided(low: float, high: float, other: int | None, factor: int) -> tuple[float, float, int | None]:
    """The same of a number of which that is a multiple."""
    low, high = (low, high) if factor > 0 else (-high, -low)
    other, factor = other if factor > 0 or other is None else -other, abs(factor)
    low = low if low == -math.inf else -(-int(low) // factor)
    high = high if high == math.inf else int(high) // factor
    return low, high, None if other is None or other % factor else other // factor
