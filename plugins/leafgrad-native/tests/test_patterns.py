"""Ops of authors that say by a rule how they become C."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leafgrad
from leafgrad.errors import CompileError
from leafgrad.ops.reduce import sum as total
from leafgrad_native.compiler import NoCompiler, compiler

TESTS = "lowering.pattern lowering.patterns"

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


@leafgrad.op("along", "float")
def row_softmax(xp, x, *, dim, sharpness=1.0):
    y = xp.exp(sharpness * (x - x.max(axis=dim, keepdims=True)))
    return y / y.sum(axis=dim, keepdims=True)


row_softmax.vjp(x=lambda g, out, *, dim, sharpness: sharpness * out * (g - total(g * out, dim=dim, keepdim=True)))


@row_softmax.lower("native")
def _(c, equation):
    return c.along(
        """
        real top = x(0), total = 0;
        for (long i = 1; i < n; i++) top = maximum(top, x(i));
        for (long i = 0; i < n; i++) total += out(i) = exp(sharpness * (x(i) - top));
        for (long i = 0; i < n; i++) out(i) /= total;
        """,
        equation.params["dim"],
    )


@leafgrad.op("reduction", "float")
def weighted(xp, x, y, *, dim, keepdim=True):
    return (x * y).sum(axis=dim, keepdims=keepdim)


weighted.lower(
    "native",
    lambda c, e: c.along("real s = 0; for (long i = 0; i < n; i++) s += x(i) * y(i); out(0) = s;", e.params["dim"]),
)


def lowered(step):
    """The ops that the last program runs as C."""
    plan = step._calls.runner().program.plan
    return {e.name for e, pattern in plan.patterns.items() if pattern is not None}


def compiled(function, *arguments):
    step = leafgrad.compile(function, executor="native")
    for _ in range(3):
        found = step(*arguments)
    return step, found


@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.float64])
@pytest.mark.parametrize("shape", [(5, 7), (300, 6), (3, 4, 5), (9,)])
@pytest.mark.parametrize("dim", [0, -1])
def test_lines_of_an_array(shape, dim, dtype):
    x = leafgrad.randn(*shape, dtype=dtype, generator=leafgrad.Generator().manual_seed(0))

    def function(x):
        return row_softmax(x * 2, dim=dim, sharpness=0.5) + 1

    step, found = compiled(function, x)
    assert "row_softmax" in lowered(step)
    np.testing.assert_allclose(found.numpy(), function(x).numpy(), rtol=1e-5 if dtype is leafgrad.float32 else 1e-13)


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_lines_of_transposed_and_broadcast_arrays(dim, keepdim):
    generator = leafgrad.Generator().manual_seed(1)
    x, y = leafgrad.randn(6, 4, generator=generator), leafgrad.randn(4, 1, generator=generator)

    def function(x, y):
        return weighted(x.T * 1.5, y.expand(4, 6), dim=dim, keepdim=keepdim)

    step, found = compiled(function, x, y)
    assert "weighted" in lowered(step)
    np.testing.assert_allclose(found.numpy(), function(x, y).numpy(), rtol=1e-5)


def test_gradients_and_per_sample_calls_run_as_c():
    x = leafgrad.randn(200, 5, generator=leafgrad.Generator().manual_seed(2)).requires_grad_()

    def function(x):
        y = leafgrad.func.vmap(lambda row: row_softmax(row, dim=-1))(x)
        return leafgrad.autograd.grad((y * y).sum(), x)[0]

    step, found = compiled(function, x)
    assert "row_softmax" in lowered(step)
    np.testing.assert_allclose(found.numpy(), function(x).detach().numpy(), rtol=1e-4, atol=1e-6)


def test_a_wrong_rule_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "1")

    @leafgrad.op("along", "float", name="wrong_lines")
    def wrong(xp, x, *, dim):
        return x - x.max(axis=dim, keepdims=True)

    wrong.lower("native", lambda c, e: c.along("for (long i = 0; i < n; i++) out(i) = x(i);", e.params["dim"]))
    x = leafgrad.arange(12.0).reshape(3, 4)
    with pytest.warns(
        RuntimeWarning, match="op 'wrong_lines', .*: its rule for native, from .*test_patterns.*computes"
    ):
        _, found = compiled(lambda x: wrong(x + 1, dim=1) * 2, x)
    np.testing.assert_allclose(found.numpy()[0], [-6, -4, -2, 0])


@pytest.mark.parametrize("name", ["sum", "matmul", "softmax", "add", "where", "cat", "gather"])
def test_an_op_may_have_the_name_of_one_of_leafgrads(name):
    @leafgrad.op("elementwise", name=name, c="2 * x - y")
    def mine(xp, x, y):
        return 2 * x - y

    x, y = leafgrad.randn(200, 3), leafgrad.randn(3)

    def function(x, y):
        return mine(x.tanh() + 1, y).sum(1) * 2

    step, found = compiled(function, x, y)
    assert name in lowered(step)
    np.testing.assert_allclose(found.numpy(), function(x, y).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("trait", "forward", "rule"),
    [
        (
            "along",
            lambda xp, x, *, dim=-1: x * 1,
            lambda c, e: c.along("for (long i = 0; i < n; i++) out(i) = x(i);", -1),
        ),
        ("reduction", lambda xp, x, *, dim=-1, keepdim=False: x.sum(axis=dim), lambda c, e: c.reduction("+", -1)),
    ],
)
def test_a_dimension_counted_from_the_end(trait, forward, rule):
    """It once was an address in front of the arrays."""
    here = leafgrad.op(trait, "float", name="from_the_end")(forward)
    here.lower("native", rule)
    x = leafgrad.rand(300, 4)

    def step(x):
        return here(leafgrad.tanh(x)) * 2

    compiled = leafgrad.compile(step, executor="native")
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).numpy(), step(x).numpy(), rtol=1e-6)
    assert "C: 3 equations" in compiled.explain()


@pytest.mark.parametrize(
    ("rule", "match"),
    [
        (lambda c, e: "out(0) = 1;", r"expected what a function of c returns \(c.along, .*\), or None, got 'out"),
        (lambda c, e: c.nothing(), "AttributeError: .*nothing"),
        (lambda c, e: c.along(3, -1), "along: code: expected C statements as a string, got int"),
        (lambda c, e: c.along("out(0) = 1;", 7), "dim: expected a dimension from -2 to 1, got 7"),
    ],
)
def test_what_is_wrong_with_a_rule(rule, match):
    @leafgrad.op("along", "float", name="wrong_rule")
    def here(xp, x, *, dim=-1):
        return x * 1

    here.lower("native", rule)
    step = leafgrad.compile(lambda x: here(leafgrad.tanh(x)) * 2, executor="native")
    where = f"{re.escape(__file__)}:\\d+"
    with pytest.raises(CompileError, match=f"op 'wrong_rule', lower rule for 'native' from {where}: .*{match}"):
        step(leafgrad.rand(30, 4))
