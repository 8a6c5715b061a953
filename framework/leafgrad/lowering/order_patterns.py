"""Patterns for elements in order: how many of a line go before each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering.kernels import Ranked
from leafgrad.lowering.pattern import Pattern
from leafgrad.lowering.patterns import lines

if TYPE_CHECKING:
    from leafgrad.lowering.lowering import Lowering


@dataclass(eq=False, repr=False)
class Order(Pattern):
    """Code for each element along a dimension, by its rank."""

    code: str
    dim: int | None
    descending: bool

    def lower(self, low: Lowering, e: Equation) -> None:
        (x,), out, dim = lines(low, e, self.dim)
        low.add(Ranked(e, (x,), out, self.code, dim, self.descending), e.out)


def ranked(code: str, dim: int | None, descending: bool = False) -> Order:
    """C statements for each element of the only argument, which is compared with all others of its line along ``dim``.

    In them ``rank`` is how many go before it, of equal elements those with a lower index; ``nans`` how many are nan,
    which count as the largest; ``at`` its index, ``n`` the length of the line, ``x(k)`` and ``out(k)`` elements of it
    and of the result. None as ``dim`` makes all elements one line. No two elements may write to one place.
    """
    return Order(code, dim, descending)
