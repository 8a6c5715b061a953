"""What the documents that leafgrad was made from say and show, in their order.

Leaves and the mysteries of grad; concepts of autodiff; gradients of Q; leaf and intermediate nodes; the tour of
requires_grad, backward, retain_grad, register_hook and detach. Where they and PyTorch 2.13 disagree, PyTorch decides.
"""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import nn
from leafgrad.autograd import grad


def tensor(*values, requires_grad=True):
    return leafgrad.tensor(list(values), requires_grad=requires_grad)


def grad_fn_name(t):
    return None if t.grad_fn is None else t.grad_fn.name()


# ---- leaves that require grad -----------------------------------------------------------------------------------


def test_leaf_tensors():
    a = tensor(3.0)
    b = a * a
    c = tensor(5.0, requires_grad=False)
    d = c * c
    assert [(x.requires_grad, x.is_leaf) for x in (a, b, c, d)] == [
        (True, True),
        (True, False),
        (False, True),
        (False, True),
    ]


def test_requires_grad_is_inherited():
    a, b, c = tensor(5.0), tensor(5.0), tensor(5.0, requires_grad=False)
    d = leafgrad.sin(a * b * c)
    assert d.requires_grad == any(x.requires_grad for x in (a, b, c))
    assert not (c * c).requires_grad


def test_only_leaves_retain_their_gradients():
    a = tensor(3.0)
    b = a * a
    b.backward()
    assert a.grad is not None
    with pytest.warns(
        UserWarning, match=r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed"
    ):
        assert b.grad is None


def test_a_non_leaf_can_be_told_to():
    a = tensor(3.0)
    b = a * a
    b.retain_grad()
    b.backward()
    for g in (a.grad, b.grad):
        assert isinstance(g, leafgrad.Tensor)
        assert (g.requires_grad, g.retains_grad, g.is_leaf) == (False, False, True)


def test_the_same_gradient_twice():
    a = tensor(3.0)
    b = a * a
    b.retain_grad()
    b.backward()
    with pytest.raises(RuntimeError, match=r"Trying to backward through the graph a second time .*retain_graph=True"):
        b.backward()


def test_retain_graph():
    a = tensor(3.0)
    b = a * a
    b.retain_grad()
    printed = []
    for retain in (True, True, False):
        b.backward(retain_graph=retain)
        printed.append(str(a.grad))
    assert printed == ["tensor([6.])", "tensor([12.])", "tensor([18.])"]
    with pytest.raises(RuntimeError, match="second time"):
        b.backward()


def test_create_graph():
    a = tensor(5.0)
    b = a * a
    b.retain_grad()
    with pytest.warns(UserWarning, match=r"reference cycle between the parameter and its gradient .*autograd\.grad"):
        b.backward(create_graph=True)
    assert (a.grad.requires_grad, a.grad.is_leaf) == (True, False)
    assert (b.grad.requires_grad, b.grad.is_leaf) == (False, True)
    b.backward()  # create_graph has retained the graph


def test_derivatives_with_grad():
    a = tensor(3.0)
    b = a * a * a
    db_da = grad(b, a, create_graph=True)[0]
    assert db_da.requires_grad
    d2b_da2 = grad(db_da, a, create_graph=True)[0]
    assert d2b_da2.item() == 18
    assert d2b_da2.requires_grad
    assert isinstance(grad(b, (a, a)), tuple)


# ---- concepts ---------------------------------------------------------------------------------------------------


def test_requires_grad_of_a_result_is_not_a_switch():
    y = nn.Linear(3, 5)(leafgrad.rand(1, 3))
    with pytest.raises(
        RuntimeError, match=r"you can only change requires_grad flags of leaf variables.*var\.detach\(\)"
    ):
        y.requires_grad = False


def test_three_ways_to_require_grad():
    x = leafgrad.rand(3)
    x.requires_grad = True
    assert x.requires_grad_(True) is x
    for leaf in (leafgrad.rand(3, requires_grad=True), x, nn.Parameter(leafgrad.rand(3)), nn.Linear(3, 5).weight):
        assert (leaf.is_leaf, leaf.requires_grad, leaf.grad_fn, leaf.grad) == (True, True, None, None)


def test_backward_needs_history():
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        leafgrad.rand(1).backward()


def test_a_leaf_scalar_may_call_backward():
    x = leafgrad.tensor(2.0, requires_grad=True)
    x.backward()
    assert x.grad.item() == 1.0


def test_detach_and_clone():
    x = tensor(1.0, 2.0)
    assert (x.detach().requires_grad, x.detach().is_leaf, x.clone().is_leaf) == (False, True, False)
    x.detach()[0] = 9.0
    assert x.tolist() == [9.0, 2.0]


def test_no_grad_in_all_its_forms():
    x = tensor(1.0)

    @leafgrad.no_grad()
    def func(x):
        return x * 2

    with leafgrad.no_grad():
        off = x * 2
        with leafgrad.enable_grad():
            on = x * 2
    with leafgrad.set_grad_enabled(False):
        also_off = x * 2
    assert [t.requires_grad for t in (func(x), off, on, also_off)] == [False, False, True, False]


def test_inference_takes_eval_and_no_grad():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    model.eval()
    with leafgrad.no_grad():
        x = leafgrad.ones(2, 4)
        y = model(x)
    assert not y.requires_grad
    assert y.tolist() == model[0](x).tolist()


def test_grad_of_a_field_by_its_input():
    backbone = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def normals(points):
        with leafgrad.set_grad_enabled(True):
            points.requires_grad_(True)
            sigma = backbone(points)
            return sigma, -grad(leafgrad.sum(sigma), points, create_graph=True)[0]

    with leafgrad.no_grad():
        sigma, normal = normals(leafgrad.rand(5, 3))
    assert tuple(normal.shape) == (5, 3)
    assert sigma.requires_grad
    (normal * normal).sum().backward()
    assert backbone[0].weight.grad is not None


def test_grad_outputs_default_to_one_for_scalars_only():
    x = tensor(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        grad(x * x, x)
    assert grad(x * x, x, leafgrad.ones(2))[0].tolist() == [2.0, 4.0]


def test_full_example():
    def check(x):
        return x.is_leaf, x.requires_grad, grad_fn_name(x)

    assert check(leafgrad.rand(3)) == (True, False, None)
    assert check(leafgrad.rand(3, requires_grad=True)) == (True, True, None)
    assert check(leafgrad.rand(3, requires_grad=True) + 1) == (False, True, "AddBackward0")
    assert check(leafgrad.rand(3) + 1) == (True, False, None)

    lin = nn.Linear(3, 5)
    assert check(lin.weight) == (True, True, None)
    x, gt = leafgrad.rand(1, 3), leafgrad.rand(1, 5)
    y = lin(x)
    assert check(y)[:2] == (False, True)
    loss = nn.L1Loss()(y, gt)
    assert check(loss)[:2] == (False, True)
    loss.backward()
    assert lin.weight.grad is not None
    assert (x.grad, gt.grad) == (None, None)


def test_a_loss_takes_no_tensors_when_it_is_made():
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        nn.L1Loss(leafgrad.rand(1, 5), leafgrad.rand(1, 5))


def test_a_copy_between_devices_is_an_operation(device):
    x = leafgrad.rand(3, requires_grad=True)
    y = x.to(device)
    assert y is x if device.type == "cpu" else (y.is_leaf, y.requires_grad) == (False, True)
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    assert leafgrad.rand(3).to(device).is_leaf
    assert leafgrad.rand(3, requires_grad=True, device=device).is_leaf


# ---- gradients of Q ---------------------------------------------------------------------------------------------


def test_gradients_of_q():
    a, b = tensor(2.0, 3.0), tensor(6.0, 4.0)
    q = 3 * a**3 - b**2
    assert grad_fn_name(q) == "SubBackward0"
    q.backward(gradient=leafgrad.tensor([1.0, 1.0]))
    assert a.grad.tolist() == (9 * a**2).tolist() == [36.0, 81.0]
    assert b.grad.tolist() == (-2 * b).tolist() == [-12.0, -8.0]


def test_one_input_is_enough():
    x, y, z = leafgrad.rand(5, 5), leafgrad.rand(5, 5), leafgrad.rand((5, 5), requires_grad=True)
    assert not leafgrad.tensor([1.0]).requires_grad
    assert not (x + y).requires_grad
    assert (x + y + z).requires_grad


def test_the_graph_is_made_anew_each_time():
    a = tensor(2.0)
    for power, expected in ((2, 4.0), (3, 12.0)):
        a.grad = None
        y = a
        for _ in range(power - 1):
            y = y * a
        y.backward()
        assert a.grad.item() == expected


def test_relevance_of_leaf_nodes():
    a = tensor(1.0, 2.0)
    b = 3 * a**3
    c = b * a
    b.retain_grad()
    c.backward(gradient=leafgrad.tensor([1.0, 1.0]))
    assert str(a.grad) == "tensor([12., 96.])"
    assert str(b.grad) == "tensor([1., 2.])"


# ---- leaf and intermediate nodes --------------------------------------------------------------------------------


def test_leaves_a_and_b_and_intermediate_c():
    a, b = leafgrad.tensor(1.0, requires_grad=True), leafgrad.tensor(2.0, requires_grad=True)
    c = a * b
    c.backward()
    with pytest.warns(UserWarning, match="not a leaf"):
        assert c.grad is None
    assert (str(a.grad), str(b.grad)) == ("tensor(2.)", "tensor(1.)")


def test_a_tensor_as_its_own_gradient():
    x1, x2 = leafgrad.randn((2, 4), requires_grad=True), leafgrad.randn((2, 4), requires_grad=True)
    y = x1 + x2
    y.backward(y)
    assert x1.grad.tolist() == y.tolist()


def test_gradient_of_a_layer():
    model = nn.Sequential(nn.Linear(10, 20))
    x = leafgrad.randn((2, 10), requires_grad=True)
    out = model(x)
    out.backward(out)
    assert tuple(x.grad.shape) == (2, 10)
    with pytest.warns(UserWarning, match="not a leaf"):
        assert out.grad is None


def test_retain_grad_and_requires_grad():
    model = nn.Sequential(nn.Linear(10, 20))
    x = leafgrad.randn((2, 10))
    out = model(x)
    out.backward(out)
    assert x.grad is None

    out = model(x)
    out.retain_grad()
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        out.requires_grad = True
    with pytest.raises(RuntimeError, match=r"can't retain_grad on Tensor that has requires_grad=False"):
        x.retain_grad()
    out.backward(out)
    assert x.grad is None
    assert out.grad.tolist() == out.tolist()


def test_parameters_require_grad():
    model = nn.Sequential(nn.Linear(10, 20))
    found = [(name, tuple(p.shape), p.requires_grad) for name, p in model.named_parameters()]
    assert found == [("0.weight", (20, 10), True), ("0.bias", (20,), True)]


# ---- the tour ---------------------------------------------------------------------------------------------------


def test_two_ways_of_making_a_variable():
    t0 = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    assert f"t0 : {t0}" == "t0 : tensor([1., 2.], requires_grad=True)"
    t1 = leafgrad.FloatTensor([1.0, 2.0])
    t1.requires_grad = True
    assert f"t1 : {t1}" == "t1 : tensor([1., 2.], requires_grad=True)"


def test_other_floating_types():
    t2 = leafgrad.HalfTensor([1.0, 2.0])
    t2.requires_grad = True
    assert str(t2) == "tensor([1., 2.], dtype=leafgrad.float16, requires_grad=True)"
    t3 = leafgrad.DoubleTensor([1.0, 2.0])
    t3.requires_grad = True
    assert str(t3) == "tensor([1., 2.], dtype=leafgrad.float64, requires_grad=True)"
    with pytest.raises(RuntimeError, match="floating point"):
        leafgrad.tensor([1, 2]).requires_grad = True


def scalars(*values):
    return [leafgrad.tensor(v, requires_grad=True) for v in values]


def test_grad_fn_of_x_y_and_z():
    x, a, b = scalars(3.0, 4.0, 5.0)
    y = a * x
    z = y + b
    assert [(grad_fn_name(t), t.is_leaf, t.requires_grad) for t in (x, y, z)] == [
        (None, True, True),
        ("MulBackward0", False, True),
        ("AddBackward0", False, True),
    ]
    z.backward()
    assert [str(t.grad) for t in (x, a, b)] == ["tensor(4.)", "tensor(3.)", "tensor(1.)"]


def test_backward_from_a_vector():
    x, b = scalars(3.0, 5.0)
    a = tensor(4.0, 2.0)
    z = a * x + b
    z.backward(leafgrad.tensor([1.0, 1.0]))
    assert [str(t.grad) for t in (x, a, b)] == ["tensor(6.)", "tensor([3., 3.])", "tensor(2.)"]


def test_backward_from_a_mean():
    x, b = scalars(3.0, 5.0)
    a = tensor(4.0, 2.0)
    (a * x + b).mean().backward()
    assert [str(t.grad) for t in (x, a, b)] == ["tensor(3.)", "tensor([1.5000, 1.5000])", "tensor(1.)"]


def test_backward_twice():
    x, a, b = scalars(3.0, 4.0, 5.0)
    z = a * x + b
    z.backward(retain_graph=True)
    assert [str(t.grad) for t in (x, a, b)] == ["tensor(4.)", "tensor(3.)", "tensor(1.)"]
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


def test_a_linear_graph_can_be_run_twice():
    x = tensor(1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_retain_grad_along_the_way():
    x, a, b, c, d = scalars(3.0, 4.0, 5.0, 4.0, 4.0)
    y = a * x + b
    y.retain_grad()
    w = c * y + d
    w.retain_grad()
    w.backward()
    assert [t.grad.item() for t in (x, a, b, y, c, d, w)] == [16.0, 12.0, 4.0, 4.0, 17.0, 1.0, 1.0]


def test_a_hook_doubles_the_gradient():
    v = tensor(0.0, 0.0, 0.0)
    h = v.register_hook(lambda grad: grad * 2)
    v.backward(leafgrad.tensor([1.0, 2.0, 3.0]))
    assert str(v.grad) == "tensor([2., 4., 6.])"
    h.remove()
    v.grad = None
    v.backward(leafgrad.tensor([1.0, 2.0, 3.0]))
    assert str(v.grad) == "tensor([1., 2., 3.])"


def test_detach_shares_memory():
    v = tensor(0.0, 0.0, 0.0)
    new = v.detach()
    new[0] = 5
    assert str(new) == "tensor([5., 0., 0.])"
    assert str(v) == "tensor([5., 0., 0.], requires_grad=True)"


def test_an_extra_tour_of_no_grad():
    x = tensor(1.0, 2.0)
    assert (x * 2).requires_grad
    with leafgrad.no_grad():
        assert not (x * 2).requires_grad
        assert x.requires_grad
