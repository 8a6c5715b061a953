"""Sums, products and signs: numbers go last, signs and scalar factors outward, where they meet and cancel.

A product's factors may be regrouped, which costs an ulp or two; nothing is assumed about nan and inf except that
regrouping does not itself overflow. The sign of zero is not kept: x + 0 is x.
"""

from __future__ import annotations

import math

from leafgrad.compile.graph import Equation, Operand, Value
from leafgrad.compile.passes.rewrite import Rewriter, Rule
from leafgrad.ops.convert import clone, to_dtype
from leafgrad.ops.elementwise import add, div, mul, neg, sub
from leafgrad.ops.op import Op
from leafgrad.ops.shape import expand

SAFE = 2.0**40  # scalar factors between 1 / SAFE and SAFE are regrouped


def same(r: Rewriter, e: Equation, x: Operand) -> Value | None:
    """``x`` in the place of what the equation makes, if it has its dtype."""
    if not isinstance(x, Value) or x.dtype != e.out.dtype or x.place != e.out.place:
        return None
    return x if x.shape == e.out.shape else r.emit(expand, x, shape=e.out.shape)


def is_number(x: Operand, value: float | None = None) -> bool:
    return not isinstance(x, Value) and type(x) in (int, float) and (value is None or x == value)


def is_float(v: Value) -> bool:
    return v.dtype.startswith("float")


def factor(r: Rewriter, x: Operand) -> tuple[Value, float] | None:
    """``(y, c)`` if ``x`` is ``mul(y, c)`` in floating point, with a number c that may be regrouped."""
    e = r.maker(x, mul)
    if e is None or not is_float(e.out):
        return None
    y, c = e.inputs
    if isinstance(y, Value) and y.shape == e.out.shape and regroups(c):
        return y, float(c)  # type: ignore[arg-type]
    return None


def regroups(c: Operand) -> bool:
    return is_number(c) and (c == 0 or 1 / SAFE <= abs(c) <= SAFE)  # type: ignore[arg-type]


def scaled(r: Rewriter, x: Value, c: float) -> Value:
    return r.emit(mul, x, c)


def negated(r: Rewriter, x: Operand) -> Value | None:
    """y if ``x`` is ``neg(y)``."""
    e = r.maker(x, neg)
    return None if e is None else next(e.values)
