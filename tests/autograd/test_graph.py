"""Hooks of nodes and leaves, edges, several gradients at once, and what happens to saved tensors."""

from __future__ import annotations

import pytest

import leafgrad


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def lists(gradients):
    return [None if g is None else g.tolist() for g in gradients]


# ---- hooks of nodes ---------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("returned", [lambda g: (g, g, g), lambda g: (g.repeat(2), None)])
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


# ---- hooks of leaves --------------------------------------------------------------------------------------------


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


# ---- edges ------------------------------------------------------------------------------------------------------


def test_an_edge_stands_for_a_tensor_that_is_gone(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z, edge = (y * y).sum(), t.autograd.graph.get_gradient_edge(y)
    assert (edge.node is y.grad_fn, edge.output_nr) == (True, 0)
    del y
    assert t.autograd.grad(z, edge, retain_graph=True)[0].tolist() == [4.0, 8.0]
    (g,) = t.autograd.grad(edge, x, grad_outputs=t.tensor([1.0, 3.0], dtype=t.float64), retain_graph=True)
    assert g.tolist() == [2.0, 6.0]
    t.autograd.backward(edge, t.ones(2, dtype=t.float64))
    assert x.grad.tolist() == [2.0, 2.0]


def test_the_edge_of_a_leaf_and_of_a_constant(t):
    x = leaf(t, 1.0, 2.0)
    edge = t.autograd.graph.get_gradient_edge(x)
    assert t.autograd.grad((x * 2).sum(), edge)[0].tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="does not require grad"):
        t.autograd.graph.get_gradient_edge(t.ones(1))


def test_the_edge_of_a_second_output(t):
    class Pair(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + 2 * h

    a, b = Pair.apply(leaf(t, 1.0, 2.0))
    edge = t.autograd.graph.get_gradient_edge(b)
    assert edge.output_nr == 1
    assert t.autograd.grad((a * b).sum(), edge)[0].tolist() == [1.0, 2.0]


# ---- several gradients at once ----------------------------------------------------------------------------------


def test_multi_grad_hook_gets_all_that_a_pass_computes(t):
    a, b, seen = leaf(t, 1.0), leaf(t, 2.0), []
    c, d = a * b, a * b
    t.autograd.graph.register_multi_grad_hook((a, b, c, d), lambda gs: seen.append([g is not None for g in gs]))
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward()
    assert seen == [[True, True, True, False], [True, False, True, False], [True] * 4]


def test_multi_grad_hook_with_the_first_of_a_pass(t):
    a, b, seen = leaf(t, 1.0), leaf(t, 2.0), []
    c = a * b
    handle = t.autograd.graph.register_multi_grad_hook((a, b, c), lambda g: seen.append(g.tolist()), mode="any")
    c.backward(retain_graph=True)
    c.backward(retain_graph=True)
    handle.remove()
    c.backward()
    assert seen == [[1.0], [1.0]]
    with pytest.raises(ValueError, match="mode"):
        t.autograd.graph.register_multi_grad_hook((a,), print, mode="none")


# ---- versions ---------------------------------------------------------------------------------------------------


def test_version_counts_writes(t):
    x = t.ones(2)
    view, detached = x[0], x.detach()
    assert (x._version, view._version) == (0, 0)
    view.add_(1)
    assert (x._version, view._version, detached._version) == (1, 1, 1)
    x.data.add_(1)
    assert x._version == 1
    t.autograd.graph.increment_version(x)
    assert x._version == 2
    with t.inference_mode():
        made = t.ones(1)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        _ = made._version


def test_the_error_tells_both_versions(t):
    x, weight = leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64)
    weight.add_(1)
    out = x * weight
    weight.add_(1).add_(1)
    with pytest.raises(RuntimeError, match="is at version 3; expected version 1 instead"):
        out.sum().backward()
    doubled = x * 2
    squared = doubled * doubled
    doubled.add_(1)
    with pytest.raises(RuntimeError, match=r"output 0 of .*, is at version 1; expected version 0 instead"):
        squared.sum().backward()


def test_a_version_long_past_is_told_as_a_bound():
    x, weight = leaf(leafgrad, 1.0), leafgrad.ones(1, dtype=leafgrad.float64)
    out = x * weight
    for _ in range(40):
        weight.add_(1)
    with pytest.raises(RuntimeError, match="is at version 40; expected version 24 or an earlier one instead"):
        out.backward()


# ---- saved tensors ----------------------------------------------------------------------------------------------


def test_saved_tensors_hooks(t):
    x, y, order = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0), []

    def pack(saved):
        order.append("pack")
        return saved * 1

    def unpack(kept):
        order.append("unpack")
        return kept * 10

    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        out = x * y
    out.sum().backward()
    assert order == ["pack", "pack", "unpack", "unpack"]
    assert (x.grad.tolist(), y.grad.tolist()) == ([30.0, 40.0], [10.0, 20.0])


def test_the_innermost_hooks_count(t):
    x, order = leaf(t, 1.0), []

    def hooks(name):
        return t.autograd.graph.saved_tensors_hooks(lambda saved: (order.append(name), saved)[1], lambda kept: kept)

    with hooks("outer"):
        y = x.exp()
        with hooks("inner"):
            y = y.exp()
        y = y.exp()
    y.exp().backward()
    assert order == ["outer", "inner", "outer"]


def test_packed_values_are_part_of_the_graph(t):
    x = leaf(t, 0.5, 1.0)
    with t.autograd.graph.saved_tensors_hooks(lambda saved: saved.numpy(force=True), t.from_numpy):
        y = x**3
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [0.75, 3.0]
    assert t.autograd.grad(g.sum(), x)[0].tolist() == [3.0, 6.0]


def test_packed_values_of_functions(t):
    class Exp(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            _, y = ctx.saved_tensors
            return g * y

    x, count = leaf(t, 0.0), []
    with t.autograd.graph.saved_tensors_hooks(lambda saved: (count.append(1), saved)[1], lambda kept: kept * 2):
        y = Exp.apply(x)
    y.backward()
    assert (len(count), x.grad.tolist()) == (2, [2.0])


def test_packed_values_are_not_checked_for_writes(t):
    x, weight = leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64)
    with t.autograd.graph.saved_tensors_hooks(lambda saved: saved.clone(), lambda kept: kept):
        out = x * weight
    weight.add_(5)
    out.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_hooks_that_do_what_they_must_not(t):
    hooks = t.autograd.graph.saved_tensors_hooks
    x = leaf(t, 1.0)
    with hooks(lambda saved: 3, lambda kept: kept):
        y = x * x
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type"):
        y.backward()
    with hooks(lambda saved: saved.add_(1), lambda kept: kept), pytest.raises(RuntimeError, match="in place"):
        _ = (x * 1).exp()


def test_disabled_hooks(t):
    graph = t.autograd.graph
    hooks = graph.saved_tensors_hooks(lambda saved: saved, lambda kept: kept)
    with graph.disable_saved_tensors_hooks("not now"), pytest.raises(RuntimeError, match="not now"):
        hooks.__enter__()
    refusal = graph.disable_saved_tensors_hooks("nor here")
    with hooks, pytest.raises(RuntimeError, match="nor here"):
        refusal.__enter__()


def test_save_on_cpu(t):
    x = leaf(t, 1.0, 2.0)
    with t.autograd.graph.save_on_cpu():
        y = (x * x * x).sum()
    y.backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_saved_tensors_wait_on_the_cpu(device):
    x = leafgrad.tensor([1.0, 2.0], device=device, requires_grad=True)
    with leafgrad.autograd.graph.save_on_cpu():
        y = x * x
    _, kept = y._node.saved[0].value
    assert kept.device.type == "cpu"
    y.sum().backward()
    assert (x.grad.device, x.grad.tolist()) == (x.device, [2.0, 4.0])


WRITTEN = {
    "a saved argument": (lambda b: (b**2).sum(), [2.0, 4.0]),
    "a saved result": (lambda b: b.exp().sin_().zero_().sum(), [0.0, 0.0]),
    "a view": (lambda b: (b[:1] ** 2).sum(), [2.0, 0.0]),
    "several": (lambda b: (b**2).sum() + (b * b.detach()).sum(), [3.0, 6.0]),
}


@pytest.mark.parametrize(("f", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_saved_tensors_may_be_written_in_a_context(t, f, expected):
    a = t.tensor([1.0, 2.0], requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        out = f(b)
        b.zero_()
        out.backward()
    assert a.grad.tolist() == expected


def test_copies_of_saved_tensors_serve_derivatives_of_derivatives(t):
    a = t.tensor([1.0, 2.0], requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        out = (b**3).sum()
        b.zero_()
        (g,) = t.autograd.grad(out, a, create_graph=True)
        (h,) = t.autograd.grad(g.sum(), a)
    assert (g.tolist(), h.tolist()) == ([3.0, 12.0], [6.0, 12.0])


def test_copies_of_saved_tensors_end_with_the_context(t):
    a = t.tensor([1.0, 2.0], requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors() as copies:
        left, cleared = (a**2).sum(), (a**2).sum()
        copies.clear()
        with pytest.raises(AssertionError, match="Trying to backward outside"):
            cleared.backward()
        with pytest.raises(RuntimeError, match="cannot be nested"), t.autograd.graph.allow_mutation_on_saved_tensors():
            pass
    with pytest.raises(AssertionError, match="Trying to backward outside"):
        left.backward()


# ---- in compiled steps ------------------------------------------------------------------------------------------


def twice(make):
    """What a step leaves behind after a few calls, by itself and compiled."""
    found = []
    for wrap in (lambda step: step, leafgrad.compile):
        step, state = make()
        step = wrap(step)
        results = [str(step()) for _ in range(4)]
        found.append((results, state()))
    return found


def hooked_leaf():
    p, seen = leafgrad.ones(3, requires_grad=True), []
    p.register_post_accumulate_grad_hook(lambda q: seen.append(q.grad.tolist()))
    (p * 1).grad_fn.next_functions[0][0].register_prehook(lambda outputs: (outputs[0] * 3,))

    def step():
        p.grad = None
        (p * p).sum().backward()

    return step, lambda: (seen, p.grad.tolist())


def hooked_node():
    p = leafgrad.ones(3, requires_grad=True)

    def step():
        p.grad = None
        y = p * p
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2, inputs[1]))
        y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 3,))
        y.sum().backward()

    return step, lambda: p.grad.tolist()


def packed_values():
    p, seen = leafgrad.tensor([0.5, 1.0], requires_grad=True), []

    def step():
        p.grad = None
        with leafgrad.autograd.graph.saved_tensors_hooks(
            lambda saved: (seen.append(tuple(saved.shape)), saved * 2)[1], lambda kept: kept / 2
        ):
            y = (p * p).exp()
        y.sum().backward()

    return step, lambda: (seen, p.grad.tolist())


def frozen_meanwhile():
    p, q = leafgrad.ones(3, requires_grad=True), leafgrad.ones(3, requires_grad=True)

    def step():
        p.grad = q.grad = None
        y = (p * q).sum()
        p.requires_grad_(False)
        y.backward()
        p.requires_grad_(True)

    return step, lambda: (p.grad, q.grad.tolist())


def seen_from_inside():
    p = leafgrad.ones(3, requires_grad=True)
    count = leafgrad.zeros(1)

    def step():
        count.add_(1)
        node = (p * p).unsqueeze(0).sum().grad_fn
        return count._version, node.name(), [n.name() for n, _ in node.next_functions]

    return step, lambda: count._version


@pytest.mark.parametrize("make", [hooked_leaf, hooked_node, packed_values, frozen_meanwhile, seen_from_inside])
def test_compiled_steps_do_the_same(make):
    eager, compiled = twice(make)
    assert compiled == eager


def test_a_hook_that_comes_after_compilation_runs():
    p, seen = leafgrad.ones(3, requires_grad=True), []

    def step():
        p.grad = None
        (p * p).sum().backward()

    compiled = leafgrad.compile(step)
    compiled()
    for kind in (p, (p * 1).grad_fn.next_functions[0][0]):
        register = getattr(kind, "register_post_accumulate_grad_hook", None) or kind.register_prehook
        handle = register(lambda _: seen.append(1))
        compiled()
        handle.remove()
        compiled()
    assert seen == [1, 1]
