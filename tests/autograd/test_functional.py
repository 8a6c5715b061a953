"""Derivatives of functions: products, Jacobians and Hessians."""

from __future__ import annotations

import pytest

import leafgrad


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def vector(t, *values):
    return t.tensor(list(values), dtype=t.float64)


def mixed(x, y):
    """Two inputs of two sizes, two outputs."""
    return x * y.sum(), (x * x).sum() * y[0]


def test_vjp_and_jvp(t):
    functional, x, v = t.autograd.functional, vector(t, 1.0, 2.0), vector(t, 1.0, 10.0)
    for product in (functional.vjp, functional.jvp):
        out, result = product(lambda x: x * x, x, v)
        assert (out.tolist(), result.tolist()) == ([1.0, 4.0], [2.0, 40.0])
        assert not out.requires_grad
        assert not result.requires_grad


def test_vjp_and_jvp_of_several(t):
    functional, x, y = t.autograd.functional, vector(t, 1.0, 2.0), vector(t, 3.0, 4.0, 5.0)
    _, (gx, gy) = functional.vjp(mixed, (x, y), (vector(t, 1.0, 0.0), t.tensor(1.0, dtype=t.float64)))
    assert (gx.tolist(), gy.tolist()) == ([18.0, 12.0], [6.0, 1.0, 1.0])
    _, (dx, dy) = functional.jvp(mixed, (x, y), (vector(t, 1.0, 0.0), vector(t, 0.0, 1.0, 0.0)))
    assert (dx.tolist(), dy.tolist()) == ([13.0, 2.0], 6.0)


def test_v_may_be_left_out_for_one_element(t):
    functional, x = t.autograd.functional, vector(t, 1.0, 2.0)
    assert functional.vjp(lambda x: (x * x).sum(), x)[1].tolist() == [2.0, 4.0]
    assert functional.jvp(lambda x: x * x, vector(t, 3.0))[1].tolist() == [6.0]
    with pytest.raises(RuntimeError, match="v can only be None if the user-provided function returns"):
        functional.vjp(lambda x: x * x, x)
    with pytest.raises(RuntimeError, match="v can only be None if the input"):
        functional.jvp(lambda x: x * x, x)


def test_v_must_fit(t):
    with pytest.raises(RuntimeError, match="v has invalid size"):
        t.autograd.functional.vjp(lambda x: x * x, vector(t, 1.0, 2.0), t.ones(3, dtype=t.float64))
    with pytest.raises(RuntimeError, match="invalid length"):
        t.autograd.functional.jvp(lambda x, y: x * y, (vector(t, 1.0), vector(t, 1.0)), vector(t, 1.0))


def test_inputs_and_outputs_must_be_tensors(t):
    with pytest.raises(TypeError, match=r"inputs given to vjp must be either a Tensor or a tuple of Tensors"):
        t.autograd.functional.vjp(lambda x: x, 3.0)
    with pytest.raises(TypeError, match=r"outputs of the user-provided function given to jacobian must be"):
        t.autograd.functional.jacobian(lambda x: 3.0, t.ones(1))


def test_jacobian(t):
    jacobian, x, y = t.autograd.functional.jacobian, vector(t, 1.0, 2.0), vector(t, 3.0, 4.0, 5.0)
    assert jacobian(lambda x: x * x, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    (xx, xy), (sx, sy) = jacobian(mixed, (x, y))
    assert xx.tolist() == [[12.0, 0.0], [0.0, 12.0]]
    assert xy.tolist() == [[1.0] * 3, [2.0] * 3]
    assert (sx.tolist(), sy.tolist()) == ([6.0, 12.0], [5.0, 0.0, 0.0])


def test_jacobian_of_matrices_and_of_nothing(t):
    jacobian, x = t.autograd.functional.jacobian, t.ones(2, 3, dtype=t.float64)
    block = jacobian(lambda x: x.sum(dim=0) * 2, x)
    assert tuple(block.shape) == (3, 2, 3)
    assert block.sum(dim=(1, 2)).tolist() == [4.0] * 3
    assert jacobian(lambda x: t.ones(2), vector(t, 1.0, 2.0)).tolist() == [[0.0, 0.0]] * 2


def test_jacobian_by_forward_mode():
    t, x, y = leafgrad, vector(leafgrad, 1.0, 2.0), vector(leafgrad, 3.0, 4.0, 5.0)
    reverse = t.autograd.functional.jacobian(mixed, (x, y))
    ahead = t.autograd.functional.jacobian(mixed, (x, y), strategy="forward-mode")
    assert [[b.tolist() for b in row] for row in reverse] == [[b.tolist() for b in row] for row in ahead]


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_vectorized(t, strategy):
    jacobian, hessian = t.autograd.functional.jacobian, t.autograd.functional.hessian
    x, y = vector(t, 1.0, 2.0), vector(t, 3.0, 4.0, 5.0)
    one_by_one = jacobian(mixed, (x, y))
    for row, other in zip(one_by_one, jacobian(mixed, (x, y), vectorize=True, strategy=strategy), strict=True):
        assert [b.tolist() for b in row] == [b.tolist() for b in other]
    assert jacobian(lambda x: t.ones(2), x, vectorize=True, strategy=strategy).tolist() == [[0.0, 0.0]] * 2
    table = hessian(lambda x: (x * x * x).sum() * x[0], x, vectorize=True, outer_jacobian_strategy=strategy)
    assert table.tolist() == hessian(lambda x: (x * x * x).sum() * x[0], x).tolist()
    leaf = vector(t, 1.0, 2.0).requires_grad_()
    block = jacobian(lambda x: x**3, leaf, create_graph=True, vectorize=True)
    assert t.autograd.grad(block.sum(), leaf)[0].tolist() == [6.0, 12.0]
    with pytest.raises(RuntimeError, match=r"`strict=True` and `vectorized?=True` are not supported together"):
        jacobian(lambda x: x, x, strict=True, vectorize=True)


def test_jacobian_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="'reverse-mode' or 'forward-mode', got 'sideways'"):
        leafgrad.autograd.functional.jacobian(leafgrad.exp, leafgrad.ones(1), strategy="sideways")


def test_strict(t):
    functional, x = t.autograd.functional, vector(t, 1.0, 2.0)
    for call in (functional.jacobian, lambda f, x, strict: functional.vjp(f, x, x, strict=strict)):
        with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
            call(lambda x: t.ones(2, dtype=t.float64), x, strict=True)
        with pytest.raises(RuntimeError, match="independent of input 1"):
            functional.jacobian(lambda x, y: x * 2, (x, x), strict=True)
    with pytest.raises(RuntimeError, match=r"jacobian of the user-provided function .*is independent of"):
        functional.hessian(lambda x: x.sum(), x, strict=True)


def test_hessian(t):
    hessian, x, y = t.autograd.functional.hessian, vector(t, 1.0, 2.0), vector(t, 3.0)
    assert hessian(lambda x: (x * x * x).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert hessian(lambda x: x.sum(), x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    table = hessian(lambda x, y: (x * x).sum() * y.sum(), (x, y))
    assert [[b.tolist() for b in row] for row in table] == [
        [[[6.0, 0.0], [0.0, 6.0]], [[2.0], [4.0]]],
        [[[2.0, 4.0]], [[0.0]]],
    ]
    with pytest.raises(RuntimeError, match="should contain a single element"):
        hessian(lambda x: x, x)


def test_hessian_forward_over_reverse():
    x = vector(leafgrad, 0.5, 2.0)

    def f(x):
        return (x.exp() * x[0]).sum()

    reverse = leafgrad.autograd.functional.hessian(f, x)
    ahead = leafgrad.autograd.functional.hessian(f, x, outer_jacobian_strategy="forward-mode")
    assert reverse.flatten().tolist() == pytest.approx(ahead.flatten().tolist())


def test_products_with_the_hessian(t):
    functional, x, v = t.autograd.functional, vector(t, 1.0, 2.0), vector(t, 1.0, 10.0)
    for product in (functional.vhp, functional.hvp):
        out, result = product(lambda x: (x * x * x).sum() + x[0] * x[1], x, v)
        assert (out.item(), result.tolist()) == (11.0, [16.0, 121.0])
        with pytest.raises(RuntimeError, match="should contain a single element"):
            product(lambda x: x, x, v)


def test_results_are_differentiable_with_create_graph(t):
    functional, x = t.autograd.functional, leaf(t, 1.0, 2.0)
    v = vector(t, 1.0, 1.0)
    for result in (
        functional.vjp(lambda x: x**4, x, v, create_graph=True)[1],
        functional.jvp(lambda x: x**4, x, v, create_graph=True)[1],
        functional.jacobian(lambda x: x**4, x, create_graph=True).sum(dim=0),
    ):
        assert result.tolist() == [4.0, 32.0]
        assert t.autograd.grad(result.sum(), x)[0].tolist() == [12.0, 48.0]
    third = functional.hvp(lambda x: (x**4).sum(), x, v, create_graph=True)[1]
    assert t.autograd.grad(third.sum(), x)[0].tolist() == [24.0, 48.0]


def test_functions_may_write_into_their_inputs_copies():
    x = vector(leafgrad, 1.0, 2.0)
    _, g = leafgrad.autograd.functional.vjp(lambda x: (x * 1).mul_(3), x, x)
    assert g.tolist() == [3.0, 6.0]
    assert x.tolist() == [1.0, 2.0]


def test_strict_names_the_output_that_does_not_depend_on_an_input():
    def second_is_constant(x):
        return x * 2, leafgrad.ones(2, requires_grad=True) * 1

    with pytest.raises(RuntimeError, match="Output 1 of the user-provided function is independent of input 0"):
        leafgrad.autograd.functional.jacobian(second_is_constant, leafgrad.ones(3), strict=True)


@pytest.mark.parametrize("create_graph", [False, True])
def test_strict_jvp_asks_for_every_input(t, create_graph):
    x = t.ones(2)
    jvp = t.autograd.functional.jvp
    with pytest.raises(RuntimeError, match="independent of input 1"):
        jvp(lambda x, y: x**2, (x, x), (x, x), create_graph, strict=True)
    with pytest.raises(RuntimeError, match="Output 1 of the user-provided function does not require gradients"):
        jvp(lambda x, y: (x * y, t.ones(2)), (x, x), (x, x), create_graph, strict=True)
    assert jvp(lambda x, y: x**2 * y**2, (x, x), (x, x), create_graph, strict=True)[1].tolist() == [4, 4]
