"""Forward mode of functions that write in place what derivatives read."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad

# PyTorch's forward mode warns about its own insides.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def result_written(x):
    y = x.tanh()
    y.add_(1)
    return y * y


def result_written_in_part(x):
    y = x.exp()
    y[0].mul_(y[1])
    return y.sin()


def argument_written(x):
    y = x * 1
    z = y.sin() * y[1]
    y.mul_(2)
    y[1] = y[0] * x[1]
    return y * z


def constant_written(x):
    c = x.detach() * 0 + 3
    y = x * c
    c.zero_()
    return y + c


def siblings_written(x):
    y = x * 1
    a, b = y.unbind(0)
    a.mul_(2)
    b.mul_(a)
    y.chunk(2)[0].exp_()
    return y * y


WRITING = [result_written, result_written_in_part, argument_written, constant_written, siblings_written]
each = pytest.mark.parametrize("function", WRITING)


def expected(t, function, x, step=1e-6):
    """The Jacobian by differences."""
    columns = [(function(x + e) - function(x - e)) / (2 * step) for e in t.eye(2, dtype=t.float64) * step]
    return t.stack(columns, 1).numpy()


@each
def test_tangents_are_of_the_values_of_their_time(t, function):
    x, v = t.tensor([0.3, -0.7], dtype=t.float64), t.tensor([1.0, 2.0], dtype=t.float64)
    jacobian = expected(t, function, x)
    np.testing.assert_allclose(t.func.jacfwd(function)(x).numpy(), jacobian, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(t.func.jvp(function, (x,), (v,))[1].numpy(), jacobian @ v.numpy(), rtol=1e-8)
    batch = t.func.vmap(lambda x: t.func.jacfwd(function)(x))(t.stack([x, x]))
    np.testing.assert_allclose(batch[1].numpy(), jacobian, rtol=1e-8, atol=1e-9)


@each
def test_other_ways_forward(function):
    x, v = leafgrad.tensor([0.3, -0.7], dtype=leafgrad.float64), leafgrad.tensor([1.0, 2.0], dtype=leafgrad.float64)
    wanted = leafgrad.func.jvp(function, (x,), (v,))[1].tolist()
    assert leafgrad.func.linearize(function, x)[1](v).tolist() == wanted
    assert leafgrad.func.jet(function, (x,), ([v],))[1][0].tolist() == pytest.approx(wanted)
    assert leafgrad.compile(lambda x: leafgrad.func.jvp(function, (x,), (v,))[1])(x).tolist() == pytest.approx(wanted)


@pytest.mark.parametrize("function", [result_written, argument_written])
def test_a_backward_pass_still_refuses(t, function):
    x = t.tensor([0.3, -0.7], requires_grad=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        function(x).sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        t.func.jvp(t.func.grad(lambda x: function(x).sum()), (x.detach(),), (t.ones(2),))


def test_writes_of_functions():
    class Doubled(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            ctx.mark_dirty(y)
            return y.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def f(x):
        y = x * 1
        z = y.sin()
        return Doubled.apply(y) * z

    x = leafgrad.tensor([0.3, -0.7], dtype=leafgrad.float64)
    tangent = leafgrad.func.jvp(f, (x,), (leafgrad.ones_like(x),))[1]
    np.testing.assert_allclose(tangent.numpy(), (2 * x.sin() + 2 * x * x.cos()).numpy())
