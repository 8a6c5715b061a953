"""All passes together: random programs, a differentiated step, and the type checker."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from compile.passes.graphs import (
    CPU,
    INF,
    NAN,
    A,
    W,
    apply,
    array,
    columns,
    equation,
    evaluate,
    full,
    joined,
    many,
    names,
    program,
    spread,
    total,
)
from hypothesis import given, settings, strategies as st
from typecheck import typecheck

import leafgrad
from leafgrad.compile.ir.graph import Graph, Value
from leafgrad.compile.ir.sources import Argument
from leafgrad.compile.passes import FINISH, PASSES, optimize
from leafgrad.errors import CompileError
from leafgrad.ops import create, elementwise, matmul, reduce, shape, trigonometric
from leafgrad.ops.select import where

TESTS = "compile.passes.*"


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


@settings(max_examples=80, deadline=None)
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
        for _ in range(600):
            x = x + 1.5
            x = x * trigonometric.sin(x)
        return x[1:2] + 1

    assert len(typecheck(optimize(program(step, A)))) > 1800


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
