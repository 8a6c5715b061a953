"""Rearrangements: those that do nothing or undo each other go; copies by broadcasting are put off and often saved."""

from __future__ import annotations

from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.compile.ir.shapes import shape_of
from leafgrad.compile.passes.rewrite import Rewriter, Rule
from leafgrad.compile.passes.rules.arithmetic import negated, scaled
from leafgrad.ops.abstract import broadcast_shape, reduced
from leafgrad.ops.elementwise import mul, neg
from leafgrad.ops.op import Op
from leafgrad.ops.reduce import sum as sum_op
from leafgrad.ops.shape import expand, permute, reshape, sum_to

Shape = tuple[int, ...]


def unexpanded(r: Rewriter, x: Operand) -> Operand:
    """What ``x`` is a broadcast of, else ``x``."""
    e = r.maker(x, expand)
    return x if e is None else e.inputs[0]


def elementwise_of_expanded(r: Rewriter, e: Equation) -> Value | None:
    """Elementwise ops broadcast by themselves: expand none of their arguments, but the result where it is needed."""
    if "elementwise" not in e.op.traits or "random" in e.op.traits or e.several:
        return None
    inputs = tuple(unexpanded(r, v) for v in e.inputs)
    if inputs == e.inputs:
        return None
    shape = broadcast_shape(map(shape_of, inputs))
    small = Value(shape, e.out.dtype, e.place) if shape != e.out.shape else e.out
    (value,) = r.put(Equation(e.op, inputs, e.params, (small,), e.line))
    return value if value.shape == e.out.shape else r.emit(expand, value, shape=e.out.shape)


def nothing(r: Rewriter, e: Equation) -> Value | None:
    """A rearrangement to the shape that the argument has."""
    (x,) = e.inputs
    return x if isinstance(x, Value) and x.shape == e.out.shape else None


def twice(r: Rewriter, e: Equation) -> Value | None:
    """A reshape of a reshape, an expand of an expand."""
    inner = r.maker(e.inputs[0], e.op)
    return None if inner is None else r.emit(e.op, inner.inputs[0], shape=e.out.shape)


def sign_outward(r: Rewriter, e: Equation) -> Value | None:
    """Linear ops of -x and c x, computed as - and c times those of x."""
    (x,) = e.inputs
    if (u := negated(r, x)) is not None:
        return r.emit(neg, r.emit(e.op, u, **e.params))
    if (found := scaled(r, x)) is not None and found[0].shape == shape_of(x) and r.once(x):
        return r.emit(mul, r.emit(e.op, found[0], **e.params), found[1])
    return None


def permute_rule(r: Rewriter, e: Equation) -> Value | None:
    (x,), dims = e.inputs, e.params["dims"]
    if tuple(dims) == tuple(range(len(dims))):
        return e.values[0]
    if (inner := r.maker(x, permute)) is not None:
        first = inner.params["dims"]
        return r.emit(permute, inner.inputs[0], dims=tuple(first[i] for i in dims))
    if (inner := r.maker(x, expand)) is not None and len(shape_of(inner.inputs[0])) == len(dims):
        return r.emit(expand, r.emit(permute, inner.inputs[0], dims=dims), shape=e.out.shape)
    return None


def sum_to_rule(r: Rewriter, e: Equation) -> Value | None:
    """sum_to is a sum, after which dimensions of size 1 may be missing or be too many."""
    (x,), shape = e.values, e.out.shape
    if x.ndim == len(shape):
        return r.emit(sum_op, x, dim=reduced(x.shape, shape), keepdim=True)
    return r.emit(reshape, r.emit(sum_op, x, dim=reduced(x.shape, shape), keepdim=False), shape=shape)


RULES: dict[Op, tuple[Rule, ...]] = {
    reshape: (nothing, twice, sign_outward),
    expand: (nothing, twice),
    permute: (permute_rule, sign_outward),
    sum_to: (nothing, sum_to_rule),
}
