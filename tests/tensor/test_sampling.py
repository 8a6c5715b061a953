"""Random tensors whose distributions are given by tensors."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

import leafgrad
from leafgrad.ops import random as ops

MANY = 20_000


def test_multinomial_without_replacement_draws_each_place_once_and_none_of_weight_zero(device):
    weights = leafgrad.tensor([[0.1, 0.0, 5.0, 1.0], [1.0, 1.0, 1.0, 0.0]], device=device)
    counts = np.zeros((2, 4))
    for _ in range(300):
        chosen = leafgrad.multinomial(weights, 2).tolist()
        for row, (a, b) in enumerate(chosen):
            assert a != b
            counts[row, [a, b]] += 1
    assert counts[0, 1] == counts[1, 3] == 0
    assert counts[0, 2] > counts[0, 3] > counts[0, 0]


def test_multinomial_with_replacement_draws_by_weight_from_many(device):
    weights = leafgrad.arange(60_000, device=device) % 4  # each draw beside each weight would take 4 GB
    shares = np.bincount(leafgrad.multinomial(weights.double(), 60_000, replacement=True).cpu().numpy() % 4)
    assert shares[0] == 0
    assert np.abs(shares[1:] / 60_000 - np.array([1, 2, 3]) / 6).max() < 0.01
    rows = leafgrad.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.5]], device=device)
    assert leafgrad.multinomial(rows, 4, replacement=True).tolist() == [[1] * 4, [0] * 4, [2] * 4]


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 9.9, 10.0, 37.0, 5000.0])
def test_poisson_numbers_have_the_probabilities(rate, device):
    generator = leafgrad.Generator(device).manual_seed(2)
    drawn = leafgrad.poisson(leafgrad.full((MANY,), rate, device=device), generator=generator)
    assert (drawn.dtype, drawn.device) == (leafgrad.float32, device)
    values = drawn.cpu().numpy()
    assert abs(values.mean() - rate) <= 5 * math.sqrt(rate / MANY)
    assert rate == 0 or abs(values.var() / rate - 1) < 0.08
    counts = np.bincount(values.astype(int))
    expected = stats.poisson(rate).pmf(np.arange(len(counts))) * MANY
    often = expected > 20
    assert (np.abs(counts - expected)[often] < 5 * np.sqrt(expected[often]) + 1).all()


def test_gradients_pass_bernoulli_as_zero():
    p = leafgrad.tensor([0.5, 0.5], requires_grad=True)
    (leafgrad.bernoulli(p) * p).sum().backward()
    assert set(p.grad.tolist()) <= {0.0, 1.0}
    assert ops.bernoulli.differentiable


@pytest.mark.parametrize("wrong", [-0.5, 1.5, math.nan])
def test_probabilities_of_bernoulli_are_looked_at(wrong):
    for call in (leafgrad.bernoulli, lambda p: leafgrad.ones(2).bernoulli_(p), leafgrad.compile(leafgrad.bernoulli)):
        with pytest.raises(RuntimeError, match=r"expected probabilities in \[0, 1\]"):
            call(leafgrad.tensor([0.5, wrong]))


@pytest.mark.parametrize("replacement", [False, True])
def test_weights_of_multinomial_are_looked_at(replacement):
    for wrong in (-1.0, math.inf, math.nan):
        with pytest.raises(RuntimeError, match="probability tensor contains either `inf`, `nan` or element < 0"):
            leafgrad.multinomial(leafgrad.tensor([1.0, wrong]), 1, replacement)
    with pytest.raises(RuntimeError, match="invalid multinomial distribution"):
        leafgrad.multinomial(leafgrad.tensor([[1.0, 1.0], [0.0, 0.0]]), 1, replacement)
    assert leafgrad.multinomial(leafgrad.ones(0, 3), 2, replacement).shape == (0, 2)


def test_what_cannot_be_drawn_from_is_an_error_on_every_device(device):
    wrong = leafgrad.tensor([-1.0, 0.5], device=device)
    for draw in (leafgrad.bernoulli, lambda p: leafgrad.multinomial(p, 1), leafgrad.poisson):
        with pytest.raises(RuntimeError, match=r"in \[0, 1\]|element < 0|non-negative"):
            draw(wrong)


def test_multinomial_of_a_weight_zero_warns_of_nothing(device):
    least = 1e-45 if device.type != "cuda" else 1e-37  # CuPy takes numbers below the least normal one for 0
    for weights in ([0.0, 1.0], [0.0, 1.0, least]):
        count = sum(w > 0 for w in weights)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = leafgrad.multinomial(leafgrad.tensor(weights, device=device), count)
        assert sorted(drawn.tolist()) == list(range(1, len(weights)))
