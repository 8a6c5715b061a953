"""Normalisation in steps: it, its derivatives and running averages share the mean and the variance."""

from __future__ import annotations

import math

from leafgrad.compile.graph import Equation, Value
from leafgrad.compile.passes.rewrite import Rewriter, Rule
from leafgrad.compile.passes.rules.reduction import PRECISE
from leafgrad.ops.elementwise import add, div, mul, rsqrt, sub
from leafgrad.ops.normalize import affine, standardize, standardize_slope
from leafgrad.ops.op import Op
from leafgrad.ops.reduce import sum as sum_op, var


def average(r: Rewriter, x: Value, dim: tuple[int, ...]) -> Value:
    """The mean over ``dim``, kept."""
    return r.emit(div, r.emit(sum_op, x, dim=dim, keepdim=True), float(math.prod(x.shape[i] for i in dim)))


def centered(r: Rewriter, x: Value, e: Equation) -> Value:
    """x less its mean, unless the op leaves it."""
    return r.emit(sub, x, average(r, x, e.params["dim"])) if e.params.get("centered", True) else x


def parts(r: Rewriter, x: Value, e: Equation) -> tuple[Value, Value] | None:
    """The standardized x and what it was scaled by; None in float16, whose sums overflow, and without elements."""
    if x.dtype not in PRECISE or not math.prod(x.shape):
        return None
    c = centered(r, x, e)
    scale = r.emit(rsqrt, r.emit(add, average(r, r.emit(mul, c, c), e.params["dim"]), e.params["eps"]))
    return r.emit(mul, c, scale), scale


def standardize_rule(r: Rewriter, e: Equation) -> Value | None:
    """(x - mean) rsqrt(variance + eps)."""
    (x,) = e.values
    found = parts(r, x, e)
    return None if found is None else found[0]


def slope_rule(r: Rewriter, e: Equation) -> Value | None:
    """(h - mean(h) - y mean(h y)) rsqrt(variance + eps)."""
    h, x = e.values
    found = parts(r, x, e)
    if found is None:
        return None
    y, scale = found
    along = r.emit(mul, y, average(r, r.emit(mul, h, y), e.params["dim"]))
    return r.emit(mul, r.emit(sub, centered(r, h, e), along), scale)


def var_rule(r: Rewriter, e: Equation) -> Value | None:
    """The sum of squares of x less its mean, over a count."""
    (x,), dim = e.values, e.params["dim"]
    left = math.prod(x.shape[i] for i in dim) - e.params.get("correction", 1)
    if x.dtype not in PRECISE or left <= 0 or not math.prod(x.shape):
        return None
    c = r.emit(sub, x, average(r, x, dim))
    total = r.emit(sum_op, r.emit(mul, c, c), dim=dim, keepdim=e.params.get("keepdim", False))
    return r.emit(div, total, float(left))


def affine_rule(r: Rewriter, e: Equation) -> Value | None:
    """A product and a sum."""
    x, weight, bias = e.inputs
    return r.emit(add, r.emit(mul, x, weight), bias)


RULES: dict[Op, tuple[Rule, ...]] = {
    standardize: (standardize_rule,),
    standardize_slope: (slope_rule,),
    var: (var_rule,),
    affine: (affine_rule,),
}
