"""Several gradients at once, versions, and hooks in compiled steps."""

from __future__ import annotations

import pytest

import leafgrad


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


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
