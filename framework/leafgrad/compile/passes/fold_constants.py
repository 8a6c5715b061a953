"""Compute now what depends on numbers only, and use a number where an array filled with it was."""

from __future__ import annotations

import warnings

from leafgrad import backends
from leafgrad.compile.ir.extent import Extent, present
from leafgrad.compile.ir.graph import Equation, Graph, Operand, Value
from leafgrad.compile.ir.lengths import changed
from leafgrad.compile.ir.shapes import shape_of
from leafgrad.compile.passes.rewrite import Rewriter, Rule, rewrite
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.convert import clone, new_full, to_dtype
from leafgrad.ops.create import constant, zeros
from leafgrad.ops.op import Op
from leafgrad.ops.shape import expand, part, permute, reshape


def fold_constants(graph: Graph) -> Graph:
    """The graph with constants computed.

    A constant is an array filled with one number. Rearranged or converted it is another constant; an elementwise
    op of constants is one too; beside other arrays in an elementwise op it is its number, where shape and dtype
    of the result stay.
    """
    return rewrite(graph, RULES, (elementwise_of_constants,))


def created(r: Rewriter, e: Equation) -> Value | None:
    """Filled arrays of every kind are made by `full`, which waits for no other value."""
    return r.full(e.out.shape, e.params.get("value", 0), e.out)


def single(r: Rewriter, e: Equation) -> Value | None:
    """A Python number as an array."""
    value = e.params["value"]
    return r.full((), value, e.out) if isinstance(value, (bool, int, float)) else None


def rearranged(r: Rewriter, e: Equation) -> Value | None:
    number = r.number(e.inputs[0])
    return None if number is None else r.full(e.out.shape, number, e.out)


def converted(r: Rewriter, e: Equation) -> Value | None:
    return computed(r, e) if r.number(e.inputs[0]) is not None else None


def elementwise_of_constants(r: Rewriter, e: Equation) -> Value | None:
    traits = e.op.traits
    if "elementwise" not in traits or e.several:
        return None
    inputs = [v if (number := r.number(v)) is None else number for v in e.inputs]
    values = [v for v in inputs if isinstance(v, Value)]
    if not values:
        return None if None in inputs or "random" in traits else computed(r, e)
    return None if len(values) == len(e.values) or "any_dtype" in traits else beside_numbers(r, e, inputs)


def computed(r: Rewriter, e: Equation) -> Value | None:
    """The constant that an equation of constants makes, from running its op on one element."""
    if any(type(number) is Extent for number in [*map(r.number, e.inputs), *e.params.values()]):
        return None  # which is another one at other sizes
    backend = backends.by_device_type("cpu")
    arrays = [
        backend.asarray([r.number(v)], v.dtype) if isinstance(v, Value) else v  # the op sees the dtypes it would see
        for v in e.inputs
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = e.op.compute(tuple(arrays), e.params)
    if result.dtype.name != e.out.dtype or result.size != 1:
        return None
    number = backend.item(result.reshape(()))
    return None if isinstance(number, complex) else r.full(e.out.shape, number, e.out)


def beside_numbers(r: Rewriter, e: Equation, inputs: list[Operand]) -> Value | None:
    """The equation with numbers for those of its inputs that are constants."""
    if len({v.dtype for v in e.values}) != 1 or not takes(e, inputs):
        return None
    if broadcast_shape(map(shape_of, inputs)) != e.out.shape:
        if "comparison" in e.op.traits:
            return None
        return r.emit(expand, r.emit(e.op, *inputs, **e.params), shape=e.out.shape)
    return r.put(Equation(e.op, tuple(inputs), e.params, e.outputs, e.line))[0]


def takes(e: Equation, inputs: list[Operand]) -> bool:
    """Whether the op of ``e`` works with these numbers among its inputs: some ask each argument for its dtype."""
    backend = backends.by_device_type("cpu")
    arrays = [backend.asarray([1], v.dtype) if isinstance(v, Value) else present(v) for v in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            result = e.op.compute(tuple(arrays), changed(e.params, present))
        except Exception:  # the op's own, of any kind
            return False
    return bool(result.dtype.name == e.out.dtype)


RULES: dict[Op, tuple[Rule, ...]] = {
    new_full: (created,),
    zeros: (created,),
    constant: (single,),
    expand: (rearranged,),
    reshape: (rearranged,),
    permute: (rearranged,),
    part: (rearranged,),
    clone: (rearranged,),
    to_dtype: (converted,),
}
