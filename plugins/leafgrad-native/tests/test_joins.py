"""Arrays that are joined as C: their parts are made in place where that is possible, and copied where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as drawn, settings, strategies as st

import leafgrad
from leafgrad.lowering.kernels import Copy
from leafgrad_native.compiler import NoCompiler, compiler

TESTS = "lowering.joins"

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

BATCH = 130


def arrays(results):
    return [t.detach().numpy().copy() for t in (results if isinstance(results, tuple) else (results,))]


def copies(step):
    """How many parts are copied into their join."""
    segments = step._calls.runner().program.plan.segments
    kernels = [k for s in segments for k in s.kernels if isinstance(k, Copy) and k.equation is not None]
    return sum(k.maker.name in ("cat", "pack") for k in kernels)


def check(step, *given):
    """Run twice as C, compare with eager; how many parts were copied."""
    c = leafgrad.compile(step, executor="native")
    c(*given)
    want = arrays(step(*given))
    for _ in range(2):
        for ours, right in zip(arrays(c(*given)), want, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-12, atol=1e-13)
    assert "NumPy:" not in c.explain()
    assert "refused" not in c.explain()
    return copies(c)


def normal(*shape, grad=False):
    rng = np.random.default_rng(sum(shape))
    return leafgrad.tensor(rng.normal(size=shape), dtype=leafgrad.float64, requires_grad=grad)


# ---- in a loop over a batch -----------------------------------------------------------------------------------------


def test_coordinates_are_loaded_in_place():
    w = normal(3, 5)
    assert check(lambda x, y, t: leafgrad.tanh(leafgrad.cat([x, y, t], 1) @ w), *(normal(BATCH, 1) for _ in "xyt")) == 0


def test_results_of_every_kernel_are_made_in_place():
    w, classes = normal(3, 2), leafgrad.tensor(np.arange(BATCH) % 3)

    def step(x, at):
        picked = leafgrad.gather(x, 1, at[:, None])
        parts = [x.sin(), x @ w, x.sum(1, keepdim=True), leafgrad.softmax(x, 1), x.logsumexp(1, keepdim=True), picked]
        return leafgrad.cat(parts, 1) * 2

    assert check(step, normal(BATCH, 3), classes) == 0


def test_derivatives_through_a_join():
    w = normal(2, 8, grad=True)

    def step(x, t):
        u = leafgrad.tanh(leafgrad.cat([x, t], 1) @ w).sum(1)
        u_x, u_t = leafgrad.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = leafgrad.autograd.grad(u_x.sum(), x, create_graph=True)
        loss = (leafgrad.cat([u_x, u_t, u_xx, x * t], 1) ** 2).mean()
        return loss, *leafgrad.autograd.grad(loss, (w, x, t))

    check(step, normal(BATCH, 1, grad=True), normal(BATCH, 1, grad=True))


@pytest.mark.parametrize("dim", [1, 2])
def test_gaps_are_filled_by_copies(dim):
    """Parts of a join along an inner dimension do not lie in order."""
    count = check(lambda x, y: leafgrad.cat([x.sin(), y.cos()], dim) + 1, normal(BATCH, 2, 3), normal(BATCH, 2, 3))
    assert count == (0 if dim == 1 else 2)


# ---- on whole arrays, and along the batch ---------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "count"), [(0, 0), (1, 2), (2, 2)])
def test_whole_arrays(dim, count):
    assert check(lambda x, y: leafgrad.cat([x.sin(), y.cos()], dim) + 1, normal(4, 2, 3), normal(4, 2, 3)) == count


def test_parts_of_a_batch():
    w = normal(3, 4, grad=True)

    def step(x, y):
        h = leafgrad.cat([leafgrad.tanh(x) * 2, leafgrad.exp(y) + 1], 0)
        loss = ((h @ w) ** 2).mean()
        return loss, *leafgrad.autograd.grad(loss, w)

    check(step, normal(BATCH, 3), normal(70, 3))


def test_nested_joins():
    def outer_in_order(x, y, z):
        inner = leafgrad.cat([x.sin(), y.cos()], 2)
        return leafgrad.cat([inner * 2, z.exp()], 1) + 1, leafgrad.cat([inner, z], 1).sum(2)

    shapes = (BATCH, 2, 1), (BATCH, 2, 1), (BATCH, 1, 2)
    assert check(outer_in_order, *(normal(*s) for s in shapes)) == 2  # the inner parts, into the memory of the outer

    def all_in_order(x, y):
        inner = leafgrad.cat([x.sin(), y.cos()], 0)
        return leafgrad.cat([inner, x.exp()], 0) * 2, inner.sum(0)

    assert check(all_in_order, normal(3, 4), normal(2, 4)) == 0


def test_views_are_copied():
    def step(x, y):
        return leafgrad.cat([(x @ x.t()).reshape(9, 1), y.exp()], 0) * 2

    assert check(step, normal(3, 4), normal(2, 1)) == 1


def test_parts_that_others_have_a_claim_to():
    def twice(x):
        y = x.sin()
        return leafgrad.cat([y, y, x], 0) + 1, leafgrad.cat([x, y], 0)

    assert check(twice, normal(3, 2)) == 4  # x is given, and y can be in one place

    def result(x):
        y = x.sin()
        return y, leafgrad.cat([y, x.cos()], 0)

    assert check(result, normal(3, 2)) == 1

    def seen(x):
        y = x.sin()
        z = leafgrad.cat([y, x.cos()], 0)
        return (y * 2).t(), z.t() @ z, (y + z[:3]).sum()

    assert check(seen, normal(3, 2)) == 0


def test_square_parts_are_read_along_both_axes():
    x = normal(BATCH, BATCH)
    check(lambda x: leafgrad.cat([x, x.sin()], 1).sum(1) + x.t().sum(1), x)


def test_vectors_of_an_optimizer():
    from leafgrad.ops.flat import pack

    def step(x, y):
        return pack(x.sin(), x @ y, y.sum(0), x) * 2

    assert check(step, normal(3, 2), normal(2, 3)) == 1  # x, which is given


# ---- lifetimes ------------------------------------------------------------------------------------------------------


def test_memory_of_a_join_is_kept_from_its_first_part_to_its_last_reader():
    def step(x):
        early = x.sin()
        y = x
        for _ in range(4):  # memory of others comes free and is given again
            y = leafgrad.tanh(y @ y.t()) @ x
        whole = leafgrad.cat([early, y.cos(), y.exp() * early], 0)
        for _ in range(3):
            y = leafgrad.tanh(y @ y.t()) @ x
        return whole * 2, y, (whole.t() @ whole)

    check(step, normal(6, 6))


@st.composite
def trees(draw):
    """A join of joins, of results and inputs: nested lists of numbers, each standing for a part."""
    return draw(st.recursive(st.integers(0, 4), lambda t: st.lists(t, min_size=1, max_size=3), max_leaves=8))


@settings(max_examples=10, deadline=None)
@drawn(trees(), st.sampled_from([(BATCH, 2), (3, 2), (1, 2)]), st.integers(0, 1), st.booleans())
def test_random_joins(tree, shape, dim, between):
    w = normal(2, 2)

    def step(x):
        y = x.sin()
        leaves = [lambda: x, lambda: y, lambda: x.cos() * y, lambda: x @ w, lambda: leafgrad.relu(y + x)]

        def build(t):
            if isinstance(t, int):
                return leaves[t]()
            joined = leafgrad.cat([build(b) for b in t], dim)
            return joined * 2 if between else joined

        whole = build([tree, 0])
        return whole + 1, y * 2, whole.sum(dim)

    check(step, normal(*shape))
