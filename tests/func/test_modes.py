"""Hooks and modes in functions that are differentiated: what they reach, and what they leave alone. On PyTorch, too."""

from __future__ import annotations

import leafgrad


def slope_of_slope(t, f):
    """The derivative of the sum of the derivative of f, at (1, 2)."""
    return t.func.grad(lambda x: t.func.grad(f)(x).sum())(t.tensor([1.0, 2.0])).tolist()


def test_a_hook_is_of_the_derivative_in_which_it_was_registered(t):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        return (y**3).sum()

    assert t.func.grad(f)(t.tensor([1.0, 2.0])).tolist() == [72.0, 288.0]  # 3 · 24x²
    assert slope_of_slope(t, f) == [144.0, 288.0]


def test_a_hook_of_an_argument(t):
    def f(x):
        x.register_hook(lambda g: g * 3)
        return (x**3).sum()

    assert slope_of_slope(t, f) == [18.0, 36.0]


def test_a_hook_within_leaves_backward_outside_alone(t):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        return (y**3).sum()

    x = t.tensor([1.0, 2.0], requires_grad=True)
    t.func.grad(f)(x).sum().backward()
    assert x.grad.tolist() == [144.0, 288.0]


def test_a_hook_of_a_tensor_from_outside_is_for_backward_outside(t):
    w = t.tensor([1.0, 2.0], requires_grad=True)
    y = w * 1
    seen = []

    def f(x):
        y.register_hook(lambda g: seen.append(g.tolist()))
        return (x**2 * y).sum()

    slope = t.func.grad(f)(t.tensor([1.0, 2.0]))
    assert seen == []
    slope.sum().backward()
    assert seen == [[2.0, 4.0]]


def test_hooks_under_vmap_and_in_jacobians(t):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        return y * y

    x = t.tensor([1.0, 2.0])
    assert t.func.jacrev(f)(x).tolist() == [[24.0, 0.0], [0.0, 48.0]]
    assert t.func.vmap(t.func.grad(lambda x: f(x).sum()))(x.expand(2, 2)).tolist() == [[24.0, 48.0]] * 2
    assert t.func.hessian(lambda x: f(x).sum())(x).tolist() == [[24.0, 0.0], [0.0, 24.0]]


def test_derivatives_under_inference_mode(t):
    x = t.tensor([1.0, 2.0])
    with t.inference_mode():
        assert t.func.grad(lambda x: (x**3).sum())(x).tolist() == [3.0, 12.0]
        _, tangent = t.func.jvp(lambda x: x.exp().log() * x, (x,), (t.ones(2),))
        assert [round(v, 4) for v in tangent.tolist()] == [2.0, 4.0]


def test_inference_mode_ends_for_a_while(t):
    w = t.ones(2, requires_grad=True)
    with t.inference_mode():
        with t.inference_mode(False):
            made = w * 2
            assert made.requires_grad
            assert not made.is_inference()
        assert (w * 2).is_inference()
    with t.no_grad(), t.inference_mode(False):
        assert (w * 2).requires_grad


def test_inference_tensors_are_differentiated(t):
    with t.inference_mode():
        x = t.ones(2) * 2
        assert t.func.grad(lambda y: (y**3).sum())(x * 1).tolist() == [12.0, 12.0]


def test_inference_tensors_are_differentiated_in_compiled_steps():
    compiled = leafgrad.compile(lambda x: leafgrad.func.grad(lambda y: (y**3).sum())(x * 1))
    with leafgrad.inference_mode():
        x = leafgrad.ones(2) * 2
        assert [compiled(x).tolist() for _ in range(3)] == [[12.0, 12.0]] * 3
