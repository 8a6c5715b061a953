"""What a step does to tensors from outside, at each call: hooks, retained gradients, backward passes in turn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import leafgrad
from leafgrad.autograd import grad

TESTS = "compile.record.settle"


def computed():
    leaf = leafgrad.ones(3, requires_grad=True)
    return leaf, leaf * 1


def halved(p):
    p.register_hook(lambda g: g * 0.5)
    return p.square().sum()


def gathered(p):
    leafgrad.autograd.graph.register_multi_grad_hook([p], lambda gs: CALLS.append(len(gs)))
    return p.square().sum()


def of_node(p):
    p.grad_fn.register_prehook(lambda gs: (gs[0] * 3,))
    return p.square().sum()


def between(p):
    total = float(p.sum())
    p.register_hook(lambda g: g * 0.5)
    return p.square().sum() * total


CALLS: list[int] = []


@pytest.mark.parametrize("step", [halved, gathered, of_node, between])
@pytest.mark.parametrize("mode", ["always", ""])
def test_a_hook_on_a_tensor_from_outside_is_registered_at_each_call(step, mode, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", mode)
    found = []
    for function in (step, leafgrad.compile(step)):
        CALLS.clear()
        found.append([])
        for _ in range(20):
            leaf, p = computed()
            function(p).backward()
            found[-1].append((leaf.grad.tolist(), len(CALLS)))
    assert found[0] == found[1]


def test_a_retained_gradient_stays_with_a_tensor_that_is_written():
    def step(y):
        y.retain_grad()
        y.mul_(2)

    for function in [step, *[leafgrad.compile(step)] * 5]:
        leaf, y = computed()
        function(y)
        y.square().sum().backward()
        assert y.retains_grad
        assert (y.grad.tolist(), leaf.grad.tolist()) == ([4.0] * 3, [8.0] * 3)


def in_one_call(leaf, y):
    scaled = y * 1.2
    y.retain_grad()
    y.mul_(2)
    loss = (y + scaled).tanh().sum()
    loss.backward()
    return y


def retaining(leaf, y):
    scaled = y * 1.2
    y.relu_()
    y.mul_(y + 2)
    (y + scaled).tanh().sum().backward()
    return y


def through_a_view(leaf, y):
    view = y.view(3, 1)
    view.retain_grad()
    view.mul_(2)
    (view * y).sum().backward()
    return view


def through_its_base(leaf, y):
    view = y.view(3, 1)
    view.retain_grad()
    y.mul_(2)
    (view * y).sum().backward()
    return view


@pytest.mark.parametrize("step", [in_one_call, retaining, through_a_view, through_its_base])
@pytest.mark.parametrize("mode", ["always", ""])
def test_the_gradient_that_a_written_tensor_retains_is_that_of_its_value(step, mode, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", mode)
    found = []
    for function in (step, leafgrad.compile(step)):
        found.append([])
        for _ in range(10):
            leaf, y = computed()
            y.retain_grad()
            made = function(leaf, y)
            assert made.retains_grad
            found[-1].append([leaf.grad.tolist(), y.grad.tolist(), made.grad.tolist(), y._version, made._version])
    assert found[0] == found[1]


def test_a_trace_that_fails_leaves_a_retained_gradient_where_it_was():
    _, y = computed()
    y.retain_grad()
    scaled = y * 3
    with pytest.raises(leafgrad.errors.TraceError):
        leafgrad.trace(lambda: y.mul_(2).sum().numpy())()
    scaled.sum().backward()
    assert y.retains_grad
    assert y.grad.tolist() == [3.0] * 3


def sums(base, view):
    return (base * base).sum() + (view * view).sum()


def differentiated(base, view):
    return grad(sums(base, view), view, create_graph=True)[0].sum()


def written(base, view):
    with leafgrad.no_grad():
        base.mul_(1.5)
    return sums(base, view)


def passed(base, view):
    sums(base, view).backward(retain_graph=True)
    return view.sum()


def attach_nothing(view):
    pass


def attach_hook(view):
    view.register_hook(lambda g: g * 2)


def retain(view):
    view.retain_grad()


@pytest.mark.parametrize("executor", ["numpy", "native"])
@pytest.mark.parametrize("step", [sums, differentiated, written, passed])
@pytest.mark.parametrize("of_leaf", [True, False])
def test_a_view_beside_its_base_is_a_place_in_the_graph(step, of_leaf, executor):
    for before, after in itertools.product([attach_nothing, attach_hook, retain], [attach_nothing, attach_hook]):
        found = []
        for function in (step, *[leafgrad.compile(step, executor=executor)] * 4):
            leaf = leafgrad.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
            base = leaf if of_leaf else leaf * 1
            view = base.view(3, 2)
            before(view)
            result = function(base, view)
            after(view)
            of_view = grad(result, view, retain_graph=True, allow_unused=True)[0]
            result.backward()
            kept = view.grad.tolist() if view.retains_grad else None
            found.append([None if of_view is None else of_view.tolist(), leaf.grad.tolist(), kept])
        assert found[1:] == [found[0]] * 4


def test_a_hook_on_what_is_differentiated_for_opens_the_step():
    def slope(y):
        return grad(y.square().sum(), y, create_graph=True)[0].sum()

    compiled, found = leafgrad.compile(slope), []
    for hooked in [False] * 3 + [True] * 3:
        for function in (slope, compiled):
            _, y = computed()
            if hooked:
                attach_hook(y)
            found.append(function(y).item())
    assert found == [6.0] * 6 + [12.0] * 6


@pytest.mark.parametrize("executor", ["numpy", "native", "replay"])
def test_results_without_a_common_graph_are_differentiated_in_turn(executor):
    w, v = (leafgrad.tensor([0.5, -1.0, 2.0], requires_grad=True) for _ in range(2))

    def losses(x):
        made = (x * w).sin()
        return (made.detach() * v).exp().mean(), (made - x).square().mean()

    step = leafgrad.compile(losses, executor=executor)
    x, found = leafgrad.tensor([1.0, 2.0, 3.0]), []
    for function in [losses, *[step] * 4]:
        w.grad = v.grad = None
        for loss in function(x):
            loss.backward()
        found.append([w.grad.tolist(), v.grad.tolist()])
    for one in found:
        assert one[0] == pytest.approx(found[0][0])
        assert one[1] == pytest.approx(found[0][1])


def test_results_with_a_common_graph_are_freed_together():
    def losses(x):
        shared = x.sin().sin()
        return shared.sum(), shared.square().sum()

    for function in [losses, *[leafgrad.compile(losses)] * 4]:
        first, second = function(leafgrad.ones(3, requires_grad=True))
        first.backward()
        with pytest.raises(RuntimeError, match="second time"):
            second.backward()


def test_what_vmap_made_outside_is_differentiated_twice():
    def slope(y, w):
        return leafgrad.autograd.grad((y * 2).sum(), w, create_graph=True)[0]

    found = []
    for function in [slope, *[leafgrad.compile(slope)] * 5]:
        w = leafgrad.linspace(-1, 1, 6).reshape(3, 2).requires_grad_()
        function(leafgrad.func.vmap(lambda q: q.sin())(w), w).square().mean().backward()
        found.append(w.grad.tolist())
    for one in found[1:]:
        np.testing.assert_allclose(one, found[0], rtol=1e-6)


def test_values_that_a_check_reads_open_a_step():
    def checked(x):
        return leafgrad.autograd.gradcheck(lambda a: (a * a).sin(), (x.clone().requires_grad_(),))

    def watched(x):
        x = x.clone().requires_grad_()
        with leafgrad.autograd.set_detect_anomaly(True):
            x.sin().sum().backward()
        return x.grad

    x = leafgrad.ones(2, 3, dtype=leafgrad.float64)
    for function in (checked, watched):
        step = leafgrad.compile(function)
        for _ in range(4):
            found, expected = step(x), function(x)
            assert found == expected if function is checked else leafgrad.equal(found, expected)


def halved_base(base, view):
    base.data = base.data * 0.5
    return view.square().sum() * base.sum()


def written_view(base, view):
    base.data = leafgrad.ones_like(base)
    with leafgrad.no_grad():
        view.mul_(3)
    return view.square().sum() + base.sum()


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("part", [lambda w: w[1:], lambda w: w.T, lambda w: w.view(-1)])
@pytest.mark.parametrize("function", [halved_base, written_view])
def test_a_view_from_outside_whose_base_gets_other_memory(function, part, shown):
    step, found = leafgrad.compile(function), []
    for call in [function, *[step] * 5]:
        w = leafgrad.nn.Parameter(leafgrad.linspace(-1, 1, 6).reshape(3, 2))
        view = part(w)
        if shown:
            w.detach().numpy()
        call(w, view).backward()
        found.append([t.detach().reshape(-1).tolist() for t in (w.grad, view, w)])
    for one in found:
        for values, expected in zip(one, found[0], strict=True):
            np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)


def test_a_view_of_memory_that_a_parameter_has_left_is_written():
    found = []
    for wrap in (lambda f: f, leafgrad.compile):
        w = leafgrad.linspace(-1, 1, 6).reshape(3, 2).requires_grad_()

        def step(w=w):
            view = w.reshape(3, 2)
            w.data = w.data * 0.5
            with leafgrad.no_grad():
                view.add_(0.1)
            return grad(w.square().mul(w).sum(), w, create_graph=True)[0]

        function = wrap(step)
        for _ in range(4):
            w.grad = None
            function().sum().backward()
        found.append([w.tolist(), w.grad.tolist(), w._version])
    assert found[0] == found[1]


def test_retained_gradients_have_memory_of_their_own():
    def step(u, x):
        y = x * 1
        y.retain_grad()
        (u + y).tanh().mean().backward()
        return y

    for function in [step, *[leafgrad.compile(step)] * 6]:
        u, x = (leafgrad.ones(3, requires_grad=True) for _ in range(2))
        y = function(u, x)
        y.grad.zero_()
        assert u.grad.all()
        assert x.grad.all()


@pytest.mark.parametrize("executor", ["numpy", "native"])
def test_a_result_that_cannot_be_differentiated_leads_where_it_does(executor):
    def step(x, w):
        y = x.softmax(1)
        with leafgrad.no_grad():
            y.add_(0.1)  # which the softmax has saved
            scaled = y * w
        return y.sigmoid() + scaled

    for function in [step, *[leafgrad.compile(step, executor=executor)] * 4]:
        x, w = (leafgrad.ones(2, 3, requires_grad=True) for _ in range(2))
        loss = function(x, w).sum()
        assert grad(loss, w, allow_unused=True) == (None,)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
