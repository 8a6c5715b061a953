"""Points with several dimensions, and directions beside points: one loop, as for a matrix of points."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.autograd import grad
from leafgrad.compile.passes import optimize
from leafgrad.compile.schedule.schedule import Loop, schedule
from leafgrad.func import jet, vmap
from leafgrad.nn.functional import linear

pytestmark = pytest.mark.usefixtures("in_chunks")

F64 = leafgrad.float64
POINTS = 200


def case(*lead, features=3, width=5):
    leafgrad.manual_seed(0)
    shapes = (width, features), (width,), (width, width), (1, width)
    weights = [leafgrad.randn(*shape, dtype=F64).requires_grad_() for shape in shapes]
    return weights, leafgrad.randn(*lead, features, dtype=F64).requires_grad_()


def network(weights, x):
    """Layers that share a weight. (..., features) -> (...)"""
    first, bias, inner, last = weights
    h = leafgrad.tanh(linear(x, first, bias))
    h = leafgrad.tanh(linear(h, inner, bias)) + h @ inner * bias
    return linear(h, last)[..., 0]


def fit(weights, x):
    return network(weights, x)


def residual(weights, x):
    u = network(weights, x)
    (slopes,) = grad(u.sum(), x, create_graph=True)
    (second,) = grad(slopes[..., 0].sum(), x, create_graph=True)
    return second[..., 0] + slopes[..., 1] * u


def third(weights, x):
    u = network(weights, x)
    for _ in range(3):
        (slopes,) = grad(u.sum(), x, create_graph=True)
        u = slopes[..., 0]
    return u


def each_point(weights, x):
    return vmap(lambda x: network(weights, x))(x)


def each_row(weights, x):
    return vmap(vmap(lambda x: network(weights, x)), in_dims=-2, out_dims=-1)(x)


def laplacian(weights, x):
    n = x.shape[-1]
    directions = leafgrad.eye(n, dtype=x.dtype).reshape(n, *(1,) * (x.ndim - 1), n).expand(n, *x.shape)
    return jet(lambda x: network(weights, x), (x,), ([directions, None],), collapse=True)[1][1]


def curve(weights, x):
    return jet(lambda x: network(weights, x), (x,), ([x.cos(), None, None],))[1][2]


FORMS = fit, residual, third, each_point, each_row, laplacian, curve


def step(form, weights):
    return lambda x: grad((form(weights, x) ** 2).mean(), weights, materialize_grads=True)


@pytest.mark.parametrize("form", FORMS)
def test_there_is_one_loop_that_stores_nothing(form):
    weights, x = case(POINTS, 4)
    found = schedule(optimize(leafgrad.trace(step(form, weights), x)))
    loops = [s for s in found.stages if isinstance(s, Loop) and s.length == POINTS]
    assert len(loops) == 1
    assert not loops[0].stored
    assert not found.unchunked
    assert not found.given_up


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lead", [(POINTS, 3, 2), (3, POINTS), (POINTS, 0)], ids=str)
def test_gradients_are_those_of_each_point(form, lead):
    weights, x = case(*lead)
    expected = step(form, weights)(x)
    compiled = leafgrad.compile(step(form, weights), executor="numpy")
    for _ in range(3):
        found = compiled(x)
    for a, b in zip(found, expected, strict=True):
        assert leafgrad.allclose(a, b, rtol=1e-10, atol=1e-12, equal_nan=True)
    flat = x.detach().reshape(-1, x.shape[-1]).requires_grad_()
    if form not in (each_point, each_row) and 0 not in lead:
        for a, b in zip(expected, step(form, weights)(flat), strict=True):
            assert leafgrad.allclose(a, b, rtol=1e-10)


def test_a_matrix_on_the_left_that_all_points_share():
    leafgrad.manual_seed(0)
    a, x = leafgrad.randn(4, 3, dtype=F64).requires_grad_(), leafgrad.randn(POINTS, 3, 5, dtype=F64)

    def run(x):
        return grad(leafgrad.tanh(a @ x).sum(), [a])

    compiled = leafgrad.compile(run, executor="numpy")
    expected = sum(grad(leafgrad.tanh(a @ point).sum(), a)[0] for point in x)
    for _ in range(3):
        assert leafgrad.allclose(compiled(x)[0], expected, rtol=1e-10)
    assert not schedule(optimize(leafgrad.trace(run, x))).unchunked


def test_what_needs_a_dimension_beside_the_points_runs_in_the_loop():
    weights, x = case(POINTS, 4)

    def mixed(weights, x):
        h = linear(x, weights[0], weights[1])
        h = h.softmax(-1) + h.cumsum(-2) + h.mean(-2, keepdim=True) + h.transpose(-1, -2).sin().transpose(-1, -2)
        h = leafgrad.cat([h[..., :2], h[..., 2:].exp()], -1) * h[..., :1]
        return linear(leafgrad.tanh(h.reshape(POINTS, 20)).reshape(POINTS, 4, 5), weights[3])[..., 0]

    run = step(mixed, weights)
    compiled = leafgrad.compile(run, executor="numpy")
    for _ in range(3):
        for a, b in zip(compiled(x), run(x), strict=True):
            assert leafgrad.allclose(a, b, rtol=1e-10)
