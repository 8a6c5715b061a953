"""What happens to saved tensors: hooks that pack them, and copies of what is written."""

from __future__ import annotations

import pytest

import leafgrad


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


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


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "reciprocal"])
def test_an_output_that_is_written_after_a_recorded_pass_is_noticed_under_hooks(name):
    x = leafgrad.tensor([0.7, 1.3], requires_grad=True)
    with leafgrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = getattr(x, name)()
    (g,) = leafgrad.autograd.grad(y.sum(), x, create_graph=True)
    with leafgrad.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        leafgrad.autograd.grad((g * g).sum(), x)
