"""Sums, products and signs: numbers go last, signs and scalar factors outward, where they meet and cancel.

Regrouping a product's factors costs an ulp or two, and a value on the way may overflow that did not. So only what rules
wrote as derivatives is regrouped, in an order that nobody chose. What a program says is computed as it says: whoever
scales before a sum, or adds a large number and takes it away, has a reason.

A number that is left out leaves the sign of zero as it is: x - 0 is x, and x + 0 stays, which is 0 where x is -0.
Where terms cancel, signs that were taken out may give a zero another sign. Products with zero stay, since x may be nan
or inf.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad.compile.ir.extent import Extent
from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.compile.passes.rewrite import Rewriter, Rule, size
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.convert import clone, to_dtype
from leafgrad.ops.elementwise import add, div, mul, neg, pow, reciprocal, sqrt, square, sub
from leafgrad.ops.op import Op
from leafgrad.ops.shape import expand
from leafgrad.ops.trigonometric import tanh_slope

# Factors between 1 / SAFE and SAFE are regrouped: far from overflow and underflow.
SAFE = {"float16": 2.0**4, "float32": 2.0**40, "float64": 2.0**40}


# ---- what rules ask ---------------------------------------------------------------------------------------------


def same(r: Rewriter, e: Equation, x: Operand) -> Value | None:
    """``x`` in the place of what the equation makes, if it has its dtype."""
    if not isinstance(x, Value) or x.dtype != e.out.dtype or x.place != e.out.place:
        return None
    return x if x.shape == e.out.shape else r.emit(expand, x, shape=e.out.shape)


def plain_number(x: Any) -> float | None:
    """``x`` if it is a Python number; True and False are none, which arithmetic treats by dtype."""
    return x if type(x) in (float, int, Extent) else None


def adds_nothing(c: float | None, e: Equation, sign: float) -> bool:
    """Whether x + sign * c is x: in floating point, c is then the zero that leaves both zeros as they are."""
    return c == 0 and (not e.out.dtype.startswith("float") or math.copysign(1.0, c) == -sign)


def negated(r: Rewriter, x: Operand) -> Value | None:
    """y if ``x`` is ``neg(y)``."""
    e = r.maker(x, neg)
    return None if e is None else e.values[0]


def times_number(r: Rewriter, x: Operand | Equation) -> tuple[Value, float, Equation] | None:
    """(y, c, e) if ``x`` is made by the equation e, ``mul(y, c)`` in floating point with a number c."""
    e = x if isinstance(x, Equation) else r.maker(x, mul)
    if e is None or not e.out.dtype.startswith("float"):
        return None
    y, c = e.inputs[0], plain_number(e.inputs[1])
    return (y, c, e) if isinstance(y, Value) and c is not None else None


def scaled(r: Rewriter, x: Operand | Equation) -> tuple[Value, float] | None:
    """(y, c) if ``x`` is (or is made by) ``mul(y, c)`` in floating point with a number c that may be regrouped."""
    found = times_number(r, x) if r.line.derived else None
    return found[:2] if found is not None and regroups(*found[1:]) else None


def regroups(c: float, e: Equation) -> bool:
    """Whether what an equation multiplies by c may be multiplied by it elsewhere."""
    safe = SAFE.get(e.out.dtype, 1.0)
    return e.line.derived and 1 / safe <= abs(c) <= safe


# ---- rules ------------------------------------------------------------------------------------------------------


def add_rule(r: Rewriter, e: Equation) -> Value | None:
    x, y = e.inputs
    if plain_number(x) is not None:
        return r.emit(add, y, x)
    if adds_nothing(plain_number(y), e, 1.0):
        return same(r, e, x)
    if (b := negated(r, y)) is not None:
        return r.emit(sub, x, b)
    if (a := negated(r, x)) is not None:
        return r.emit(sub, y, a)
    if e.line.derived and e.out.dtype.startswith("float") and isinstance(x, Value) and isinstance(y, Value):
        (a, p), (b, q) = scaled(r, x) or (x, 1.0), scaled(r, y) or (y, 1.0)
        if a is b and p + q:
            return r.emit(mul, a, p + q)
    return None


def sub_rule(r: Rewriter, e: Equation) -> Value | None:
    x, y = e.inputs
    if adds_nothing(plain_number(y), e, -1.0):
        return same(r, e, x)
    if adds_nothing(plain_number(x), e, 1.0):
        return r.emit(neg, y)
    if (b := negated(r, y)) is not None:
        return r.emit(add, x, b)
    if (a := negated(r, x)) is not None:
        return r.emit(neg, r.emit(add, a, y))
    return None


def mul_rule(r: Rewriter, e: Equation) -> Value | None:
    x, y = e.inputs
    if plain_number(x) is not None:
        return r.emit(mul, y, x)
    c = plain_number(y)
    if c is not None:
        return scale_rule(r, e, x, c)
    for a, b in ((x, y), (y, x)):
        if (u := negated(r, a)) is not None:
            return r.emit(neg, r.emit(mul, u, b))
        if (found := scaled(r, a)) is not None and r.once(a) and found[0].shape == e.out.shape:
            return r.emit(mul, r.emit(mul, found[0], b), found[1])
        if (pair := small_factors(r, e, a, b)) is not None:
            return r.emit(mul, pair[0], r.emit(mul, pair[1], b))
    return None


def small_factors(r: Rewriter, e: Equation, a: Operand, b: Operand) -> tuple[Value, Value] | None:
    """(u, s) if ``a`` is u * s and s * ``b`` is smaller than u: then a * b is better u * (s * b)."""
    inner = r.derived(a, mul)
    if inner is None or not isinstance(b, Value):
        return None
    for u, s in (inner.inputs, inner.inputs[::-1]):
        if not isinstance(u, Value) or not isinstance(s, Value) or u.shape != e.out.shape:
            continue
        if size(broadcast_shape((s.shape, b.shape))) < size(u.shape):
            return u, s
    return None


def scale_rule(r: Rewriter, e: Equation, x: Operand, c: float) -> Value | None:
    """x times the number c."""
    if c == 1:
        return same(r, e, x)
    if c == -1:
        return r.emit(neg, x)
    if c < 0:
        return r.emit(neg, r.emit(mul, x, -c))
    if (u := negated(r, x)) is not None:
        return r.emit(neg, r.emit(mul, u, c))
    if (found := scaled(r, x)) is not None and regroups(c, e) and regroups(found[1] * c, e):
        return r.emit(mul, found[0], found[1] * c)
    return None


def div_rule(r: Rewriter, e: Equation) -> Value | None:
    """Division by a number stays: times its reciprocal, 49 / 49 is not 1."""
    x, y = e.inputs
    if plain_number(y) == 1:
        return same(r, e, x)
    if (u := negated(r, x)) is not None:
        return r.emit(neg, r.emit(div, u, y))
    if (u := negated(r, y)) is not None:
        return r.emit(neg, r.emit(div, x, u))
    return None


def neg_rule(r: Rewriter, e: Equation) -> Value | None:
    (x,) = e.inputs
    if (u := negated(r, x)) is not None:
        return u
    difference = r.maker(x, sub)
    if difference is not None and r.once(x):
        a, b = difference.inputs
        return r.emit(sub, b, a)
    return None


def pow_rule(r: Rewriter, e: Equation) -> Value | None:
    """The powers that eager execution computes without a power function, too."""
    x, y = e.inputs
    if not isinstance(x, Value) or x.dtype == "bool":
        return None
    if plain_number(y) == 1:
        return same(r, e, x)
    if plain_number(y) in (2, 3):
        squared = r.emit(mul, x, x)
        return squared if y == 2 else r.emit(mul, squared, x)
    if not x.dtype.startswith("float"):
        return None
    if plain_number(y) == 0:
        return r.full(e.out.shape, 1.0, e.out)
    return r.emit(sqrt, x) if y == 0.5 else r.emit(reciprocal, x) if y == -1 else None


def square_rule(r: Rewriter, e: Equation) -> Value | None:
    (x,) = e.inputs
    return r.emit(mul, x, x) if isinstance(x, Value) and x.dtype != "bool" else None


def copy_rule(r: Rewriter, e: Equation) -> Value | None:
    return same(r, e, e.inputs[0])


def tanh_slope_rule(r: Rewriter, e: Equation) -> Value | None:
    """Spelled out: 1 - y**2 is shared by all who need the slope."""
    x, y = e.inputs
    return r.emit(mul, x, r.emit(sub, 1, r.emit(mul, y, y))) if isinstance(y, Value) else None


RULES: dict[Op, tuple[Rule, ...]] = {
    add: (add_rule,),
    sub: (sub_rule,),
    mul: (mul_rule,),
    div: (div_rule,),
    neg: (neg_rule,),
    pow: (pow_rule,),
    square: (square_rule,),
    clone: (copy_rule,),
    to_dtype: (copy_rule,),
    tanh_slope: (tanh_slope_rule,),
}
