"""Hooks of nodes and of leaves."""

from __future__ import annotations

import pytest

import leafgrad


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def lists(gradients):
    return [None if g is None else g.tolist() for g in gradients]


def test_a_hook_sees_gradients_of_inputs_and_outputs(t):
    x, seen = leaf(t, 1.0, 2.0), []
    y = x * 2
    handle = y.grad_fn.register_hook(lambda inputs, outputs: seen.append((lists(inputs), lists(outputs))))
    y.sum().backward(retain_graph=True)
    assert seen == [([[2.0, 2.0], None], [[1.0, 1.0]])]
    handle.remove()
    y.sum().backward()
    assert len(seen) == 1


def test_a_hook_replaces_gradients_of_inputs(t):
    x = leaf(t, 1.0, 2.0)
    y = x * x
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1] * 100))
    y.sum().backward()
    assert x.grad.tolist() == [110.0, 220.0]


def test_a_prehook_replaces_gradients_of_outputs(t):
    x, seen = leaf(t, 1.0, 2.0), []
    y = x * 2
    y.grad_fn.register_prehook(lambda outputs: seen.append(lists(outputs)))
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 3,))
    y.sum().backward()
    assert (seen, x.grad.tolist()) == ([[[1.0, 1.0]]], [6.0, 6.0])


def test_the_order_of_hooks(t):
    x, order = leaf(t, 1.0), []
    y = x * 2
    y.register_hook(lambda g: order.append("tensor"))
    y.grad_fn.register_prehook(lambda outputs: order.append("before"))
    y.grad_fn.register_hook(lambda inputs, outputs: order.append("after"))
    y.register_hook(lambda g: order.append("tensor again"))
    y.backward()
    assert order == ["tensor", "tensor again", "before", "after"]


@pytest.mark.parametrize("returned", [lambda g: (g, g, g), lambda g: (g.repeat(2), None), lambda g: (g.half(), None)])
def test_what_a_hook_returns_must_fit(t, returned):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: returned(inputs[0]))
    with pytest.raises(RuntimeError):
        y.sum().backward()


def test_hooks_see_every_output(t):
    class Pair(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + 2 * h

    x, seen = leaf(t, 1.0), []
    a, b = Pair.apply(x)
    a.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10, outputs[1] * 100))
    b.grad_fn.register_hook(lambda inputs, outputs: seen.append(lists(outputs)))
    (a + b).backward()
    assert (seen, x.grad.tolist()) == ([[[10.0], [100.0]]], [210.0])


def test_a_gradient_kept_by_a_hook_stays_as_it_was(t):
    x, kept = leaf(t, 1.0, 2.0), []
    y = x.exp()
    y.grad_fn.register_hook(lambda inputs, outputs: kept.extend([*inputs, *outputs]))
    y.sum().backward(retain_graph=True)
    before = lists(kept)
    y.sum().backward()
    x.grad.zero_()
    assert lists(kept)[:2] == before


def test_hooks_of_accumulate_grad(t):
    x, seen = leaf(t, 1.0, 2.0), []
    node = (x * 1).grad_fn.next_functions[0][0]
    node.register_prehook(lambda outputs: (outputs[0] * 2,))
    node.register_hook(lambda inputs, outputs: seen.append((lists(outputs), x.grad.tolist())))
    (x * 3).sum().backward()
    assert seen == [([[6.0, 6.0]], [6.0, 6.0])]
    assert node.variable is x


def test_a_hook_in_a_recorded_pass(t):
    x = leaf(t, 1.0, 2.0)
    y = x**3
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * x,))
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)  # 3 x^3
    assert t.autograd.grad(g.sum(), x)[0].tolist() == [9.0, 36.0]


def test_nodes_that_are_only_shown_take_no_hooks():
    layer = leafgrad.nn.Linear(2, 2)
    node = layer(leafgrad.ones(1, 2)).grad_fn
    transposed = node.next_functions[2][0]
    assert transposed.name() == "TBackward0"
    assert transposed is node.next_functions[2][0]
    for refused in (
        lambda: transposed.register_prehook(print),
        lambda: transposed.register_hook(print),
        lambda: node.register_hook(print),
        lambda: transposed.metadata,
        lambda: transposed(leafgrad.ones(1)),
    ):
        with pytest.raises(RuntimeError, match="leafgrad"):
            refused()


def test_post_accumulate_grad_hooks(t):
    x, seen = leaf(t, 1.0, 2.0), []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.tolist())))
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert seen == [(True, [3.0, 3.0]), (True, [6.0, 6.0])]
    t.autograd.grad((x * 3).sum(), x)
    handle.remove()
    (x * 3).sum().backward()
    assert len(seen) == 2


def test_an_optimizer_in_the_backward_pass(t):
    x = leaf(t, 1.0, 2.0)

    def step(p):
        with t.no_grad():
            p -= 0.5 * p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * x).sum().backward()
    assert (x.tolist(), x.grad) == ([0.0, 0.0], None)


def test_post_accumulate_grad_hooks_are_for_leaves(t):
    with pytest.raises(RuntimeError, match="non-leaf"):
        (leaf(t, 1.0) * 1).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require grad"):
        t.ones(2).register_post_accumulate_grad_hook(print)


def test_freezing_between_forward_and_backward(t):
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    out = (x * y).sum()
    x.requires_grad_(False)
    out.backward()
    assert (x.grad, y.grad.tolist()) == (None, [1.0, 2.0])


def test_del_grad(t):
    x = leaf(t, 1.0)
    x.backward()
    del x.grad
    assert x.grad is None


def test_a_prehook_may_take_a_gradient_away(t):
    seen = []
    x = t.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y = x * x
    y.grad_fn.register_prehook(lambda gradients: (None,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    (y + x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    assert seen == [((None, None), (None,))]
    values, _ = x.sort()
    values.grad_fn.register_prehook(lambda gradients: (None, *gradients[1:]))
    assert t.autograd.grad(values.sum(), x, create_graph=True, allow_unused=True) == (None,)


def test_a_prehook_may_take_one_of_several_gradients_away(t):
    x = t.tensor([[3.0, 1.0], [2.0, 4.0]], requires_grad=True)
    first, second = t.linalg.slogdet(x)[1], t.linalg.qr(x)
    second[0].grad_fn.register_prehook(lambda gradients: (gradients[0], None))
    (without,) = t.autograd.grad((second[0].sum() + second[1].sum() + first), x)
    (alone,) = t.autograd.grad(t.linalg.qr(x)[0].sum() + t.linalg.slogdet(x)[1], x)
    assert t.allclose(without, alone)


def test_a_prehook_of_a_leaf_may_take_its_gradient_away(t):
    x = t.ones(2, requires_grad=True)
    leaf = (x * 1).grad_fn.next_functions[0][0]
    leaf.register_prehook(lambda gradients: (None,))
    (x * 2).sum().backward()
    assert x.grad is None
