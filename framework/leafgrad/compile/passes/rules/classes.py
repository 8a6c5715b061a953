"""Cross-entropy in steps: it and its derivative share the softmax, and the steps can be chunked along the batch."""

from __future__ import annotations

import math

from leafgrad.compile.graph import Equation, Value
from leafgrad.compile.passes.rewrite import Rewriter, Rule
from leafgrad.ops.classes import cross_entropy, cross_entropy_slope, pick, place
from leafgrad.ops.compare import ne
from leafgrad.ops.convert import to_dtype
from leafgrad.ops.elementwise import div, mul, neg, sub
from leafgrad.ops.exponential import exp
from leafgrad.ops.op import Op
from leafgrad.ops.reduce import log_softmax, sum as sum_op
from leafgrad.ops.shape import reshape


def fits(e: Equation) -> bool:
    """Not float16, whose sums overflow, and not without scores."""
    x = e.values[0]
    return x.dtype in ("float32", "float64") and bool(math.prod(x.shape))


def logarithms(r: Rewriter, e: Equation) -> Value:
    """The logarithms of the probabilities of all classes."""
    (x, _), dim = e.values, e.params["dim"]
    like = Value(x.shape, x.dtype, x.place)
    return r.put(Equation(log_softmax, (x,), {"dim": dim}, (like,), e.line))[0]


def counted(r: Rewriter, e: Equation) -> tuple[Value, Value]:
    """1 for each target that is not ignored, else 0; and their sum."""
    x, target = e.values
    flags = Value(target.shape, "bool", target.place)
    (flags,) = r.put(Equation(ne, (target, e.params["ignore"]), {}, (flags,), e.line))
    kept = Value(target.shape, x.dtype, target.place)
    (kept,) = r.put(Equation(to_dtype, (flags,), {"dtype": x.dtype, "source": "bool"}, (kept,), e.line))
    return kept, r.emit(sum_op, kept, dim=tuple(range(kept.ndim)))


def cross_entropy_rule(r: Rewriter, e: Equation) -> Value | None:
    """The mean of what `pick` takes from the logarithms, negative."""
    if not fits(e):
        return None
    x, target = e.values
    picked = Value(target.shape, x.dtype, x.place)
    (picked,) = r.put(Equation(pick, (logarithms(r, e), target), e.params, (picked,), e.line))
    total = r.emit(sum_op, picked, dim=tuple(range(picked.ndim)))
    return r.emit(neg, r.emit(div, total, counted(r, e)[1]))


def slope_rule(r: Rewriter, e: Equation) -> Value | None:
    """Probabilities less one at the targets, over the count."""
    if not fits(e):
        return None
    (x, target), dim = e.values, e.params["dim"]
    ones = r.full(target.shape, 1.0, x)
    at = Value(x.shape, x.dtype, x.place)
    (at,) = r.put(Equation(place, (ones, target), {"shape": x.shape, **e.params}, (at,), e.line))
    kept, count = counted(r, e)
    shares = r.emit(reshape, r.emit(div, kept, count), shape=tuple(1 if i == dim else n for i, n in enumerate(x.shape)))
    return r.emit(mul, r.emit(sub, r.emit(exp, logarithms(r, e)), at), shares)


RULES: dict[Op, tuple[Rule, ...]] = {cross_entropy: (cross_entropy_rule,), cross_entropy_slope: (slope_rule,)}
