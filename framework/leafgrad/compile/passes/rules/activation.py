"""Activations in terms of what their derivatives compute too, so that it is computed once."""

from __future__ import annotations

import math

from leafgrad.compile.graph import Equation, Value
from leafgrad.compile.passes.rewrite import Rewriter, Rule
from leafgrad.ops.activation import gelu
from leafgrad.ops.elementwise import add, mul
from leafgrad.ops.op import Op
from leafgrad.ops.special import erf


def gelu_rule(r: Rewriter, e: Equation) -> Value | None:
    """x (1 + erf(x / sqrt(2))) / 2: its derivative needs the same erf."""
    (x,) = e.values
    normal = r.emit(mul, r.emit(add, r.emit(erf, r.emit(mul, x, math.sqrt(0.5))), 1), 0.5)
    return r.emit(mul, x, normal)


RULES: dict[Op, tuple[Rule, ...]] = {gelu: (gelu_rule,)}
