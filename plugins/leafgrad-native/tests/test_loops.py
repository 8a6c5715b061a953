"""Which elementwise equations share a loop over whole arrays."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.lowering.kernels import Nest
from leafgrad.lowering.lowering import LARGEST_NEST, LONGEST
from leafgrad_native.compiler import NoCompiler, compiler

TESTS = "lowering.strides"

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

WIDTH = 97


def loops(step, *shape):
    """The equations of each loop over arrays of this shape, by their names."""
    kernels = [k for s in step._calls.runner().program.plan.segments for k in s.kernels if isinstance(k, Nest)]
    return [[e.name for e in k.equations] for k in kernels if k.shape == shape]


def run(step, *given):
    """Compiled to C, and equal to eager."""
    compiled = leafgrad.compile(step, executor="native")
    compiled(*given)
    for ours, right in zip(compiled(*given), step(*given), strict=True):
        np.testing.assert_allclose(ours.numpy(), right.numpy(), rtol=1e-12)
    assert "refused" not in compiled.explain()
    return compiled


def normal(*shape):
    return leafgrad.tensor(np.random.default_rng(0).normal(size=shape), dtype=leafgrad.float64)


@pytest.mark.parametrize("kind", [optim.Adam, optim.RMSprop, optim.Adagrad])
def test_an_optimizers_update_is_one_loop(kind):
    def trained(how):
        leafgrad.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))
        optimizer = kind(model.parameters(), lr=0.01)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        step = how(step)
        losses = [float(step(x)) for x in leafgrad.ones(6, 3, 5).unbind(0)]
        return step, losses, [p.detach().numpy() for p in model.parameters()]

    step, losses, parameters = trained(lambda f: leafgrad.compile(f, executor="native"))
    _, expected, others = trained(lambda f: f)
    assert losses == pytest.approx(expected, rel=1e-5, abs=1e-7)
    for ours, right in zip(parameters, others, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-6)
    assert len(loops(step, 5 * 7 + 7 + 7 + 1)) == 1


def test_single_elements_do_not_part_a_loop():
    def step(x, a):
        y = x * a
        b = leafgrad.expm1(a * 0.5)
        c = 1 / (b + 2)
        return y, y * c + leafgrad.exp(x), c

    (found,) = loops(run(step, normal(WIDTH), normal(1)[0]), WIDTH)
    assert sorted(found) == ["add", "exp", "mul", "mul"]


def test_a_single_element_that_follows_from_arrays_comes_after_them():
    def step(x):
        y = x * 2.0
        s = y.sum()
        return y * s, leafgrad.exp(s)

    run(step, normal(WIDTH))


def test_what_one_equation_reads_is_computed_there_and_once():
    def step(x, y):
        u = leafgrad.exp(x * y)
        v = leafgrad.sin(leafgrad.tanh(x))
        return u, u * leafgrad.sqrt(leafgrad.exp(v))

    names = [name for loop in loops(run(step, normal(WIDTH), normal(WIDTH)), WIDTH) for name in loop]
    assert sorted(names) == ["exp", "exp", "mul", "mul", "sin", "sqrt", "tanh"]


def test_what_several_loops_read_is_computed_once_unless_it_is_little():
    def step(x):
        u = leafgrad.exp(leafgrad.tanh(x)) * 2.0  # little; what it is of is not
        total = u.sum()
        return u * total, leafgrad.sin(u) + leafgrad.cos(u * total).sum()

    names = [name for loop in loops(run(step, normal(WIDTH)), WIDTH) for name in loop]
    assert names.count("tanh") == names.count("exp") == 1


def test_long_chains_end():
    def step(x):
        for _ in range(60):
            x = leafgrad.sin(x) + 0.1
        return (x,)

    assert max(map(len, loops(run(step, normal(WIDTH)), WIDTH))) <= LARGEST_NEST + LONGEST
