"""Algebra, each rule before and after; sums of products, shared scales and settled signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compile.passes.graphs import (
    BIG,
    COLUMN,
    CUBE,
    INF,
    NAN,
    ROW,
    TALL,
    A,
    B,
    C,
    D,
    V,
    W,
    after,
    apply,
    array,
    columns,
    evaluate,
    full,
    joined,
    names,
    padded,
    program,
    spread,
    total,
)

import leafgrad
from leafgrad.compile.passes import (
    factor_sums,
    fold_constants,
    optimize,
    remove_dead,
    settle_signs,
    share_scales,
    simplify,
)
from leafgrad.ops import convert, elementwise, matmul, reduce, shape
from leafgrad.ops.select import where
from leafgrad.ops.trigonometric import tanh_slope
from leafgrad.tensor.view import write_view

TESTS = "compile.passes.rules.* compile.passes.settle_signs compile.passes.share_scales"

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
    "x / 4": (lambda x, y: x / 4, ["div"]),
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
    "mean": (lambda x, y: reduce.mean(x, dim=(0,)), ["sum", "div"]),
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
    "one column of zeros": (
        lambda x, y, w: matmul.matmul(shape.unslice(x[:, 0], at=((0, 4, 1), 1), shape=(4, 3)), w),
        ["slice", "slice", "mul"],
    ),
    "a new dimension in zeros": (
        lambda x, y, w: shape.unslice(x, at=(None, (0, 4, 1)), shape=(4, 3)) * y,
        ["mul"],
    ),
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


@pytest.mark.parametrize(
    "function",
    [lambda x: x * 60000.0 * 2, lambda x: x / 3e4 / 3, lambda x: (x * 0.001) * 0.001 * 3, lambda x: -x / 1e6 * 5],
)
def test_factors_that_overflow_in_float16_stay_apart(function):
    x = leafgrad.tensor([1.0, -60000.0, 0.0, 3e-3], dtype=leafgrad.float16)
    run = leafgrad.compile(function, executor="replay")
    with np.errstate(all="ignore"):
        for _ in range(2):
            np.testing.assert_allclose(run(x).numpy(), function(x).numpy(), rtol=2e-3)
