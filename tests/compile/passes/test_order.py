"""What a program says is computed in the order in which it says it; only derivatives are regrouped."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad

TESTS = "compile.passes.rules.arithmetic compile.passes.factor_sums"


def two_sum(a, b):
    """a + b and what it lost (Knuth)."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def two_product(a, b):
    """a b and what it lost (Dekker)."""

    def split(x):
        c = 134217729.0 * x
        high = c - (c - x)
        return high, x - high

    p, (ah, al), (bh, bl) = a * b, split(a), split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def norms(x):
    y = x * (1 / x.abs().amax(1, keepdim=True))  # so that no square overflows
    return (y * y).sum(1).sqrt()


def drawn(*shape, scale=1.0, dtype="float64"):
    return leafgrad.from_numpy((np.random.default_rng(0).standard_normal(shape) * scale).astype(dtype))


SCALE, TINY = leafgrad.tensor(4096.0).half(), drawn(9, 1, scale=1e-200)
SAID = {
    "compensated sum": (two_sum, drawn(3000), drawn(3000, scale=1e-8)),
    "compensated product": (two_product, drawn(3000), drawn(3000) + 1),
    "rounding by a large number": (lambda x: (x + 1.5 * 2**52) - 1.5 * 2**52, drawn(3000, scale=9)),
    "whole quotients": (lambda x: (x / 49).floor(), leafgrad.arange(3000, dtype=leafgrad.float64)),
    "norms of large rows": (norms, drawn(40, 3, scale=1e20, dtype="float32")),
    "norms of small rows": (norms, drawn(40, 3, scale=1e-25, dtype="float32")),
    "a scale between": (lambda x, s: (x * s * x).sum(), drawn(99, scale=1e-4, dtype="float16"), SCALE),
    "a product of three": (lambda x: ((x * 0.0625) * x).amax(), drawn(99, scale=200, dtype="float16")),
    "chains of matrices": (lambda a, b, c: (a @ b) @ c, drawn(9, 9) * 1e200, drawn(9, 9) * 1e-200, TINY),
    "2 (3 x)": (lambda x: 2 * (0.1 * x), drawn(99)),
    "a w + b w": (lambda a, b, w: a * w + b * w, drawn(99), drawn(99) + 1, drawn(99) - 1),
    "x + x + x": (lambda x: x + x + x, drawn(99)),
}


@pytest.mark.parametrize("executor", ["numpy", "native"])
@pytest.mark.parametrize("name", SAID)
def test_what_a_program_says_is_computed_as_it_says(name, executor):
    function, *args = SAID[name]
    step = leafgrad.compile(function, executor=executor, closed=True)
    for _ in range(3):
        found = step(*args)
    several = isinstance(found, tuple)
    for a, b in zip(found if several else [found], function(*args) if several else [function(*args)], strict=True):
        if name in ("chains of matrices", "a scale between", "norms of large rows", "norms of small rows"):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3 if b.dtype is leafgrad.float16 else 1e-6)
        else:
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        assert bool((b != 0).any())


@pytest.mark.parametrize("executor", ["numpy", "native"])
def test_a_difference_of_equal_products_is_zero_whatever_was_seen_first(executor):
    step = leafgrad.compile(lambda a, b: (a * a - b * b).sqrt(), executor=executor, closed=True)
    for _ in range(3):
        step(drawn(5000).abs() + 9, drawn(5000))
    assert step(drawn(5000), drawn(5000)).eq(0).all()
