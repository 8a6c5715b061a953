"""where: choices by one condition are made once, signs and factors go outward. Exact but for the sign of zero."""

from __future__ import annotations

from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.compile.ir.shapes import shape_of
from leafgrad.compile.passes.rewrite import Rewriter, Rule
from leafgrad.compile.passes.rules.arithmetic import negated, plain_number, same, scaled
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.elementwise import add, mul, neg, sub
from leafgrad.ops.op import Op
from leafgrad.ops.select import where


def nested(r: Rewriter, e: Equation) -> Value | None:
    """A choice inside a choice by the same condition is decided; one between equals is none."""
    condition, x, y = e.inputs
    if x is y:
        return same(r, e, x)
    for i, side in ((1, x), (2, y)):
        inner = r.maker(side, where)
        if inner is not None and inner.inputs[0] is condition:
            chosen = list(e.inputs)
            chosen[i] = inner.inputs[i]
            return again(r, e, *chosen)
    return None


def again(r: Rewriter, e: Equation, condition: Operand, x: Operand, y: Operand) -> Value | None:
    """``where(condition, x, y)`` in the place of ``e``, if one of x and y is an array and the dtype is the same."""
    choices = [v for v in (x, y) if isinstance(v, Value)]
    if not choices or any(v.dtype != e.out.dtype for v in choices):
        return None
    out = Value(broadcast_shape(map(shape_of, (condition, x, y))), e.out.dtype, e.place)
    return same(r, e, r.put(Equation(where, (condition, x, y), {}, (out,), e.line))[0])


def sign_outward(r: Rewriter, e: Equation) -> Value | None:
    """Minus, or a number times, an array where a condition holds and zero elsewhere."""
    condition, x, y = e.inputs
    for side, other in ((x, y), (y, x)):
        if plain_number(other) != 0:
            continue
        if (u := negated(r, side)) is not None:
            chosen = again(r, e, condition, *((u, 0) if side is x else (0, u)))
            return None if chosen is None else r.emit(neg, chosen)
        if (found := scaled(r, side)) is not None and r.once(side):
            chosen = again(r, e, condition, *((found[0], 0) if side is x else (0, found[0])))
            return None if chosen is None else r.emit(mul, chosen, found[1])
    return None


def sum_of_choices(r: Rewriter, e: Equation) -> Value | None:
    """The sum of two choices by one condition, each against zero, is one choice."""
    first, second = r.maker(e.inputs[0], where), r.maker(e.inputs[1], where)
    if first is None or second is None or first.inputs[0] is not second.inputs[0]:
        return None
    if not (r.once(e.inputs[0]) and r.once(e.inputs[1])) or first.out.shape != second.out.shape:
        return None
    condition, a, b = first.inputs
    _, x, y = second.inputs
    if plain_number(b) == 0 and plain_number(y) == 0:
        both: tuple[Operand, Operand] = r.emit(e.op, a, x), 0
    elif plain_number(a) == 0 and plain_number(x) == 0:
        both = 0, r.emit(e.op, b, y)
    elif plain_number(b) == 0 and plain_number(x) == 0 and e.op is add:
        both = a, y
    elif plain_number(a) == 0 and plain_number(y) == 0 and e.op is add:
        both = x, b
    else:
        return None
    return again(r, e, condition, *both)


RULES: dict[Op, tuple[Rule, ...]] = {where: (nested, sign_outward), add: (sum_of_choices,), sub: (sum_of_choices,)}
