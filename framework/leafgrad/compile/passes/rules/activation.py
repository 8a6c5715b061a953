"""Activations in steps: what derivatives need too is computed once, and each step writes into a buffer."""

from __future__ import annotations

import math

from leafgrad.compile.graph import Equation, Value
from leafgrad.compile.passes.rewrite import Rewriter, Rule
from leafgrad.ops.activation import gelu, relu
from leafgrad.ops.elementwise import add, div, mul, sub
from leafgrad.ops.exponential import exp, log
from leafgrad.ops.op import Op
from leafgrad.ops.reduce import amax, log_softmax, softmax, sum as sum_op
from leafgrad.ops.select import maximum
from leafgrad.ops.special import erf


def gelu_rule(r: Rewriter, e: Equation) -> Value | None:
    """x (1 + erf(x / sqrt(2))) / 2: its derivative needs the same erf."""
    (x,) = e.values
    normal = r.emit(mul, r.emit(add, r.emit(erf, r.emit(mul, x, math.sqrt(0.5))), 1), 0.5)
    return r.emit(mul, x, normal)


def relu_rule(r: Rewriter, e: Equation) -> Value | None:
    """The larger of x and 0, which is one ufunc."""
    return r.emit(maximum, e.inputs[0], 0)


def shifted(r: Rewriter, e: Equation) -> Value | None:
    """The argument of a softmax less its largest value; None where the op does something else."""
    (x,), dim = e.values, e.params["dim"]
    if x.dtype not in ("float32", "float64") or not math.prod(x.shape) or not x.ndim:
        return None
    return r.emit(sub, x, r.emit(amax, x, dim=(dim,), keepdim=True))


def softmax_rule(r: Rewriter, e: Equation) -> Value | None:
    """exp(x - max(x)) over its sum: steps that write into buffers."""
    y = shifted(r, e)
    if y is None:
        return None
    y = r.emit(exp, y)
    return r.emit(div, y, r.emit(sum_op, y, dim=(e.params["dim"],), keepdim=True))


def log_softmax_rule(r: Rewriter, e: Equation) -> Value | None:
    """x - max(x), less the logarithm of the sum of its exponentials."""
    y = shifted(r, e)
    if y is None:
        return None
    return r.emit(sub, y, r.emit(log, r.emit(sum_op, r.emit(exp, y), dim=(e.params["dim"],), keepdim=True)))


RULES: dict[Op, tuple[Rule, ...]] = {
    gelu: (gelu_rule,),
    relu: (relu_rule,),
    softmax: (softmax_rule,),
    log_softmax: (log_softmax_rule,),
}
