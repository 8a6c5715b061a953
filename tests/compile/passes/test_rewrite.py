"""Dead code, common subexpressions and constants."""

from __future__ import annotations

import numpy as np
import pytest
from compile.passes.graphs import CPU, INF, NAN, A, B, after, apply, array, equation, full, names, program, total
from typecheck import typecheck

import leafgrad
from leafgrad import backends
from leafgrad.compile.ir.graph import Graph, Value
from leafgrad.compile.passes import fold_constants, optimize, remove_dead
from leafgrad.compile.passes.rewrite import rewrite
from leafgrad.ops import convert, elementwise, random, shape, trigonometric
from leafgrad.ops.define import op


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


FOLDED = {
    "op of constants": (lambda x: trigonometric.cos(full(x, 1.0)) + full(x, 2.0), ["full"]),
    "rearranged": (lambda x: shape.expand(shape.reshape(full(x, 1.0, 3), shape=(1, 3)), shape=(4, 3)) * 2.0, ["full"]),
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


def test_a_rule_whose_op_does_not_tell_what_it_makes_leaves_the_equation():
    """The sum over k of a[k] b[n, k] would be a product of matrices, which does not tell its shape for integers."""
    a, b = leafgrad.tensor([3, 4, 5]), leafgrad.tensor([[1, 2, 3], [4, 5, 6]])
    for x, y in ((a, b), (a.double(), b.double())):
        step = leafgrad.compile(lambda x, y: (x * y).sum(-1))
        assert step(x, y).tolist() == [26, 62]
        assert step(x, y).dtype is x.dtype
