"""Dual tensors."""

from __future__ import annotations

import pytest

import leafgrad


def vector(t, *values):
    return t.tensor(list(values), dtype=t.float64)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_dual_tensors(t):
    ad, x, v = t.autograd.forward_ad, vector(t, 1.0, 2.0), vector(t, 3.0, 4.0)
    with ad.dual_level():
        dual = ad.make_dual(x, v)
        primal, tangent = ad.unpack_dual(dual * dual.sum())
        assert primal.tolist() == [3.0, 6.0]
        assert tangent.tolist() == [16.0, 26.0]
        assert not primal.requires_grad
        assert not tangent.requires_grad
        assert ad.unpack_dual(dual).tangent.tolist() == [3.0, 4.0]
        assert ad.unpack_dual(x).tangent is None
        w = vector(t, 5.0, 6.0).requires_grad_()
        tangent = ad.unpack_dual(w * w * dual).tangent
        assert t.autograd.grad(tangent.sum(), w)[0].tolist() == [30.0, 48.0]
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="forward gradient that has a different size"):
            ad.make_dual(x, t.ones(3, dtype=t.float64))
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            ad.make_dual(dual * 2, v)
        with pytest.raises(ValueError, match="Expected tangent to be floating point"):
            ad.make_dual(x, t.ones(2, dtype=t.int64))
        with pytest.raises(ValueError, match="Expected primal to be floating point"):
            ad.make_dual(t.ones(2, dtype=t.int64), x)
    assert ad.unpack_dual(x).tangent is None
    with pytest.raises(RuntimeError, match="but no level exists"):
        ad.make_dual(x, v)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_the_primal_of_a_dual_tensor_moves_with_nothing(t):
    ad, x, v = t.autograd.forward_ad, vector(t, 1.0, 2.0).requires_grad_(), vector(t, 3.0, 4.0)
    with ad.dual_level():
        primal, tangent = ad.unpack_dual(ad.make_dual(x, v) * x)
        assert ad.unpack_dual(primal * 2).tangent is None
        again = ad.make_dual(primal, tangent)
        assert ad.unpack_dual(again).tangent.tolist() == [3.0, 8.0]
        assert t.autograd.grad(again.sum(), x)[0].tolist() == [2.0, 4.0]


def test_dual_tensors_need_recording():
    ad, x = leafgrad.autograd.forward_ad, vector(leafgrad, 1.0)
    with pytest.raises(RuntimeError, match="that was not entered"):
        ad.exit_dual_level()
    with ad.dual_level(), leafgrad.no_grad(), pytest.raises(RuntimeError, match="recording is off"):
        ad.make_dual(x, x)


def cube(x):
    return (x**3).sum()


def one_gradient(t, x):
    y = t.ones_like(x).requires_grad_()
    return t.autograd.grad((y**3 * x).sum(), y)[0]


def gradient_rows(t, x):
    y = t.ones_like(x).requires_grad_()
    return t.autograd.grad(y * x**2, y, t.eye(2, dtype=t.float64), is_grads_batched=True)[0].sum(0)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("derivative", "tangent"),
    [
        (lambda t, x: t.func.grad(cube)(x), [18, 48]),
        (lambda t, x: t.func.grad(lambda y: (y**3 * x).sum())(t.ones_like(x)), [9, 12]),
        (lambda t, x: t.func.vjp(cube, x)[0], 57),
        (lambda t, x: t.func.vjp(cube, x)[1](t.ones((), dtype=t.float64))[0], [18, 48]),
        (lambda t, x: t.func.jacrev(lambda y: y**3)(x).sum(0), [18, 48]),
        (lambda t, x: t.vmap(t.func.grad(cube))(x), [18, 48]),
        (one_gradient, [9, 12]),
        (gradient_rows, [6, 16]),
    ],
)
def test_gradients_move_with_what_they_are_made_of(t, derivative, tangent):
    ad, x = t.autograd.forward_ad, vector(t, 1.0, 2.0)
    with ad.dual_level():
        found = ad.unpack_dual(derivative(t, ad.make_dual(x, vector(t, 3.0, 4.0))))
    assert found.tangent.tolist() == tangent
    assert not found.tangent.requires_grad
    assert not found.primal.requires_grad


def test_forward_mode_of_duals():
    """Which PyTorch refuses."""
    ad, x = leafgrad.autograd.forward_ad, vector(leafgrad, 1.0, 2.0)
    with ad.dual_level():
        dual = ad.make_dual(x, vector(leafgrad, 3.0, 4.0))
        pushed = leafgrad.func.jvp(lambda x: x**3, (dual,), (leafgrad.ones_like(x),))[1]
        second = leafgrad.func.hessian(cube)(dual)
        assert ad.unpack_dual(pushed).tangent.tolist() == [18, 48]
        assert ad.unpack_dual(second).tangent.tolist() == [[18, 0], [0, 24]]
    assert not leafgrad.func.grad(cube)(dual).requires_grad
