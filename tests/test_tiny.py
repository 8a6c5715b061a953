"""Read this first: leafgrad in a dozen small steps, each building on the one before."""

from __future__ import annotations

import leafgrad
from leafgrad import nn, optim
from leafgrad.autograd import grad

TESTS = "tensor.tensor"


def test_01_a_tensor_is_an_array_of_one_dtype_on_one_device():
    x = leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (tuple(x.shape), x.dtype, x.device.type) == ((2, 2), leafgrad.float32, "cpu")
    assert (x @ x + 1).tolist() == [[8.0, 11.0], [16.0, 23.0]]
    assert str(x[0]) == "tensor([1., 2.])"


def test_02_what_is_computed_from_a_leaf_that_requires_grad_is_recorded():
    a = leafgrad.tensor(3.0, requires_grad=True)
    b = a * a + 1
    assert a.is_leaf
    assert b.grad_fn.name() == "AddBackward0"
    assert b.grad_fn.next_functions[0][0].name() == "MulBackward0"


def test_03_backward_walks_the_record_and_leaves_gradients_in_the_leaves():
    a = leafgrad.tensor(3.0, requires_grad=True)
    (a * a).backward()
    (a * a).backward()
    assert a.grad.item() == 12.0  # they accumulate


def test_04_grad_returns_them_instead_and_again_for_derivatives_of_any_order():
    x = leafgrad.tensor(0.5, dtype=leafgrad.float64, requires_grad=True)
    y = leafgrad.sin(x)
    for expected in (leafgrad.cos(x), -leafgrad.sin(x), -leafgrad.cos(x), leafgrad.sin(x)):
        (y,) = grad(y, x, create_graph=True)
        assert leafgrad.allclose(y, expected)


def test_05_nothing_is_recorded_under_no_grad():
    a = leafgrad.ones(2, requires_grad=True)
    with leafgrad.no_grad():
        a -= 0.5  # only here may a leaf be written
        assert not (a * 2).requires_grad
    assert a.tolist() == [0.5, 0.5]


def test_06_writes_through_views_are_part_of_history():
    a = leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = a * 1
    b[1:] *= 10
    b.sum().backward()
    assert a.grad.tolist() == [1.0, 10.0, 10.0]


def test_07_an_op_is_a_forward_and_a_rule_in_plain_operators():
    @leafgrad.op("elementwise", "float")
    def sinc2(xp, x):
        """The square of sin(x) / x. (...) -> (...)"""
        return (xp.sin(x) / x) ** 2

    sinc2.vjp(x=lambda g, out, x: g * 2 * out * (leafgrad.cos(x) / leafgrad.sin(x) - 1 / x))

    x = leafgrad.tensor([0.5, 2.0], dtype=leafgrad.float64, requires_grad=True)
    assert leafgrad.autograd.gradcheck(sinc2, x)
    assert leafgrad.autograd.gradgradcheck(sinc2, x)  # from the same rule


def test_08_forward_mode_needs_no_rule_of_its_own():
    x, v = leafgrad.tensor([1.0, 2.0]), leafgrad.tensor([1.0, 0.0])
    out, tangent = leafgrad.func.jvp(lambda x: (x * x).sum(), (x,), (v,))
    assert (out.item(), tangent.item()) == (5.0, 2.0)


def test_09_modules_hold_parameters_and_optimizers_move_them():
    leafgrad.manual_seed(0)
    x = leafgrad.linspace(-1, 1, 32).reshape(-1, 1)
    y = leafgrad.sin(3 * x)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    for _ in range(300):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-2


def test_10_a_network_solves_a_differential_equation():
    """u' = -u, u(0) = 1 on [0, 1]: the loss holds a derivative, and is differentiated itself."""
    leafgrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    t = leafgrad.linspace(0, 1, 20).reshape(-1, 1).requires_grad_()
    for _ in range(300):
        u = 1 + t * model(t)
        (du,) = grad(u.sum(), t, create_graph=True)
        loss = ((du + u) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (u - leafgrad.exp(-t)).abs().max().item() < 1e-2


def test_11_errors_say_what_was_expected_what_came_and_what_to_do():
    messages = []
    for wrong in (
        lambda: leafgrad.ones(2) + leafgrad.ones(3),
        lambda: leafgrad.ones(2).backward(),
        lambda: leafgrad.ones(2, requires_grad=True).add_(1),
    ):
        try:
            wrong()
        except RuntimeError as error:
            messages.append(str(error))
    assert "must match the size of tensor b (3)" in messages[0]
    assert "does not require grad" in messages[1]
    assert "a leaf Variable that requires grad" in messages[2]


def test_12_the_same_program_runs_on_every_device(device):
    x = leafgrad.tensor([1.0, 2.0], device=device, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.device == x.device
    assert x.grad.tolist() == [2.0, 4.0]
