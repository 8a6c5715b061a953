"""How an op runs on a batch: results lie in memory as those of each sample would."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import op, rules
from leafgrad.func import grad, vmap

X = leafgrad.arange(12.0).reshape(2, 2, 3)


def of_product(x):
    b = x.t() * 2
    flat = b.reshape(-1)  # a copy, for b lies as x does
    b.mul_(10)
    return flat


def of_clone(x):
    b = x.t().clone()
    b.reshape(-1).mul_(10)
    return b


def of_two(x):
    b = leafgrad.where(x.t() > 3, x.t(), leafgrad.ones(3, 2))
    b.reshape(-1).mul_(10)
    return b


def of_another_dtype(x):
    b = x.t().double()
    b.reshape(-1).mul_(10)
    return b


def of_zeros(x):
    b = leafgrad.zeros_like(x.t())
    b.reshape(-1).add_(1)
    return b + x.t()


def as_a_view(x):
    return (x.t() + 1).t().view(-1)


def after_a_write(x):
    b = x.t() * 2
    b.add_(1)
    return b.t().view(-1)


def of_a_batch_within(x):
    return vmap(of_clone)(x.expand(2, 2, 3) + 0)


def of_gradients(x):
    return grad(lambda x: of_product(x).sum())(x)


STEPS = [
    of_product, of_clone, of_two, of_another_dtype, of_zeros, as_a_view, after_a_write, of_a_batch_within, of_gradients,
]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("step", STEPS)
def test_what_shares_memory_is_what_does_in_a_loop(step, dim, compiled):
    x = X.movedim(0, dim)
    batched = vmap(step, in_dims=dim)
    batched = leafgrad.compile(batched) if compiled else batched
    expected = leafgrad.stack([step(x.select(dim, k)) for k in range(2)])
    for _ in range(3 if compiled else 1):
        assert leafgrad.equal(batched(x), expected)


def test_samples_lie_as_they_would_outside():
    vmap(lambda x: lies(x.t() * 2))(X)


def lies(x):
    assert x.stride() == (1, 3)
    assert not x.is_contiguous()
    return x


def reversing(rule):
    """A view that runs sample by sample, or by a rule of its own."""
    made = op("view", name="reversing")(lambda xp, x: x[..., ::-1])
    made.vjp(x=lambda g: rules.flip(g, (-1,)))
    made.batched(lambda call: call.again(call.front(0)) if rule else call.sample_by_sample())
    return made


FACTORS = leafgrad.tensor([1.0, 10.0, 100.0])


def through_the_view(view, x):
    w = x * 2
    view(w).mul_(FACTORS)
    return w


def through_the_base(view, x):
    w = x * 2
    y = view(w)
    w.mul_(FACTORS)
    return y


def through_a_part_of_it(view, x):
    w = x * 2
    view(w)[..., :1].mul_(5)
    return w


def with_gradients(view, x):
    return grad(lambda x: through_the_view(view, x).sum())(x)


WRITES = [through_the_view, through_the_base, through_a_part_of_it, with_gradients]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rule", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_writes_through_a_view_of_which_steps_of_the_batch_are_not_known(write, rule, compiled):
    view = reversing(rule)
    batched = vmap(lambda x: write(view, x))
    twice = vmap(batched, in_dims=1, out_dims=1)
    for run, x in ((batched, X[0]), (twice, X)):
        expected = leafgrad.stack([write(view, row) for row in x.reshape(-1, 3)]).reshape(x.shape)
        assert leafgrad.equal((leafgrad.compile(run) if compiled else run)(x), expected)


def test_writes_through_a_view_of_the_argument(device):
    view, x = reversing(False), leafgrad.ones(2, 3, device=device)
    vmap(lambda x: view(x).mul_(FACTORS.to(device)))(x)
    assert x.tolist() == [[100.0, 10.0, 1.0]] * 2
