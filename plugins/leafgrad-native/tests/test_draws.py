"""Random zeros and ones in C: the bits of eager mode, wherever and by however many threads they are drawn."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.backends.numpy import philox_bernoulli
from leafgrad.lowering import kernels
from leafgrad.lowering.kernels import Draw, bound
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def compiled(step, *given):
    found = leafgrad.compile(step, executor="native")
    found(*given)
    return found


def same_as_eager(step, *given, rtol=0.0):
    """The compiled step, after calls that give what eager mode does with the same seed."""
    c = compiled(step, *given)
    for seed in range(3):
        leafgrad.manual_seed(seed)
        expected = step(*given)
        state = leafgrad.get_rng_state()
        leafgrad.manual_seed(seed)
        for got, want in zip(c(*given), expected, strict=True):
            np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=rtol, atol=rtol)
        np.testing.assert_array_equal(leafgrad.get_rng_state(), state)
    assert "refused" not in c.explain()
    return c


def drawn(step):
    """Whether each draw of a compiled step is in a loop over the batch."""
    plan = step._calls.runner().program.plan
    return [s.loop is not None for s in plan.segments for k in s.kernels if isinstance(k, Draw)]


@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.float64])
@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (1001,), (3, 5), (130, 3), (300, 2, 2)], ids=str)
def test_bits_are_those_of_eager(shape, dtype):
    x = leafgrad.zeros(shape, dtype=dtype)
    c = same_as_eager(lambda x: (x + leafgrad.bernoulli(x, 0.3), leafgrad.bernoulli(x, 0.7)), x)
    assert drawn(c)
    assert "NumPy:" not in c.explain()


@pytest.mark.parametrize("p", [0.0, 1e-9, 2**-24, 0.1, 0.5, 1 - 2**-24, 1 - 1e-9, 1.0])
def test_the_bound_of_a_probability_is_numpys(p):
    numbers = np.unique(np.clip([0, 1, p * 2**24 - 1, p * 2**24, p * 2**24 + 1, 2**24 - 1], 0, 2**24 - 1).astype(int))
    smaller = (numbers / 2**24).astype(np.float32) < p
    np.testing.assert_array_equal(numbers < bound(p), smaller)


def perceptron(rows, dtype=leafgrad.float32):
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 30), nn.ReLU(), nn.Dropout(0.3), nn.Linear(30, 9), nn.Tanh(), nn.Dropout(0.5))
    net.to(dtype)
    x, y = leafgrad.randn(rows, 5, dtype=dtype), leafgrad.randint(0, 9, (rows,))

    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        return loss.detach(), *leafgrad.autograd.grad(loss, list(net.parameters()))

    return step, (x, y)


@pytest.mark.parametrize("rows", [7, 64, 65, 3000])
def test_dropout_is_made_in_the_loop_that_reads_it(rows):
    step, given = perceptron(rows)
    c = same_as_eager(step, *given, rtol=1e-5)
    assert drawn(c) == [rows >= 64] * 2
    assert "NumPy:" not in c.explain()


def test_any_number_of_threads_gives_the_same_bits():
    step, given = perceptron(5000)
    c = compiled(step, *given)
    found = []
    before = leafgrad.get_num_threads()
    try:
        for count in (1, 2, 3):
            leafgrad.set_num_threads(count)
            leafgrad.manual_seed(1)
            found.append([t.numpy().tobytes() for t in c(*given)])
    finally:
        leafgrad.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_draws_of_c_and_of_numpy_keep_their_order():
    x = leafgrad.randn(300, 4, dtype=leafgrad.float64)

    def step(x):
        first = leafgrad.bernoulli(x, 0.5)
        noise = leafgrad.randn(4, dtype=x.dtype)
        h = leafgrad.tanh(x * first)
        for _ in range(12):
            h = leafgrad.sin(h) * 1.5 + x * noise
        total = h.sum(0)
        second = leafgrad.bernoulli(leafgrad.sigmoid(total))  # waits for the sum over the batch
        third = leafgrad.bernoulli(x, 0.2)
        return (
            noise,
            second,
            leafgrad.rand(3),
            (h * third).sum(0),
            (h.cos() * first).sum(),
            leafgrad.bernoulli(total, 0.5),
        )

    same_as_eager(step, x, rtol=1e-11)


def test_generators_of_the_callers():
    x, own = leafgrad.randn(200, 3), leafgrad.Generator().manual_seed(4)
    c = compiled(lambda x: (leafgrad.bernoulli(x, 0.5) * x, leafgrad.bernoulli(x, 0.5, generator=own) * x), x)
    for _ in range(2):
        state = own.get_state()
        got = c(x)[1]
        after = own.get_state()
        own.set_state(state)
        np.testing.assert_array_equal(got.numpy(), (leafgrad.bernoulli(x, 0.5, generator=own) * x).numpy())
        np.testing.assert_array_equal(own.get_state().numpy(), after.numpy())


def test_a_draw_that_nobody_reads_still_moves_the_generator():
    x = leafgrad.randn(200, 3)

    def step(x):
        leafgrad.bernoulli(x, 0.5)
        return leafgrad.exp(x) * 2, leafgrad.rand(2)

    same_as_eager(step, x, rtol=1e-6)


def test_a_draw_of_nothing_takes_one_key_as_in_eager():
    x = leafgrad.randn(200, 3)

    def step(x):
        nothing = leafgrad.bernoulli(leafgrad.ones(0, 3), 0.5)
        return nothing, leafgrad.bernoulli(x, 0.5) * x, leafgrad.rand(2)

    same_as_eager(step, x)


def test_wrong_bits_are_refused(monkeypatch):
    monkeypatch.setattr(kernels, "bound", lambda p: math.ceil(p * 2**23))
    x = leafgrad.ones(40, 3)
    c = leafgrad.compile(lambda x: leafgrad.bernoulli(x, 0.625) * x, executor="native")
    leafgrad.manual_seed(2)
    with pytest.warns(RuntimeWarning, match="differently from NumPy") as caught:
        got = c(x)
    os.unlink(str(caught[0].message).rpartition("file ")[2].partition("; ")[0])
    leafgrad.manual_seed(2)
    np.testing.assert_array_equal(got.numpy(), leafgrad.bernoulli(x, 0.625).numpy())
    leafgrad.manual_seed(2)
    np.testing.assert_array_equal(c(x).numpy(), got.numpy())
    assert "refused" in c.explain()


def test_numpy_draws_what_the_paper_says():
    """Philox 4x64-10 written out with Python's integers."""

    def block(key, counter):
        a, b, c, d, k, m, mask = counter, 0, 0, 0, key, 0, 2**64 - 1
        for _ in range(10):
            x, y = a * 0xD2E7470EE14C6C93, c * 0xCA5A826395121157
            a, b, c, d = (y >> 64) ^ b ^ k, y & mask, (x >> 64) ^ d ^ m, x & mask
            k, m = (k + 0x9E3779B97F4A7C15) & mask, (m + 0xBB67AE8584CAA73B) & mask
        return [half >> 8 for word in (a, b, c, d) for half in (word & 0xFFFFFFFF, word >> 32)]

    for key in (0, 1, 2**64 - 1, 0x0123456789ABCDEF):
        numbers = np.array([n for counter in (1, 2, 3) for n in block(key, counter)]) / 2**24
        np.testing.assert_array_equal(philox_bernoulli(key, 0.4, (4, 6), "float64").ravel(), numbers < np.float32(0.4))
