"""How an op runs on a batch: results lie in memory as those of each sample would."""

from __future__ import annotations

import pytest

import leafgrad
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
