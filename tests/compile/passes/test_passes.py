"""Each pass before and after; every graph that a pass leaves is type-checked and gives the same numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import leafgrad
from leafgrad import backends
from leafgrad.compile.ir.graph import Argument, Equation, Graph, Line, Value
from leafgrad.compile.ir.typecheck import typecheck
from leafgrad.compile.passes import (
    FINISH,
    PASSES,
    factor_sums,
    fold_constants,
    group_elementwise,
    optimize,
    remove_dead,
    settle_signs,
    share_scales,
    simplify,
)
from leafgrad.compile.passes.liveness import Memory
from leafgrad.compile.passes.rewrite import rewrite
from leafgrad.compile.record.trace import trace_call
from leafgrad.errors import CompileError
from leafgrad.ops import convert, create, elementwise, matmul, random, reduce, shape, trigonometric
from leafgrad.ops.define import op
from leafgrad.ops.select import where
from leafgrad.ops.trigonometric import tanh_slope
from leafgrad.tensor.view import write_view

LINE = Line("<test>", 1)
CPU = ("cpu", 0)
INF, NAN = math.inf, math.nan


# ---- how passes are tested --------------------------------------------------------------------------------------


def array(*shape: int, dtype: str = "float64") -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def program(function: Any, *arrays: Any) -> Graph:
    return trace_call(function, tuple(leafgrad.from_numpy(a) for a in arrays), {}).graph


def evaluate(graph: Graph, arrays: tuple[Any, ...]) -> list[Any]:
    """The results, from running the equations one by one."""
    backend = backends.by_device_type("cpu")
    env: dict[Any, Any] = {v: arrays[s.index] for v, s in graph.inputs.items() if isinstance(s, Argument)}
    for e in graph.equations:
        inputs = tuple(env[v] if isinstance(v, Value) else v for v in e.inputs)
        made = e.op.compute(inputs, e.params) if inputs else backend.wrap(e.op.forward(backend.xp, **e.params))
        env.update(zip(e.outputs, made if e.several else (made,), strict=True))
    return [env[v] for v in graph.results]


def names(graph: Graph) -> list[str]:
    return [e.name for e in graph.equations]


def apply(step: Any, graph: Graph, arrays: tuple[Any, ...], ulps: float = 16) -> Graph:
    """The graph after a pass and the removal of what it left unused, checked."""
    after = typecheck(remove_dead(typecheck(step(graph))))
    for old, new in zip(evaluate(graph, arrays), evaluate(after, arrays), strict=True):
        assert old.dtype == new.dtype
        tolerance = ulps * (np.finfo(old.dtype).eps if old.dtype.kind == "f" else 0)
        scale = np.max(np.abs(old), initial=0, where=np.isfinite(old))
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance * scale)
    return after


def after(step: Any, function: Any, *arrays: Any) -> list[str]:
    return names(apply(step, typecheck(program(function, *arrays)), arrays))


A, B, C, D = array(4, 3), array(4, 3) + 2, array(4, 3) * 3, array(4, 3) - 1
ROW, COLUMN, W, V, SMALL = array(1, 3), array(4, 1), array(3, 5), array(3, 5) * 2, array(3, 1)
BIG, TALL = array(64, 3), array(64, 1)
CUBE = array(6, 4, 3)


def total(x: Any) -> Any:
    return reduce.sum(x, dim=tuple(range(x.ndim)))


# ---- dead code, common subexpressions, constants ----------------------------------------------------------------


def test_remove_dead_keeps_what_results_and_effects_need():
    def step(x, w):
        trigonometric.sin(x)
        y = trigonometric.cos(x)
        y * 2
        w.add_(y)
        return y

    graph = program(step, A, B)
    assert names(remove_dead(graph)).count("sin") == 0
    assert len(remove_dead(graph).effects) == 1
    assert len(remove_dead(graph)) < len(graph)
    typecheck(remove_dead(graph))


def test_random_numbers_nobody_reads_are_drawn_nevertheless():
    generator = backends.by_device_type("cpu").generator()
    draw = equation(random.uniform, (), Value((3,), "float64", CPU), generator=generator, shape=(3,), dtype="float64")
    unused = equation(elementwise.neg, (draw.out,), Value((3,), "float64", CPU))
    graph = Graph({}, (draw, unused), ())
    assert names(remove_dead(graph)) == ["uniform"]
    state = generator.get_state()
    typecheck(graph)
    assert np.array_equal(generator.get_state(), state)


def equation(op: Any, inputs: tuple[Any, ...], out: Value, **params: Any) -> Equation:
    return Equation(op, inputs, params, (out,), LINE)


def test_random_numbers_are_never_merged():
    generator = backends.by_device_type("cpu").generator()
    outs = [Value((3,), "float64", CPU) for _ in range(2)]
    draws = [equation(random.uniform, (), v, generator=generator, shape=(3,), dtype="float64") for v in outs]
    assert len(rewrite(Graph({}, tuple(draws), tuple(outs)))) == 2
    assert len(optimize(Graph({}, tuple(draws), tuple(outs)))) == 2


MERGED = {
    "equal": (lambda x, y: trigonometric.tanh(x) * trigonometric.tanh(x), 2),
    "either order": (lambda x, y: (x * y) - (y * x), 2),
    "not either order": (lambda x, y: (x - y) * (y - x), 3),
    "equal parameters": (lambda x, y: x.sum(1) * x.sum(1), 2),
    "other parameters": (lambda x, y: total(x.sum(1)) * total(x.sum(0)), 5),
    "number types": (lambda x, y: (x * 1) - (x * 1.0), 3),
    "signed zeros": (lambda x, y: (x * 0.0) - (x * -0.0), 3),
    "chains": (lambda x, y: trigonometric.sin(x + y) * trigonometric.sin(y + x), 3),
}


@pytest.mark.parametrize("case", MERGED)
def test_every_rewriting_merges_equal_equations(case):
    function, count = MERGED[case]
    assert len(apply(rewrite, program(function, A, B), (A, B), ulps=0)) == count


def test_parameters_without_a_value_are_merged_by_identity():
    @op
    def scaled_by(xp, x, *, f):
        return f(x)

    def once(a):
        return a * 3

    def twice(a):
        return a * 6

    assert len(rewrite(program(lambda x: scaled_by(x, f=once) - scaled_by(x, f=once), A))) == 2
    assert len(rewrite(program(lambda x: scaled_by(x, f=once) - scaled_by(x, f=twice), A))) == 3
    key = np.arange(2.0)
    assert len(rewrite(program(lambda x: scaled_by(x, f=key.take) - 0, np.array([0, 1])))) == 2


def full(x: Any, number: float, *at: int) -> Any:
    return convert.new_full(x, shape=at or tuple(x.shape), value=number)


FOLDED = {
    "op of constants": (lambda x: trigonometric.cos(full(x, 1.0)) + full(x, 2.0), ["full"]),
    "rearranged": (lambda x: shape.expand(shape.reshape(full(x, 1.0, 3), shape=(1, 3)), shape=(4, 3)), ["full"]),
    "converted": (lambda x: convert.to_dtype(full(x, 1.5), dtype="float32", source="float64"), ["full"]),
    "compared": (lambda x: full(x, 1.5) > 1, ["full"]),
    "number beside an array": (lambda x: x * full(x, 2.0), ["mul"]),
    "scalar": (lambda x: x * full(x, 2.0, 1), ["mul"]),
    "shape kept": (lambda x: x.sum(0) * full(x, 2.0), ["sum", "mul", "expand"]),
    "inf": (lambda x: x + full(x, INF), ["add"]),
    "nan": (lambda x: x * full(x, NAN), ["mul"]),
    "zeros": (lambda x: x * leafgrad.zeros(4, 3, dtype=leafgrad.float64), ["mul"]),
    "integers stay integers": (lambda x: leafgrad.zeros(4, 3, dtype=leafgrad.int64) + x, ["add"]),
}


@pytest.mark.parametrize("case", FOLDED)
def test_fold_constants(case):
    function, expected = FOLDED[case]
    assert after(fold_constants, function, A) == expected


def test_a_constant_in_float32_is_not_rounded_twice():
    x = array(5, dtype="float32")
    graph = program(lambda x: x * trigonometric.sin(full(x, 0.1)), x)
    assert names(apply(fold_constants, graph, (x,), ulps=0)) == ["mul"]


# ---- algebra ------------------------------------------------------------------------------------------------------

SIMPLIFIED = {
    # numbers and signs
    "x * 1": (lambda x, y: x * 1, []),
    "x + -0": (lambda x, y: x + -0.0, []),
    "x + 0": (lambda x, y: x + 0, ["add"]),  # 0 where x is -0
    "x - 0": (lambda x, y: x - 0.0, []),
    "x / 1": (lambda x, y: x / 1, []),
    "-0 - x": (lambda x, y: -0.0 - x, ["neg"]),
    "0 - x": (lambda x, y: 0 - x, ["sub"]),
    "x * 0 stays": (lambda x, y: x * 0, ["mul"]),
    "x - x stays": (lambda x, y: x - x, ["sub"]),
    "-(-x)": (lambda x, y: elementwise.neg(-x), []),
    "x * -1": (lambda x, y: x * -1, ["neg"]),
    "x + -y": (lambda x, y: x + -y, ["sub"]),
    "-x + y": (lambda x, y: -x + y, ["sub"]),
    "x - -y": (lambda x, y: x - -y, ["add"]),
    "-(x - y)": (lambda x, y: -(x - y), ["sub"]),
    "-x * -y": (lambda x, y: -x * -y, ["mul"]),
    "-x / -y": (lambda x, y: -x / -y, ["div"]),
    "z - (-x) y": (lambda x, y: x - -x * y, ["mul", "add"]),
    "x + x": (lambda x, y: x + x, ["mul"]),
    "2 x + 3 x": (lambda x, y: 2 * x + 3 * x, ["mul"]),
    "2 (3 x)": (lambda x, y: 2 * (3 * x), ["mul"]),
    "(2 x) (3 y)": (lambda x, y: (2 * x) * (3 * y), ["mul", "mul"]),
    "x / 4": (lambda x, y: x / 4, ["mul"]),
    "x / 0 stays": (lambda x, y: x / 0, ["div"]),
    "1e300 (1e300 x) stays": (lambda x, y: (x * 1e300) * 1e300, ["mul", "mul"]),
    "slope of tanh": (lambda x, y: tanh_slope(x, y), ["mul", "sub", "mul"]),
    "slope of tanh at a number": (lambda x, y: tanh_slope(x, -0.5), ["tanh_slope"]),
    # powers
    "x ** 1": (lambda x, y: x**1, []),
    "x ** 2": (lambda x, y: x**2, ["mul"]),
    "x ** 3": (lambda x, y: x**3, ["mul", "mul"]),
    "x ** 0": (lambda x, y: x**0, ["full"]),
    "x ** 0.5": (lambda x, y: y**0.5, ["sqrt"]),
    "x ** -1": (lambda x, y: x**-1, ["reciprocal"]),
    "x ** 2.5 stays": (lambda x, y: y**2.5, ["pow"]),
    "square": (lambda x, y: elementwise.square(x), ["mul"]),
    # copies and rearrangements
    "clone": (lambda x, y: x.clone() + y, ["add"]),
    "to the same dtype": (lambda x, y: convert.to_dtype(x, dtype="float64", source="float64") + y, ["add"]),
    "reshape to itself": (lambda x, y: shape.reshape(x, shape=(4, 3)), []),
    "reshape twice": (lambda x, y: shape.reshape(shape.reshape(x, shape=(12,)), shape=(2, 6)), ["reshape"]),
    "permute back": (lambda x, y: shape.permute(shape.permute(x, dims=(1, 0)), dims=(1, 0)), []),
    "permute to itself": (lambda x, y: shape.permute(x, dims=(0, 1)), []),
    "expand to itself": (lambda x, y: shape.expand(x, shape=(4, 3)) + y, ["add"]),
    "expanded argument": (lambda x, y: shape.expand(x.sum(0), shape=(4, 3)) * y, ["sum", "mul"]),
    "expanded alone": (lambda x, y: shape.expand(x.sum(0), shape=(4, 3)).sin(), ["sum", "sin", "expand"]),
    # sums
    "sum over nothing": (lambda x, y: reduce.sum(x, dim=()) * y, ["mul"]),
    "sum_to itself": (lambda x, y: shape.sum_to(x, shape=(4, 3)) * y, ["mul"]),
    "sum_to": (lambda x, y: shape.sum_to(x, shape=(1, 3)), ["sum"]),
    "sum_to fewer dimensions": (lambda x, y: shape.sum_to(x, shape=(3,)), ["sum"]),
    "sum of -x": (lambda x, y: y.sum(0) + reduce.sum(-x, dim=(0,)), ["sum", "sum", "sub"]),
    "sum of a sum": (lambda x, y: reduce.sum(reduce.sum(x, dim=(0,), keepdim=True), dim=(1,)), ["sum", "reshape"]),
    "sum of a broadcast": (lambda x, y: total(shape.expand(total(x), shape=(4, 3))), ["sum", "mul"]),
    "mean": (lambda x, y: reduce.mean(x, dim=(0,)), ["sum", "mul"]),
}  # fmt: skip


@pytest.mark.parametrize("case", SIMPLIFIED)
def test_simplify(case):
    function, expected = SIMPLIFIED[case]
    assert after(simplify, function, A, np.abs(B)) == expected


def rows_in_two_products(x: Any, r: Any, w: Any, y: Any) -> Any:
    """A scaled array that a product reads, and its transpose another."""
    z = x * r
    return matmul.matmul(z, w), matmul.matmul(matmul.swap(z), y)


PRODUCTS = {
    "linear": (lambda x, w, b: matmul.linear(x, w, b), (A, V.T, array(5)), ["permute", "matmul", "add"]),
    "(-a) b": (lambda x, w, c: c - matmul.matmul(-x, w), (A, W, array(4, 5)), ["matmul", "add"]),
    "equal rows": (lambda x, w: matmul.matmul(shape.expand(x, shape=(4, 3)), w), (ROW, W), ["matmul", "expand"]),
    "equal columns": (lambda x, w: matmul.matmul(shape.expand(x, shape=(4, 3)), w), (COLUMN, W), ["sum", "mul"]),
    "ones": (lambda x, w: matmul.matmul(full(x, 1.0, 4, 3), w), (A, W), ["sum", "expand"]),
    "by ones": (lambda x, w: matmul.matmul(x, full(x, 1.0, 3, 5)), (A, W), ["sum", "expand"]),
    "column by row": (lambda x, r: matmul.matmul(x, r), (COLUMN, ROW), ["mul"]),
    "number to the smaller": (lambda x, w: matmul.matmul(2 * x, w), (BIG, W), ["mul", "matmul"]),
    "number after": (lambda x, w: matmul.matmul(x, w) * 2, (BIG, W), ["mul", "matmul"]),
    "row to the smaller": (lambda x, r, w: matmul.matmul(x * r, w), (BIG, ROW, W), ["permute", "mul", "matmul"]),
    "row to the product": (lambda x, r, y: matmul.matmul(y, x * r), (BIG, ROW, TALL.T), ["matmul", "mul"]),
    "transposed": (lambda x, w: matmul.swap(matmul.matmul(x, w)), (A, W), ["permute", "permute", "matmul"]),
    "row to both": (rows_in_two_products, (BIG, ROW, W, BIG), ["permute"] * 2 + ["mul", "matmul"] * 2),
    "chain": (lambda x, w, c: matmul.matmul(matmul.matmul(x, w), c), (BIG, W, array(5, 2)), ["matmul", "matmul"]),
    "sum of rows": (lambda x, w: reduce.sum(matmul.matmul(x, w), dim=(0,)), (BIG, W), ["sum", "matmul", "reshape"]),
    "sum of outer products": (lambda x, y: reduce.sum(x * y, dim=(0,)), (BIG, TALL), ["permute", "matmul", "reshape"]),
    "rows of many": (lambda x, w: matmul.matmul(x, w), (CUBE[..., :1], W[:1]), ["mul"]),
    "equal rows of many": (
        lambda x, w: matmul.matmul(shape.expand(x, shape=(6, 4, 3)), w), (CUBE[:1], W),
        ["matmul", "expand"],
    ),
    "number to the smaller of many": (lambda x, w: matmul.matmul(2 * x, w), (CUBE, W), ["mul", "matmul"]),
    "row to the smaller of many": (
        lambda x, r, w: matmul.matmul(x * r, w), (CUBE, ROW, W),
        ["permute", "mul", "matmul"],
    ),
    "column to the product of many": (
        lambda x, c, w: matmul.matmul(x * c, w), (CUBE, CUBE[..., :1], W[:, :1]),
        ["matmul", "mul"],
    ),
    "chain of many": (
        lambda x, w, c: matmul.matmul(matmul.matmul(x, w), c), (CUBE, W, array(5, 2)),
        ["matmul", "matmul"],
    ),
    "sum of rows of many": (
        lambda x, w: reduce.sum(matmul.matmul(x, w), dim=(0, 1)), (CUBE, W),
        ["sum", "matmul", "reshape"],
    ),
    "contracted matrices": (lambda x, y: matmul.contract(x, y), (BIG, TALL), ["permute", "matmul"]),
    "contracted along one": (
        lambda x, y: matmul.contract(x, y), (CUBE[:, :1], CUBE[:, 1:2]),
        ["reshape", "reshape", "permute", "matmul"],
    ),
    "contracted vectors": (lambda x, y: matmul.contract(x, y), (A[0], B[1]), ["reshape", "reshape", "permute", "mul"]),
    "minus, contracted": (lambda x, y: 1 - matmul.contract(-x, y), (CUBE, CUBE), ["contract", "add"]),
    "number, contracted": (lambda x, y: matmul.contract(x * 2, y), (CUBE, CUBE), ["contract", "mul"]),
    "row, contracted": (lambda x, r, y: matmul.contract(x * r, y), (CUBE, ROW, CUBE), ["permute", "contract", "mul"]),
    "row of the right, contracted": (lambda x, r, y: matmul.contract(y, x * r), (CUBE, ROW, CUBE), ["contract", "mul"]),
    "spread, contracted": (
        lambda x, y: matmul.contract(shape.expand(x, shape=(6, 4, 3)), y), (CUBE[:, :1], CUBE),
        ["sum", "reshape", "reshape", "permute", "matmul"],
    ),
    "sum of products with a column": (
        lambda x, c: reduce.sum(x * c, dim=(0, 1)), (CUBE, CUBE[..., :1]),
        ["contract", "reshape"],
    ),
    "sum of a scaled row": (lambda x, r: reduce.sum(x * r, dim=(0, 1)), (CUBE, ROW), ["sum", "mul", "reshape"]),
    "sum of a square, scaled": (
        lambda x, y: reduce.sum(x * (y[:1] * x), dim=(0,)), (CUBE, CUBE),
        ["slice", "mul", "sum", "mul", "reshape"],
    ),
    "sum of what lost a one": (
        lambda x: reduce.sum(reduce.sum(x, dim=(1,), keepdim=True).reshape(6, 3), dim=(0,)), (CUBE,),
        ["sum", "reshape"],
    ),
    "small factors first": (lambda x, r, c: (x * r) * c, (CUBE, ROW, CUBE[:1, :, :1]), ["mul", "mul"]),
    "sum of scaled columns": (lambda x, r: reduce.sum(x * r, dim=(1,)), (BIG, ROW), ["permute", "matmul", "reshape"]),
}  # fmt: skip


@pytest.mark.parametrize("case", PRODUCTS)
def test_simplify_products(case):
    function, arrays, expected = PRODUCTS[case]
    graph = program(function, *arrays)
    for step in (fold_constants, simplify, fold_constants, simplify):
        graph = apply(step, graph, arrays)
    assert sorted(names(graph)) == sorted(expected)


def test_numbers_go_to_the_smallest_matrix():
    graph = simplify(program(lambda x, w: matmul.matmul(2 * x, w), BIG, W))
    assert remove_dead(graph).equations[0].out.shape == W.shape
    chain = simplify(program(lambda x, w, c: matmul.matmul(matmul.matmul(x, w), c), BIG, W, array(5, 2)))
    assert remove_dead(chain).equations[0].out.shape == (3, 2)


def columns(x: Any, start: int, stop: int) -> Any:
    return shape.part(x, at=((0, x.shape[0], 1), (start, stop, 1)))


def spread(x: Any, start: int, width: int) -> Any:
    at = ((0, x.shape[0], 1), (start, start + x.shape[1], 1))
    return shape.unslice(x, at=at, shape=(x.shape[0], width))


def many(x: Any) -> Any:
    return x.reshape(2, 2, 4)


def padded(x: Any, value: float) -> Any:
    return shape.pad(x, at=((0, 4, 1), (1, 4, 1)), shape=(4, 7), value=value)


def joined(*xs: Any) -> Any:
    return shape.cat(*xs, dim=1)


PARTS = {
    "whole": (lambda x, y, w: columns(x, 0, 3) * y, ["mul"]),
    "slice of a slice": (lambda x, y, w: columns(columns(x, 1, 3), 1, 2), ["slice"]),
    "integers": (lambda x, y, w: x[1] + x[1:2].sum(0), ["slice", "reshape", "mul"]),
    "first of a cat": (lambda x, y, w: columns(joined(x, y), 0, 3) * y, ["mul"]),
    "last of a cat": (lambda x, y, w: columns(joined(x, y), 4, 5), ["slice"]),
    "across a cat": (lambda x, y, w: columns(joined(x, y), 2, 4), ["cat", "slice"]),
    "cat of slices": (lambda x, y, w: joined(columns(x, 0, 1), columns(x, 1, 3)) * y, ["mul"]),
    "cat of one": (lambda x, y, w: joined(x) * y, ["mul"]),
    "nested cats": (lambda x, y, w: joined(x, joined(y, x)), ["cat"]),
    "slice of zeros around": (lambda x, y, w: columns(spread(x, 2, 9), 2, 5) * y, ["mul"]),
    "slice beside": (lambda x, y, w: columns(spread(x, 2, 9), 6, 9), ["full"]),
    "slice across": (lambda x, y, w: columns(spread(x, 2, 9), 1, 4), ["unslice", "slice"]),
    "side by side": (lambda x, y, w: spread(x, 0, 6) + spread(y, 3, 6), ["cat"]),
    "other way round": (lambda x, y, w: spread(x, 3, 6) + spread(y, 0, 6), ["cat"]),
    "side by side in more": (lambda x, y, w: spread(x, 1, 8) + spread(y, 4, 8), ["cat", "unslice"]),
    "one place": (lambda x, y, w: spread(x, 1, 8) - spread(y, 1, 8), ["sub", "unslice"]),
    "overlapping": (lambda x, y, w: spread(x, 0, 5) + spread(y, 2, 5), ["unslice", "unslice", "add"]),
    "columns of a product": (lambda x, y, w: columns(matmul.matmul(x, w), 1, 3), ["slice", "matmul"]),
    "columns of a sum": (lambda x, y, w: columns(x + y, 1, 3), ["slice", "slice", "add"]),
    "columns of a broadcast": (lambda x, y, w: columns(x * y.sum(0), 1, 3), ["sum", "slice", "slice", "mul"]),
    "zero columns": (lambda x, y, w: matmul.matmul(spread(x[:, :2], 0, 3), w), ["slice", "slice", "matmul"]),
    "zero columns of a product": (lambda x, y, w: matmul.matmul(x, spread(w, 0, 9)), ["matmul", "unslice"]),
    "sum of zeros around": (lambda x, y, w: reduce.sum(spread(x, 2, 9), dim=(1,)), ["sum", "reshape"]),
    "pad": (lambda x, y, w: columns(padded(x, 0.0), 1, 4) * y, ["mul"]),
    "pad with ones stays": (lambda x, y, w: padded(x, 1.0), ["pad"]),
    "steps": (lambda x, y, w: shape.part(x, at=((0, 4, 2), (0, 3, 1))), ["slice"]),
}  # fmt: skip


CHOICES = {
    "between equals": (lambda c, x, y: where(c, x, x) * y, ["mul"]),
    "inside": (lambda c, x, y: where(c, where(c, x, y), 0), ["where"]),
    "inside the other": (lambda c, x, y: where(c, 0, where(c, x, y)), ["where"]),
    "inside, of another shape": (
        lambda c, x, y: where(c[:1], where(c[:1], x[:1], y), 0),
        ["slice"] * 2 + ["where", "expand"],
    ),
    "by another condition": (lambda c, x, y: where(x > 0, where(c, x, y), 0), ["gt", "where", "where"]),
    "minus": (lambda c, x, y: y + where(c, -x, 0), ["where", "sub"]),
    "times": (lambda c, x, y: where(c, 0, x * 2), ["where", "mul"]),
    "sum": (lambda c, x, y: where(c, x, 0) + where(c, y, 0), ["add", "where"]),
    "difference": (lambda c, x, y: where(c, 0, x) - where(c, 0, y), ["sub", "where"]),
    "both sides": (lambda c, x, y: where(c, x, 0) + where(c, 0, y), ["where"]),
    "both sides, turned": (lambda c, x, y: where(c, 0, x) + where(c, y, 0), ["where"]),
    "against one": (lambda c, x, y: where(c, x, 1) + where(c, y, 0), ["where", "where", "add"]),
}


@pytest.mark.parametrize("case", CHOICES)
def test_simplify_choices(case):
    function, expected = CHOICES[case]
    assert sorted(after(simplify, function, A > 0, A, B)) == sorted(expected)


def test_a_choice_keeps_nan_out():
    x = np.array([NAN, INF, 1.0])
    graph = program(lambda c, x: where(c, x * -2.0, 0), x == 1, x)
    assert np.array_equal(evaluate(optimize(graph), (x == 1, x))[0], [0.0, 0.0, -2.0])


@pytest.mark.parametrize("case", PARTS)
def test_simplify_parts(case):
    function, expected = PARTS[case]
    graph = apply(simplify, program(function, A, B, W), (A, B, W))
    assert sorted(names(apply(simplify, graph, (A, B, W)))) == sorted(expected)


def test_writing_all_of_an_array_is_what_was_written():
    assert after(simplify, lambda x, y: write_view(x, y, steps=()) * y, A, B) == ["mul"]
    assert after(simplify, lambda x, y: write_view(x, y.sum(0), steps=()), A, B) == ["sum", "expand"]


# ---- sums of products -----------------------------------------------------------------------------------------------

FACTORED = {
    "a w + b w": (lambda a, b, c, w: a * w + b * w, ["add", "mul"]),
    "a w - b w": (lambda a, b, c, w: a * w - b * w, ["sub", "mul"]),
    "-a w - b w": (lambda a, b, c, w: c - a * w - b * w, ["add", "mul", "sub"]),
    "a w + c + b w": (lambda a, b, c, w: a * w + c + b * w, ["add", "mul", "add"]),
    "x + x + x": (lambda a, b, c, w: a + b + a + a, ["mul", "add"]),
    "2 a + 2 b": (lambda a, b, c, w: a * 2 + b * 2, ["add", "mul"]),
    "products used elsewhere": (lambda a, b, c, w: ((a * w) + (b * w)) * (a * w), ["mul", "mul", "add", "mul"]),
    "nothing to gain": (lambda a, b, c, w: a * w + b * c, ["mul", "mul", "add"]),
    "constant": (lambda a, b, c, w: 1 - (a * w + b * w), ["add", "mul", "sub"]),
}


@pytest.mark.parametrize("case", FACTORED)
def test_factor_sums(case):
    function, expected = FACTORED[case]
    assert sorted(after(factor_sums, function, A, B, C, D)) == sorted(expected)


def test_opposite_terms_are_kept_since_they_may_be_nan():
    assert after(factor_sums, lambda a, b: (a + b) - b, A, B) == ["add", "sub"]


def test_matrix_products_that_share_a_factor_are_merged():
    def right(a, b, w):
        return matmul.matmul(a, w) + matmul.matmul(b, w)

    def left(a, v, w):
        return matmul.matmul(a, w) - matmul.matmul(a, v)

    assert after(factor_sums, right, A, B, W) == ["add", "matmul"]
    assert after(factor_sums, left, A, V, W) == ["sub", "matmul"]
    assert after(factor_sums, lambda a, b, w, v: right(a, b, w) + matmul.matmul(a, v), A, B, W, V).count("matmul") == 2


def test_share_scales():
    def step(x, y, z):
        return total((x * y * 2.0).sin() + (z * y * 2.0).cos())

    graph = program(step, A, B, C)
    assert names(graph).count("mul") == 4
    assert names(apply(share_scales, graph, (A, B, C))).count("mul") == 3
    row = program(lambda x, r: (x * r * 2.0).sin(), A, ROW)
    shared = apply(share_scales, row, (A, ROW))
    assert shared.equations[0].out.shape == ROW.shape


def test_settle_signs():
    graph = apply(simplify, program(lambda x: (x * -2.0).sin(), A), (A,))
    assert names(graph) == ["mul", "neg", "sin"]
    assert names(apply(settle_signs, graph, (A,))) == ["mul", "sin"]


# ---- order and memory -----------------------------------------------------------------------------------------------


def interleaved(x: Any, w: Any) -> Any:
    """Six branches whose first halves all run before any second half."""
    heads = [trigonometric.sin(x * float(k)) for k in range(2, 8)]
    out = x
    for head in heads:
        out = out + matmul.matmul(trigonometric.cos(head), w)
    return out


def test_group_elementwise_lowers_the_peak():
    arrays = array(8, 5), array(5, 5)
    graph = program(interleaved, *arrays)
    grouped = apply(group_elementwise, graph, arrays, ulps=0)
    assert Counter(names(grouped)) == Counter(names(graph))
    memory = Memory(graph)
    assert memory.peak(grouped.equations) < memory.peak(graph.equations) / 2


def test_memory_sees_through_views():
    def step(x, y):
        a = x * y
        b = shape.permute(a, dims=(1, 0))
        return total(b * 2) + total(x + y)

    memory = Memory(program(step, A, B))
    a, b, double, *_ = memory.made
    assert (b.name, double.name) == ("permute", "mul")
    assert memory.made[b] == {}
    assert list(memory.read[double]) == [a.out]
    assert memory.read_by[a.out] == [b, double]


# ---- everything together --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [INF, -INF, NAN, 0.0])
def test_inf_and_nan_come_out_as_they_do_eagerly(value):
    x = np.array([value, 1.0, -2.0])

    def step(x):
        return (
            x * 0 + 1,
            x - x,
            (x + 0) * 1,
            elementwise.neg(-x) / 2,
            x * 2 - x * 3,
            x**2 - x,
            x * 1.5 * 2,
            (1 - x) * (x * -1),
        )

    with np.errstate(all="ignore"):
        graph = program(step, x)
        old, new = evaluate(graph, (x,)), evaluate(typecheck(optimize(graph)), (x,))
    for a, b in zip(old, new, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rows", [0, 1])
def test_empty_and_single_batches(rows):
    def step(x, w, v):
        y = matmul.matmul(matmul.matmul(x, w), v)
        z = shape.expand(reduce.sum(y, dim=(1,), keepdim=True), shape=tuple(y.shape))
        return total(z * 2.0), total(full(x, 1.0)), reduce.sum(y * y[:, :1], dim=(0,)), joined(x, x), x[:0] * 1

    arrays = array(rows, 3), W, array(5, 2)
    graph = program(step, *arrays)
    for a, b in zip(evaluate(graph, arrays), evaluate(typecheck(optimize(graph)), arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_integers_and_booleans_are_computed_exactly(dtype):
    x = np.array([0, 1, 1, 0]).astype(dtype)

    def step(x):
        return x * 1, x + x, x * x + x * x, (x + x) + x, x * True

    graph = program(step, x)
    for a, b in zip(evaluate(graph, (x,)), evaluate(typecheck(optimize(graph)), (x,)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def burgers(width: int, depth: int, points: int, dtype: str) -> tuple[Any, tuple[Any, ...]]:
    """Loss of a residual with derivatives of the network, its gradients, and the arrays it takes."""
    rng = np.random.default_rng(0)
    sizes = [2] + [width] * depth + [1]
    arrays = [rng.uniform(-1, 1, (points, 1)), rng.uniform(0, 1, (points, 1))]
    for n, m in itertools.pairwise(sizes):
        arrays += [rng.normal(size=(m, n)) / math.sqrt(n), rng.normal(size=(m,)) / 10]

    def step(x, t, *parameters):
        for p in (x, t, *parameters):
            p.requires_grad_()
        h = shape.cat(x, t, dim=1)
        for i in range(0, len(parameters), 2):
            h = matmul.linear(h, parameters[i], parameters[i + 1])
            h = trigonometric.tanh(h) if i < len(parameters) - 2 else h
        u_x, u_t = leafgrad.autograd.grad(total(h), (x, t), create_graph=True)
        (u_xx,) = leafgrad.autograd.grad(total(u_x), x, create_graph=True)
        f = u_t + h * u_x - (0.01 / math.pi) * u_xx
        loss = reduce.mean(f * f, dim=(0, 1))
        return loss.detach(), leafgrad.autograd.grad(loss, parameters[:-1])

    return step, tuple(a.astype(dtype) for a in arrays)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_pass_keeps_a_differentiated_step(dtype):
    step, arrays = burgers(7, 3, 11, dtype)
    graph = typecheck(program(step, *arrays))
    for pass_ in (*PASSES, *PASSES, *FINISH):
        graph = apply(pass_, graph, arrays, ulps=64)


def test_a_burgers_step_comes_down_to_few_passes_over_the_batch():
    """Per inner layer: 20 products, 9 sums, tanh, 12 matrix products; the counts at 8 layers are pinned from above."""
    step, arrays = burgers(20, 8, 50, "float64")
    graph = optimize(typecheck(program(step, *arrays)))
    typecheck(graph)
    wide = Counter(e.name for e in graph.equations if any(v.shape == (50, 20) for v in (*e.outputs, *e.values)))
    assert wide["tanh"] == 8
    assert wide["mul"] <= 157
    assert wide["add"] + wide["sub"] <= 69
    assert wide["matmul"] <= 90
    assert set(wide) == {"tanh", "mul", "add", "sub", "matmul", "permute", "sum"}


UNARY = (
    elementwise.neg,
    trigonometric.tanh,
    trigonometric.sin,
    elementwise.square,
    lambda x: x * 2.0,
    lambda x: x / 4,
    lambda x: 1 - x,
    lambda x: x + 0.0,
    lambda x: matmul.swap(matmul.swap(x)),
    lambda x: shape.expand(reduce.sum(x, dim=(0,), keepdim=True), shape=(4, 4)),
    lambda x: shape.expand(reduce.mean(x, dim=(1,), keepdim=True), shape=(4, 4)),
    lambda x: matmul.swap(x),
    lambda x: full(x, 0.5) * x,
    lambda x: joined(columns(x, 2, 4), columns(x, 0, 2)),
    lambda x: x * x[:1],
    lambda x: x * x[:, 1:2],
    lambda x: spread(columns(x, 1, 3), 0, 4),
    lambda x: x.clone(),
    lambda x: where(x > 0, x, 0),
    lambda x: where(x > 0, 0, -x * 2.0),
)
BINARY = (
    elementwise.add,
    elementwise.sub,
    elementwise.mul,
    matmul.matmul,
    lambda x, y: joined(x[:, :1], y[:, 1:]),
    lambda x, y: x * y[:1] - y[:, :1] * x,
    lambda x, y: x[:1] * y[:, 2:3],
    lambda x, y: x[:1] - y[:, 2:3],
    lambda x, y: where(x[:1] > 0, where(x[:1] > 0, x[:1], y), 0) + y,
    lambda x, y: where(x > 0, y[1:2], 0) - where(x > 0, 0, y),
    lambda x, y: matmul.matmul(x[:, :1], y[:1]),
    lambda x, y: matmul.matmul(x * y[:1], y) + matmul.matmul(x * 0.5, y),
    lambda x, y: spread(x[:, :2], 0, 4) + spread(y[:, 1:3], 2, 4),
    lambda x, y: matmul.matmul(spread(x[:, :2], 1, 4), y),
    lambda x, y: x * total(y) - y * total(x),
    lambda x, y: x - (y + x) * 2.0,
    lambda x, y: matmul.contract(many(x), many(y)) * 0.1,
    lambda x, y: matmul.contract(many(x * y[:1]), many(x[:, :1] * 2.0 - y)) * 0.1,
    lambda x, y: matmul.contract(shape.expand(many(x)[:1], shape=(2, 2, 4)), many(y)) * 0.2,
    lambda x, y: matmul.contract(spread(x[:, :2], 1, 4).reshape(2, 2, 4), many(y)) * 0.2,
    lambda x, y: matmul.matmul(many(x * y[:, :1]), y).reshape(4, 4) * 0.3,
    lambda x, y: matmul.matmul(many(x) * many(y)[:1, :1], y * x[:, :1]).reshape(4, 4) * 0.3,
    lambda x, y: x + reduce.sum(many(x) * (many(y)[:1] * many(x)), dim=(0,)).reshape(1, 8)[:, 2:6] * 0.2,
    lambda x, y: y - reduce.sum(many(x) * y[:1], dim=(0, 1)) * 0.3,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(*map(st.integers, (0, 0, 0), (len(UNARY) + 2 * len(BINARY) - 1, 9, 9))), max_size=9))
def test_random_programs_with_two_derivatives(choices):
    """Any composite, its gradient and the gradient of that: the same numbers after all passes."""

    def step(x, y):
        x.requires_grad_()
        y.requires_grad_()
        pool = [x, y]
        for k, i, j in choices:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            z = UNARY[k](a) if k < len(UNARY) else BINARY[(k - len(UNARY)) % len(BINARY)](a, b)
            pool.append(trigonometric.tanh(z) if k % 3 == 0 else z)
        loss = total(trigonometric.sin(pool[-1]) * x)
        (g,) = leafgrad.autograd.grad(loss, x, create_graph=True)
        second = leafgrad.autograd.grad(total(g * g), (x, y), allow_unused=True)
        return [t.detach() for t in (loss, g, *second) if t is not None]

    arrays = array(4, 4) / 4, array(2, 8).reshape(4, 4) / 4
    graph = typecheck(program(step, *arrays))
    new = typecheck(optimize(graph))
    assert len(new) <= len(graph) + 12
    for a, b in zip(evaluate(graph, arrays), evaluate(new, arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * (1 + np.abs(a).max()))


def test_optimize_changes_nothing_the_second_time():
    step, arrays = burgers(5, 2, 9, "float64")
    once = optimize(program(step, *arrays))
    again = optimize(once)
    assert Counter(names(again)) == Counter(names(once))


def test_long_chains_need_no_recursion():
    def step(x):
        for _ in range(2000):
            x = x + 1.5
            x = x * trigonometric.sin(x)
        return x[1:2] + 1

    assert len(typecheck(optimize(program(step, A)))) > 6000


# ---- the type checker itself ----------------------------------------------------------------------------------------


def test_typecheck_names_the_equation_and_its_line():
    x = Value((3,), "float64", CPU)
    wrong = equation(elementwise.neg, (x,), Value((3,), "float32", CPU))
    with pytest.raises(CompileError, match=r"neg, from <test>:1: states float32 \(3,\).*gives float64 \(3,\)"):
        typecheck(Graph({x: Argument(0)}, (wrong,), wrong.outputs))
    failing = equation(matmul.matmul, (x, Value((4,), "float64", CPU)), Value((), "float64", CPU))
    with pytest.raises(CompileError, match="reads a value that nothing has made"):
        typecheck(Graph({x: Argument(0)}, (failing,), failing.outputs))
    both = {v: Argument(i) for i, v in enumerate(failing.values)}
    with pytest.raises(CompileError, match="fails on zeros"):
        typecheck(Graph(both, (failing,), failing.outputs))


def test_creating_equations_are_checked_on_their_device(device):
    from leafgrad.backends.place import place

    kind = leafgrad.zeros(2, device=device)
    where = place(kind._data)
    out = Value((2, 3), "float32", where)
    typecheck(Graph({}, (equation(create.full, (), out, shape=(2, 3), value=1.0, dtype="float32"),), (out,)))
