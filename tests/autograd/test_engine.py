"""The recorded graph: names, edges, hooks, kept gradients, and what frees it."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import leafgrad
from leafgrad.testing import fake


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


# ---- nodes ------------------------------------------------------------------------------------------------------

NAMES = {
    "AddBackward0": lambda t, a, b: a + b,
    "SubBackward0": lambda t, a, b: a - b,
    "MulBackward0": lambda t, a, b: a * b,
    "DivBackward0": lambda t, a, b: a / b,
    "NegBackward0": lambda t, a, b: -a,
    "PowBackward0": lambda t, a, b: a**2,
    "ExpBackward0": lambda t, a, b: a.exp(),
    "TanhBackward0": lambda t, a, b: t.tanh(a),
    "SinBackward0": lambda t, a, b: t.sin(a),
    "SqrtBackward0": lambda t, a, b: t.sqrt(a),
    "SigmoidBackward0": lambda t, a, b: t.sigmoid(a),
    "ReluBackward0": lambda t, a, b: t.relu(a),
    "CloneBackward0": lambda t, a, b: a.clone(),
    "SumBackward0": lambda t, a, b: a.sum(),
    "MeanBackward0": lambda t, a, b: a.mean(),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_nodes(t, name):
    node = NAMES[name](t, leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)).grad_fn
    assert node.name() == name
    assert repr(node).startswith(f"<{name} object at 0x")


def test_next_functions_lead_to_the_leaves(t):
    a, b = leaf(t, 2.0), leaf(t, 3.0)
    c = a * b + 1
    ((mul, index),) = [pair for pair in c.grad_fn.next_functions if pair[0] is not None]
    assert (mul.name(), index) == ("MulBackward0", 0)
    assert all(repr(node).startswith("<AccumulateGrad object at 0x") for node, _ in mul.next_functions)
    assert mul.next_functions[0][0].variable is a


def test_an_argument_that_does_not_require_grad_has_no_edge(t):
    c = leaf(t, 2.0) * t.tensor([3.0], dtype=t.float64)
    assert c.grad_fn.next_functions[1][0] is None


def test_grad_fn_is_a_node(t):
    assert isinstance((leaf(t, 2.0) * 2).grad_fn, t.autograd.graph.Node)


def test_the_same_tensor_gives_the_same_node(t):
    b = leaf(t, 2.0) * 2
    assert b.grad_fn is b.grad_fn


# ---- several outputs --------------------------------------------------------------------------------------------


def test_outputs_of_one_operation_share_a_node(t):
    a = leaf(t, 3.0, 1.0)
    values, indices = t.max(a * 2, dim=0)
    assert values.requires_grad
    assert not indices.requires_grad
    parts = (a * 2).unbind(0)
    assert [p.item() for p in parts] == [6.0, 2.0]
    (parts[0] * 10 + parts[1]).backward()
    assert a.grad.tolist() == [20.0, 2.0]


def test_one_output_of_several_may_go_unused(t):
    a = leaf(t, 3.0, 1.0, 2.0)
    first, _ = (a * a).split([2, 1])
    first.sum().backward()
    assert a.grad.tolist() == [6.0, 2.0, 0.0]


def test_gradients_meet_in_an_output_that_the_backward_reads_again(t):
    class Twins(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y, y * 2

        @staticmethod
        def backward(ctx, g, h):
            (y,) = ctx.saved_tensors
            return g * y + 2 * h * y

    x = leaf(t, 0.5)
    y, _ = Twins.apply(x)
    (g,) = t.autograd.grad(y, x, create_graph=True)  # = y
    assert t.autograd.grad(g, y)[0].tolist() == [1.0]


# ---- hooks ------------------------------------------------------------------------------------------------------


def test_hooks_run_in_order_and_may_replace_the_gradient(t):
    a = leaf(t, 2.0)
    b = a * 3
    b.register_hook(lambda g: g * 10)
    b.register_hook(lambda g: g + 1)
    (b * 1).backward()
    assert a.grad.tolist() == [33.0]


def test_a_hook_that_returns_nothing_leaves_the_gradient(t):
    a, seen = leaf(t, 2.0), []
    a.register_hook(lambda g: seen.append(g.item()))
    (a * 3).backward()
    assert seen == [3.0]
    assert a.grad.tolist() == [3.0]


def test_a_gradient_that_a_hook_keeps_stays_as_it_is(t):
    b, kept = leaf(t, 0.0, 0.0), []
    for step in (1, 2):
        y = b + 1
        y.register_hook(kept.append)
        (y * step).sum().backward()
        b.grad.mul_(10)
    assert [g.tolist() for g in kept] == [[1, 1], [2, 2]]
    own = t.tensor([3.0, 3.0], dtype=b.dtype)
    y = b + 1
    y.register_hook(lambda g: own)
    b.grad = None
    y.sum().backward()
    b.grad.zero_()
    assert own.tolist() == [3, 3]


def test_a_hook_on_a_leaf_changes_what_is_accumulated(t):
    a = leaf(t, 1.0, 2.0)
    handle = a.register_hook(lambda g: g * 2)
    (a * a).sum().backward()
    assert a.grad.tolist() == [4.0, 8.0]
    handle.remove()
    handle.remove()
    a.grad = None
    (a * a).sum().backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_a_handle_is_a_context(t):
    a = leaf(t, 1.0)
    with a.register_hook(lambda g: g * 2):
        (a * 1).backward()
    (a * 1).backward()
    assert a.grad.tolist() == [3.0]


def test_a_hook_sees_the_whole_gradient_once(t):
    a, seen = leaf(t, 2.0), []
    b = a * 1
    b.register_hook(lambda g: seen.append(g.item()))
    (b * 2 + b * 3).backward()
    assert seen == [5.0]


def test_hooks_run_for_grad_too_and_are_recorded_under_create_graph(t):
    a = leaf(t, 2.0)
    b = a * a
    b.register_hook(lambda g: g * 5)
    (g,) = t.autograd.grad(b, a, create_graph=True)
    assert g.item() == 20.0
    assert t.autograd.grad(g, a)[0].item() == 10.0


def test_a_hook_must_return_a_tensor_of_the_same_size(t):
    a = leaf(t, 1.0)
    a.register_hook(lambda g: g.repeat(2))
    with pytest.raises(RuntimeError, match="size"):
        (a * 1).backward()


def test_a_hook_must_return_a_tensor_of_the_same_dtype(t):
    a = leaf(t, 1.0)
    a.register_hook(lambda g: g.half())
    with pytest.raises(RuntimeError, match="changed the type"):
        (a * 1).backward()


def test_a_hook_must_return_a_tensor_or_none(t):
    a = leaf(t, 1.0)
    a.register_hook(lambda g: 3.0)
    with pytest.raises((TypeError, RuntimeError)):
        (a * 1).backward()


def test_a_hook_needs_a_tensor_that_requires_grad(t):
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require grad"):
        t.ones(1).register_hook(print)


def test_an_error_in_a_hook_reaches_the_caller(t):
    a = leaf(t, 1.0)

    def fail(g):
        raise KeyError("mine")

    a.register_hook(fail)
    with pytest.raises(KeyError, match="mine"):
        (a * 1).backward()
    assert t.is_grad_enabled()


# ---- retain_grad ------------------------------------------------------------------------------------------------


def test_retain_grad_keeps_a_non_leaf_s_gradient(t):
    a = leaf(t, 3.0)
    b = a * a
    assert not b.retains_grad
    b.retain_grad()
    b.retain_grad()
    assert b.retains_grad
    (b * 2).backward(retain_graph=True)
    (b * 3).backward()
    assert b.grad.tolist() == [5.0]


def test_retain_grad_of_a_leaf_changes_nothing(t):
    a = leaf(t, 3.0)
    a.retain_grad()
    assert not a.retains_grad
    (a * 2).backward()
    assert a.grad.tolist() == [2.0]


def test_retain_grad_follows_a_tensor_through_writes_and_hooks_do_not(t):
    b, seen = leaf(t, 3.0, 4.0) * 2, []
    b.retain_grad()
    b.register_hook(lambda g: seen.append(g.tolist()))
    b.mul_(5)
    b[0].mul_(7)
    b.sum().backward()
    assert b.grad.tolist() == [1.0, 1.0]
    assert seen == [[35.0, 5.0]]


def test_retain_grad_needs_a_tensor_that_requires_grad(t):
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        t.ones(1).retain_grad()


def test_a_retained_gradient_is_what_the_hooks_leave(t):
    b = leaf(t, 3.0) * 2
    b.retain_grad()
    b.register_hook(lambda g: g * 7)
    (b * 1).backward()
    assert b.grad.tolist() == [7.0]


def test_reading_grad_of_a_non_leaf_warns():
    b = leaf(leafgrad, 3.0) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert b.grad is None


# ---- memory -----------------------------------------------------------------------------------------------------


@pytest.fixture
def uncollected():
    """The cycle collector is off, so what dies here dies by reference counting alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def step(a):
    b = (a * a).tanh()
    b.retain_grad()
    b.register_hook(lambda g: g * 2)
    c = b[1:].exp().sum() + b.reshape(1, 2).sum()
    (g,) = leafgrad.autograd.grad(c, a, create_graph=True)
    (g * g).sum().backward()
    return [weakref.ref(x) for x in (b, c, g, b.grad_fn, c.grad_fn, g.grad_fn)]


@pytest.mark.usefixtures("uncollected")
def test_a_step_leaves_no_reference_cycles():
    a = leaf(leafgrad, 0.5, 0.7)
    assert [ref() for ref in step(a)] == [None] * 6


@pytest.mark.usefixtures("uncollected")
def test_in_place_writes_and_views_leave_no_cycles():
    def work(a):
        b = a * 2
        v = b[0]
        v.mul_(3.0)
        b.add_(1.0)
        b.sum().backward()
        return [weakref.ref(x) for x in (b, v, b.grad_fn)]

    assert [ref() for ref in work(leaf(leafgrad, 0.5, 0.7))] == [None] * 3


@pytest.mark.usefixtures("uncollected")
def test_a_leaf_dies_with_its_last_name():
    a = leaf(leafgrad, 1.0)
    (a * a).backward()
    ref = weakref.ref(a)
    del a
    assert ref() is None


@pytest.mark.usefixtures("uncollected")
def test_backward_frees_what_was_saved():
    a = leaf(leafgrad, 1.0)
    b = a * 2
    ref = weakref.ref(b)
    c = b * b
    del b
    assert ref() is not None
    c.backward()
    assert ref() is None


def test_a_rule_that_needs_only_a_shape_keeps_no_array():
    b = leaf(leafgrad, 1.0) * 2
    ref = weakref.ref(b)
    c = b.sum() + 0
    del b
    gc.collect()
    assert ref() is None
    c.backward()


def test_a_deep_graph_is_freed_without_recursion():
    done = []

    def work():
        a = leaf(leafgrad, 1.0)
        b = a
        for _ in range(100_000):
            b = b * 1.0
        del b
        done.append(True)

    threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
    assert done == [True]


# ---- several devices ------------------------------------------------------------------------------------------------


def wandering(seed, devices):
    """A function of two tensors whose steps run on several devices, as often on the other one as on the last."""
    random = np.random.default_rng(seed)
    steps = [(int(random.integers(5)), str(random.choice(devices))) for _ in range(random.integers(3, 12))]

    def function(x, y):
        values = [x, y]
        for kind, device in steps:
            a, b = values[-1].to(device), values[-2].to(device)
            made = [a * b, (a * a).tanh() + b, a.square() / (1 + b * b), a.sum(0, keepdim=True) * b, a.split(1)[0] - b]
            values.append(made[kind])
        return values[-1].sum() + values[-2].sum().to(values[-1].device)

    return function


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 300))])
@pytest.mark.parametrize("devices", [("fake:0", "fake:1"), ("cpu", "fake:1", "fake:0")], ids=len)
def test_graphs_over_several_devices(seed, devices):
    fake.register()
    function, numbers = wandering(seed, devices), np.random.default_rng(seed).normal(size=(2, 3, 2))
    found = []
    for places in (("cpu", "cpu"), (devices[0], devices[1])):
        x, y = leaves = [leafgrad.tensor(n).to(p).requires_grad_() for n, p in zip(numbers, places, strict=True)]
        run = function if places[0] != places[1] else wandering(seed, ["cpu"] * len(devices))
        (run(x, y) + 0).backward(retain_graph=True)
        first = leafgrad.autograd.grad(run(x, y), leaves, create_graph=True)
        (first[0].square().sum().to(y.device) + first[1].square().sum()).backward()
        assert [t.grad.device for t in leaves] == [t.device for t in leaves]
        found.append([t.tolist() for t in (x.grad, y.grad, *first)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
