"""Look-ups in tables: rows, bags, norms that are kept, gradients by frequency."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.autograd import gradcheck, gradgradcheck
from leafgrad.nn import functional as F

TESTS = "nn.functional.embedding"

TABLE = np.random.default_rng(0).standard_normal((5, 3))
INDEX = [[1, 3, 1], [0, 2, 3]]
REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max}


@pytest.mark.parametrize("dtype", [lg.int64, lg.int32])
def test_rows(dtype, device):
    table = lg.tensor(TABLE, device=device)
    at = lg.tensor(INDEX, dtype=dtype, device=device)
    assert F.embedding(at, table).tolist() == TABLE[INDEX].tolist()


@pytest.mark.parametrize("wrong", [-1, 5])
def test_numbers_outside_the_table(wrong, device):
    layer = nn.Embedding(5, 3, device=device)
    with pytest.raises(IndexError, match="out of range in self: expected row numbers from 0 to 4"):
        layer(lg.tensor([0, wrong], device=device))


def test_long_rows_are_shortened_in_the_table(device):
    layer = nn.Embedding.from_pretrained(lg.tensor(TABLE * 2, device=device), max_norm=1.0)
    rows = layer(lg.tensor(INDEX, device=device))
    lengths = np.linalg.norm(TABLE * 2, axis=1, keepdims=True)
    expected = TABLE * 2 * np.where(lengths > 1, 1 / (lengths + 1e-7), 1)
    expected[4] = TABLE[4] * 2  # not looked up
    np.testing.assert_allclose(layer.weight.detach().cpu().numpy(), expected)
    np.testing.assert_allclose(rows.detach().cpu().numpy(), expected[INDEX])


def test_gradients_by_frequency():
    layer = nn.Embedding(5, 3, scale_grad_by_freq=True, padding_idx=0)
    layer(lg.tensor(INDEX)).sum().backward()
    assert layer.weight.grad.tolist() == [[0] * 3, [1] * 3, [1] * 3, [1] * 3, [0] * 3]


def test_rows_by_frequency_that_are_not_finite(t):
    table = t.tensor([[math.inf, 1.0], [math.nan, -math.inf]], requires_grad=True)
    rows = t.nn.functional.embedding(t.tensor([0, 1, 1]), table, scale_grad_by_freq=True)
    np.testing.assert_array_equal(rows.tolist(), np.array(table.tolist())[[0, 1, 1]])
    assert t.autograd.grad(rows, table, t.ones(3, 2))[0].tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_weights_of_padding_that_is_not_finite(t, value):
    table = t.tensor([[value, value], [2.0, 3.0]], requires_grad=True)
    weights = t.tensor([[5.0, 7.0]], requires_grad=True)
    bag = t.nn.functional.embedding_bag
    bags = bag(t.tensor([[0, 1]]), table, mode="sum", per_sample_weights=weights, padding_idx=0)
    assert bags.tolist() == [[14, 21]]
    slopes = t.autograd.grad(bags.sum(), (table, weights))
    assert [slope.tolist() for slope in slopes] == [[[0, 0], [7, 7]], [[0, 5]]]


@pytest.mark.parametrize("mode", REDUCE)
def test_bags(mode, device):
    table = lg.tensor(TABLE, device=device)
    expected = [REDUCE[mode](TABLE[row], 0) for row in INDEX]
    bags = F.embedding_bag(lg.tensor(INDEX, device=device), table, mode=mode)
    np.testing.assert_allclose(bags.cpu().numpy(), expected)
    flat, starts = lg.tensor([1, 3, 1, 0, 2, 3], device=device), lg.tensor([0, 3, 3], device=device)
    bags = F.embedding_bag(flat, table, starts, mode=mode)
    np.testing.assert_allclose(bags.cpu().numpy(), [expected[0], [0, 0, 0], expected[1]])
    ends = lg.tensor([0, 3, 3, 6], device=device)
    assert F.embedding_bag(flat, table, ends, mode=mode, include_last_offset=True).tolist() == bags.tolist()


@pytest.mark.parametrize("mode", REDUCE)
def test_padding_is_not_in_a_bag(mode):
    bags = F.embedding_bag(lg.tensor([[1, 3, 1], [1, 1, 1]]), lg.tensor(TABLE), mode=mode, padding_idx=-4)
    np.testing.assert_allclose(bags.numpy(), [TABLE[3], [0, 0, 0]])


def test_the_first_of_equal_rows_in_a_bag_takes_the_gradient(t):
    at, starts = t.tensor([0, 2, 1, 2, 1, 0]), t.tensor([0, 3, 3, 4])

    def slopes(table, padding_idx=None):
        bags = t.nn.functional.embedding_bag(at, table, starts, mode="max", padding_idx=padding_idx)
        return t.autograd.grad((bags * t.tensor([[1.0], [2], [3], [4]])).sum(), table)[0]

    table = t.tensor([[0.0, 1], [0, 0], [0, 1]], requires_grad=True)
    for function in (slopes, lg.compile(slopes) if t is lg else slopes):
        assert function(table).tolist() == [[1, 5], [4, 0], [3, 3]]
        assert function(table, 0).tolist() == [[0, 0], [4, 4], [4, 4]]


def test_gradients_of_bags():
    at = lg.tensor([1, 3, 1, 0])
    starts = lg.tensor([0, 2, 2])
    weights = lg.tensor([0.5, 2.0, 1.0, -1.0], dtype=lg.float64, requires_grad=True)
    table = lg.tensor(TABLE, requires_grad=True)
    for mode in REDUCE:

        def bags(table, mode=mode):
            return F.embedding_bag(at, table, starts, mode=mode).sin()

        assert gradcheck(bags, [table])
        assert gradgradcheck(bags, [table])

    def weighted(table, weights):
        return F.embedding_bag(at, table, starts, mode="sum", per_sample_weights=weights)

    assert gradcheck(weighted, [table, weights])
    assert gradgradcheck(weighted, [table, weights])


def test_made_from_a_table():
    table = lg.ones(4, 2)
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not bag.weight.requires_grad
    assert bag(lg.tensor([[0, 1, 2]])).tolist() == [[3, 3]]
    assert nn.Embedding.from_pretrained(table, freeze=False, padding_idx=-1).padding_idx == 3
    assert repr(bag) == "EmbeddingBag(4, 2, mode='sum')"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda at, w: F.embedding(at, w, sparse=True), NotImplementedError, "there are no sparse tensors"),
        (lambda at, w: nn.Embedding(3, 2, sparse=True), NotImplementedError, "there are no sparse tensors"),
        (lambda at, w: nn.Embedding(3, 2, _weight=w), ValueError, "Shape of weight does not match"),
        (lambda at, w: F.embedding(at.float(), w), RuntimeError, "expected an integer tensor of row numbers"),
        (lambda at, w: F.embedding(at, w, padding_idx=7), ValueError, "padding_idx must be within num_embeddings=5"),
        (lambda at, w: F.embedding_bag(at[0], w), ValueError, "offsets has to be a 1D Tensor but got None"),
        (lambda at, w: F.embedding_bag(at, w, at[0]), ValueError, "if input is 2D, then offsets has to be None"),
        (lambda at, w: F.embedding_bag(at, w, mode="min"), ValueError, "mode has to be one of sum, mean or max"),
        (
            lambda at, w: F.embedding_bag(at, w, per_sample_weights=at.float()),
            *(NotImplementedError, "per_sample_weights is only supported for mode='sum'"),
        ),
        (lambda at, w: F.one_hot(at, 3), RuntimeError, "Class values must be smaller than num_classes=3"),
        (lambda at, w: F.one_hot(-at), RuntimeError, "Class values must be non-negative"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(lg.tensor(INDEX), lg.tensor(TABLE))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_first_bag_starts_at_the_first_index(mode):
    with pytest.raises(ValueError, match="mode 'max' does not scale gradients by frequency"):
        F.embedding_bag(lg.tensor([[1]]), lg.ones(2, 2), mode="max", scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
        F.embedding_bag(lg.tensor([1, 2, 0]), lg.ones(3, 2), lg.tensor([1, 2]), mode=mode)


@pytest.mark.parametrize(
    ("offsets", "last", "text"),
    [
        ([-1, 2], False, r"offsets\[0\] has to be 0"),
        ([0, 9], False, r"offsets\[-1\] can not be greater than input's length 4"),
        ([0, 2, 5], True, r"offsets\[-1\] can not be greater than input's length 4"),
        ([0, -1], False, "offsets: expected the starts of the bags in ascending order"),
        ([0, 3, 1], False, "offsets: expected the starts of the bags in ascending order"),
        ([0, 9, 4], True, "offsets: expected the starts of the bags in ascending order"),
    ],
)
def test_offsets_ascend_within_the_input(offsets, last, text, device):
    table, at = lg.tensor(TABLE, device=device), lg.tensor([0, 1, 2, 3], device=device)

    def bags(offsets):
        return F.embedding_bag(at, table, offsets, include_last_offset=last)

    wrong = lg.tensor(offsets, device=device)
    compiled = lg.compile(bags)
    for _ in range(2):
        compiled(wrong * 0)
    for function in (bags, compiled):
        with pytest.raises(RuntimeError, match=text):
            function(wrong)


def test_offsets_of_samples():
    at, offsets = lg.tensor([0, 1, 2, 3]), lg.tensor([[0, 2], [0, 4], [0, 0]])
    table = lg.tensor(TABLE)
    both = lg.vmap(lambda o: F.embedding_bag(at, table, o, mode="sum"))(offsets)
    for bags, split in zip(both.tolist(), (2, 4, 0), strict=True):
        np.testing.assert_allclose(bags, [TABLE[:split].sum(0), TABLE[split:4].sum(0)])


def test_ends_of_offsets(t):
    at, table, bag = t.tensor([0, 1, 2]), t.tensor([[1.0], [2], [4]]), t.nn.functional.embedding_bag
    assert bag(at, table, t.tensor([0, 2]), mode="sum", include_last_offset=True).tolist() == [[3]]
    assert bag(at, table, t.tensor([], dtype=t.int64), mode="sum").shape == (0, 1)
    for offsets, last in (([0.0], False), ([], True)):
        with pytest.raises(RuntimeError, match=r"offset|indices"):
            bag(at, table, t.tensor(offsets, dtype=None if offsets else t.int64), include_last_offset=last)


def test_memory_of_bags_grows_with_their_number():
    n = 4000
    at, offsets, table = lg.arange(n) % 5, lg.arange(n), lg.tensor(TABLE)
    tracemalloc.start()
    try:
        F.embedding_bag(at, table, offsets, mode="sum")
        assert tracemalloc.get_traced_memory()[1] < n * n / 4
    finally:
        tracemalloc.stop()
