"""In a compiled step memory lies as in an uncompiled one: what is a view, what may be written through what, strides."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad


def transposed_product(x, w):
    return (x * w).transpose(0, 1)


def made_in_the_order_of_another(x, w):
    return leafgrad.zeros_like(x) + w.transpose(0, 1).exp().transpose(0, 1)


def written_through_a_view(x, w):
    y = x * 1.0
    y.transpose(0, 1).add_(w.transpose(0, 1))
    return y


def written_through_what_is_a_copy(x, w):
    y = x * w
    y.reshape(-1)[:3] = 7.0
    return y


def asked_how_it_lies(x, w):
    y = x.exp()
    return y * 2 if y.is_contiguous() else y + y.stride(0)


def in_order_again(x, w):
    y = (x + w).contiguous()
    y.reshape(-1)[:3] = 7.0
    return y


def mapped_over_columns(x, w):
    y = leafgrad.func.vmap(lambda r: r * 2, in_dims=1, out_dims=1)(x * w)
    y.reshape(-1)[:3] = 7.0
    return y


def written_inside_vmap(x, w):
    def halved(r):
        y = leafgrad.func.vmap(lambda e: e * 1.0)(r)
        y.reshape(-1)[:1] = 3.0
        return y

    return leafgrad.func.vmap(halved, in_dims=1)(x + w)


def written_into_what_vmap_was_given(x, w):
    y = x * w
    leafgrad.func.vmap(lambda r: leafgrad.func.vmap(lambda e: e.mul_(2.0))(r[1:]), in_dims=1)(y)
    return y


def written_into_what_vmap_gave(x, w):
    y = leafgrad.func.vmap(lambda r: r.exp(), in_dims=1, out_dims=1)(x)
    y.mul_(w)
    y[1:].add_(1.0)
    return y


STEPS = [
    transposed_product,
    made_in_the_order_of_another,
    written_through_a_view,
    written_through_what_is_a_copy,
    asked_how_it_lies,
    in_order_again,
    mapped_over_columns,
    written_inside_vmap,
    written_into_what_vmap_was_given,
    written_into_what_vmap_gave,
]


@pytest.mark.parametrize("executor", ["replay", "numpy", "native"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_results_have_the_strides_of_an_uncompiled_step(step, executor):
    x, w = leafgrad.randn(4, 3).T, leafgrad.randn(3, 4)
    compiled = leafgrad.compile(step, executor=executor)
    for given in ((x, w), (w, x), (w, w * 2), (x, x * 2)) * 4:
        expected, got = step(*given), compiled(*given)
        assert (got.stride(), got.is_contiguous()) == (expected.stride(), expected.is_contiguous())
        for y in (expected, got):
            y.reshape(-1)[0] = 9.0  # a copy, where it does not lie in order
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5)


def test_the_same_for_every_sample_is_in_one_place():
    def step(x):
        return leafgrad.vmap(lambda a: leafgrad.vmap(lambda _: a.sum())(a))(x)

    compiled, x = leafgrad.compile(step), leafgrad.randn(3, 4)
    for _ in range(3):
        assert compiled(x).stride() == step(x).stride() == (1, 0)
        with pytest.raises(RuntimeError, match="refers to a single memory location"):
            compiled(x).add_(1.0)


def test_a_copy_of_what_is_large_and_transposed():
    x = leafgrad.ones(2000, 2000)
    compiled = leafgrad.compile(lambda x: (x.T * 2).reshape(-1))
    assert compiled(x)[-1] == 2  # was a crash while recording


def test_what_cannot_be_a_view_is_an_error_there_too():
    compiled = leafgrad.compile(lambda x: (x.T * 2).view(-1))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            compiled(leafgrad.ones(3, 4))


def test_new_gradients_lie_as_their_leaves_do():
    leaf = leafgrad.randn(4, 3).T.requires_grad_()

    def step():
        leaf.grad = None
        (leaf * leaf).sum().backward()

    compiled = leafgrad.compile(step)
    for _ in range(4):
        compiled()
        assert leaf.grad.stride() == leaf.stride() == (1, 3)


@pytest.mark.parametrize("executor", ["replay", "numpy", "native"])
def test_a_gradient_that_comes_in_another_order_lies_as_its_leaf(executor):
    class Turned(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g.T.contiguous().T * 3

    def step(leaf):
        leaf.grad = None
        Turned.apply(leaf).square().sum().backward()
        return leaf.grad, leafgrad.autograd.grad(Turned.apply(leaf).sum(), leaf)[0]

    leaf = leafgrad.ones(3, 4, requires_grad=True)
    compiled = leafgrad.compile(step, executor=executor)
    for _ in range(3):
        assert [g.stride() for g in compiled(leaf)] == [g.stride() for g in step(leaf)] == [(4, 1)] * 2


@pytest.mark.parametrize("kept", ["argument", "result"])
@pytest.mark.parametrize("part", [lambda t: t, lambda t: t[0:2], lambda t: t[1], lambda t: t.T], ids=list("wsre"))
def test_gradients_see_what_was_written_through_data(kept, part):
    def step(w):
        s = part(w * 1.0)
        y = s * s if kept == "argument" else s.exp()
        (s if kept == "argument" else y).data.reshape(-1)[0:1].mul_(3.0)
        return leafgrad.autograd.grad(y.sum(), w)[0]

    w = leafgrad.randn(3, 3, requires_grad=True)
    compiled = leafgrad.compile(step)
    for _ in range(4):
        np.testing.assert_allclose(compiled(w).numpy(), step(w).numpy(), rtol=1e-6)


@pytest.mark.parametrize("show", [lambda t: t[0], lambda t: t.reshape(-1), lambda t: t[1:], lambda t: t.detach()])
def test_views_of_a_leaf_that_shows_an_argument_show_it_too(show):
    def step(x):
        return show(x.detach().requires_grad_())

    compiled = leafgrad.compile(step)
    for _ in range(4):
        x = leafgrad.zeros(3, 3)
        with leafgrad.no_grad():
            compiled(x).add_(1.0)
        expected = leafgrad.zeros(3, 3)
        with leafgrad.no_grad():
            step(expected).add_(1.0)
        assert x.tolist() == expected.tolist()


def test_memory_lies_so_between_the_parts_of_an_open_step_too():
    def step(x):
        y = x + 1
        return y * 2 if y.sum().item() > 1e9 else y.sin()

    x = leafgrad.randn(4, 3).T
    compiled = leafgrad.compile(step)
    for _ in range(4):
        assert compiled(x).stride() == step(x).stride() == (1, 3)


@pytest.mark.parametrize(
    "shown", [lambda g: g[0], lambda g: g.detach(), lambda g: g], ids=["part", "detached", "itself"]
)
def test_what_shows_a_gradient_shows_it_after_another_took_its_place(shown):
    leaf = leafgrad.ones(3, requires_grad=True)

    def step():
        before = shown(leaf.grad)
        leaf.grad = leafgrad.full((3,), 5.0)
        return before

    compiled = leafgrad.compile(step)
    for _ in range(4):
        leaf.grad = old = leafgrad.full((3,), 2.0)
        got = compiled()
        old.mul_(2.0)
        assert got.max() == 4
        assert leaf.grad.tolist() == [5.0] * 3


def test_gradients_of_one_sum_are_not_in_one_place():
    a, b = leafgrad.ones(3, requires_grad=True), leafgrad.ones(3, requires_grad=True)
    seed = leafgrad.ones(3)

    def step(x):
        return *leafgrad.autograd.grad(((a + b) * x).sum(), [a, b]), *leafgrad.autograd.grad(a + b, [a, b], seed)

    for run in (step, *[leafgrad.compile(step)] * 4):
        for g in (gradients := run(leafgrad.ones(3))):
            g.mul_(2.0)
        assert [g.tolist() for g in (*gradients, seed)] == [[2.0] * 3] * 4 + [[1.0] * 3]


def test_memory_given_by_data_lies_as_it_was_made():
    def step(t):
        t.data = t.data.T * 2
        return t * (t.stride(0) + 1)

    compiled = leafgrad.compile(step)
    for _ in range(4):
        t = leafgrad.ones(3, 3)
        assert compiled(t)[0, 0] == 4
        assert t.stride() == (1, 3)


def test_what_was_detached_can_be_detached_in_place():
    leaf = leafgrad.ones(3, requires_grad=True)
    optimizer = leafgrad.optim.SGD([leaf], lr=0.1)

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        leaf.grad = x.detach()
        with pytest.raises(RuntimeError, match="Can't detach views in-place"):
            x.detach()[1:].detach_()
        return x[1:].detach().detach_()

    compiled = leafgrad.compile(step)
    for _ in range(4):
        x = leafgrad.ones(3)
        compiled(x).add_(1.0)
        assert leaf.grad.tolist() == [1.0, 2.0, 2.0]


def test_what_is_computed_at_once_lies_in_order():
    x = leafgrad.eye(5)
    compiled = leafgrad.compile(lambda x: x.nonzero())
    assert {compiled(x).stride() for _ in range(4)} == {x.nonzero().stride()}


@pytest.mark.parametrize("bounds", [{"min": 0.2}, {"max": 0.8}, {"min": 0.2, "max": 0.8}])
def test_what_is_clamped_lies_as_it_was(bounds):
    def step(x):
        y = x.permute(0, 2, 1).clamp(**bounds)
        z = y.reshape(-1)
        z += 1
        return y.sum(), y * (2 if y.is_contiguous() else 3)

    compiled, x = leafgrad.compile(step), leafgrad.rand(2, 3, 4)
    for _ in range(3):
        for found, expected in zip(compiled(x), step(x), strict=True):
            assert leafgrad.allclose(found, expected)


@pytest.mark.parametrize("way", [lambda p: p[:], lambda p: p.T, lambda p: p.unsqueeze(0)])
def test_views_of_a_view_that_is_given_reach_all_of_its_memory(way):
    def step(p):
        return way(p).as_strided((2, 2), (3, 1)).mul_(2) + 1

    compiled = leafgrad.compile(step)
    for n in range(5):
        found, expected = (leafgrad.arange(18.0).reshape(3, 6) + n for _ in range(2))
        assert compiled(found[:, ::2]).tolist() == step(expected[:, ::2]).tolist()
        assert found.tolist() == expected.tolist()
