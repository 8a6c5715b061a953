"""Elementwise ops with several outputs: every derivative, under vmap and compiled, as of ops with one output each."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import func, op


@op("elementwise", "float")
def sincos(xp, x, y=None):
    """Sine and cosine of x y."""
    z = x if y is None else x * y
    return xp.sin(z), xp.cos(z)


sincos.vjp(
    x=lambda g, out, y: (g[0] * out[1] - g[1] * out[0]) * (1 if y is None else y),
    y=lambda g, out, x: (g[0] * out[1] - g[1] * out[0]) * x,
)


@op("elementwise", "float")
def parts(xp, x):
    """What is before and behind the point, and whether there is something before it."""
    whole = xp.trunc(x)
    return x - whole, whole, whole != 0


parts.vjp(x=lambda g: g[0])


@op("bilinear")
def products(xp, x, y):
    """x y and y x, of matrices."""
    return x @ y, y @ x


products.vjp(x=lambda g, y: g[0] @ y.mT + y.mT @ g[1], y=lambda g, x: x.mT @ g[0] + g[1] @ x.mT)


def separate(x, y):
    return leafgrad.sin(x * y), leafgrad.cos(x * y)


def cubes(function):
    def scalar(*args):
        a, b = function(*args)
        return (a * b + a * a * b).sum()

    return scalar


def both(function):
    """Values, tangents and second derivatives, in one result."""

    def step(x, y):
        a, b = function(x, y)
        c, d = func.jvp(function, (x, y), (y * x, y))[1]
        e, f = func.jvp(lambda x: func.jvp(function, (x, y), (x, y))[1], (x,), (x,))[1]
        return a * b + c * d + e * f + func.grad(cubes(function))(x, y)

    return step


def same(found, wanted):
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-12, atol=1e-12)


def draw(*shapes):
    rng = np.random.default_rng(0)
    return [leafgrad.tensor(rng.normal(size=s)) for s in shapes]


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 1), (2, 3)), ((), ())], ids=str)
def test_derivatives(shapes):
    x, y = draw(*shapes)
    if x.shape == y.shape:
        same(both(sincos)(x, y), both(separate)(x, y))
    for got, want in zip(func.jacfwd(sincos, 1)(x, y), func.jacrev(separate, 1)(x, y), strict=True):
        same(got, want)
    found = func.jvp(sincos, (x, y), (y.sum() * x, y))[1]
    for got, want in zip(found, func.jvp(separate, (x, y), (y.sum() * x, y))[1], strict=True):
        same(got, want)
    hessians = func.hessian(cubes(sincos), (0, 1))(x, y), func.hessian(cubes(separate), (0, 1))(x, y)
    for row, wanted in zip(*hessians, strict=True):
        for got, want in zip(row, wanted, strict=True):
            same(got, want)


def test_one_of_the_outputs():
    (x,) = draw((3,))
    same(func.jvp(lambda x: sincos(x)[1], (x,), (x,))[1], -leafgrad.sin(x) * x)
    fraction, whole, _ = func.jvp(parts, (3 * x,), (x,))[1]
    same(fraction, x)
    same(whole, 0 * x)


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (-1, 1)], ids=str)
def test_under_vmap(dims):
    x, y = draw((3, 3), (3, 3) if dims[1] is not None else (3,))
    same(func.vmap(both(sincos), dims)(x, y), func.vmap(both(separate), dims)(x, y))
    x, y = draw((2, 3, 3), (2, *y.shape))
    nested = [func.vmap(func.vmap(both(function), dims)) for function in (sincos, separate)]
    same(nested[0](x, y), nested[1](x, y))


def test_compiled():
    x, y = draw((4, 3), (4, 3))
    for step in (both(sincos), func.vmap(both(sincos))):
        compiled, wanted = leafgrad.compile(step), step(x, y)
        for _ in range(4):
            same(compiled(x, y), wanted)
        same(compiled(x + 1, y), step(x + 1, y))


def test_a_bilinear_op_with_two_outputs():
    x, y = draw((3, 3), (3, 3))
    for got, want in zip(func.jvp(products, (x, y), (y, x))[1], (y @ y + x @ x, x @ x + y @ y), strict=True):
        same(got, want)


def test_several_views_are_refused():
    halves = op("view", name="halves")(lambda xp, x: (x[:1], x[1:]))
    with pytest.raises(leafgrad.errors.OpDefinitionError, match="'view' is for one result, but its forward gives 2"):
        halves(leafgrad.ones(2))
