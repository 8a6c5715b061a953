"""How matrix products become C; ``patterns.py`` tells what a pattern is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering.forms import Form
from leafgrad.lowering.kernels import Product
from leafgrad.lowering.pattern import Pattern, one_float

if TYPE_CHECKING:
    from leafgrad.lowering.lowering import Lowering


class MatrixProduct(Pattern):
    """A matrix product."""

    def fits(self, e: Equation) -> bool:
        return one_float(e)

    def lower(self, low: Lowering, e: Equation) -> None:
        a, b = low.operands(e)
        if low.loop is None and len(a.shape) > 2 == len(b.shape) and rows(a) is None:
            a = low.ordered(e, a)  # one product, not many small ones
        if a.axis is not None and a.axis == len(a.shape) - 1 and len(a.shape) > 1:
            low.add(Product(e, (a.permute((1, 0)), b), low.accumulator(e.out), total=True), e.out)
        else:
            low.add(Product(e, (a, b), low.new(e.out)), e.out)


def product() -> MatrixProduct:
    """The matrix product of the two arguments."""
    return MatrixProduct()


class RowProduct(Pattern):
    """The product of a matrix, transposed, and another, where rows lie along several dimensions."""

    def fits(self, e: Equation) -> bool:
        return one_float(e)

    def lower(self, low: Lowering, e: Equation) -> None:
        x, y = low.operands(e)
        if x.axis is not None and x.axis < len(x.shape) - 1:
            low.add(Product(e, (x, y), low.accumulator(e.out), total=True), e.out)
            return
        a, b = (rows(form) or rows(low.ordered(e, form)) for form in (x, y))
        assert a is not None
        assert b is not None
        low.add(Product(e, (a.permute((1, 0)), b), low.new(e.out)), e.out)


def contraction() -> RowProduct:
    """x^T y of the two arguments, where all dimensions but the last are rows."""
    return RowProduct()


def rows(x: Form) -> Form | None:
    """As a matrix. None: its elements do not lie so."""
    return x.reshape((math.prod(x.shape[:-1]), x.shape[-1]), None if x.axis is None else 1)
